//! The fields of an encoded message. A few bytes can become a large struct, so the fields are counted before they are
//! decoded.

use prost::decode_length_delimiter;

/// The fields of a message, with the number of each and the bytes of those that have a length. It ends at the first field
/// that is not valid, where a decoder fails.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // A length has the form of every integer.
        let key = decode_length_delimiter(&mut self.0).ok()?;
        let content = match key & 7 {
            0 => {
                decode_length_delimiter(&mut self.0).ok()?;
                0
            }
            1 => 8,
            2 => decode_length_delimiter(&mut self.0).ok()?,
            // The beginning and the end of a group, whose fields count too.
            3 | 4 => 0,
            5 => 4,
            _ => return None,
        };
        let (content, rest) = self.0.split_at_checked(content)?;
        self.0 = rest;
        Some((key >> 3, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::Diagnostic;
    use crate::plugin::messages::{CheckResponse, IdentityAttribute, StdioData};
    use prost::Message as _;

    fn numbers(bytes: &[u8]) -> Vec<usize> {
        Fields(bytes).map(|(number, _)| number).collect::<Vec<_>>()
    }

    #[test]
    fn every_field_is_counted() {
        let diagnostics = vec![Diagnostic::default(), Diagnostic { summary: "a".into(), ..<_>::default() }];
        let diagnostics = CheckResponse { diagnostics }.encode_to_vec();
        assert_eq!(Fields(&diagnostics).collect::<Vec<_>>(), [(1, &b""[..]), (1, &[18, 1, b'a'][..])]);
        let attribute = IdentityAttribute { required_for_import: true, description: "d".into(), ..<_>::default() };
        assert_eq!(numbers(&attribute.encode_to_vec()), [3, 5]);
        assert_eq!(numbers(&StdioData { channel: -1, data: vec![0; 300] }.encode_to_vec()), [1, 2]);
        // A number of 8 bytes, one of 4 bytes, and a group with a field.
        assert_eq!(numbers(&[0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 1, 2, 3, 4, 0x1b, 0x20, 1, 0x1c]), [1, 2, 3, 4, 3]);
    }

    #[test]
    fn the_fields_end_where_the_message_is_not_valid() {
        for bytes in [&[0x0a, 2, 1][..], &[0x0f], &[0x80], &[0x08], &[0x09, 1], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(Fields(bytes).count(), 0, "{bytes:?}");
        }
    }
}

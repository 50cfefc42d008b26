//! Finds the expressions in a string: from `${` to the closing `}`, by CEL's lexical rules.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// `$${`: a literal `${`.
    Escaped,
    /// The source between `${` and `}`, and its byte offset.
    Expression(&'a str, usize),
}

/// An expression without closing `}`: the byte offset of its `${`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed(pub usize);

/// Splits a string into pieces. Joined, they are the string.
pub fn split(text: &str) -> Result<Vec<Piece<'_>>, Unclosed> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("${") {
        let open = from + found;
        if open > start && text.as_bytes()[open - 1] == b'$' {
            push_text(&mut pieces, &text[start..open - 1]);
            pieces.push(Piece::Escaped);
            start = open + 2;
            from = start;
            continue;
        }
        push_text(&mut pieces, &text[start..open]);
        let length = end_of_expression(&text[open + 2..]).ok_or(Unclosed(open))?;
        pieces.push(Piece::Expression(&text[open + 2..open + 2 + length], open + 2));
        start = open + 2 + length + 1;
        from = start;
    }
    push_text(&mut pieces, &text[start..]);
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// Returns the length of the expression at the start of `text`: up to the first `}` that is not in a string or comment
/// and does not close a nested brace. All searched bytes are ASCII, so byte positions are character boundaries.
fn end_of_expression(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'{' => depth += 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at += bytes[at..].iter().position(|b| *b == b'\n')?,
            quote @ (b'"' | b'\'') => {
                at = end_of_string(bytes, at, quote, is_raw(bytes, at))?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns an upper limit for the depth of the expression's tree. It must be known before parsing, because the parser
/// and all functions that walk or drop the tree recurse.
pub fn nesting(text: &str) -> usize {
    // One level of recursion takes several calls in the parser.
    const RECURSION: usize = 4;
    let bytes = text.as_bytes();
    // The depth around each open bracket. Operands that are separated by a comma do not nest.
    let mut around = Vec::new();
    let (mut base, mut depth, mut deepest, mut at) = (0, 0, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at = end_of_string(bytes, at, quote, is_raw(bytes, at)).unwrap_or(bytes.len());
                continue;
            }
            b'(' | b'[' | b'{' => {
                around.push((base, depth));
                depth += RECURSION;
                base = depth;
            }
            b')' | b']' | b'}' => {
                // The operation after a call or an index contains it.
                (base, depth) = around.pop().map_or((0, depth), |(base, depth)| (base, depth + 1));
            }
            b',' => depth = base,
            b'!' | b'-' | b'?' | b':' => depth += RECURSION,
            b'.' | b'+' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' => depth += 1,
            // `in` is the only operator that is a word.
            b'i' if bytes[at..].starts_with(b"in ") => depth += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
        at += 1;
    }
    deepest
}

/// Whether the quote at `at` starts a raw string: `r"…"`, `br'…'`, where the prefix is a separate word.
fn is_raw(bytes: &[u8], at: usize) -> bool {
    let word = bytes[..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let prefix = &bytes[at - word..at];
    word <= 2 && prefix.iter().any(|b| matches!(b, b'r' | b'R')) && prefix.iter().all(|b| b"rRbB".contains(b))
}

/// Returns the offset after the string whose opening quote is at `at`.
fn end_of_string(bytes: &[u8], at: usize, quote: u8, raw: bool) -> Option<usize> {
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let closing: &[u8] = if triple { &[quote, quote, quote] } else { &[quote] };
    let mut at = at + closing.len();
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(closing) {
            return Some(at + closing.len());
        } else {
            at += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expressions(text: &str) -> Vec<&str> {
        split(text)
            .unwrap()
            .into_iter()
            .filter_map(|piece| if let Piece::Expression(source, _) = piece { Some(source) } else { None })
            .collect()
    }

    #[test]
    fn an_expression_ends_by_the_rules_of_cel() {
        for (text, expected) in [
            ("${a.b}", vec!["a.b"]),
            ("x ${a} y ${b} z", vec!["a", "b"]),
            ("${{'k': {'n': 1}}}", vec!["{'k': {'n': 1}}"]),
            (r#"${"}" + '}'}"#, vec![r#""}" + '}'"#]),
            (r#"${"\"}"}"#, vec![r#""\"}""#]),
            (r#"${r"\"}"#, vec![r#"r"\""#]),
            (r#"${"""a"}b"""}"#, vec![r#""""a"}b""""#]),
            ("${'''}'''}", vec!["'''}'''"]),
            ("${br'\\'}", vec!["br'\\'"]),
            ("${a // }\n}", vec!["a // }\n"]),
            ("$${a} ${b}", vec!["b"]),
            ("$$${a}", vec![]),
            ("$ {a}", vec![]),
        ] {
            assert_eq!(expressions(text), expected, "{text}");
        }
    }

    #[test]
    fn only_nested_operations_count_as_nesting() {
        assert_eq!(nesting("a.b + c"), 2);
        assert_eq!(nesting("[a.b, c.d, e.f]"), nesting("[a.b]"));
        assert_eq!(nesting("'(((((('"), 0);
        assert!(
            nesting(&"(".repeat(100)) >= 400 && nesting(&"a?".repeat(100)) >= 400 && nesting(&"a.".repeat(400)) >= 400
        );
    }

    #[test]
    fn an_unclosed_expression_is_found() {
        assert_eq!(split("a ${b"), Err(Unclosed(2)));
        assert_eq!(split("${'}"), Err(Unclosed(0)));
        assert_eq!(split("${{}"), Err(Unclosed(0)));
    }

    proptest! {
        #[test]
        fn joined_pieces_are_the_original_string(text in r#"([$}{"'\\r/ab\né]|\$\{|\$\$\{){0,40}"#) {
            if let Ok(pieces) = split(&text) {
                let joined: String = pieces.iter().map(|piece| match piece {
                    Piece::Text(text) => (*text).to_owned(),
                    Piece::Escaped => "$${".to_owned(),
                    Piece::Expression(source, _) => format!("${{{source}}}"),
                }).collect();
                prop_assert_eq!(joined, text);
            }
        }

        #[test]
        fn escaped_literals_survive(text in "[^$]{0,20}") {
            let escaped = format!("{text}$${{{text}");
            let pieces = split(&escaped).unwrap();
            let literal: String = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => *text,
                Piece::Escaped => "${",
                Piece::Expression(..) => "?",
            }).collect();
            prop_assert_eq!(literal, format!("{text}${{{text}"));
        }
    }
}

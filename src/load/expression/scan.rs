//! Finds the expressions in a text: `${` up to the `}` that closes it, seen with CEL's eyes.

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// `$${`, which stands for a literal `${`.
    Escaped,
    /// What stands between `${` and `}`, and the byte at which it begins.
    Expression(&'a str, usize),
}

/// An expression that no `}` closes, by the byte of its `${`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclosed(pub(super) usize);

/// Splits a text into its pieces. Joined, they are the text.
pub(super) fn split(text: &str) -> Result<Vec<Piece<'_>>, Unclosed> {
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

/// The length of the expression that `text` begins with: the first `}` that stands in no string, no comment and
/// closes no brace opened within. All bytes looked for are ASCII, so that byte positions are character boundaries.
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

/// How deep the tree of an expression can become at most, judged by its text. The parser, and whatever walks or drops
/// its tree, recurses, so that this must be known before.
pub(super) fn nesting(text: &str) -> usize {
    // What the parser recurses for takes several of its calls.
    const RECURSION: usize = 4;
    let bytes = text.as_bytes();
    // For each open bracket the depth around it; operands that a comma separates do not nest.
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
                // What follows a call or an index is built around it.
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

/// Whether the quote at `at` opens a raw string: `r"…"`, `br'…'`, with the prefix being a word of its own.
fn is_raw(bytes: &[u8], at: usize) -> bool {
    let word = bytes[..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let prefix = &bytes[at - word..at];
    word <= 2 && prefix.iter().any(|b| matches!(b, b'r' | b'R')) && prefix.iter().all(|b| b"rRbB".contains(b))
}

/// The byte after the string whose opening quote stands at `at`.
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
        let expression = |piece| if let Piece::Expression(source, _) = piece { Some(source) } else { None };
        split(text).unwrap().into_iter().filter_map(expression).collect()
    }

    #[test]
    fn an_expression_ends_where_cel_says_so() {
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
    fn only_what_nests_counts_as_nesting() {
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
        fn splitting_never_panics_and_loses_nothing(text in r#"([$}{"'\\r/ab\né]|\$\{|\$\$\{){0,40}"#) {
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

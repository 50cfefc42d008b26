//! Errors about single tokens, which no grammar is needed for.

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Range};
use crate::token::{Token, TokenKind};

/// The greatest number of errors about single tokens in a file: what has more is no text in this language.
const MAX_REPORTED: usize = 10;

/// Reports the tokens that are no part of the language. `broken` are the offsets of bytes that are not UTF-8.
pub(super) fn check(text: &str, tokens: &[Token], file: FileId, broken: &[u32]) -> Vec<Diagnostic> {
    let encoding = encoding(tokens, file, broken);
    if !encoding.is_empty() {
        return encoding;
    }
    let invalid = tokens.iter().filter(|token| token.kind.is_reported());
    let mut diagnostics = Vec::new();
    let mut quotes = 0;
    for token in invalid {
        // Every other quote is a closing one.
        quotes += usize::from(matches!(token.kind, TokenKind::Apostrophe | TokenKind::Backtick));
        let closes = matches!(token.kind, TokenKind::Apostrophe | TokenKind::Backtick) && quotes % 2 == 0;
        if closes || diagnostics.len() >= MAX_REPORTED {
            continue;
        }
        diagnostics.push(invalid_token(*token, text, file));
    }
    diagnostics
}

/// Comments may have any bytes in them.
fn encoding(tokens: &[Token], file: FileId, broken: &[u32]) -> Vec<Diagnostic> {
    let comments = tokens.iter().filter(|token| token.kind == TokenKind::Comment);
    let mut comments = comments.peekable();
    for offset in broken {
        while comments.next_if(|comment| comment.end <= *offset).is_some() {}
        if comments.peek().is_none_or(|comment| comment.start > *offset) {
            let range = Range { file, start: *offset, end: *offset + 1 };
            let diagnostic = Diagnostic::new("Invalid character encoding", "The file is not encoded in UTF-8.", range);
            return vec![diagnostic.hint("choose the encoding UTF-8 in your editor and save the file again")];
        }
    }
    Vec::new()
}

fn invalid_token(token: Token, text: &str, file: FileId) -> Diagnostic {
    let slice = &text[token.start as usize..token.end as usize];
    let (summary, detail, hint) = match token.kind {
        TokenKind::Ampersand => ("Unsupported operator", "There are no bitwise operators.", "for a logical \"and\", write `&&`"),
        TokenKind::Pipe => ("Unsupported operator", "There are no bitwise operators.", "for a logical \"or\", write `||`"),
        TokenKind::Tilde => ("Unsupported operator", "There are no bitwise operators.", "for a logical \"not\", write `!`"),
        TokenKind::Caret => ("Unsupported operator", "There are no bitwise operators.", "for a power, call `pow`"),
        TokenKind::Apostrophe => ("Invalid character", "A single quote encloses no strings.", "use double quotes"),
        TokenKind::Backtick => {
            ("Invalid character", "A backtick encloses no strings.", "for a string of many lines, use a heredoc: `<<EOT`")
        }
        TokenKind::Semicolon => {
            ("Invalid character", "A semicolon separates nothing.", "start a new line; in lists and objects, use a comma")
        }
        TokenKind::QuotedNewline => {
            let detail = "A quoted string ends on the line on which it begins.";
            ("Invalid multi-line string", detail, "write the line break as `\\n`, or use a heredoc: `<<EOT`")
        }
        _ if matches!(slice, "\u{201c}" | "\u{201d}") => {
            ("Invalid character", "Typographic quotes enclose no strings.", "use straight double quotes")
        }
        _ if slice == "\\" => {
            let hint = "inside `${ }`, write quotes without a backslash before them";
            ("Invalid character", "A backslash has no meaning outside of a text in quotes.", hint)
        }
        _ => ("Invalid character", "This character has no meaning here.", ""),
    };
    let diagnostic = Diagnostic::new(summary, detail, token.range(file));
    if hint.is_empty() { diagnostic } else { diagnostic.hint(hint) }
}

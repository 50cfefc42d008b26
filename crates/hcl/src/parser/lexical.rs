//! Errors about single tokens, which no grammar is needed for.

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Range};
use crate::token::{Token, TokenKind};

/// The greatest number of errors about single tokens in a file: what has more is no text in this language.
const MAX_REPORTED: usize = 10;

/// Reports the tokens that are no part of the language. Of some that follow each other, the first is reported.
pub fn check(text: &str, tokens: &[Token], file: FileId) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut quotes = 0;
    let mut last_end = None;
    for token in tokens.iter().filter(|token| token.kind.is_reported()) {
        let is_quote = matches!(token.kind, TokenKind::Apostrophe | TokenKind::Backtick);
        quotes += usize::from(is_quote);
        // Every other quote is a closing one.
        let is_consequence = last_end == Some(token.start) || is_quote && quotes % 2 == 0;
        last_end = Some(token.end);
        if !is_consequence && diagnostics.len() < MAX_REPORTED {
            diagnostics.push(invalid_token(*token, text, file));
        }
    }
    diagnostics
}

/// Reports the first byte that is not UTF-8, of those at the offsets `broken`. Comments may have any bytes in them.
pub fn check_encoding(tokens: &[Token], file: FileId, broken: &[u32]) -> Option<Diagnostic> {
    let mut comments = tokens.iter().filter(|token| token.kind == TokenKind::Comment).peekable();
    let offset = broken.iter().find(|offset| {
        while comments.next_if(|comment| comment.end <= **offset).is_some() {}
        comments.peek().is_none_or(|comment| comment.start > **offset)
    })?;
    let range = Range { file, start: *offset, end: *offset + 1 };
    let diagnostic = Diagnostic::new("Invalid character encoding", "The file is not encoded in UTF-8.", range);
    Some(diagnostic.hint("choose the encoding UTF-8 in your editor and save the file again"))
}

fn invalid_token(token: Token, text: &str, file: FileId) -> Diagnostic {
    let slice = &text[token.start as usize..token.end as usize];
    let (summary, detail, hint) = match token.kind {
        TokenKind::Ampersand => {
            ("Unsupported operator", "There are no bitwise operators.", "for a logical \"and\", write `&&`")
        }
        TokenKind::Pipe => {
            ("Unsupported operator", "There are no bitwise operators.", "for a logical \"or\", write `||`")
        }
        TokenKind::Tilde => {
            ("Unsupported operator", "There are no bitwise operators.", "for a logical \"not\", write `!`")
        }
        TokenKind::Caret => ("Unsupported operator", "There are no bitwise operators.", "for a power, call `pow`"),
        TokenKind::Apostrophe => ("Invalid character", "A single quote encloses no strings.", "use double quotes"),
        TokenKind::Backtick => (
            "Invalid character",
            "A backtick encloses no strings.",
            "for a string of many lines, use a heredoc: `<<EOT`",
        ),
        TokenKind::Semicolon => (
            "Invalid character",
            "A semicolon separates nothing.",
            "start a new line; in lists and objects, use a comma",
        ),
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

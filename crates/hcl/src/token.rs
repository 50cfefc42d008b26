//! Tokens of native syntax.

use crate::source::{FileId, Range};

/// A token: its kind and the bytes it was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Token {
    pub(crate) fn range(self, file: FileId) -> Range {
        Range { file, start: self.start, end: self.end }
    }

    pub(crate) fn len(self) -> u32 {
        self.end - self.start
    }
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    OpenQuote,
    CloseQuote,
    OpenHeredoc,
    CloseHeredoc,
    Star,
    Slash,
    Plus,
    Minus,
    Percent,
    Equal,
    EqualEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Bang,
    Dot,
    Comma,
    DoubleColon,
    Ellipsis,
    FatArrow,
    Question,
    Colon,
    /// `${` or `${~`.
    Interpolation,
    /// `%{` or `%{~`.
    Directive,
    /// `}` or `~}` at the end of an interpolation or a directive.
    SequenceEnd,
    /// A part of a quoted template; it may hold escapes with a backslash.
    QuotedLiteral,
    /// A part of a heredoc or of a template without quotes.
    Literal,
    Number,
    Identifier,
    /// A comment; one that starts with `#` or `//` includes its line break.
    Comment,
    Newline,
    EndOfFile,
    // What follows is no part of the language. Each has an error of its own.
    Ampersand,
    Pipe,
    Tilde,
    Caret,
    Apostrophe,
    Backtick,
    Semicolon,
    /// A line break inside a quoted template.
    QuotedNewline,
    Invalid,
}

impl TokenKind {
    /// Whether the lexer has reported the token: no token of this kind is part of the language.
    pub(crate) fn is_reported(self) -> bool {
        use TokenKind::{Ampersand, Apostrophe, Backtick, Caret, Invalid, Pipe, QuotedNewline, Semicolon, Tilde};
        matches!(self, Ampersand | Pipe | Tilde | Caret | Apostrophe | Backtick | Semicolon | QuotedNewline | Invalid)
    }

    /// The bracket that closes this one.
    pub(crate) fn closer(self) -> Option<TokenKind> {
        use TokenKind::{
            CloseBrace, CloseBracket, CloseHeredoc, CloseParen, CloseQuote, Directive, Interpolation, OpenBrace,
            OpenBracket, OpenHeredoc, OpenParen, OpenQuote, SequenceEnd,
        };
        match self {
            OpenBrace => Some(CloseBrace),
            OpenBracket => Some(CloseBracket),
            OpenParen => Some(CloseParen),
            OpenQuote => Some(CloseQuote),
            OpenHeredoc => Some(CloseHeredoc),
            Interpolation | Directive => Some(SequenceEnd),
            _ => None,
        }
    }

    pub(crate) fn is_closer(self) -> bool {
        use TokenKind::{CloseBrace, CloseBracket, CloseHeredoc, CloseParen, CloseQuote, SequenceEnd};
        matches!(self, CloseBrace | CloseBracket | CloseParen | CloseQuote | CloseHeredoc | SequenceEnd)
    }
}

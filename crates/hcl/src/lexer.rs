//! Text in, tokens out. Every byte of the text belongs to a token, except spaces and tabs between tokens.
//!
//! A template switches the lexer to another mode until its end, and an interpolation inside it switches back, so the
//! lexer holds a stack of modes instead of calling itself: input that nests without end costs memory in proportion.

mod template;

use unicode_ident::{is_xid_continue, is_xid_start};

use crate::token::{Token, TokenKind};

/// What the text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// A file, or an expression.
    Normal,
    /// A template without quotes.
    Template,
}

/// Returns the tokens of a text; the last one is `EndOfFile`.
pub(crate) fn lex(text: &str, start: Start) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        // A guess that is right for most files, so that the list seldom moves.
        tokens: Vec::with_capacity(text.len() / 5 + 2),
        mode: if start == Start::Template { Mode::Bare } else { Mode::Main },
        callers: Vec::new(),
        braces: 0,
        sequence_braces: Vec::new(),
        heredocs: Vec::new(),
        comments_close: true,
    };
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.at < lexer.bytes.len() {
        lexer.step();
    }
    lexer.emit(TokenKind::EndOfFile, 0);
    lexer.tokens
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Main,
    Quoted,
    Heredoc,
    Bare,
}

struct Heredoc<'a> {
    marker: &'a str,
    /// Whether the next token is the first of its line, so that the line can be the end marker.
    at_line_start: bool,
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    mode: Mode,
    /// The modes to return to.
    callers: Vec<Mode>,
    /// The number of braces that are open.
    braces: i64,
    /// For each open template sequence, the number of braces that were open within it when it began.
    sequence_braces: Vec<i64>,
    heredocs: Vec<Heredoc<'a>>,
    /// False once a `/*` was found that nothing closes: then there is no need to look again.
    comments_close: bool,
}

impl<'a> Lexer<'a> {
    fn step(&mut self) {
        match self.mode {
            Mode::Main => self.main(),
            Mode::Quoted => self.quoted(),
            Mode::Heredoc => self.heredoc(),
            Mode::Bare => self.bare(),
        }
    }

    fn emit(&mut self, kind: TokenKind, len: usize) {
        let start = self.at;
        self.at += len;
        self.tokens.push(Token { kind, start: start as u32, end: self.at as u32 });
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn enter(&mut self, mode: Mode) {
        self.callers.push(self.mode);
        self.mode = mode;
    }

    fn leave(&mut self) {
        self.mode = self.callers.pop().unwrap_or(Mode::Main);
    }

    /// Returns the length of the line break here, or 0.
    fn newline_len(&self) -> usize {
        match self.byte(0) {
            Some(b'\n') => 1,
            Some(b'\r') if self.byte(1) == Some(b'\n') => 2,
            _ => 0,
        }
    }

    fn char_len(&self) -> usize {
        self.rest().chars().next().map_or(1, char::len_utf8)
    }

    fn main(&mut self) {
        let Some(byte) = self.byte(0) else { return };
        match byte {
            b' ' | b'\t' => {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
            }
            b'0'..=b'9' => self.emit(TokenKind::Number, self.number_len()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.emit(TokenKind::Identifier, identifier_len(self.rest())),
            b'\r' | b'\n' if self.newline_len() > 0 => self.emit(TokenKind::Newline, self.newline_len()),
            b'"' => {
                self.emit(TokenKind::OpenQuote, 1);
                self.enter(Mode::Quoted);
            }
            b'#' => self.line_comment(),
            b'/' if self.byte(1) == Some(b'/') => self.line_comment(),
            b'/' if self.byte(1) == Some(b'*') => self.block_comment(),
            b'<' if self.byte(1) == Some(b'<') => self.open_heredoc(),
            b'{' => {
                self.emit(TokenKind::OpenBrace, 1);
                self.braces += 1;
            }
            b'}' => self.close_brace(TokenKind::CloseBrace, 1),
            b'~' if self.byte(1) == Some(b'}') => self.close_brace(TokenKind::SequenceEnd, 2),
            _ => self.symbol(byte),
        }
    }

    fn symbol(&mut self, byte: u8) {
        let (kind, len) = symbol(byte, self.byte(1), self.byte(2)).unwrap_or_else(|| self.letter());
        self.emit(kind, len);
    }

    fn letter(&self) -> (TokenKind, usize) {
        match identifier_len(self.rest()) {
            0 => (TokenKind::Invalid, self.char_len()),
            len => (TokenKind::Identifier, len),
        }
    }

    /// A number is digits, points and exponents, and does not end with a point: `1.2.3` is one, which no value has.
    fn number_len(&self) -> usize {
        let rest = &self.bytes[self.at..];
        let mut at = 1;
        let mut len = 1;
        loop {
            let exponent = matches!(rest.get(at), Some(b'e' | b'E'));
            let sign = usize::from(matches!(rest.get(at + 1), Some(b'+' | b'-')));
            if rest.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
                len = at;
            } else if rest.get(at) == Some(&b'.') {
                at += 1;
            } else if exponent && rest.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                at += 2 + sign;
                len = at;
            } else {
                return len;
            }
        }
    }

    fn line_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        self.emit(TokenKind::Comment, len);
    }

    fn block_comment(&mut self) {
        let body = self.rest().get(2..).filter(|_| self.comments_close);
        match body.and_then(|body| body.find("*/")) {
            Some(len) => self.emit(TokenKind::Comment, len + 4),
            None => {
                self.comments_close = false;
                self.emit(TokenKind::Slash, 1);
            }
        }
    }

    fn open_heredoc(&mut self) {
        let flush = usize::from(self.byte(2) == Some(b'-'));
        let name = self.rest().get(2 + flush..).unwrap_or_default();
        let len = identifier_len(name);
        let after = &name[len..];
        let newline = if after.starts_with('\n') { 1 } else { 2 * usize::from(after.starts_with("\r\n")) };
        if len == 0 || newline == 0 {
            return self.emit(TokenKind::Less, 1);
        }
        self.emit(TokenKind::OpenHeredoc, 2 + flush + len + newline);
        self.heredocs.push(Heredoc { marker: &name[..len], at_line_start: true });
        self.enter(Mode::Heredoc);
    }

    /// A brace that was not opened since the template sequence began ends the sequence.
    fn close_brace(&mut self, otherwise: TokenKind, len: usize) {
        let ends = self.sequence_braces.last() == Some(&self.braces);
        self.braces -= 1;
        if ends {
            self.sequence_braces.pop();
            self.emit(TokenKind::SequenceEnd, len);
            self.leave();
        } else {
            self.emit(otherwise, len);
        }
    }
}

/// Returns the symbol that starts with these bytes, and its length.
fn symbol(first: u8, second: Option<u8>, third: Option<u8>) -> Option<(TokenKind, usize)> {
    let kind = match (first, second) {
        (b'=', Some(b'=')) => return Some((TokenKind::EqualEqual, 2)),
        (b'!', Some(b'=')) => return Some((TokenKind::NotEqual, 2)),
        (b'>', Some(b'=')) => return Some((TokenKind::GreaterEqual, 2)),
        (b'<', Some(b'=')) => return Some((TokenKind::LessEqual, 2)),
        (b'&', Some(b'&')) => return Some((TokenKind::And, 2)),
        (b'|', Some(b'|')) => return Some((TokenKind::Or, 2)),
        (b':', Some(b':')) => return Some((TokenKind::DoubleColon, 2)),
        (b'=', Some(b'>')) => return Some((TokenKind::FatArrow, 2)),
        (b'.', Some(b'.')) if third == Some(b'.') => return Some((TokenKind::Ellipsis, 3)),
        (b'[', _) => TokenKind::OpenBracket,
        (b']', _) => TokenKind::CloseBracket,
        (b'(', _) => TokenKind::OpenParen,
        (b')', _) => TokenKind::CloseParen,
        (b'.', _) => TokenKind::Dot,
        (b',', _) => TokenKind::Comma,
        (b'*', _) => TokenKind::Star,
        (b'/', _) => TokenKind::Slash,
        (b'%', _) => TokenKind::Percent,
        (b'+', _) => TokenKind::Plus,
        (b'-', _) => TokenKind::Minus,
        (b'=', _) => TokenKind::Equal,
        (b'<', _) => TokenKind::Less,
        (b'>', _) => TokenKind::Greater,
        (b'!', _) => TokenKind::Bang,
        (b'?', _) => TokenKind::Question,
        (b':', _) => TokenKind::Colon,
        (b'&', _) => TokenKind::Ampersand,
        (b'|', _) => TokenKind::Pipe,
        (b'~', _) => TokenKind::Tilde,
        (b'^', _) => TokenKind::Caret,
        (b';', _) => TokenKind::Semicolon,
        (b'`', _) => TokenKind::Backtick,
        (b'\'', _) => TokenKind::Apostrophe,
        _ => return None,
    };
    Some((kind, 1))
}

/// Whether a text is an identifier as a whole.
///
/// ```
/// assert!(hcl::is_identifier("größe-1"));
/// assert!(!hcl::is_identifier("1a"));
/// ```
pub fn is_identifier(text: &str) -> bool {
    !text.is_empty() && identifier_len(text) == text.len()
}

/// Returns the length of the identifier at the start of a text, or 0: Unicode's `ID_Start` and `ID_Continue`, an underscore first,
/// and a dash inside.
pub(crate) fn identifier_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii()) {
        return 0;
    }
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-'));
    let len = end.unwrap_or(bytes.len());
    if bytes.get(len).is_none_or(u8::is_ascii) {
        return len;
    }
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, c)) if c == '_' || is_start(c) => {}
        _ => return 0,
    }
    chars.find(|(_, c)| !(is_continue(*c) || *c == '-')).map_or(text.len(), |(at, _)| at)
}

fn is_start(c: char) -> bool {
    is_xid_start(c) || is_left_out(c) || matches!(c, '\u{e33}' | '\u{eb3}' | '\u{ff9e}' | '\u{ff9f}')
}

fn is_continue(c: char) -> bool {
    is_xid_continue(c) || is_left_out(c)
}

/// The characters of `ID_Start` that `XID_Start` and `XID_Continue` leave out, because their normalization is none.
fn is_left_out(c: char) -> bool {
    matches!(c, '\u{37a}' | '\u{309b}' | '\u{309c}' | '\u{fc5e}'..='\u{fc63}' | '\u{fdfa}' | '\u{fdfb}')
        || matches!(
            c,
            '\u{fe70}' | '\u{fe72}' | '\u{fe74}' | '\u{fe76}' | '\u{fe78}' | '\u{fe7a}' | '\u{fe7c}' | '\u{fe7e}'
        )
}

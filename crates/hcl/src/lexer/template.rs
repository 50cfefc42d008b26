//! The modes of the lexer inside templates.
//!
//! A `$` or `%` that starts no sequence is a token of its own. That can be seen from outside: a strip marker removes
//! white space from the one token before it.

use super::{Lexer, Mode};
use crate::token::TokenKind;

impl Lexer<'_> {
    pub fn quoted(&mut self) {
        match self.byte(0) {
            Some(b'"') => {
                self.emit(TokenKind::CloseQuote, 1);
                self.leave();
            }
            Some(b'\r' | b'\n') => {
                let rest = &self.bytes[self.at..];
                let len = rest.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
                self.emit(TokenKind::QuotedNewline, len);
                // The quote that is missing is more often the one of this line than that of a later one.
                self.leave();
            }
            Some(b'$' | b'%') => self.sequence(),
            _ => match self.quoted_literal_len() {
                0 => self.emit(TokenKind::Invalid, 1),
                len => self.emit(TokenKind::QuotedLiteral, len),
            },
        }
    }

    fn quoted_literal_len(&self) -> usize {
        let rest = &self.bytes[self.at..];
        let mut len = 0;
        while let Some(byte) = rest.get(len) {
            match byte {
                b'"' | b'$' | b'%' | b'\r' | b'\n' => break,
                b'\\' => match self.text[self.at + len + 1..].chars().next() {
                    None | Some('\r' | '\n') => break,
                    Some(c) => len += 1 + c.len_utf8(),
                },
                _ => len += 1,
            }
        }
        len
    }

    pub fn heredoc(&mut self) {
        if matches!(self.byte(0), Some(b'$' | b'%')) {
            return self.sequence();
        }
        let len = self.literal_len();
        let newline = self.newline_len_at(len);
        if newline == 0 {
            if len == 0 {
                // A carriage return alone: upstream reads nothing after it.
                return self.emit(TokenKind::Invalid, self.bytes.len() - self.at);
            }
            self.set_line_start(false);
            return self.emit(TokenKind::Literal, len);
        }
        let line = &self.text[self.at..self.at + len];
        let ends = self.heredocs.last().is_some_and(|doc| doc.at_line_start && line.trim() == doc.marker);
        if ends {
            self.heredocs.pop();
            self.emit(TokenKind::CloseHeredoc, len);
            self.emit(TokenKind::Newline, newline);
            self.leave();
        } else {
            self.set_line_start(true);
            self.emit(TokenKind::Literal, len + newline);
        }
    }

    pub fn bare(&mut self) {
        if matches!(self.byte(0), Some(b'$' | b'%')) {
            return self.sequence();
        }
        let len = self.literal_len();
        match len + self.newline_len_at(len) {
            0 => self.emit(TokenKind::Literal, self.bytes.len() - self.at),
            len => self.emit(TokenKind::Literal, len),
        }
    }

    /// Returns the number of bytes before the next sequence or the end of the line.
    fn literal_len(&self) -> usize {
        let rest = &self.bytes[self.at..];
        rest.iter().position(|byte| matches!(byte, b'$' | b'%' | b'\r' | b'\n')).unwrap_or(rest.len())
    }

    fn newline_len_at(&self, offset: usize) -> usize {
        match (self.byte(offset), self.byte(offset + 1)) {
            (Some(b'\n'), _) => 1,
            (Some(b'\r'), Some(b'\n')) => 2,
            _ => 0,
        }
    }

    fn set_line_start(&mut self, value: bool) {
        self.heredocs.last_mut().into_iter().for_each(|doc| doc.at_line_start = value);
    }

    /// Reads what starts with `$` or `%`: a sequence, the escape of one, or the character itself.
    fn sequence(&mut self) {
        let sign = self.byte(0);
        match (self.byte(1), self.byte(2)) {
            (Some(b'{'), third) => self.open_sequence(sign, 2 + usize::from(third == Some(b'~'))),
            (second, Some(b'{')) if second == sign => {
                self.literal(3 + usize::from(self.byte(3) == Some(b'~')));
            }
            // Before the end of a line, the character after the sign belongs to the token.
            (Some(_), _) if self.mode != Mode::Quoted && self.newline_len_at(2) > 0 => self.literal(2),
            (None, _) if self.mode != Mode::Bare => self.emit(TokenKind::Invalid, 1),
            _ => self.literal(1),
        }
    }

    fn literal(&mut self, len: usize) {
        if self.mode == Mode::Heredoc {
            self.set_line_start(false);
        }
        let kind = if self.mode == Mode::Quoted { TokenKind::QuotedLiteral } else { TokenKind::Literal };
        self.emit(kind, len);
    }

    fn open_sequence(&mut self, sign: Option<u8>, len: usize) {
        self.emit(if sign == Some(b'$') { TokenKind::Interpolation } else { TokenKind::Directive }, len);
        self.braces += 1;
        self.sequence_braces.push(self.braces);
        // As upstream: a sequence in a quoted string inside a heredoc ends the line start of the heredoc too.
        self.set_line_start(false);
        self.enter(Mode::Main);
    }
}

//! Where parsing goes on after an error in a body.

use super::Parser;
use crate::lexer::identifier_len;
use crate::token::{Token, TokenKind};

/// How often a file is read again from a line on. Each time costs as much as the first.
const MAX_LEXED_AGAIN: u8 = 5;

/// The brackets that are open, and what starts templates.
struct Brackets {
    open: Vec<TokenKind>,
    /// The number of those that are open, by the kind of what closes them: looking for one that is not there would take
    /// as long as the list is.
    counts: [u32; 64],
    /// Whether a bracket was closed that a template began after, and so was not part of the template.
    broken: bool,
}

impl Brackets {
    fn new() -> Self {
        Self { open: Vec::new(), counts: [0; 64], broken: false }
    }

    fn open(&mut self, kind: TokenKind, closer: TokenKind) {
        self.open.push(kind);
        self.counts[closer as usize] += 1;
    }

    /// Closes a bracket and those that were opened in it; false if there is none to close.
    fn close(&mut self, closer: TokenKind) -> bool {
        if self.counts[closer as usize] == 0 {
            return false;
        }
        while let Some(kind) = self.open.pop() {
            let closed = kind.closer();
            closed.iter().for_each(|closed| self.counts[*closed as usize] -= 1);
            if closed == Some(closer) {
                return true;
            }
            self.broken |= starts_template(kind);
        }
        false
    }

    /// The lexer ends a string at the end of its line, whether it was closed or not.
    fn end_string(&mut self) {
        if self.open.last() == Some(&TokenKind::OpenQuote) {
            self.open.pop();
            self.counts[TokenKind::CloseQuote as usize] -= 1;
        }
    }

    fn has_template(&self) -> bool {
        self.broken || self.open.iter().any(|kind| starts_template(*kind))
    }
}

fn starts_template(kind: TokenKind) -> bool {
    use TokenKind::{Directive, Interpolation, OpenHeredoc, OpenQuote};
    matches!(kind, OpenQuote | OpenHeredoc | Interpolation | Directive)
}

impl Parser<'_> {
    /// Goes on to the item after the one that starts at an index and has an error before the next token.
    ///
    /// That is after the line break that no bracket of the item encloses. If the item has a bracket that nothing
    /// closes, the indentation shows where the next item starts.
    pub fn skip_item(&mut self, start: usize) {
        // The line of the error may be the next item already, which was read as a part of a bracket.
        let before = self.tokens[start..self.next].iter().rposition(|token| self.breaks_line(*token));
        let error = before.map_or(self.next, |at| start + at);
        let mut brackets = Brackets::new();
        for index in start..self.tokens.len() {
            let token = self.tokens[index];
            let reached = index >= error;
            if let Some(closer) = token.kind.closer() {
                brackets.open(token.kind, closer);
            } else if token.kind.is_closer() {
                if !brackets.close(token.kind) && reached && token.kind == TokenKind::CloseBrace {
                    return self.next = index;
                }
            } else if self.breaks_line(token) {
                if token.kind == TokenKind::QuotedNewline {
                    brackets.end_string();
                }
                if reached && (brackets.open.is_empty() || self.starts_item(token.end, start)) {
                    self.unclosed |= !brackets.open.is_empty();
                    return self.start_line(index + 1, token.end, brackets.has_template());
                }
            }
        }
        // That the blocks around the item are not closed is a consequence.
        self.unclosed = true;
        self.next = self.tokens.len() - 1;
    }

    /// Goes on at the start of a line. If the lexer read it as a part of a template, it is read again.
    fn start_line(&mut self, index: usize, line_start: u32, in_template: bool) {
        self.next = index;
        if in_template && self.lexed_again < MAX_LEXED_AGAIN {
            self.lexed_again += 1;
            self.lex_again(index, line_start);
        }
    }

    fn breaks_line(&self, token: Token) -> bool {
        let breaks = matches!(token.kind, TokenKind::Newline | TokenKind::Comment | TokenKind::QuotedNewline);
        breaks && self.slice(token).ends_with('\n')
    }

    /// Whether a line starts an item of the same body as the token at an index, or ends the body. The tokens of the
    /// line do not say it, because they can be those of a template that is not closed.
    fn starts_item(&self, line_start: u32, item: usize) -> bool {
        let line = &self.text[line_start as usize..];
        let rest = line.trim_start_matches([' ', '\t']);
        let after_name = rest[identifier_len(rest)..].trim_start_matches([' ', '\t']);
        let is_named = after_name.len() < rest.len();
        let column = line.len() - rest.len();
        match after_name.bytes().next() {
            Some(b'}') if !is_named => column < self.indentation(item),
            _ if !is_named || column > self.indentation(item) => false,
            Some(b'=') => !after_name[1..].starts_with(['=', '>']),
            Some(b'{') => true,
            // The header of a block ends with its brace.
            _ => after_name.lines().next().is_some_and(|line| line.contains('{')),
        }
    }

    fn indentation(&self, item: usize) -> usize {
        let offset = self.tokens[item].start as usize;
        offset - self.text[..offset].rfind('\n').map_or(0, |at| at + 1)
    }
}

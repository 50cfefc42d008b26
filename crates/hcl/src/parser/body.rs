//! Bodies: attributes and blocks, each on lines of its own. An error ends the item that it is in, and no other.

use std::collections::HashMap;

use super::{Abandoned, Parser, Result, invalid};
use crate::source::Range;
use crate::token::{Token, TokenKind};
use crate::tree::{Attribute, Block, Body, Name};

/// A body while it is parsed.
#[derive(Default)]
struct Items<'a> {
    attributes: Vec<Attribute>,
    blocks: Vec<Block>,
    names: HashMap<&'a str, Range>,
    /// Whether the last line was no item. Of many such lines, the first is reported.
    lost: bool,
}

impl<'a> Parser<'a> {
    /// Parses a text that is one body.
    pub(super) fn file(&mut self) -> Body {
        let start = self.previous_range();
        self.body(start, TokenKind::EndOfFile)
    }

    /// Parses items until the end of the body, whatever errors they have.
    fn body(&mut self, start: Range, end: TokenKind) -> Body {
        let mut items = Items::default();
        loop {
            let next = self.peek();
            match next.kind {
                kind if kind == end => {
                    self.read();
                    break;
                }
                TokenKind::Newline => {
                    self.read();
                }
                TokenKind::Identifier => self.item(&mut items),
                TokenKind::EndOfFile => {
                    self.unclosed(start);
                    break;
                }
                _ => self.no_item(next, &mut items),
            }
        }
        let end = self.previous_range();
        Body { attributes: items.attributes, blocks: items.blocks, range: start.to(end), end_range: end.at_end(), json: None }
    }

    /// Of blocks inside each other that the file does not close, the innermost one is reported.
    fn unclosed(&mut self, open: Range) {
        if !std::mem::replace(&mut self.unclosed, true) {
            let detail = "The block is not closed before the file ends. A brace inside it may be the one that is missing.";
            self.report("Unclosed configuration block", detail, open);
        }
    }

    fn no_item(&mut self, token: Token, items: &mut Items<'a>) {
        let start = self.next;
        self.read();
        if !std::mem::replace(&mut items.lost, true) {
            let result = match token.kind {
                TokenKind::OpenQuote => {
                    self.abandon(token, "Invalid argument name", "The name of an argument is not quoted.", "")
                }
                _ => self.abandon::<()>(token, "Argument or block definition required", NO_ITEM, ""),
            };
            debug_assert!(result.is_err());
        }
        if token.kind != TokenKind::CloseBrace {
            self.skip_item(start);
        }
    }

    fn item(&mut self, items: &mut Items<'a>) {
        let start = self.next;
        let name = self.read();
        match self.peek_kind() {
            TokenKind::Equal => self.attribute(start, name, items),
            TokenKind::OpenQuote | TokenKind::OpenBrace | TokenKind::Identifier => self.block(start, name, items),
            kind => {
                if !std::mem::replace(&mut items.lost, true) {
                    let hint = item_hint(kind);
                    let error = self.abandon::<()>(name, "Argument or block definition required", NO_ITEM, hint);
                    debug_assert!(error.is_err());
                }
                self.skip_item(start);
            }
        }
    }

    fn attribute(&mut self, start: usize, name: Token, items: &mut Items<'a>) {
        items.lost = false;
        let (attribute, complete) = self.definition(name);
        if !complete {
            self.skip_item(start);
        } else if !self.ends_line("argument", name) {
            self.skip_item(start);
        }
        self.add(attribute, name, items);
    }

    /// Parses `name = value` after the name; false if the value could not be parsed.
    fn definition(&mut self, name: Token) -> (Attribute, bool) {
        let name = Name { text: self.slice(name).to_owned(), range: self.range(name) };
        let equals = self.read();
        let equals_range = self.range(equals);
        let value = self.expression();
        let complete = value.is_ok();
        let value = value.unwrap_or_else(|Abandoned| invalid(equals_range.at_end()));
        let range = name.range.to(self.previous_range());
        (Attribute { name, value, range, equals_range }, complete)
    }

    fn add(&mut self, attribute: Attribute, name: Token, items: &mut Items<'a>) {
        let text = self.slice(name);
        if let Some(first) = items.names.get(text) {
            let line = 1 + self.text[..first.start as usize].matches('\n').count();
            let detail = format!("`{text}` was set on line {line} already. An argument is set once.");
            self.report("Attribute redefined", detail, attribute.name.range);
            return;
        }
        items.names.insert(text, attribute.name.range);
        items.attributes.push(attribute);
    }

    /// Reads the line break after an item, or reports what is there instead.
    fn ends_line(&mut self, what: &str, item: Token) -> bool {
        let next = self.peek();
        if matches!(next.kind, TokenKind::Newline | TokenKind::EndOfFile) {
            self.read();
            return true;
        }
        let _ = item;
        let summary = match next.kind {
            TokenKind::Comma => format!("Unexpected comma after {what}"),
            _ => format!("Missing newline after {what}"),
        };
        let detail = format!("A line break ends the definition of a {what}.");
        let hint = if next.kind == TokenKind::Comma { "remove the comma" } else { "" };
        let error = self.abandon::<()>(next, &summary, detail.replace("a argument", "an argument"), hint);
        debug_assert!(error.is_err());
        false
    }

    fn block(&mut self, start: usize, kind: Token, items: &mut Items<'a>) {
        items.lost = false;
        match self.nested(|parser| parser.block_after(kind)) {
            Ok((block, true)) => {
                items.blocks.push(block);
                if !self.ends_line("block", kind) {
                    let end = self.next;
                    self.skip_item(end);
                }
            }
            Ok((block, false)) => {
                items.blocks.push(block);
                self.skip_item(start);
            }
            Err(Abandoned) => self.skip_item(start),
        }
    }

    /// Parses a block after its type; false if its body could not be finished.
    fn block_after(&mut self, kind: Token) -> Result<(Block, bool)> {
        let kind = Name { text: self.slice(kind).to_owned(), range: self.range(kind) };
        let (labels, open) = self.header(&kind)?;
        let open_range = self.range(open);
        let single = !matches!(self.peek_kind(), TokenKind::Newline | TokenKind::EndOfFile | TokenKind::CloseBrace);
        let (body, complete) = match single {
            true => self.single_line_body(open_range)?,
            false => (self.body(open_range, TokenKind::CloseBrace), true),
        };
        let close_range = self.previous_range();
        Ok((Block { kind, labels, body, open_range, close_range }, complete))
    }

    fn header(&mut self, kind: &Name) -> Result<(Vec<Name>, Token)> {
        let mut labels = Vec::new();
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::OpenBrace => {
                    self.read();
                    return Ok((labels, token));
                }
                TokenKind::OpenQuote => labels.push(self.quoted_text()?),
                TokenKind::Identifier => {
                    self.read();
                    labels.push(Name { text: self.slice(token).to_owned(), range: self.range(token) });
                }
                TokenKind::Equal => {
                    let detail = format!("`{}` has a label, as a block has, and an equals sign, as an argument has.", kind.text);
                    return self.abandon(token, "Invalid block definition", detail, "remove the equals sign, or the label");
                }
                TokenKind::Newline => {
                    let detail = "The opening brace of a block is on the line of its type and labels.";
                    return self.abandon(token, "Invalid block definition", detail, "");
                }
                _ => {
                    let detail = "A label in quotes or an opening brace is expected here.";
                    return self.abandon(token, "Invalid block definition", detail, "");
                }
            }
        }
    }

    /// Parses `name = value }`, after the opening brace of a block of one line.
    fn single_line_body(&mut self, open: Range) -> Result<(Body, bool)> {
        let summary = "Invalid single-argument block definition";
        let Some(name) = self.read_if(TokenKind::Identifier) else {
            return self.abandon(self.peek(), "Argument or block definition required", NO_ITEM, "");
        };
        if self.peek_kind() != TokenKind::Equal {
            let detail = "A block on one line has one argument and no blocks.";
            return self.abandon(name, "Argument definition required", detail, "put each item on a line of its own");
        }
        let (attribute, mut complete) = self.definition(name);
        let range = attribute.range;
        let next = self.peek();
        if complete && self.read_if(TokenKind::CloseBrace).is_none() {
            complete = false;
            match next.kind {
                TokenKind::EndOfFile => self.unclosed(open),
                _ => {
                    let detail = "A block that has an argument on the line of its opening brace ends on that line, after the argument.";
                    let error = self.abandon::<()>(next, summary, detail, "put each argument on a line of its own");
                    debug_assert!(error.is_err());
                }
            }
        }
        let body = Body { attributes: vec![attribute], blocks: Vec::new(), range, end_range: range.at_end(), json: None };
        Ok((body, complete))
    }

    /// Parses a string in quotes that has no sequences in it, such as a label.
    pub(super) fn quoted_text(&mut self) -> Result<Name> {
        let open = self.read();
        let mut text = String::new();
        loop {
            let token = self.read();
            match token.kind {
                TokenKind::CloseQuote => {
                    return Ok(Name { text, range: self.range(open).to(self.range(token)) });
                }
                TokenKind::QuotedLiteral => text.push_str(&self.quoted_literal(token)),
                TokenKind::Interpolation | TokenKind::Directive => {
                    let sign = &self.slice(token)[..1];
                    let hint = format!("for the characters themselves, write `{sign}{sign}{{`");
                    let detail = "This text cannot have template sequences in it.";
                    return self.abandon(token, "Invalid string literal", detail, &hint);
                }
                TokenKind::EndOfFile => {
                    let detail = "The closing quote is missing.";
                    return self.abandon(token, "Unterminated string literal", detail, "");
                }
                _ => return self.abandon(token, "Invalid string literal", "This cannot be part of a text in quotes.", ""),
            }
        }
    }

    /// Goes on to the item after the one that starts at an index and has an error before the next token.
    ///
    /// That is after the line break that no bracket of the item encloses. If the item has a bracket that nothing
    /// closes, the indentation shows where the next item starts.
    fn skip_item(&mut self, start: usize) {
        let error = self.next;
        let mut open: Vec<TokenKind> = Vec::new();
        let mut line_start = 0;
        let indentation = self.tokens.get(start).map_or(0, |token| self.indentation(token.start));
        for index in start..self.tokens.len() {
            let token = self.tokens[index];
            let reached = index >= error;
            match token.kind {
                TokenKind::EndOfFile => {
                    self.next = index;
                    return;
                }
                TokenKind::Newline | TokenKind::Comment | TokenKind::QuotedNewline if self.breaks_line(token) => {
                    while token.kind == TokenKind::QuotedNewline && open.last() == Some(&TokenKind::OpenQuote) {
                        open.pop();
                    }
                    line_start = token.end;
                    if reached && (open.is_empty() || self.starts_item(index + 1, line_start, indentation)) {
                        self.next = index + 1;
                        return;
                    }
                }
                kind if kind.is_closer() => {
                    let opener = open.iter().rposition(|opener| opener.closer() == Some(kind));
                    match opener {
                        Some(at) => open.truncate(at),
                        None if reached && kind == TokenKind::CloseBrace => {
                            self.next = index;
                            return;
                        }
                        None => {}
                    }
                }
                kind if kind.closer().is_some() => open.push(kind),
                _ => {}
            }
        }
        let _ = line_start;
        self.next = self.tokens.len();
    }

    fn breaks_line(&self, token: Token) -> bool {
        self.slice(token).ends_with('\n')
    }

    /// Whether a line starts an item of the body that has this indentation, or ends the body.
    fn starts_item(&self, index: usize, line_start: u32, indentation: u32) -> bool {
        let Some(token) = self.tokens.get(index) else { return true };
        let next = self.tokens.get(index + 1).map(|token| token.kind);
        let column = token.start.saturating_sub(line_start);
        match token.kind {
            TokenKind::CloseBrace => column < indentation,
            TokenKind::Identifier => {
                let definition = [TokenKind::Equal, TokenKind::OpenBrace, TokenKind::OpenQuote, TokenKind::Identifier];
                column <= indentation && next.is_some_and(|kind| definition.contains(&kind))
            }
            _ => false,
        }
    }

    fn indentation(&self, offset: u32) -> u32 {
        let line_start = self.text[..offset as usize].rfind('\n').map_or(0, |at| at + 1);
        offset - line_start as u32
    }
}

const NO_ITEM: &str = "An argument (`name = value`) or a block (`name { ... }`) is expected here.";

fn item_hint(next: TokenKind) -> &'static str {
    match next {
        TokenKind::Colon => "between the name and the value of an argument, write `=`",
        TokenKind::Dot => "the name of an argument has no dots in it",
        _ => "",
    }
}

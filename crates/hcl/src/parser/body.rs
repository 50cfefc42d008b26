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
    pub fn file(&mut self) -> Body {
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
        Body {
            attributes: items.attributes,
            blocks: items.blocks,
            range: start.to(end),
            end_range: end.at_end(),
            json: None,
        }
    }

    /// Of blocks inside each other that the file does not close, the innermost one is reported.
    fn unclosed(&mut self, open: Range) {
        if !std::mem::replace(&mut self.unclosed, true) {
            let detail =
                "The block is not closed before the file ends. A brace inside it may be the one that is missing.";
            self.report("Unclosed configuration block", detail, open);
        }
    }

    fn no_item(&mut self, token: Token, items: &mut Items<'a>) {
        let start = self.next;
        self.read();
        if !std::mem::replace(&mut items.lost, true) {
            match token.kind {
                TokenKind::OpenQuote => {
                    self.refuse(token, "Invalid argument name", "The name of an argument is not quoted.", "");
                }
                _ => self.refuse(token, "Argument or block definition required", NO_ITEM, ""),
            }
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
                    self.refuse(name, "Argument or block definition required", NO_ITEM, hint);
                }
                self.skip_item(start);
            }
        }
    }

    fn attribute(&mut self, start: usize, name: Token, items: &mut Items<'a>) {
        items.lost = false;
        let (attribute, complete) = self.definition(name);
        if !complete || !self.ends_line("an argument") {
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
            let line = self.line(first.start);
            let detail = format!("`{text}` was set on line {line} already. An argument is set once.");
            self.report("Attribute redefined", detail, attribute.name.range);
            return;
        }
        items.names.insert(text, attribute.name.range);
        items.attributes.push(attribute);
    }

    /// Reads the line break after an item, or reports what is there instead.
    fn ends_line(&mut self, item: &str) -> bool {
        let next = self.peek();
        if matches!(next.kind, TokenKind::Newline | TokenKind::EndOfFile) {
            self.read();
            return true;
        }
        let detail = format!("A line break is expected after {item}.");
        match next.kind {
            TokenKind::Comma => self.refuse(next, "Unexpected comma", detail, "remove the comma"),
            _ => self.refuse(next, "Missing newline", detail, ""),
        }
        false
    }

    fn block(&mut self, start: usize, kind: Token, items: &mut Items<'a>) {
        items.lost = false;
        match self.nested(|parser| parser.block_after(kind)) {
            Ok((block, true)) => {
                items.blocks.push(block);
                if !self.ends_line("a block") {
                    let end = self.next;
                    self.skip_item(end);
                }
            }
            Ok((block, false)) => {
                items.blocks.push(block);
                self.skip_item(start);
            }
            Err(Abandoned) => {
                // The next lines may be the body of the block.
                items.lost = self.peek_kind() == TokenKind::Newline;
                self.skip_item(start);
            }
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
                    let detail =
                        format!("`{}` has a label, as a block has, and an equals sign, as an argument has.", kind.text);
                    let hint = "remove the equals sign, or the label";
                    return self.abandon(token, "Invalid block definition", detail, hint);
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
            let range = self.range(name).to(self.range(self.peek()));
            let hint = "put each item on a line of its own";
            return self.abandon_at(range, "Argument definition required", detail, hint);
        }
        let (attribute, mut complete) = self.definition(name);
        let range = attribute.range;
        let next = self.peek();
        if complete && self.read_if(TokenKind::CloseBrace).is_none() {
            complete = false;
            match next.kind {
                TokenKind::EndOfFile => self.unclosed(open),
                _ => {
                    let detail = "A block with an argument on the line of its opening brace ends on that line.";
                    self.refuse(next, summary, detail, "put each argument on a line of its own");
                }
            }
        }
        let body =
            Body { attributes: vec![attribute], blocks: Vec::new(), range, end_range: range.at_end(), json: None };
        Ok((body, complete))
    }

    /// Parses a string in quotes that has no sequences in it, such as a label.
    pub fn quoted_text(&mut self) -> Result<Name> {
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
                _ => {
                    let detail = "This cannot be part of a text in quotes.";
                    return self.abandon(token, "Invalid string literal", detail, "");
                }
            }
        }
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

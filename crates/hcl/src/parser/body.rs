//! Bodies: attributes and blocks, each on lines of its own. An error ends the item that it is in, and no other.

use std::collections::HashMap;

use super::{Abandoned, Parser, Result, invalid};
use crate::lexer::identifier_len;
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
                    return self.abandon(
                        token,
                        "Invalid block definition",
                        detail,
                        "remove the equals sign, or the label",
                    );
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
            return self.abandon_at(
                range,
                "Argument definition required",
                detail,
                "put each item on a line of its own",
            );
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
                    self.refuse(next, summary, detail, "put each argument on a line of its own");
                }
            }
        }
        let body =
            Body { attributes: vec![attribute], blocks: Vec::new(), range, end_range: range.at_end(), json: None };
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
                _ => {
                    return self.abandon(
                        token,
                        "Invalid string literal",
                        "This cannot be part of a text in quotes.",
                        "",
                    );
                }
            }
        }
    }

    /// Goes on to the item after the one that starts at an index and has an error before the next token.
    ///
    /// That is after the line break that no bracket of the item encloses. If the item has a bracket that nothing
    /// closes, the indentation shows where the next item starts.
    fn skip_item(&mut self, start: usize) {
        // The line of the error may be the next item already, which was read as a part of a bracket.
        let before = self.tokens[start..self.next].iter().rposition(|token| self.breaks_line(*token));
        let error = before.map_or(self.next, |at| start + at);
        let mut open: Vec<TokenKind> = Vec::new();
        // Whether a bracket was closed that a template began after, and so was not part of the template.
        let mut broken = false;
        let indentation = self.tokens.get(start).map_or(0, |token| self.indentation(token.start));
        for index in start..self.tokens.len() {
            let token = self.tokens[index];
            let reached = index >= error;
            if token.kind.closer().is_some() {
                open.push(token.kind);
            } else if token.kind.is_closer() {
                match open.iter().rposition(|opener| opener.closer() == Some(token.kind)) {
                    Some(at) => {
                        broken |= open.drain(at..).skip(1).any(starts_template);
                    }
                    None if reached && token.kind == TokenKind::CloseBrace => return self.next = index,
                    None => {}
                }
            } else if self.breaks_line(token) {
                // The lexer ends a string at the end of its line, whether it was closed or not.
                if token.kind == TokenKind::QuotedNewline && open.last() == Some(&TokenKind::OpenQuote) {
                    open.pop();
                }
                if reached && (open.is_empty() || self.starts_item(token.end, indentation)) {
                    self.unclosed |= !open.is_empty();
                    broken |= open.into_iter().any(starts_template);
                    return self.start_line(index + 1, token.end, broken);
                }
            }
        }
        // That the blocks around the item are not closed is a consequence.
        self.unclosed = true;
        self.next = self.tokens.len() - 1;
    }

    /// Goes on at the start of a line. If the lexer read it as a part of a template, it is read again.
    fn start_line(&mut self, index: usize, line_start: u32, broken: bool) {
        self.next = index;
        if broken && self.lexed_again < MAX_LEXED_AGAIN {
            self.lexed_again += 1;
            self.lex_again(index, line_start);
        }
    }

    fn breaks_line(&self, token: Token) -> bool {
        let breaks = matches!(token.kind, TokenKind::Newline | TokenKind::Comment | TokenKind::QuotedNewline);
        breaks && self.slice(token).ends_with('\n')
    }

    /// Whether a line starts an item of the body that has this indentation, or ends the body. The tokens of the line
    /// do not say it, because they can be those of a template that is not closed.
    fn starts_item(&self, line_start: u32, indentation: u32) -> bool {
        let line = &self.text[line_start as usize..];
        let rest = line.trim_start_matches([' ', '\t']);
        let column = (line.len() - rest.len()) as u32;
        let after_name = rest[identifier_len(rest)..].trim_start_matches([' ', '\t']);
        match after_name.bytes().next() {
            Some(b'}') if after_name.len() == rest.len() => column < indentation,
            _ if after_name.len() == rest.len() => false,
            Some(b'=') => column <= indentation && !after_name[1..].starts_with(['=', '>']),
            // A block, whose header ends with its brace.
            Some(b'{') => column <= indentation,
            _ => column <= indentation && after_name.lines().next().is_some_and(|line| line.contains('{')),
        }
    }

    fn indentation(&self, offset: u32) -> u32 {
        let line_start = self.text[..offset as usize].rfind('\n').map_or(0, |at| at + 1);
        offset - line_start as u32
    }
}

/// How often a file is read again from a line on. Each time costs as much as the first.
const MAX_LEXED_AGAIN: u8 = 5;

fn starts_template(kind: TokenKind) -> bool {
    use TokenKind::{Directive, Interpolation, OpenHeredoc, OpenQuote};
    matches!(kind, OpenQuote | OpenHeredoc | Interpolation | Directive)
}

const NO_ITEM: &str = "An argument (`name = value`) or a block (`name { ... }`) is expected here.";

fn item_hint(next: TokenKind) -> &'static str {
    match next {
        TokenKind::Colon => "between the name and the value of an argument, write `=`",
        TokenKind::Dot => "the name of an argument has no dots in it",
        _ => "",
    }
}

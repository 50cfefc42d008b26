//! Expressions in brackets: tuples, objects, `for`, and the arguments of calls.

use super::{Parser, Result};
use crate::token::{Token, TokenKind};
use crate::tree::{Call, Expr, ExprKind, For, Name, ObjectItem, ObjectKey};

/// What a list of arguments ended with.
struct Arguments {
    values: Vec<Expr>,
    expand_last: bool,
    close: Token,
}

impl Parser<'_> {
    /// Parses a call whose first name was read.
    pub fn call(&mut self, first: Token) -> Result<Expr> {
        let mut name = Name { text: self.slice(first).to_owned(), range: self.range(first) };
        while self.read_if(TokenKind::DoubleColon).is_some() {
            let Some(part) = self.read_if(TokenKind::Identifier) else {
                let detail = "The name of a function is expected after `::`.";
                return self.abandon(self.peek(), "Missing function name", detail, "");
            };
            name.text.push_str("::");
            name.text.push_str(self.slice(part));
            name.range = name.range.to(self.range(part));
        }
        let Some(open) = self.read_if(TokenKind::OpenParen) else {
            let detail = "The arguments of the function are expected here, in parentheses.";
            return self.abandon(self.peek(), "Missing open parenthesis", detail, "");
        };
        let Arguments { values, expand_last, close } = self.with_newlines(false, |parser| parser.arguments(&name))?;
        let (open_range, close_range) = (self.range(open), self.range(close));
        let range = name.range.to(close_range);
        let call = Call { name, arguments: values, expand_last, open_range, close_range };
        self.bounded(Expr::new(ExprKind::Call(Box::new(call)), range))
    }

    fn arguments(&mut self, name: &Name) -> Result<Arguments> {
        let mut values = Vec::new();
        loop {
            if let Some(close) = self.read_if(TokenKind::CloseParen) {
                return Ok(Arguments { values, expand_last: false, close });
            }
            if self.peek_kind() == TokenKind::EndOfFile {
                let detail = format!("The parenthesis after `{}` is not closed before the file ends.", name.text);
                return self.abandon_at(name.range, "Unterminated function call", detail, "");
            }
            values.push(self.expression()?);
            let separator = self.peek();
            match separator.kind {
                TokenKind::Comma => {
                    self.read();
                }
                TokenKind::CloseParen | TokenKind::EndOfFile => {}
                TokenKind::Ellipsis => {
                    self.read();
                    let Some(close) = self.read_if(TokenKind::CloseParen) else {
                        let detail = "After `...` the list of arguments ends.";
                        return self.abandon(separator, "Missing closing parenthesis", detail, "");
                    };
                    return Ok(Arguments { values, expand_last: true, close });
                }
                _ => {
                    let detail = "A comma is expected between the arguments of a function.";
                    return self.abandon(separator, "Missing argument separator", detail, "");
                }
            }
        }
    }

    pub fn tuple(&mut self) -> Result<Expr> {
        let open = self.read();
        self.with_newlines(false, |parser| {
            if parser.peek_word("for") {
                return parser.for_expression(open);
            }
            let (items, close) = parser.tuple_items(open)?;
            let range = parser.range(open).to(parser.range(close));
            parser.bounded(Expr::new(ExprKind::Tuple(items), range))
        })
    }

    fn tuple_items(&mut self, open: Token) -> Result<(Vec<Expr>, Token)> {
        let mut items = Vec::new();
        loop {
            if let Some(close) = self.read_if(TokenKind::CloseBracket) {
                return Ok((items, close));
            }
            if self.peek_kind() == TokenKind::EndOfFile {
                let detail = "The bracket is not closed before the file ends.";
                return self.abandon(open, "Unterminated tuple constructor expression", detail, "");
            }
            items.push(self.expression()?);
            let next = self.peek();
            match next.kind {
                TokenKind::Comma => {
                    self.read();
                }
                TokenKind::CloseBracket | TokenKind::EndOfFile => {}
                _ => {
                    let detail = "A comma is expected between the items of a list.";
                    return self.abandon(next, "Missing item separator", detail, "");
                }
            }
        }
    }

    pub fn object(&mut self) -> Result<Expr> {
        let open = self.read();
        // A line break before `for` means nothing, though the items of an object are separated by line breaks.
        if self.with_newlines(false, |parser| parser.peek_word("for")) {
            return self.with_newlines(false, |parser| parser.for_expression(open));
        }
        let (items, close) = self.with_newlines(true, |parser| parser.object_items(open))?;
        let range = self.range(open).to(self.range(close));
        self.bounded(Expr::new(ExprKind::Object(items), range))
    }

    fn object_items(&mut self, open: Token) -> Result<(Vec<ObjectItem>, Token)> {
        let mut items = Vec::new();
        loop {
            if self.read_if(TokenKind::Newline).is_some() {
                continue;
            }
            if let Some(close) = self.read_if(TokenKind::CloseBrace) {
                return Ok((items, close));
            }
            if self.peek_kind() == TokenKind::EndOfFile {
                return self.unterminated_object(open);
            }
            items.push(self.object_item(open)?);
            let next = self.peek();
            match next.kind {
                TokenKind::Comma | TokenKind::Newline => {
                    self.read();
                }
                TokenKind::CloseBrace | TokenKind::EndOfFile => {}
                _ => {
                    let detail = "A line break or a comma is expected before the next item.";
                    return self.abandon(next, "Missing attribute separator", detail, "");
                }
            }
        }
    }

    fn object_item(&mut self, open: Token) -> Result<ObjectItem> {
        let in_parentheses = self.peek_kind() == TokenKind::OpenParen;
        let expr = self.expression()?;
        let next = self.peek();
        match next.kind {
            TokenKind::Equal | TokenKind::Colon => {
                self.read();
                let value = self.expression()?;
                Ok(ObjectItem { key: ObjectKey { expr, in_parentheses }, value })
            }
            TokenKind::EndOfFile => self.unterminated_object(open),
            TokenKind::Newline | TokenKind::Comma => {
                let detail = "The item has a key and no value: `key = value`.";
                self.abandon(next, "Missing attribute value", detail, "")
            }
            _ => {
                let detail = "An equals sign is expected between the key and the value.";
                let hint = "a key with spaces or dots is written in quotes";
                let hint = if next.kind == TokenKind::Identifier { hint } else { "" };
                self.abandon(next, "Missing key/value separator", detail, hint)
            }
        }
    }

    fn unterminated_object<T>(&mut self, open: Token) -> Result<T> {
        let detail = "The brace is not closed before the file ends.";
        self.abandon(open, "Unterminated object constructor expression", detail, "")
    }

    /// Parses a `for` after its opening bracket. Line breaks mean nothing in it.
    fn for_expression(&mut self, open: Token) -> Result<Expr> {
        self.read();
        let (key_name, value_name) = self.for_names("Invalid 'for' expression")?;
        let collection = self.expression()?;
        if self.read_if(TokenKind::Colon).is_none() {
            return self.invalid_for("A colon is expected after the collection: `for a in list : a`.");
        }
        let first = self.expression()?;
        let (key, value) = match self.read_if(TokenKind::FatArrow) {
            Some(_) => (Some(first), self.expression()?),
            None => (None, first),
        };
        let ellipsis = self.read_if(TokenKind::Ellipsis);
        let condition = if self.peek_word("if") {
            self.read();
            Some(self.expression()?)
        } else {
            None
        };
        let closer = if open.kind == TokenKind::OpenBrace { TokenKind::CloseBrace } else { TokenKind::CloseBracket };
        let Some(close) = self.read_if(closer) else {
            return self.invalid_for("The end of the 'for' is expected here.");
        };
        self.check_for(open, key.as_ref(), &value, ellipsis);
        let (open_range, close_range) = (self.range(open), self.range(close));
        let group = ellipsis.is_some();
        let each = For { key_name, value_name, collection, key, value, condition, group, open_range, close_range };
        self.bounded(Expr::new(ExprKind::For(Box::new(each)), open_range.to(close_range)))
    }

    fn check_for(&mut self, open: Token, key: Option<&Expr>, value: &Expr, ellipsis: Option<Token>) {
        let summary = "Invalid 'for' expression";
        match (open.kind == TokenKind::OpenBrace, key) {
            (true, None) => self.report(summary, "A key is expected before the value: `key => value`.", value.range),
            (false, Some(key)) => self.report(summary, "A list has no keys: use braces to make an object.", key.range),
            _ => {}
        }
        if let Some(ellipsis) = ellipsis.filter(|_| open.kind == TokenKind::OpenBracket) {
            self.report(
                summary,
                "A list does not group its values: use braces to make an object.",
                self.range(ellipsis),
            );
        }
    }

    /// Parses `name in` or `key, value in`.
    pub fn for_names(&mut self, summary: &str) -> Result<(Option<Name>, Name)> {
        let first = self.for_name(summary)?;
        let (key, value) = match self.read_if(TokenKind::Comma) {
            Some(_) => (Some(first), self.for_name(summary)?),
            None => (None, first),
        };
        if !self.peek_word("in") {
            return self.abandon(self.peek(), summary, "The word `in` is expected after the names.", "");
        }
        self.read();
        Ok((key, value))
    }

    fn for_name(&mut self, summary: &str) -> Result<Name> {
        match self.read_if(TokenKind::Identifier) {
            Some(token) => Ok(Name { text: self.slice(token).to_owned(), range: self.range(token) }),
            None => self.abandon(self.peek(), summary, "The name of a variable is expected here.", ""),
        }
    }

    fn invalid_for<T>(&mut self, detail: &str) -> Result<T> {
        self.abandon(self.peek(), "Invalid 'for' expression", detail, "")
    }
}

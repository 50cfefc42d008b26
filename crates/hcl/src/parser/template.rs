//! Templates: texts, interpolations and directives, in quotes, in heredocs and in files.
//!
//! The tokens are first made to a flat list of parts, on which white space is removed: by strip markers, which act on
//! the one token beside them, and by `<<-`, which acts on the lines. Then `if` and `for` are made to a tree.

mod directives;

use unicode_segmentation::UnicodeSegmentation as _;

use super::{Parser, Result};
use crate::escape::{unescape_literal, unescape_quoted};
use crate::source::Range;
use crate::token::{Token, TokenKind};
use crate::tree::{Expr, ExprKind, Name};

use directives::assemble;

/// A part of a template, with its place.
struct Part {
    range: Range,
    kind: PartKind,
}

enum PartKind {
    Text(String),
    Value(Expr),
    If(Expr),
    For { key_name: Option<Name>, value_name: Name, collection: Expr },
    Else,
    EndIf,
    EndFor,
}

impl Parser<'_> {
    /// Parses a text that is one template.
    pub fn whole_template(&mut self) -> Expr {
        let start = self.range(self.peek());
        match self.parts(TokenKind::EndOfFile, None) {
            Ok((parts, end)) => self.template(parts, false, start.to(end), end),
            Err(_) => super::invalid(start),
        }
    }

    /// Parses a quoted template or a heredoc.
    pub fn string(&mut self) -> Result<Expr> {
        let open = self.read();
        let closer = if open.kind == TokenKind::OpenQuote { TokenKind::CloseQuote } else { TokenKind::CloseHeredoc };
        let (parts, end) = self.nested(|parser| parser.parts(closer, Some(open)))?;
        let flushes = self.slice(open).starts_with("<<-");
        let range = self.range(open).to(end);
        let expr = self.template(parts, flushes, range, end);
        self.bounded(expr)
    }

    fn template(&mut self, mut parts: Vec<Part>, flushes: bool, range: Range, end: Range) -> Expr {
        if flushes {
            flush(&mut parts);
        }
        let parts = join_texts(parts);
        let kind = match <[Part; 1]>::try_from(parts) {
            Ok([Part { kind: PartKind::Value(expr), .. }]) => ExprKind::TemplateWrap(Box::new(expr)),
            Ok([part]) => ExprKind::Template(assemble(vec![part], end, &mut self.diagnostics)),
            Err(parts) => ExprKind::Template(assemble(parts, end, &mut self.diagnostics)),
        };
        Expr::new(kind, range)
    }

    /// Reads the parts of a template up to its end, and the range of the end.
    fn parts(&mut self, end: TokenKind, open: Option<Token>) -> Result<(Vec<Part>, Range)> {
        let start = self.range(self.peek());
        let mut parts: Vec<Part> = Vec::new();
        // Whether the last token ended with a strip marker, and whether it was a text.
        let (mut strips, mut after_text) = (false, false);
        loop {
            let token = self.read();
            let range = self.range(token);
            if token.kind == end {
                if parts.is_empty() {
                    parts.push(Part { range: start.at_end(), kind: PartKind::Text(String::new()) });
                }
                return Ok((parts, range));
            }
            match token.kind {
                TokenKind::Literal | TokenKind::QuotedLiteral => {
                    let mut text = self.text_of(token);
                    if strips {
                        text.drain(..text.len() - text.trim_start().len());
                    }
                    parts.push(Part { range, kind: PartKind::Text(text) });
                    (strips, after_text) = (false, true);
                }
                TokenKind::Interpolation | TokenKind::Directive => {
                    if after_text && token.len() == 3 {
                        strip_end(parts.last_mut());
                    }
                    let (part, close) = self.with_newlines(false, |parser| parser.sequence(token, start, end))?;
                    parts.push(part);
                    (strips, after_text) = (close.len() == 2, false);
                }
                _ => return self.unterminated(token, open),
            }
        }
    }

    fn unterminated<T>(&mut self, token: Token, open: Option<Token>) -> Result<T> {
        let line = open.map_or(1, |open| self.line(open.start));
        let detail = format!("The string that starts on line {line} has no end.");
        let hint = match open {
            Some(Token { kind: TokenKind::OpenHeredoc, .. }) => {
                "the end of a heredoc is its marker, alone on a line, and a line break"
            }
            _ => "",
        };
        self.abandon(token, "Unterminated template string", detail, hint)
    }

    fn text_of(&mut self, token: Token) -> String {
        match token.kind {
            TokenKind::QuotedLiteral => self.quoted_literal(token),
            _ => unescape_literal(self.slice(token)),
        }
    }

    pub fn quoted_literal(&mut self, token: Token) -> String {
        unescape_quoted(self.slice(token), self.range(token), &mut self.diagnostics)
    }

    /// Parses a sequence after its opening, and returns the token that closes it.
    fn sequence(&mut self, open: Token, start: Range, end: TokenKind) -> Result<(Part, Token)> {
        if open.kind == TokenKind::Directive {
            return self.directive(open);
        }
        let expr = self.expression()?;
        let Some(close) = self.read_if(TokenKind::SequenceEnd) else {
            return self.unclosed_interpolation(start, end);
        };
        let range = self.range(open).to(self.range(close));
        Ok((Part { range, kind: PartKind::Value(expr) }, close))
    }

    fn unclosed_interpolation<T>(&mut self, start: Range, end: TokenKind) -> Result<T> {
        let next = self.peek();
        let quote = matches!(next.kind, TokenKind::OpenQuote | TokenKind::CloseQuote) && end == TokenKind::CloseQuote;
        if next.kind == TokenKind::EndOfFile || quote {
            let detail = "The interpolation `${` is not closed before the string ends.";
            return self.abandon_at(start, "Unclosed template interpolation sequence", detail, "");
        }
        let detail = "The closing brace of the interpolation is expected here.";
        let hint = "if `${` belongs to another language, write `$${`";
        self.abandon(next, "Extra characters after interpolation expression", detail, hint)
    }

    fn directive(&mut self, open: Token) -> Result<(Part, Token)> {
        let word = self.peek();
        if word.kind != TokenKind::Identifier {
            let detail = "The word `if`, `else`, `endif`, `for` or `endfor` is expected after `%{`.";
            let hint = "if `%{` belongs to another language, write `%%{`";
            return self.abandon(word, "Invalid template directive", detail, hint);
        }
        self.read();
        let kind = match self.slice(word) {
            "if" => PartKind::If(self.expression()?),
            "else" => PartKind::Else,
            "endif" => PartKind::EndIf,
            "for" => {
                let (key_name, value_name) = self.for_names("Invalid 'for' directive")?;
                PartKind::For { key_name, value_name, collection: self.expression()? }
            }
            "endfor" => PartKind::EndFor,
            other => {
                let detail = format!("`{other}` is no directive: there are `if`, `else`, `endif`, `for` and `endfor`.");
                return self.abandon(word, "Invalid template control keyword", detail, "");
            }
        };
        let close = self.peek();
        if close.kind != TokenKind::SequenceEnd {
            let summary = format!("Extra characters in {} marker", self.slice(word));
            return self.abandon(close, &summary, "The closing brace of the directive is expected here.", "");
        }
        self.read();
        Ok((Part { range: self.range(open).to(self.range(close)), kind }, close))
    }
}

fn strip_end(part: Option<&mut Part>) {
    if let Some(Part { kind: PartKind::Text(text), .. }) = part {
        text.truncate(text.trim_end().len());
    }
}

/// Joins texts that follow each other.
fn join_texts(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part { range, kind: PartKind::Text(text) }), Part { range: next, kind: PartKind::Text(more) }) => {
                text.push_str(&more);
                *range = range.to(next);
            }
            (_, part) => joined.push(part),
        }
    }
    joined
}

/// `<<-`: removes from each line as much white space as the line with the least has. Blank lines do not count, and values do
/// not either: a line that starts with a sequence has no indentation.
fn flush(parts: &mut [Part]) {
    let mut least = usize::MAX;
    let mut line_starts = Vec::new();
    let mut at_line_start = true;
    for (index, part) in parts.iter().enumerate() {
        let text = match &part.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        };
        if at_line_start {
            let indented = text.map(|text| (text, text.trim_start()));
            match indented {
                Some((text, "")) if text.ends_with('\n') => {}
                Some((text, rest)) => {
                    least = least.min(text[..text.len() - rest.len()].graphemes(true).count());
                    line_starts.push(index);
                }
                None => least = 0,
            }
        }
        at_line_start = text.is_some_and(|text| text.ends_with('\n'));
    }
    for index in line_starts {
        let part = &mut parts[index];
        if let PartKind::Text(text) = &mut part.kind {
            let len: usize = text.graphemes(true).take(least).map(str::len).sum();
            text.drain(..len);
            part.range.start += len as u32;
        }
    }
}

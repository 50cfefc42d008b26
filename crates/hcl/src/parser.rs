//! Tokens in, a tree out.
//!
//! A function that meets an error reports it and returns [`Abandoned`]; the body around it gives the attribute the value
//! `Invalid` and continues after it. So each attribute and block reports its first error, and none its consequences.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the path of a method is not general over the lifetime of the parser"
)]

mod body;
mod constructor;
mod expression;
mod lexical;
mod recovery;
mod template;
mod traversal;

pub(crate) use expression::invalid;

use std::cell::OnceCell;

use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, too_long};
use crate::lexer::{Start, lex};
use crate::source::{FileId, Range, Source};
use crate::token::{Token, TokenKind};
use crate::tree::{Body, Expr, MAX_HEIGHT, Traversal};

/// The greatest number of brackets, blocks and operators inside each other. The parser calls itself for each.
pub const MAX_NESTING: u16 = 200;

/// What a file was parsed to. There may be a value and problems: what follows a problem is parsed as well.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The tree. What could not be parsed is left out of it or `Invalid` in it.
    pub value: T,
    /// The problems, in the order of the source. If there is none, `value` is all of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The text and its lines.
    pub source: Source,
}

/// Parses a file in native syntax.
///
/// ```
/// let text = "locals {\n  a = 1 + var.b\n}\n";
/// let parsed = hcl::parse_body(hcl::Source::new(hcl::FileId(0), "main.tf", text));
/// assert!(parsed.diagnostics.is_empty());
/// let attribute = parsed.value.blocks[0].body.attribute("a").unwrap();
/// assert_eq!(parsed.source.slice(attribute.value.range), "1 + var.b");
/// assert_eq!(parsed.source.position(attribute.value.range.start).to_string(), "2,7");
/// ```
pub fn parse_body(source: Source) -> Parsed<Body> {
    parse(source, Start::Normal, |parser| parser.file())
}

/// Parses an expression. Line breaks mean nothing in it, as in parentheses.
///
/// ```
/// use hcl::{ExprKind, FileId, Source, parse_expression};
/// let parsed = parse_expression(Source::new(FileId(0), "<value>", "a ? b :\nc"));
/// assert!(matches!(parsed.value.kind, ExprKind::Conditional(_)));
/// ```
pub fn parse_expression(source: Source) -> Parsed<Expr> {
    parse(source, Start::Normal, |parser| parser.whole_expression())
}

/// Parses a template without quotes, as in a file that `templatefile` renders.
///
/// ```
/// use hcl::{ExprKind, FileId, Source, parse_template};
/// let parsed = parse_template(Source::new(FileId(0), "a.tftpl", "%{ for a in b ~}\n${a}\n%{ endfor ~}\n"));
/// let ExprKind::Template(parts) = parsed.value.kind else { panic!() };
/// assert!(matches!(parts[0].kind, ExprKind::TemplateJoin(_)));
/// ```
pub fn parse_template(source: Source) -> Parsed<Expr> {
    parse(source, Start::Template, |parser| parser.whole_template())
}

/// Parses a traversal such as `aws_vpc.main[0]`: a name, attributes, and indexes that are written out.
pub fn parse_traversal(source: Source) -> Parsed<Option<Traversal>> {
    parse(source, Start::Normal, |parser| parser.whole_traversal(false))
}

/// Parses a traversal that may have `[*]` in it.
pub fn parse_partial_traversal(source: Source) -> Parsed<Option<Traversal>> {
    parse(source, Start::Normal, |parser| parser.whole_traversal(true))
}

/// Parses the traversal that the text of a JSON string is.
pub(crate) fn traversal_of_text(text: &str, place: Range) -> Result<Traversal, Vec<Diagnostic>> {
    let (traversal, diagnostics) = parse_inner(text, Start::Normal, place, |parser| parser.whole_traversal(false));
    traversal.filter(|_| diagnostics.is_empty()).ok_or(diagnostics)
}

/// Parses the expression that the text of a JSON string is.
pub(crate) fn expression_of_text(text: &str, place: Range) -> Result<Expr, Vec<Diagnostic>> {
    let (expr, diagnostics) = parse_inner(text, Start::Normal, place, |parser| parser.whole_expression());
    if diagnostics.is_empty() { Ok(expr) } else { Err(diagnostics) }
}

/// Parses the template that the text of a JSON string is.
pub(crate) fn template_of_text(text: &str, place: Range) -> (Expr, Vec<Diagnostic>) {
    parse_inner(text, Start::Template, place, |parser| parser.whole_template())
}

/// Parses a text that stands in quotes at a place. Offsets count as if the string had no escapes.
fn parse_inner<T>(
    text: &str,
    start: Start,
    place: Range,
    read: impl FnOnce(&mut Parser<'_>) -> T,
) -> (T, Vec<Diagnostic>) {
    let mut parser = Parser::new(text, lex(text, start), place.file);
    parser.base = place.start + 1;
    let value = read(&mut parser);
    (value, parser.finish())
}

fn shifted(range: Range, base: u32) -> Range {
    Range { start: range.start.saturating_add(base), end: range.end.saturating_add(base), ..range }
}

fn parse<T>(mut source: Source, start: Start, read: impl FnOnce(&mut Parser<'_>) -> T) -> Parsed<T> {
    let tokens = lex(source.text(), start);
    if !source.text().is_ascii() {
        let text = source.text();
        let ranges = tokens.iter().map(|token| token.range(source.id()));
        let wide: Vec<Range> =
            ranges.filter(|range| !text[range.start as usize..range.end as usize].is_ascii()).collect();
        wide.iter().for_each(|range| source.add_token(range.start, range.end));
    }
    let unreadable = too_long(&source).or_else(|| lexical::check_encoding(&tokens, source.id(), source.broken()));
    let mut parser = Parser::new(source.text(), tokens, source.id());
    let value = read(&mut parser);
    // What is no text has no errors besides.
    let diagnostics = unreadable.map_or_else(|| parser.finish(), |error| vec![error]);
    Parsed { value, diagnostics, source }
}

/// An error was reported, and what was being parsed cannot be finished.
#[derive(Debug)]
struct Abandoned;

type Result<T, E = Abandoned> = std::result::Result<T, E>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    file: FileId,
    /// The offset of the text in the file.
    base: u32,
    /// The index of the next token, which may be a comment or a line break that is skipped.
    next: usize,
    /// Whether line breaks mean something here; the last one counts.
    newlines: Vec<bool>,
    nesting: u16,
    /// Whether a block was reported that the file does not close.
    unclosed: bool,
    /// How often the text was read again from a line on.
    lexed_again: u8,
    /// The lines after the first one, once an error names a line.
    line_starts: OnceCell<Vec<u32>>,
    /// The errors of the lexer. Where the text is read again, they are found again.
    lexical: Vec<Diagnostic>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: Vec<Token>, file: FileId) -> Self {
        let lexical = lexical::check(text, &tokens, file);
        Self {
            text,
            tokens,
            file,
            base: 0,
            next: 0,
            newlines: vec![true],
            nesting: 0,
            unclosed: false,
            lexed_again: 0,
            line_starts: OnceCell::new(),
            lexical,
            diagnostics: Vec::new(),
        }
    }

    /// Returns the next token that means something here, and the index after it.
    fn find(&self) -> (Token, usize) {
        let newlines = self.newlines.last() == Some(&true);
        for (index, token) in self.tokens.iter().enumerate().skip(self.next) {
            match token.kind {
                TokenKind::Newline if !newlines => {}
                // A comment to the end of its line has the line break in it.
                TokenKind::Comment if newlines && self.slice(*token).ends_with('\n') => {
                    return (Token { kind: TokenKind::Newline, ..*token }, index + 1);
                }
                TokenKind::Comment => {}
                _ => return (*token, index + 1),
            }
        }
        let end = Token { kind: TokenKind::EndOfFile, start: self.text.len() as u32, end: self.text.len() as u32 };
        (end, self.tokens.len())
    }

    fn peek(&self) -> Token {
        self.find().0
    }

    fn peek_kind(&self) -> TokenKind {
        self.find().0.kind
    }

    fn read(&mut self) -> Token {
        let (token, next) = self.find();
        self.next = next;
        token
    }

    fn read_if(&mut self, kind: TokenKind) -> Option<Token> {
        let (token, next) = self.find();
        if token.kind == kind {
            self.next = next;
            return Some(token);
        }
        None
    }

    /// Whether the next token is this word.
    fn peek_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Identifier && self.slice(token) == word
    }

    /// The range of the token before the next one.
    fn previous_range(&self) -> Range {
        let token = self.next.checked_sub(1).and_then(|index| self.tokens.get(index)).copied();
        self.range(token.unwrap_or_else(|| self.peek()))
    }

    fn range(&self, token: Token) -> Range {
        shifted(token.range(self.file), self.base)
    }

    fn slice(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The number of the line of an offset in the text.
    fn line(&self, offset: u32) -> usize {
        let starts =
            self.line_starts.get_or_init(|| self.text.match_indices('\n').map(|(at, _)| at as u32 + 1).collect());
        1 + starts.partition_point(|start| *start <= offset)
    }

    /// Parses with line breaks that mean something, or nothing.
    fn with_newlines<T>(&mut self, newlines: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        self.newlines.push(newlines);
        let value = read(self);
        self.newlines.pop();
        value
    }

    /// Parses one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= MAX_NESTING {
            let token = self.peek();
            let detail = format!("There are more than {MAX_NESTING} brackets, blocks and operators inside each other.");
            return self.abandon(token, "Nested too deeply", detail, "move a part of it to a value of its own");
        }
        self.nesting += 1;
        let value = read(self);
        self.nesting -= 1;
        value
    }

    /// Refuses a tree that is too high.
    fn bounded(&mut self, expr: Expr) -> Result<Expr> {
        if expr.height() <= MAX_HEIGHT {
            return Ok(expr);
        }
        let detail = format!("The expression has more than {MAX_HEIGHT} operators or brackets on top of each other.");
        self.abandon_at(expr.range, "Nested too deeply", detail, "move a part of it to a value of its own")
    }

    fn report(&mut self, summary: &str, detail: impl Into<String>, range: Range) {
        self.refuse_at(range, summary, detail, "");
    }

    /// Reports an error at a token. If the lexer has reported the token, that is the error.
    fn refuse(&mut self, token: Token, summary: &str, detail: impl Into<String>, hint: &str) {
        if !token.kind.is_reported() {
            self.refuse_at(self.range(token), summary, detail, hint);
        }
    }

    fn refuse_at(&mut self, range: Range, summary: &str, detail: impl Into<String>, hint: &str) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            let diagnostic = Diagnostic::new(summary, detail, range);
            self.diagnostics.push(if hint.is_empty() { diagnostic } else { diagnostic.hint(hint) });
        }
    }

    fn abandon<T>(&mut self, token: Token, summary: &str, detail: impl Into<String>, hint: &str) -> Result<T> {
        self.refuse(token, summary, detail, hint);
        Err(Abandoned)
    }

    fn abandon_at<T>(&mut self, range: Range, summary: &str, detail: impl Into<String>, hint: &str) -> Result<T> {
        self.refuse_at(range, summary, detail, hint);
        Err(Abandoned)
    }

    /// Reads the text again from the start of a line on, outside of any template.
    fn lex_again(&mut self, index: usize, line_start: u32) {
        self.tokens.truncate(index);
        let tokens = lex(&self.text[line_start as usize..], Start::Normal).into_iter();
        self.tokens.extend(tokens.map(|token| Token {
            start: token.start + line_start,
            end: token.end + line_start,
            ..token
        }));
        self.lexical.retain(|diagnostic| diagnostic.range.start < line_start);
        self.lexical.extend(lexical::check(self.text, &self.tokens[index..], self.file));
    }

    /// Returns all errors in the order of the source.
    fn finish(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.lexical;
        diagnostics.iter_mut().for_each(|diagnostic| diagnostic.range = shifted(diagnostic.range, self.base));
        diagnostics.extend(self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| diagnostic.range.start);
        diagnostics
    }
}

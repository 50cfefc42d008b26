//! What `tofu fmt` changes besides white space: forms that older versions of the language needed.

use std::borrow::Cow;
use std::ops::Range;

use super::Piece;
use crate::token::TokenKind;
use crate::tree::{Attribute, Block, Body};

/// Returns the tokens with simpler ones for the values and labels of a body.
pub fn simplify<'a>(tokens: Vec<Piece<'a>>, body: &Body) -> Vec<Piece<'a>> {
    let mut simplifier = Simplifier { tokens: &tokens, changes: Vec::new() };
    simplifier.body(body, &[]);
    let mut changes = simplifier.changes;
    changes.sort_by_key(|change| change.replaced.start);
    let mut result = Vec::with_capacity(tokens.len());
    let mut next = 0;
    for change in changes {
        result.extend_from_slice(&tokens[next..change.replaced.start]);
        result.extend(change.pieces);
        next = change.replaced.end;
    }
    result.extend_from_slice(&tokens[next..]);
    result
}

/// Tokens, by their indexes, and what stands for them.
struct Change<'a> {
    replaced: Range<usize>,
    pieces: Vec<Piece<'a>>,
}

struct Simplifier<'t, 'a> {
    tokens: &'t [Piece<'a>],
    changes: Vec<Change<'a>>,
}

impl<'a> Simplifier<'_, 'a> {
    fn body(&mut self, body: &Body, around: &[&str]) {
        for attribute in &body.attributes {
            let is_type = around == ["variable"] && attribute.name.text == "type";
            self.attribute(attribute, if is_type { type_of } else { value_of });
        }
        for block in &body.blocks {
            self.labels(block);
            self.body(&block.body, &[around, &[block.kind.text.as_str()]].concat());
        }
    }

    fn attribute(&mut self, attribute: &Attribute, simpler: fn(&[Piece<'a>]) -> Option<Vec<Piece<'a>>>) {
        let replaced = self.find(attribute.value.range);
        if let Some(pieces) = simpler(&self.tokens[replaced.clone()]) {
            self.changes.push(Change { replaced, pieces });
        }
    }

    /// Quotes the labels, and drops comments between them.
    fn labels(&mut self, block: &Block) {
        let mut from = self.find(block.kind.range).end;
        for label in &block.labels {
            let place = self.find(label.range);
            let tokens = &self.tokens[place.clone()];
            let pieces = match tokens {
                [word] => quoted(word),
                _ => tokens.to_vec(),
            };
            self.changes.push(Change { replaced: from..place.end, pieces });
            from = place.end;
        }
    }

    /// Returns the indexes of the tokens of a range.
    fn find(&self, range: crate::source::Range) -> Range<usize> {
        let start = self.tokens.partition_point(|token| token.start < range.start);
        let end = start + self.tokens[start..].partition_point(|token| token.start < range.end);
        start..end
    }
}

fn piece<'a>(kind: TokenKind, text: &'static str, start: u32) -> Piece<'a> {
    Piece { kind, text: Cow::Borrowed(text), spaces: 0, start }
}

fn quoted<'a>(word: &Piece<'a>) -> Vec<Piece<'a>> {
    let literal = Piece { kind: TokenKind::QuotedLiteral, ..word.clone() };
    vec![piece(TokenKind::OpenQuote, "\"", word.start), literal, piece(TokenKind::CloseQuote, "\"", word.start)]
}

/// `"${a}"` is `a`. On many lines it needs parentheses.
fn value_of<'a>(tokens: &[Piece<'a>]) -> Option<Vec<Piece<'a>>> {
    let [open, begin, inside @ .., end, close] = tokens else { return None };
    let kinds = (open.kind, begin.kind, end.kind, close.kind);
    let wrapped = (TokenKind::OpenQuote, TokenKind::Interpolation, TokenKind::SequenceEnd, TokenKind::CloseQuote);
    if inside.is_empty() || kinds != wrapped || !is_one_sequence(inside) {
        return None;
    }
    let start = inside.iter().position(|token| token.kind != TokenKind::Newline).unwrap_or(inside.len());
    let end = inside.iter().rposition(|token| token.kind != TokenKind::Newline).map_or(start, |at| at + 1);
    let inside = &inside[start..end];
    let (first, last) = (inside.first()?, inside.last()?);
    let enclosed = first.kind == TokenKind::OpenParen && last.kind == TokenKind::CloseParen;
    let mut pieces = inside.to_vec();
    if inside.iter().any(|token| token.kind == TokenKind::Newline) && !enclosed {
        pieces.insert(0, piece(TokenKind::OpenParen, "(", open.start));
        pieces.push(piece(TokenKind::CloseParen, ")", close.start));
    }
    Some(pieces)
}

/// Whether these tokens, between `"${` and `}"`, are those of one expression: there is no text and no other sequence
/// except in strings inside the expression.
fn is_one_sequence(inside: &[Piece<'_>]) -> bool {
    let mut quotes = 0;
    for token in inside {
        match token.kind {
            TokenKind::OpenQuote => quotes += 1,
            TokenKind::CloseQuote => quotes -= 1,
            TokenKind::Interpolation | TokenKind::SequenceEnd | TokenKind::QuotedLiteral if quotes <= 0 => {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// `"string"` is `string`, `"list"` is `list(string)`, and `list` is `list(any)`.
fn type_of<'a>(tokens: &[Piece<'a>]) -> Option<Vec<Piece<'a>>> {
    let kinds: Vec<TokenKind> = tokens.iter().map(|token| token.kind).collect();
    let (word, element) = match kinds.as_slice() {
        [TokenKind::Identifier] => (&tokens[0], "any"),
        [TokenKind::OpenQuote, TokenKind::QuotedLiteral, TokenKind::CloseQuote] => (&tokens[1], "string"),
        _ => return None,
    };
    let name = Piece { kind: TokenKind::Identifier, ..word.clone() };
    match (&*word.text, element) {
        ("string", "string") => Some(vec![name]),
        ("list" | "map", _) | ("set", "any") => Some(vec![
            name,
            piece(TokenKind::OpenParen, "(", word.start),
            piece(TokenKind::Identifier, element, word.start),
            piece(TokenKind::CloseParen, ")", word.start),
        ]),
        _ => None,
    }
}

//! Which tokens have a space between them.

use super::Piece;
use crate::token::TokenKind;

/// Returns 1 for what opens brackets, -1 for what closes them.
pub fn bracket_change(kind: TokenKind) -> i32 {
    match kind {
        TokenKind::OpenBrace
        | TokenKind::OpenBracket
        | TokenKind::OpenParen
        | TokenKind::Directive
        | TokenKind::Interpolation => 1,
        TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen | TokenKind::SequenceEnd => -1,
        _ => 0,
    }
}

/// Whether a space is between a token and the one after it. `before` is the one before it in the same cell of the line.
#[expect(clippy::match_same_arms, reason = "the first rule that applies decides")]
pub fn has_space_between(before: Option<TokenKind>, token: &Piece<'_>, after: TokenKind) -> bool {
    use TokenKind::{
        Bang, CloseBrace, CloseHeredoc, CloseQuote, Comma, Directive, Dot, DoubleColon, Ellipsis, Identifier,
        Interpolation, Literal, Minus, Newline, Number, OpenBrace, OpenBracket, OpenHeredoc, OpenParen, OpenQuote,
        QuotedLiteral, SequenceEnd,
    };
    match (token.kind, after) {
        (_, Newline) => false,
        // Calls, namespaces and attributes.
        (Identifier, OpenParen | DoubleColon) | (DoubleColon, Identifier) => false,
        (Dot, _) | (_, Dot) => false,
        (_, Comma | Ellipsis) => false,
        (Comma, _) => true,
        // The texts of templates are left as they are.
        (QuotedLiteral | Literal | OpenQuote | OpenHeredoc, _) => false,
        (_, QuotedLiteral | Literal | CloseQuote | CloseHeredoc) => false,
        // `for x in [a]` is no index.
        (Identifier, _) if token.text == "in" && before == Some(Identifier) => true,
        (Identifier | Number, OpenBracket) => false,
        (kind, OpenBracket) if bracket_change(kind) < 0 => false,
        (Bang, _) => false,
        (Minus, _) => !before.is_none_or(comes_before_operand),
        (OpenBrace, CloseBrace) => false,
        (OpenBrace, _) | (_, CloseBrace) => true,
        // An object alone in an interpolation.
        (Interpolation | Directive, OpenBrace) | (CloseBrace, SequenceEnd) => true,
        (SequenceEnd, Interpolation | Directive) => false,
        (kind, _) if bracket_change(kind) > 0 => false,
        (_, kind) => bracket_change(kind) >= 0,
    }
}

/// Whether a minus after this is the sign of what follows it.
fn comes_before_operand(kind: TokenKind) -> bool {
    use TokenKind::{
        And, Bang, Colon, Comma, Equal, EqualEqual, Greater, GreaterEqual, Less, LessEqual, Minus, NotEqual, OpenBrace,
        OpenBracket, OpenParen, Or, Percent, Plus, Question, Slash, Star,
    };
    matches!(
        kind,
        OpenParen
            | OpenBrace
            | OpenBracket
            | Equal
            | Colon
            | Comma
            | Question
            | Plus
            | Star
            | Slash
            | Percent
            | Minus
            | EqualEqual
            | NotEqual
            | Greater
            | GreaterEqual
            | Less
            | LessEqual
            | And
            | Or
            | Bang
    )
}

//! Expressions: operators, terms, and the steps that follow a term.

use super::{Parser, Result};
use crate::source::Range;
use crate::token::{Token, TokenKind};
use crate::tree::{
    Binary, BinaryOperator, Conditional, Expr, ExprKind, Index, Literal, Name, RelativeTraversal, Splat, Step,
    Traversal, UnaryOperator,
};

/// What stands for an expression that could not be parsed.
pub(crate) fn invalid(range: Range) -> Expr {
    Expr::new(ExprKind::Invalid, range)
}

/// Returns the operator that a token is, and how closely it binds.
fn operator(kind: TokenKind) -> Option<(BinaryOperator, u8)> {
    Some(match kind {
        TokenKind::Or => (BinaryOperator::Or, 1),
        TokenKind::And => (BinaryOperator::And, 2),
        TokenKind::EqualEqual => (BinaryOperator::Equal, 3),
        TokenKind::NotEqual => (BinaryOperator::NotEqual, 3),
        TokenKind::Greater => (BinaryOperator::Greater, 4),
        TokenKind::GreaterEqual => (BinaryOperator::GreaterOrEqual, 4),
        TokenKind::Less => (BinaryOperator::Less, 4),
        TokenKind::LessEqual => (BinaryOperator::LessOrEqual, 4),
        TokenKind::Plus => (BinaryOperator::Add, 5),
        TokenKind::Minus => (BinaryOperator::Subtract, 5),
        TokenKind::Star => (BinaryOperator::Multiply, 6),
        TokenKind::Slash => (BinaryOperator::Divide, 6),
        TokenKind::Percent => (BinaryOperator::Modulo, 6),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Parses a text that is one expression.
    pub fn whole_expression(&mut self) -> Expr {
        self.newlines = vec![false];
        let start = self.range(self.peek());
        let Ok(expr) = self.expression() else { return invalid(start) };
        let next = self.peek();
        if next.kind != TokenKind::EndOfFile {
            let detail = "The expression is complete before this place.";
            self.refuse(next, "Extra characters after expression", detail, "");
        }
        expr
    }

    pub fn expression(&mut self) -> Result<Expr> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expr> {
        let condition = self.binary()?;
        if self.read_if(TokenKind::Question).is_none() {
            return Ok(condition);
        }
        let if_true = self.expression()?;
        if self.read_if(TokenKind::Colon).is_none() {
            let detail = "A colon and the result for \"false\" are missing: `condition ? a : b`.";
            return self.abandon(self.peek(), "Missing false expression in conditional", detail, "");
        }
        let if_false = self.expression()?;
        let range = condition.range.to(if_false.range);
        let conditional = Conditional { condition, if_true, if_false };
        self.bounded(Expr::new(ExprKind::Conditional(Box::new(conditional)), range))
    }

    /// Parses operands and the operators between them. An operator waits for its right operand until one is read that is
    /// followed by an operator which binds no closer.
    fn binary(&mut self) -> Result<Expr> {
        let mut waiting: Vec<(Expr, BinaryOperator, u8)> = Vec::new();
        loop {
            let mut right = self.operand()?;
            let next = operator(self.peek_kind());
            let next_binding = next.map_or(0, |(_, binding)| binding);
            while let Some((left, operator, _)) = waiting.pop_if(|(_, _, binding)| *binding >= next_binding) {
                let range = left.range.to(right.range);
                let binary = Binary { left, operator, right };
                right = self.bounded(Expr::new(ExprKind::Binary(Box::new(binary)), range))?;
            }
            let Some((operator, binding)) = next else { return Ok(right) };
            self.read();
            waiting.push((right, operator, binding));
        }
    }

    fn operand(&mut self) -> Result<Expr> {
        let term = self.term()?;
        self.steps(term)
    }

    fn term(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number => {
                self.read();
                Ok(Expr::literal(self.number(token), self.range(token)))
            }
            TokenKind::Identifier => self.word(),
            TokenKind::OpenQuote | TokenKind::OpenHeredoc => self.string(),
            TokenKind::Minus => self.unary(UnaryOperator::Negate),
            TokenKind::Bang => self.unary(UnaryOperator::Not),
            TokenKind::OpenParen => self.parentheses(),
            TokenKind::OpenBracket => self.tuple(),
            TokenKind::OpenBrace => self.object(),
            TokenKind::EndOfFile => {
                self.abandon(token, "Missing expression", "The file ends where a value is expected.", "")
            }
            _ => self.abandon(token, "Invalid expression", "A value is expected here.", value_hint(token.kind)),
        }
    }

    fn word(&mut self) -> Result<Expr> {
        let token = self.read();
        if matches!(self.peek_kind(), TokenKind::OpenParen | TokenKind::DoubleColon) {
            return self.call(token);
        }
        let range = self.range(token);
        let text = self.slice(token);
        let literal = match text {
            "null" => Literal::Null,
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            _ => {
                let root = Name { text: text.to_owned(), range };
                let traversal = Traversal { root, steps: Vec::new(), range };
                return Ok(Expr::new(ExprKind::Traversal(Box::new(traversal)), range));
            }
        };
        Ok(Expr::literal(literal, range))
    }

    pub fn number(&mut self, token: Token) -> Literal {
        let text = self.slice(token);
        if !is_number(text) {
            self.report(
                "Invalid number literal",
                "A number has at most one decimal point and one exponent, of at most nine digits.",
                self.range(token),
            );
        }
        Literal::Number(text.to_owned())
    }

    /// The operand of `-` and `!` takes the steps that follow it, but no operators.
    fn unary(&mut self, operator: UnaryOperator) -> Result<Expr> {
        let token = self.read();
        let operand = self.nested(Self::operand)?;
        let range = self.range(token).to(operand.range);
        self.bounded(Expr::new(ExprKind::Unary(operator, Box::new(operand)), range))
    }

    fn parentheses(&mut self) -> Result<Expr> {
        let open = self.read();
        self.with_newlines(false, |parser| {
            let expr = parser.expression()?;
            let Some(close) = parser.read_if(TokenKind::CloseParen) else {
                let detail = "The parenthesis that was opened has to be closed here.";
                return parser.abandon(parser.peek(), "Unbalanced parentheses", detail, "");
            };
            let range = parser.range(open).to(parser.range(close));
            parser.bounded(Expr::new(ExprKind::Parentheses(Box::new(expr)), range))
        })
    }

    /// Parses the steps after a term: attributes, indexes and splats.
    fn steps(&mut self, term: Expr) -> Result<Expr> {
        let mut expr = term;
        loop {
            expr = match self.peek_kind() {
                TokenKind::Dot => self.dot(expr)?,
                TokenKind::OpenBracket => self.brackets(expr)?,
                _ => return Ok(expr),
            };
        }
    }

    fn dot(&mut self, expr: Expr) -> Result<Expr> {
        let dot = self.read();
        match self.peek_kind() {
            TokenKind::Star => self.attribute_splat(expr, dot),
            _ => Ok(expr.step(self.dotted(dot)?)),
        }
    }

    /// Parses what follows a dot: a name, or a number as Terraform's first versions wrote indexes.
    fn dotted(&mut self, dot: Token) -> Result<Step> {
        let token = self.peek();
        let range = self.range(dot).to(self.range(token));
        match token.kind {
            TokenKind::Identifier => {
                self.read();
                Ok(Step::Attribute(Name { text: self.slice(token).to_owned(), range }))
            }
            TokenKind::Number => {
                self.read();
                if let Some((first, second)) = self.slice(token).split_once('.') {
                    let hint = format!("write `[{first}][{second}]`");
                    let detail = "Two indexes with dots after each other read as one number.";
                    return self.abandon(token, "Invalid legacy index syntax", detail, &hint);
                }
                Ok(Step::Index { key: self.number(token), range })
            }
            TokenKind::Star => {
                let detail = "After `.*` only attributes can follow.";
                self.abandon(token, "Nested splat expression not allowed", detail, "use `[*]` for both")
            }
            _ => self.abandon(token, "Invalid attribute name", "The name of an attribute is expected after a dot.", ""),
        }
    }

    /// `.*` takes the attributes that follow it, and nothing else: `a.*.b[0]` is an index into the result.
    fn attribute_splat(&mut self, source: Expr, dot: Token) -> Result<Expr> {
        let star = self.read();
        let marker_range = self.range(dot).to(self.range(star));
        let steps_start = self.range(self.peek());
        let mut last = self.range(star);
        let mut steps = Vec::new();
        while let Some(dot) = self.read_if(TokenKind::Dot) {
            let step = self.dotted(dot)?;
            last = step.range();
            steps.push(step);
        }
        let item = Expr::new(ExprKind::SplatItem, marker_range);
        let each = if steps.is_empty() {
            item
        } else {
            let traversal = RelativeTraversal { source: item, steps };
            Expr::new(ExprKind::RelativeTraversal(Box::new(traversal)), steps_start.to(last))
        };
        let range = source.range.to(last);
        self.bounded(Expr::new(ExprKind::Splat(Box::new(Splat { source, each, marker_range, full: false })), range))
    }

    fn brackets(&mut self, expr: Expr) -> Result<Expr> {
        let open = self.read();
        if self.read_if(TokenKind::Star).is_some() {
            return self.full_splat(expr, open);
        }
        let (key, close) = self.with_newlines(false, Self::index_key)?;
        let range = self.range(open).to(self.range(close));
        if let Some(key) = constant_key(&key) {
            return Ok(expr.step(Step::Index { key, range }));
        }
        let whole = expr.range.to(range);
        let index = Index { collection: expr, key, brackets_range: range };
        self.bounded(Expr::new(ExprKind::Index(Box::new(index)), whole))
    }

    fn index_key(&mut self) -> Result<(Expr, Token)> {
        let key = self.expression()?;
        match self.read_if(TokenKind::CloseBracket) {
            Some(close) => Ok((key, close)),
            None => {
                let detail = "An index ends with a closing bracket.";
                self.abandon(self.peek(), "Missing close bracket on index", detail, "")
            }
        }
    }

    /// `[*]` takes all the steps that follow it.
    fn full_splat(&mut self, source: Expr, open: Token) -> Result<Expr> {
        let Some(close) = self.read_if(TokenKind::CloseBracket) else {
            let detail = "The star of a splat is followed by a closing bracket: `[*]`.";
            return self.abandon(self.peek(), "Missing close bracket on splat index", detail, "");
        };
        let marker_range = self.range(open).to(self.range(close));
        let item = Expr::new(ExprKind::SplatItem, marker_range);
        let each = self.nested(|parser| parser.steps(item))?;
        let range = source.range.to(each.range);
        self.bounded(Expr::new(ExprKind::Splat(Box::new(Splat { source, each, marker_range, full: true })), range))
    }
}

/// Returns the key of an index if it is written out.
fn constant_key(key: &Expr) -> Option<Literal> {
    match &key.kind {
        ExprKind::Literal(literal) => Some(literal.clone()),
        _ => key.as_text().map(|text| Literal::String(text.to_owned())),
    }
}

/// Digits, one point at most, and one exponent at most. An exponent of more than nine digits is refused, as upstream.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let digits = !exponent.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit());
    mantissa.matches('.').count() <= 1 && digits && exponent.trim_start_matches('0').len() <= 9
}

fn value_hint(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Equal => "to compare two values, write `==`",
        TokenKind::Newline => "write the value on the same line, or enclose it in parentheses",
        _ => "",
    }
}

//! Static analysis: an expression read as something else than a value, as `depends_on = [a.b]` or `type = list(string)`.

use std::borrow::Cow;

use crate::diagnostic::Diagnostic;
use crate::lexer::is_identifier;
use crate::parser::{expression_of_text, traversal_of_text};
use crate::tree::{Call, Expr, ExprKind, Literal, Name, ObjectItem, Traversal};

impl Expr {
    /// Returns the expression as a traversal from a name: `a.b[0]`. A string of JSON syntax is parsed as one; its
    /// offsets are those of the string only if the string has no escapes.
    ///
    /// ```
    /// let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(0), "", "aws_vpc.main[0].id"));
    /// let traversal = parsed.value.as_traversal().unwrap();
    /// assert_eq!((traversal.root.text.as_str(), traversal.steps.len()), ("aws_vpc", 3));
    /// ```
    pub fn as_traversal(&self) -> Result<Traversal, Vec<Diagnostic>> {
        match &self.kind {
            ExprKind::Traversal(traversal) => Ok((**traversal).clone()),
            ExprKind::RelativeTraversal(relative) => {
                let mut traversal = relative.source.as_traversal()?;
                traversal.steps.extend(relative.steps.iter().cloned());
                traversal.range = self.range;
                Ok(traversal)
            }
            ExprKind::JsonString(string) => traversal_of_text(&string.text, self.range),
            ExprKind::Literal(_) => {
                self.keyword().map(|word| self.word_traversal(word)).ok_or_else(|| self.no_traversal())
            }
            _ => Err(self.no_traversal()),
        }
    }

    fn word_traversal(&self, word: &str) -> Traversal {
        let root = Name { text: word.to_owned(), range: self.range };
        Traversal { root, steps: Vec::new(), range: self.range }
    }

    fn no_traversal(&self) -> Vec<Diagnostic> {
        let detail = "A reference is required here: a name, followed by attributes or indexes that are written out.";
        vec![Diagnostic::new("Invalid reference", detail, self.range)]
    }

    /// Returns the expression as a single word: an identifier, or `null`, `true` or `false`.
    ///
    /// ```
    /// let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(0), "", "string"));
    /// assert_eq!(parsed.value.keyword(), Some("string"));
    /// ```
    pub fn keyword(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Traversal(traversal) if traversal.steps.is_empty() => Some(&traversal.root.text),
            ExprKind::Literal(Literal::Null) => Some("null"),
            ExprKind::Literal(Literal::Bool(true)) => Some("true"),
            ExprKind::Literal(Literal::Bool(false)) => Some("false"),
            ExprKind::JsonString(string) if is_identifier(&string.text) => Some(&string.text),
            _ => None,
        }
    }

    /// Returns the expressions of a list that is written out.
    pub fn as_list(&self) -> Option<&[Expr]> {
        match &self.kind {
            ExprKind::Tuple(exprs) => Some(exprs),
            _ => None,
        }
    }

    /// Returns the items of an object that is written out.
    pub fn as_object(&self) -> Option<&[ObjectItem]> {
        match &self.kind {
            ExprKind::Object(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the expression itself, or what the text of a JSON string is in native syntax. In JSON syntax a type such
    /// as `list(string)` stands in a string.
    ///
    /// ```
    /// let parsed = hcl::parse_json_expression(hcl::Source::new(hcl::FileId(0), "", r#""list(string)""#));
    /// assert_eq!(parsed.value.native().unwrap().as_call().unwrap().name.text, "list");
    /// ```
    pub fn native(&self) -> Result<Cow<'_, Expr>, Vec<Diagnostic>> {
        match &self.kind {
            ExprKind::JsonString(string) => expression_of_text(&string.text, self.range).map(Cow::Owned),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// Returns a call of a function that is written out.
    pub fn as_call(&self) -> Option<&Call> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the text of a string without sequences.
    ///
    /// ```
    /// let parsed = hcl::parse_expression(hcl::Source::new(hcl::FileId(0), "", r#""a \"b\"""#));
    /// assert_eq!(parsed.value.as_text(), Some("a \"b\""));
    /// ```
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Template(parts) => match parts.as_slice() {
                [Expr { kind: ExprKind::Literal(Literal::String(text)), .. }] => Some(text),
                _ => None,
            },
            ExprKind::JsonString(string) => string.template.as_text(),
            _ => None,
        }
    }
}

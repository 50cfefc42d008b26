//! The tree of a file: bodies of attributes and blocks, and expressions.
//!
//! The shape is the one that `hashicorp/hcl` documents for its native syntax, so that what evaluates it can follow the
//! same rules. Every node has its range. A tree is at most [`MAX_HEIGHT`] high, so functions may call themselves on it.

use crate::diagnostic::Diagnostic;
use crate::source::Range;

/// The greatest height of an expression. Long chains of operators are high as well: `a + b + c` is `(a + b) + c`.
pub const MAX_HEIGHT: u16 = 1000;

/// The attributes and blocks of a file or of a block.
///
/// In native syntax all of them are known from the text. In JSON syntax a schema has to say which property is an
/// attribute and which is a block, so `attributes` and `blocks` are empty and `json` holds what was read. The functions
/// [`Body::content`], [`Body::partial_content`] and [`Body::just_attributes`] work for both.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Body {
    /// The attributes in the order of the source. No two have the same name.
    pub attributes: Vec<Attribute>,
    /// The blocks in the order of the source.
    pub blocks: Vec<Block>,
    /// From the opening brace to the closing one, or the whole file.
    pub range: Range,
    /// The empty range after the body: where something that is missing could be added.
    pub end_range: Range,
    /// What was read in JSON syntax.
    pub json: Option<JsonBody>,
}

impl Body {
    /// Returns the attribute with a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.text == name)
    }

    /// Returns the blocks of a type, in the order of the source.
    pub fn blocks_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> + 'a {
        self.blocks.iter().filter(move |block| block.kind.text == kind)
    }
}

/// The properties of a body in JSON syntax that no schema has asked for yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JsonBody {
    pub(crate) properties: Vec<Property>,
    /// What is no object where one has to be. It is reported when the content is asked for.
    pub(crate) problems: Vec<Diagnostic>,
    /// The place of the body, if it is no object: an array of objects may be one.
    pub(crate) no_object: Option<Range>,
}

/// `"name": value`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Property {
    pub(crate) name: Name,
    pub(crate) value: JsonValue,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JsonValue {
    pub(crate) range: Range,
    pub(crate) kind: JsonValueKind,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum JsonValueKind {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<JsonValue>),
    Object(Vec<Property>),
}

/// A word of the source: an identifier, or the text of a label.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Name {
    /// The text, without quotes and escapes.
    pub text: String,
    /// The place, with quotes.
    pub range: Range,
}

/// `name = value`.
#[derive(Clone, PartialEq, Debug)]
pub struct Attribute {
    /// The name.
    pub name: Name,
    /// The value.
    pub value: Expr,
    /// From the name to the end of the value.
    pub range: Range,
    /// The equals sign. In JSON syntax the colon's place is that of the name.
    pub equals_range: Range,
}

/// `kind "label" { ... }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The type of the block, such as `resource`.
    pub kind: Name,
    /// The labels.
    pub labels: Vec<Name>,
    /// What is between the braces.
    pub body: Body,
    /// The opening brace.
    pub open_range: Range,
    /// The closing brace.
    pub close_range: Range,
}

impl Block {
    /// The type and the labels, without the body: what errors about the whole block point at.
    pub fn header_range(&self) -> Range {
        self.kind.range.to(self.labels.last().map_or(self.kind.range, |label| label.range))
    }
}

/// An expression and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// What the expression is.
    pub kind: ExprKind,
    /// Its place.
    pub range: Range,
    height: u16,
}

/// What an expression is.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `null`, `true`, `12`, or a text without a sequence inside a template.
    Literal(Literal),
    /// `var.a[0].b`: a name and steps that are known without evaluation.
    Traversal(Box<Traversal>),
    /// `f()[0].b`: steps from the value of an expression.
    RelativeTraversal(Box<RelativeTraversal>),
    /// `a[b]`, where the key has to be evaluated.
    Index(Box<Index>),
    /// `a[*].b` or `a.*.b`.
    Splat(Box<Splat>),
    /// The element of the splat around it.
    SplatItem,
    /// `"a ${b}"` or a heredoc: its parts are joined as text. A part without sequences is a `Literal`.
    Template(Vec<Expr>),
    /// `"${a}"`: the value of `a`, whatever its type.
    TemplateWrap(Box<Expr>),
    /// `%{ for ... }`: the expression is a [`For`], whose texts are joined.
    TemplateJoin(Box<Expr>),
    /// `[a, b]`.
    Tuple(Vec<Expr>),
    /// `{ a = b }`.
    Object(Vec<ObjectItem>),
    /// `[for ...]`, `{ for ... }`, or the inside of a `%{ for }`.
    For(Box<For>),
    /// `f(a, b...)`.
    Call(Box<Call>),
    /// `a ? b : c`, or `%{ if }`, whose results are templates.
    Conditional(Box<Conditional>),
    /// `a + b`.
    Binary(Box<Binary>),
    /// `-a` or `!a`.
    Unary(UnaryOperator, Box<Expr>),
    /// `(a)`.
    Parentheses(Box<Expr>),
    /// A string of JSON syntax: its text for static analysis, and the template that it is when it is evaluated.
    JsonString(Box<JsonString>),
    /// What could not be parsed; a diagnostic says why.
    Invalid,
}

/// A value that is written out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it is written, such as `1.50` or `2e3`: decimal digits with an optional point and exponent.
    Number(String),
    /// A text, without escapes, in Unicode's normalization form C.
    String(String),
}

/// A name and the steps from it.
#[derive(Clone, PartialEq, Debug)]
pub struct Traversal {
    /// The first name, which the scope defines.
    pub root: Name,
    /// What follows it.
    pub steps: Vec<Step>,
    /// The whole of it.
    pub range: Range,
}

/// A step into a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// `.name`; the range has the dot in it.
    Attribute(Name),
    /// `[0]`, `["key"]` or the legacy `.0`.
    Index {
        /// The key.
        key: Literal,
        /// The place, with brackets or dot.
        range: Range,
    },
    /// `[*]`: only in what [`parse_partial_traversal`](crate::parse_partial_traversal) gives.
    Splat {
        /// The place, with brackets.
        range: Range,
    },
}

impl Step {
    /// The place of the step.
    pub fn range(&self) -> Range {
        match self {
            Step::Attribute(name) => name.range,
            Step::Index { range, .. } | Step::Splat { range } => *range,
        }
    }
}

/// Steps from the value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub struct RelativeTraversal {
    /// Where the steps start.
    pub source: Expr,
    /// The steps; at least one.
    pub steps: Vec<Step>,
}

/// `collection[key]`.
#[derive(Clone, PartialEq, Debug)]
pub struct Index {
    /// What is indexed.
    pub collection: Expr,
    /// The key.
    pub key: Expr,
    /// The brackets and what is between them.
    pub brackets_range: Range,
}

/// `source[*]` or `source.*` and what follows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Splat {
    /// The list.
    pub source: Expr,
    /// What is taken of each element, which is the `SplatItem` in it.
    pub each: Expr,
    /// `[*]` or `.*`.
    pub marker_range: Range,
    /// Whether it is written `[*]`. After `.*` only attributes and legacy indexes belong to `each`.
    pub full: bool,
}

/// `key = value` in an object.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectItem {
    /// The key.
    pub key: ObjectKey,
    /// The value.
    pub value: Expr,
}

/// The key of an object's item.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectKey {
    /// The key as it is written.
    pub expr: Expr,
    /// Whether it is in parentheses, and so always an expression.
    pub in_parentheses: bool,
}

impl ObjectKey {
    /// Returns the key if it is a bare word, which stands for itself: `a`, but also `null` and `true`.
    pub fn word(&self) -> Option<&str> {
        if self.in_parentheses { None } else { self.expr.keyword() }
    }
}

/// `[for key, value in collection : result if condition]`.
#[derive(Clone, PartialEq, Debug)]
pub struct For {
    /// The first of two names.
    pub key_name: Option<Name>,
    /// The name of the value.
    pub value_name: Name,
    /// What is iterated.
    pub collection: Expr,
    /// The key of the result; `{ for ... }` has one.
    pub key: Option<Expr>,
    /// The value of the result.
    pub value: Expr,
    /// What follows `if`.
    pub condition: Option<Expr>,
    /// Whether `...` follows the value, so that values with the same key are collected.
    pub group: bool,
    /// The opening bracket, or the whole of `%{ for ... }`.
    pub open_range: Range,
    /// The closing bracket, or the whole of `%{ endfor }`.
    pub close_range: Range,
}

/// `name(arguments)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The name with its namespaces: `core::max` or `provider::name::function`.
    pub name: Name,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// Whether `...` follows the last argument, so that its elements are the arguments.
    pub expand_last: bool,
    /// The opening parenthesis.
    pub open_range: Range,
    /// The closing parenthesis.
    pub close_range: Range,
}

/// `condition ? if_true : if_false`.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditional {
    /// What decides.
    pub condition: Expr,
    /// The result if it is true.
    pub if_true: Expr,
    /// The result if it is false.
    pub if_false: Expr,
}

/// `left operator right`.
#[derive(Clone, PartialEq, Debug)]
pub struct Binary {
    /// The left operand.
    pub left: Expr,
    /// The operator.
    pub operator: BinaryOperator,
    /// The right operand.
    pub right: Expr,
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl BinaryOperator {
    /// The operator as it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOperator::Or => "||",
            BinaryOperator::And => "&&",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
        }
    }
}

/// An operator before its operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum UnaryOperator {
    Negate,
    Not,
}

/// A string of JSON syntax.
#[derive(Clone, PartialEq, Debug)]
pub struct JsonString {
    /// The text of the string.
    pub text: String,
    /// What it is when it is evaluated.
    pub template: Expr,
    /// Why the text is no template. That is no problem where the text is used as it is.
    pub diagnostics: Vec<Diagnostic>,
}

impl JsonString {
    /// The value of the string where templates have no meaning: its text, normalized as all values are.
    pub fn normalized(&self) -> String {
        crate::escape::normalize(self.text.clone())
    }
}

impl Expr {
    /// An expression, with the height that follows from the expressions in it.
    pub fn new(kind: ExprKind, range: Range) -> Self {
        let mut height = 0;
        kind.for_each_child(&mut |child| height = height.max(child.height));
        Self { kind, range, height: height.saturating_add(1) }
    }

    /// A literal.
    pub fn literal(literal: Literal, range: Range) -> Self {
        Self::new(ExprKind::Literal(literal), range)
    }

    /// The number of expressions from this one down to the deepest one in it.
    pub fn height(&self) -> u16 {
        self.height
    }

    /// Calls a function with each expression directly in this one, in the order of the source.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        self.kind.for_each_child(visit);
    }

    /// Adds a step to a traversal; from anything else a relative traversal starts.
    pub(crate) fn step(self, step: Step) -> Expr {
        let range = self.range.to(step.range());
        match self.kind {
            ExprKind::Traversal(mut traversal) => {
                traversal.steps.push(step);
                traversal.range = range;
                Expr { kind: ExprKind::Traversal(traversal), range, height: self.height }
            }
            ExprKind::RelativeTraversal(mut traversal) => {
                traversal.steps.push(step);
                Expr { kind: ExprKind::RelativeTraversal(traversal), range, height: self.height }
            }
            _ => {
                let traversal = RelativeTraversal { source: self, steps: vec![step] };
                Expr::new(ExprKind::RelativeTraversal(Box::new(traversal)), range)
            }
        }
    }
}

impl ExprKind {
    fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            ExprKind::Literal(_) | ExprKind::Traversal(_) | ExprKind::SplatItem | ExprKind::Invalid => {}
            ExprKind::RelativeTraversal(traversal) => visit(&traversal.source),
            ExprKind::Index(index) => [&index.collection, &index.key].into_iter().for_each(visit),
            ExprKind::Splat(splat) => [&splat.source, &splat.each].into_iter().for_each(visit),
            ExprKind::Template(exprs) | ExprKind::Tuple(exprs) => exprs.iter().for_each(visit),
            ExprKind::TemplateWrap(expr)
            | ExprKind::TemplateJoin(expr)
            | ExprKind::Unary(_, expr)
            | ExprKind::Parentheses(expr) => visit(expr),
            ExprKind::Object(items) => items.iter().flat_map(|item| [&item.key.expr, &item.value]).for_each(visit),
            ExprKind::For(each) => {
                visit(&each.collection);
                each.key.iter().for_each(&mut *visit);
                visit(&each.value);
                each.condition.iter().for_each(visit);
            }
            ExprKind::Call(call) => call.arguments.iter().for_each(visit),
            ExprKind::Conditional(conditional) => {
                let Conditional { condition, if_true, if_false } = &**conditional;
                [condition, if_true, if_false].into_iter().for_each(visit);
            }
            ExprKind::Binary(binary) => [&binary.left, &binary.right].into_iter().for_each(visit),
            ExprKind::JsonString(string) => visit(&string.template),
        }
    }
}

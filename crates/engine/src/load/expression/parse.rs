//! Parses a tree of plain values into a template and collects the references of its expressions.

use std::sync::Arc;

use indexmap::IndexSet;

use super::scan::{Piece, Unclosed, split};
use super::{Access, Node, Part, Problem, Program, Template, Variable, names};
use crate::load::intern::Interner;
use crate::load::tree::{self, Tree};
use crate::load::{InstanceSelector, Reference};
use model::{Diagnostics, Path, Segment, Value};

impl Template {
    /// Parses the tree at the path `at`, such as `spec.config`, where `variables` are available. Returns the template,
    /// a reference for each object that an expression reads, and a diagnostic without address for each invalid
    /// expression. An invalid expression evaluates to null.
    pub fn parse(
        tree: &Tree,
        at: &Path,
        variables: &'static [Variable],
        interner: &mut Interner,
    ) -> (Self, Vec<Reference>, Diagnostics) {
        let (references, problems) = (IndexSet::new(), Vec::new());
        let allowance = Allowance { expressions: MAX_EXPRESSIONS, bytes: MAX_BYTES, is_exceeded: false };
        let mut reader = Reader { at: at.0.clone(), variables, references, allowance, problems, interner };
        let node = reader.node(tree);
        (Self(node), reader.references.into_iter().collect(), reader.problems)
    }

    /// Parses a JSON value.
    pub fn parse_json(
        json: &serde_json::Value,
        at: &Path,
        variables: &'static [Variable],
    ) -> (Self, Vec<Reference>, Diagnostics) {
        let mut interner = Interner::default();
        let tree = Tree::from_json(json, &mut interner);
        Self::parse(&tree, at, variables, &mut interner)
    }
}

/// The maximum number of expressions in a tree, so that the threads that serve all namespaces decode it quickly.
const MAX_EXPRESSIONS: usize = 10_000;

/// The maximum length of all expressions of a tree in bytes.
const MAX_BYTES: usize = 512 * 1024;

/// What the expressions of a tree can still have.
struct Allowance {
    expressions: usize,
    bytes: usize,
    /// An expression did not fit. The rest of the tree is not parsed, so that the problem is reported once.
    is_exceeded: bool,
}

impl Allowance {
    /// Takes an expression with this source from the rest.
    fn take(&mut self, source: &str) -> Result<(), Problem> {
        let rest = (self.expressions.checked_sub(1), self.bytes.checked_sub(source.len()));
        let (Some(expressions), Some(bytes)) = rest else {
            self.is_exceeded = true;
            let what = format!("there are more than {MAX_EXPRESSIONS} expressions, or more than 512 KiB of them");
            return Err(Problem::new(what).hint("divide the object into several"));
        };
        (self.expressions, self.bytes) = (expressions, bytes);
        Ok(())
    }
}

struct Reader<'a> {
    at: Vec<Segment>,
    variables: &'static [Variable],
    references: IndexSet<Reference>,
    allowance: Allowance,
    problems: Diagnostics,
    interner: &'a mut Interner,
}

impl Reader<'_> {
    fn node(&mut self, tree: &Tree) -> Node {
        match &tree.node {
            tree::Node::Null => Node::Literal(Value::Null),
            tree::Node::Bool(bool) => Node::Literal(Value::Bool(*bool)),
            tree::Node::Number(number) => Node::Literal(Value::Number(number.clone())),
            tree::Node::String(text) => self.text(text),
            tree::Node::List(items) => self.list(items),
            tree::Node::Map(entries) => self.map(entries),
        }
    }

    fn list(&mut self, items: &[Tree]) -> Node {
        let mut nodes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.at.push(Segment::Index(index));
            nodes.push(self.node(item));
            self.at.pop();
        }
        if nodes.iter().all(|node| matches!(node, Node::Literal(_))) {
            return Node::Literal(Value::List(nodes.into_iter().map(literal).collect()));
        }
        Node::List(nodes.into())
    }

    fn map(&mut self, entries: &[tree::Entry]) -> Node {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            self.at.push(Segment::Name(entry.key.clone()));
            nodes.push((entry.key.clone(), self.node(&entry.value)));
            self.at.pop();
        }
        if nodes.iter().all(|(_, node)| matches!(node, Node::Literal(_))) {
            return Node::Literal(Value::map(nodes.into_iter().map(|(key, node)| (key, literal(node)))));
        }
        Node::Map(nodes.into())
    }

    fn text(&mut self, text: &Arc<str>) -> Node {
        if !text.contains("${") {
            return Node::Literal(Value::String(text.clone()));
        }
        if self.allowance.is_exceeded {
            return Node::default();
        }
        let result = match plain_path(text, self.interner) {
            Some((source, access)) => (self.allowance.take(source).and(access))
                .and_then(|access| self.check_variable(&access).map(|()| Part::Path(access, 1)))
                .map_err(|problem| problem.within(source, 1)),
            None => match self.pieces(text) {
                Ok(mut parts) if parts.len() == 1 => Ok(parts.remove(0)),
                Ok(parts) => {
                    for part in &parts {
                        self.add_references(part);
                    }
                    return Node::Text(parts.into());
                }
                Err(problem) => Err(problem),
            },
        };
        match result {
            Ok(part) => {
                self.add_references(&part);
                match part {
                    Part::Literal(text) => Node::Literal(Value::String(text.into())),
                    Part::Path(access, _) => Node::Path(Arc::new(access)),
                    Part::Program(program) => Node::Program(Arc::new(program)),
                }
            }
            Err(problem) => {
                self.problems.push(problem.diagnostic().at(Path(self.at.clone())));
                Node::default()
            }
        }
    }

    /// Splits a string into parts, with adjacent literals joined.
    fn pieces(&mut self, text: &str) -> Result<Vec<Part>, Problem> {
        let pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(Unclosed(at)) => {
                self.allowance.take("")?;
                let column = Columns::of(text).at(at);
                return Err(Problem::new(format!("the expression at column {column} has no closing `}}`"))
                    .hint("write `$${` for a literal `${`"));
            }
        };
        let mut columns = Columns::of(text);
        let mut parts: Vec<Part> = Vec::new();
        let mut literal = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => literal.push_str(text),
                Piece::Escaped => literal.push_str("${"),
                Piece::Expression(source, at) => {
                    parts.extend(take_literal(&mut literal));
                    let column = columns.at(at - "${".len());
                    parts.push(self.expression(source, column).map_err(|problem| problem.within(source, column))?);
                }
            }
        }
        parts.extend(take_literal(&mut literal));
        Ok(parts)
    }

    fn expression(&mut self, source: &str, column: usize) -> Result<Part, Problem> {
        self.allowance.take(source)?;
        if let Some(access) = Access::parse(source, self.interner) {
            let access = access?;
            return self.check_variable(&access).map(|()| Part::Path(access, column));
        }
        let program = Program::parse(source, column, self.interner)?;
        program.accesses().try_for_each(|access| self.check_variable(access))?;
        Ok(match program.into_path() {
            Ok(access) => Part::Path(access, column),
            Err(program) => Part::Program(program),
        })
    }

    /// Rejects a variable that is not available here.
    fn check_variable(&self, access: &Access) -> Result<(), Problem> {
        let chosen = access.selector.as_deref().and_then(Access::variable);
        match chosen.or(access.variable()) {
            Some(variable) if !self.variables.contains(&variable) => {
                Err(names::reserved(variable.as_str(), &access.segments))
            }
            _ => Ok(()),
        }
    }

    fn add_references(&mut self, part: &Part) {
        match part {
            Part::Literal(_) => {}
            Part::Path(access, _) => self.add_reference(access, access.instance_selector()),
            Part::Program(program) => {
                for (access, choice) in program.accesses_with_selectors() {
                    self.add_reference(access, choice);
                }
            }
        }
    }

    fn add_reference(&mut self, access: &Access, choice: Option<InstanceSelector>) {
        let Some(target) = access.target() else { return };
        let at = Path(self.at.clone());
        let segments = Arc::clone(&access.segments);
        self.references.insert(Reference { target: target.clone(), at, explicit: false, selector: choice, segments });
    }
}

fn take_literal(literal: &mut String) -> Option<Part> {
    (!literal.is_empty()).then(|| Part::Literal(std::mem::take(literal).into()))
}

/// Returns the path and its source if the string is `${`, one plain path, and `}`.
fn plain_path<'a>(text: &'a str, interner: &mut Interner) -> Option<(&'a str, Result<Access, Problem>)> {
    let source = text.strip_prefix("${")?.strip_suffix('}')?;
    Some((source, Access::parse(source, interner)?))
}

fn literal(node: Node) -> Value {
    match node {
        Node::Literal(value) => value,
        _ => Value::Null,
    }
}

/// The columns of increasing byte offsets in a text, counted from 1 in characters.
struct Columns<'a> {
    text: &'a str,
    counted: usize,
    column: usize,
}

impl<'a> Columns<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, counted: 0, column: 1 }
    }

    fn at(&mut self, offset: usize) -> usize {
        self.column += self.text[self.counted..offset].chars().count();
        self.counted = offset;
        self.column
    }
}

//! Checks a document against the schema of its kind, and reports all errors in one pass.

use std::sync::Arc;

use super::shape::{Items, Shape, Unique};
use super::tree::{Entry, Node, Tree};
use model::suggest::closest;
use model::{Diagnostic, Diagnostics, Path, Reason, Segment};

/// The errors of a document. Each has a path.
#[derive(Debug, Default)]
pub struct Findings {
    /// Unknown fields and values of a wrong type. They are not read.
    pub unreadable: Diagnostics,
    /// Values that are read but violate a limit, and required fields that are missing.
    pub limits: Diagnostics,
    /// The fields that unknown fields may mean.
    pub meant: Vec<Path>,
}

/// Checks a document. `superset`: the shape of a kind with more fields, so that the error for one of these can say
/// that it does not apply to `kind`.
pub fn check(tree: &Tree, shape: &Shape, superset: Option<(&str, &Shape)>) -> Findings {
    Check { superset, ..Check::default() }.findings(tree, shape)
}

/// Checks an object of the API server. A field that the shape lacks is one of a newer CRD than that of this process.
pub fn check_stored(tree: &Tree, shape: &Shape) -> Findings {
    Check { is_stored: true, ..Check::default() }.findings(tree, shape)
}

impl Findings {
    /// Adds the errors that `decode` found in what could be read, without consequences of errors that are known: those
    /// at or below an unreadable field, and those of the map that directly contains it. A limit is reported unless
    /// there is a better explanation of the same field.
    pub fn with(self, mut found: Diagnostics) -> Diagnostics {
        let Self { unreadable: mut problems, limits, meant } = self;
        if problems.is_empty() && limits.is_empty() {
            return found;
        }
        let unread: Vec<Path> = problems.iter().filter_map(|problem| problem.path.clone()).chain(meant).collect();
        found.retain(|problem| !is_consequence(problem, &unread));
        problems.extend(found);
        for limit in limits.into_iter().filter(|limit| !is_consequence(limit, &unread)) {
            let at = limit.path.clone().unwrap_or_default();
            if !problems.iter().any(|problem| problem.path.as_ref().is_some_and(|path| path.starts_with(&at))) {
                problems.push(limit);
            }
        }
        problems
    }
}

/// Whether the problem is at or below an unreadable field, or of the map that directly contains it.
fn is_consequence(problem: &Diagnostic, unread: &[Path]) -> bool {
    let Some(at) = &problem.path else { return false };
    unread.iter().any(|unread| {
        let contains_it = unread.0.len() == at.0.len() + 1 && unread.starts_with(at);
        contains_it || at.starts_with(unread)
    })
}

/// The only required field of a map, if it is a text.
fn only_text(shape: &Shape) -> Option<&str> {
    let Shape::Map(fields) = shape else { return None };
    let [name] = fields.required.as_slice() else { return None };
    matches!(fields.get(name), Some(Shape::String { .. })).then_some(&**name)
}

/// The name that a text stands for: that of the Resource to which an expression refers, or the text itself.
fn name_in(text: &str) -> String {
    let Some(expression) = text.strip_prefix("${").and_then(|text| text.strip_suffix('}')) else {
        return text.to_owned();
    };
    let end = expression.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(expression.len());
    expression[..end].replace('_', "-")
}

/// Lists words as "`a`, `b` or `c`".
fn listed(words: &[Arc<str>], conjunction: &str) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            _ if index + 1 == words.len() => conjunction,
            _ => ", ",
        });
        text.push_str(&format!("`{word}`"));
    }
    text
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a Arc<str>),
    Index(usize),
}

#[derive(Default)]
struct Check<'a> {
    at: Vec<Step<'a>>,
    superset: Option<(&'a str, &'a Shape)>,
    /// Whether it is an object of the API server.
    is_stored: bool,
    /// Whether the current value is an optional field.
    is_optional: bool,
    findings: Findings,
}

impl<'a> Check<'a> {
    fn findings(mut self, tree: &'a Tree, shape: &'a Shape) -> Findings {
        self.value(tree, shape);
        self.findings
    }

    fn path(&self) -> Path {
        let segments = self.at.iter().map(|step| match step {
            Step::Key(key) => Segment::Name(Arc::clone(key)),
            Step::Index(index) => Segment::Index(*index),
        });
        Path(segments.collect())
    }

    fn unreadable(&mut self, what: String, hint: Option<String>) {
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(self.path());
        self.findings.unreadable.push(Diagnostic { hint, ..problem });
    }

    fn limit(&mut self, at: Path, what: impl Into<String>, hint: Option<String>) {
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(at);
        self.findings.limits.push(Diagnostic { hint, ..problem });
    }

    fn value(&mut self, tree: &'a Tree, shape: &'a Shape) {
        if !shape.fits(tree) {
            return self.wrong(tree, shape);
        }
        match (shape, &tree.node) {
            (Shape::Map(_), Node::Map(entries)) => self.map(tree, entries, shape),
            (Shape::Strings { min, max }, Node::Map(entries)) => {
                self.size(entries.len(), *min, *max, "entries");
                for entry in entries.iter().filter(|entry| entry.value.node != Node::Null) {
                    self.at.push(Step::Key(&entry.key));
                    if !matches!(entry.value.node, Node::String(_)) {
                        self.expected("a string", &entry.value);
                    }
                    self.at.pop();
                }
            }
            (Shape::List(items), Node::List(list)) => self.list(list, items),
            // A string has at least as many bytes as characters, and none of both only if it is empty.
            (Shape::String { min, max, .. }, Node::String(text)) if !(*min..=*max).contains(&text.len()) => {
                self.length(text, *min, *max);
            }
            (Shape::Integer { min, max }, Node::Number(number)) => {
                let number = number.to_string().parse::<i64>().unwrap_or_default();
                if number < *min {
                    self.limit(self.path(), format!("must be at least {min}, not {number}"), None);
                } else if number > *max {
                    self.limit(self.path(), format!("must be at most {max}, not {number}"), None);
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, tree: &'a Tree, entries: &'a [Entry], shape: &'a Shape) {
        let Shape::Map(fields) = shape else { return };
        for entry in entries {
            self.at.push(Step::Key(&entry.key));
            match fields.get(&entry.key) {
                // Null is the same as no field, unless any value is allowed.
                Some(Shape::Free { is_map: false }) => {}
                Some(_) if entry.value.node == Node::Null => {}
                Some(shape) => {
                    self.is_optional = !fields.required.contains(&entry.key);
                    self.value(&entry.value, shape);
                }
                None if self.is_stored => {}
                None => self.unknown(entry, shape),
            }
            self.at.pop();
        }
        for name in &fields.required {
            if tree.get(name).is_none_or(|value| value.node == Node::Null) {
                let hint = match fields.get(name) {
                    Some(Shape::String { values, .. }) if !values.is_empty() => {
                        Some(format!("write {}", listed(values, " or ")))
                    }
                    _ => None,
                };
                self.limit(self.path().name(name.clone()), "required field is missing", hint);
            }
        }
    }

    fn list(&mut self, list: &'a [Tree], items: &'a Items) {
        self.size(list.len(), items.min, items.max, "items");
        for (index, item) in list.iter().enumerate() {
            self.at.push(Step::Index(index));
            self.is_optional = false;
            self.value(item, &items.shape);
            self.at.pop();
        }
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for (index, item) in list.iter().enumerate() {
            let key = match &items.unique {
                Unique::No => None,
                Unique::Items => item.as_str(),
                Unique::Field(name) => item.get(name).and_then(Tree::as_str),
            };
            seen.extend(key.map(|key| (key, index)));
        }
        seen.sort_unstable();
        for (text, index) in seen.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1]) {
            let at = self.path().index(index);
            let at = if let Unique::Field(name) = &items.unique { at.name(name.clone()) } else { at };
            self.limit(at, format!("duplicate entry `{text}`"), Some("remove one of them".to_owned()));
        }
    }

    fn length(&mut self, text: &str, min: usize, max: usize) {
        if text.is_empty() && self.is_optional {
            let hint = "omit it to use the default".to_owned();
            return self.limit(self.path(), "must not be empty", Some(hint));
        }
        self.size(text.chars().count(), min, max, "characters");
    }

    fn size(&mut self, size: usize, min: usize, max: usize, unit: &str) {
        if size < min {
            let what =
                if min == 1 { "must not be empty".to_owned() } else { format!("has {size} {unit}, but needs {min}") };
            self.limit(self.path(), what, None);
        } else if size > max {
            self.limit(self.path(), format!("has {size} {unit}, but at most {max} are allowed"), None);
        }
    }

    fn wrong(&mut self, tree: &Tree, shape: &Shape) {
        match (shape, &tree.node) {
            (Shape::String { values, .. }, Node::String(text)) => {
                let what = format!("must be {}, not `{text}`", listed(values, " or "));
                let meant = closest(text, values.iter().map(AsRef::as_ref));
                self.unreadable(what, meant.map(|meant| format!("did you mean `{meant}`?")));
            }
            (Shape::String { .. }, _) => self.expected("a string", tree),
            (Shape::Boolean, _) => self.expected("true or false", tree),
            (Shape::Integer { .. }, _) => self.expected("a whole number", tree),
            (Shape::List(items), Node::String(text)) if items.shape.fits(tree) => {
                self.unreadable("expected a list, found a string".to_owned(), Some(format!("write `[{text}]`")));
            }
            (Shape::List(items), Node::String(text)) if only_text(&items.shape).is_some() => {
                let hint = only_text(&items.shape).map(|name| format!("write `[{{ {name}: {} }}]`", name_in(text)));
                self.unreadable("expected a list, found a string".to_owned(), hint);
            }
            (Shape::List(_), Node::Map(_)) => {
                let hint = "begin each item with `- `, or put the map in `[ ]`".to_owned();
                self.unreadable("expected a list, found a map".to_owned(), Some(hint));
            }
            (Shape::List(_), _) => self.expected("a list", tree),
            (Shape::Map(fields), node) if !fields.required.is_empty() => {
                let expected = format!("a map with {}", listed(&fields.required, " and "));
                match (node, only_text(shape)) {
                    (Node::String(text), Some(name)) => {
                        let what = format!("expected {expected}, found a string");
                        self.unreadable(what, Some(format!("write `{name}: {}`", name_in(text))));
                    }
                    _ => self.expected(&expected, tree),
                }
            }
            _ => self.expected("a map", tree),
        }
    }

    fn expected(&mut self, expected: &str, tree: &Tree) {
        let hint = match (&tree.node, expected) {
            (Node::Bool(_) | Node::Number(_), "a string") => Some("quote it".to_owned()),
            (Node::String(_), "true or false") => Some("write `true` or `false` without quotes".to_owned()),
            _ => None,
        };
        self.unreadable(format!("expected {expected}, found {}", tree.describe()), hint);
    }

    /// Reports the field at the current path, which `shape` lacks.
    fn unknown(&mut self, entry: &Entry, shape: &Shape) {
        let Shape::Map(fields) = shape else { return };
        let known = fields.names().collect::<Vec<_>>().join(", ");
        if let Some((kind, superset)) = self.superset
            && superset.at(&self.path()).is_some()
        {
            let what = format!("this field does not apply to a {kind}");
            return self.unreadable(what, Some(format!("a {kind} has the fields {known}")));
        }
        let hint = match closest(&entry.key, fields.names()) {
            Some(meant) => {
                let mut path = self.path();
                path.0.pop();
                self.findings.meant.push(path.name(meant));
                format!("did you mean `{meant}`?")
            }
            None => format!("known fields are {known}"),
        };
        self.unreadable("unknown field".to_owned(), Some(hint));
    }
}

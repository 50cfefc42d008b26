//! Finds the places where a template reads a variable.

use std::sync::Arc;

use super::program::{Program, ReadMode};
use super::{Access, Node, Part, Scope, Step, Template, Trail, Variable};
use model::{Path, Segment, Value};

impl Template {
    /// Returns each place where a variable is read, relative to the template, with the constant name after it: `domain`
    /// for `inputs.domain`. A presence check is not a read.
    pub fn reads(&self, variable: Variable) -> Vec<(Path, Option<Arc<str>>)> {
        let mut found = Vec::new();
        self.0.visit(None, &mut |trail, access, mode| {
            if access.variable() == Some(variable) && mode == ReadMode::Value {
                let name = match access.segments.first() {
                    Some(Segment::Name(name)) => Some(name.clone()),
                    _ => None,
                };
                found.push((Trail::path(trail), name));
            }
        });
        found
    }

    /// What it reads of the namespace and of objects, as far as the scope has it, in the order of the template.
    pub fn outside_values(&self, scope: &dyn Scope) -> Vec<Value> {
        let mut found = Vec::new();
        self.0.visit(None, &mut |_, access, _| {
            if access.variable().is_none() {
                found.extend(access.read(scope));
            }
        });
        found
    }
}

/// Receives a path that an expression reads, with the place of the expression.
type Visit<'v> = dyn FnMut(Option<&Trail<'_>>, &Access, ReadMode) + 'v;

impl Node {
    /// Visits everything that is read, also by presence checks.
    fn visit(&self, trail: Option<&Trail<'_>>, visit: &mut Visit<'_>) {
        match self {
            Self::Literal(_) | Self::Foreign(_) => {}
            Self::Path(access) => visit(trail, access, ReadMode::Value),
            Self::Program(program) => program.visit(trail, visit),
            Self::Text(parts) => {
                for part in parts.iter() {
                    match part {
                        Part::Literal(_) => {}
                        Part::Path(access, _) => visit(trail, access, ReadMode::Value),
                        Part::Program(program) => program.visit(trail, visit),
                    }
                }
            }
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.visit(Some(&Trail { parent: trail, step: Step::Index(index) }), visit);
                }
            }
            Self::Map(entries) => {
                for (key, item) in entries.iter() {
                    item.visit(Some(&Trail { parent: trail, step: Step::Key(key) }), visit);
                }
            }
        }
    }
}

impl Program {
    fn visit(&self, trail: Option<&Trail<'_>>, visit: &mut Visit<'_>) {
        for slot in &self.slots {
            visit(trail, &slot.access, slot.mode);
        }
    }
}

//! Finds the places where a template reads a variable.

use std::sync::Arc;

use super::slot::ReadMode;
use super::{Access, Node, Part, Step, Template, Trail, Variable};
use model::{Path, Segment};

impl Template {
    /// Returns each place where a variable is read, relative to the template, with the constant name after it: `domain`
    /// for `inputs.domain`. A presence check is not a read.
    pub fn reads(&self, variable: Variable) -> Vec<(Path, Option<Arc<str>>)> {
        let mut found = Vec::new();
        self.0.reads(variable, None, &mut found);
        found
    }
}

impl Node {
    fn reads(&self, variable: Variable, trail: Option<&Trail<'_>>, found: &mut Vec<(Path, Option<Arc<str>>)>) {
        let mut take = |access: &Access| {
            if access.variable() == Some(variable) {
                let name = match access.segments.first() {
                    Some(Segment::Name(name)) => Some(name.clone()),
                    _ => None,
                };
                found.push((Trail::path(trail), name));
            }
        };
        match self {
            Self::Literal(_) | Self::Foreign(_) => {}
            Self::Path(access) => take(access),
            Self::Program(program) => {
                let read = program.slots.iter().filter(|slot| slot.mode == ReadMode::Value);
                read.for_each(|slot| take(&slot.access));
            }
            Self::Text(parts) => {
                for part in parts.iter() {
                    match part {
                        Part::Literal(_) => {}
                        Part::Path(access, _) => take(access),
                        Part::Program(program) => {
                            let read = program.slots.iter().filter(|slot| slot.mode == ReadMode::Value);
                            read.for_each(|slot| take(&slot.access));
                        }
                    }
                }
            }
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.reads(variable, Some(&Trail { parent: trail, step: Step::Index(index) }), found);
                }
            }
            Self::Map(entries) => {
                for (key, item) in entries.iter() {
                    item.reads(variable, Some(&Trail { parent: trail, step: Step::Key(key) }), found);
                }
            }
        }
    }
}

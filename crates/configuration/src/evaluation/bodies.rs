//! The value of a body by the schema of its provider.

use std::sync::Arc;

use cty::{Mark, Marks, Type, Value, convert};
use hcl::{Diagnostic, Expr, Range};

use super::Stop;
use super::compiled::{Compiled, Dynamic, Nested};
use super::scope::{Outcome, Scope};
use crate::schema::{Attribute, Block, NestedBlock, Nesting};

/// Blocks with their labels. `None` if it is not known how many there are.
type Parts = Option<Vec<(Arc<str>, Value)>>;

impl Scope<'_> {
    /// The value of a body.
    pub fn body(
        &self,
        compiled: &Compiled,
        schema: &Block,
        keeps_ephemeral: bool,
        outcome: &mut Outcome,
    ) -> Result<Value, Stop> {
        let mut entries = Vec::with_capacity(schema.attributes.len() + schema.blocks.len());
        for (name, attribute) in &schema.attributes {
            let value = match (compiled.attributes.get(name), compiled.blocks.get(name)) {
                (Some(expr), _) => self.attribute(name, attribute, expr, keeps_ephemeral, outcome)?,
                (None, Some(blocks)) => self.as_blocks(attribute, blocks, keeps_ephemeral, outcome)?,
                (None, None) => Value::null(attribute.ty.without_optional()),
            };
            entries.push((name.clone(), value));
        }
        for (name, nested) in &schema.blocks {
            let blocks = compiled.blocks.get(name).map_or(&[][..], Vec::as_slice);
            let parts = self.parts(blocks, &nested.block, keeps_ephemeral, outcome)?;
            let range = blocks.get(1).or(blocks.first()).map_or(compiled.range, |block| block.range);
            entries.push((name.clone(), self.joined(name, nested, parts, range, outcome)?));
        }
        Ok(Value::object(entries))
    }

    fn attribute(
        &self,
        name: &str,
        attribute: &Attribute,
        expr: &Expr,
        keeps_ephemeral: bool,
        outcome: &mut Outcome,
    ) -> Result<Value, Stop> {
        let Some(value) = self.own(expr, outcome)? else {
            return Ok(Value::unknown(attribute.ty.without_optional()));
        };
        if !attribute.write_only && !keeps_ephemeral && value.contains_mark(&Mark::Ephemeral) {
            let detail = format!("The value of `{name}` is kept, so it cannot come from an ephemeral value.");
            self.problem("Ephemeral value not allowed", detail, expr, outcome);
        }
        match convert(&value, &attribute.ty) {
            Ok(value) => Ok(value),
            Err(error) => {
                let detail = format!("Inappropriate value for attribute \"{name}\": {error}.");
                self.problem("Incorrect attribute value type", detail, expr, outcome);
                Ok(Value::unknown(attribute.ty.without_optional()))
            }
        }
    }

    /// The value of an attribute that is written as blocks: what a block leaves out is null.
    fn as_blocks(
        &self,
        attribute: &Attribute,
        blocks: &[Nested],
        keeps_ephemeral: bool,
        outcome: &mut Outcome,
    ) -> Result<Value, Stop> {
        let Some(schema) = attribute.as_blocks() else { return Ok(Value::null(attribute.ty.clone())) };
        let Some(parts) = self.parts(blocks, &schema, keeps_ephemeral, outcome)? else {
            return Ok(Value::unknown(attribute.ty.without_optional()));
        };
        // Blocks of which there turn out to be none are the same as no argument.
        if parts.is_empty() {
            return Ok(Value::null(attribute.ty.without_optional()));
        }
        let element = attribute.ty.element().cloned().unwrap_or(Type::Dynamic);
        let parts = parts.into_iter().map(|(_, part)| part);
        Ok(match attribute.ty {
            Type::Set(_) => Value::set(element, parts),
            _ => Value::list(element, parts),
        })
    }

    fn parts(
        &self,
        blocks: &[Nested],
        schema: &Block,
        keeps_ephemeral: bool,
        outcome: &mut Outcome,
    ) -> Result<Parts, Stop> {
        let mut parts = Some(Vec::new());
        for block in blocks {
            let more = match &block.dynamic {
                None => {
                    let value = self.body(&block.body, schema, keeps_ephemeral, outcome)?;
                    Some(vec![(block.label.clone().unwrap_or_default(), value)])
                }
                Some(dynamic) => self.dynamic(dynamic, &block.body, schema, keeps_ephemeral, outcome)?,
            };
            // What is wrong with the other blocks is found also if there is one of which the number is not known.
            match (&mut parts, more) {
                (Some(parts), Some(more)) => parts.extend(more),
                (parts, _) => *parts = None,
            }
        }
        Ok(parts)
    }

    fn dynamic(
        &self,
        dynamic: &Dynamic,
        body: &Compiled,
        schema: &Block,
        keeps_ephemeral: bool,
        outcome: &mut Outcome,
    ) -> Result<Parts, Stop> {
        let Some(collection) = self.own(&dynamic.for_each, outcome)? else { return Ok(None) };
        let mut marks = Marks::NONE;
        let collection = collection.unmarked(&mut marks);
        if marks.contains(&Mark::Ephemeral) && !keeps_ephemeral {
            let detail = "The collection is ephemeral, and the blocks are kept.";
            self.problem("Invalid dynamic for_each value", detail, &dynamic.for_each, outcome);
            return Ok(None);
        }
        let Some(items) = self.items(&collection, dynamic, outcome) else {
            // The content is evaluated with unknown values, for what is wrong in it and for what it uses.
            let iterator = iterator(Value::DYNAMIC, Value::DYNAMIC);
            self.with_iterator(&dynamic.iterator, iterator).body(body, schema, keeps_ephemeral, outcome)?;
            return Ok(None);
        };
        if items.is_empty() {
            // The edges between objects come from the syntax, so they do not change with the number of blocks.
            let iterator = iterator(Value::DYNAMIC, Value::DYNAMIC);
            self.with_iterator(&dynamic.iterator, iterator).mentioned(body, outcome)?;
        }
        let mut parts = Vec::new();
        for (key, value) in items {
            let iterator = iterator(key, value).with_marks(&marks);
            let scope = self.with_iterator(&dynamic.iterator, iterator);
            let label = match &dynamic.label {
                Some(expr) => {
                    let label = scope.converted(expr, &Type::String, "a label", outcome)?;
                    if label.contains_mark(&Mark::Ephemeral) || label.contains_mark(&Mark::Sensitive) {
                        let detail = "A label is shown and kept, so it cannot be sensitive or ephemeral.";
                        self.problem("Invalid dynamic block label", detail, expr, outcome);
                    }
                    label.as_str().unwrap_or_default().into()
                }
                None => Arc::default(),
            };
            let value = scope.body(body, schema, keeps_ephemeral, outcome)?;
            parts.push((label, value.with_marks(&marks)));
        }
        Ok(Some(parts))
    }

    /// Adds what the expressions of a body refer to.
    fn mentioned(&self, body: &Compiled, outcome: &mut Outcome) -> Result<(), Stop> {
        for expr in body.attributes.values() {
            self.refer(expr, outcome)?;
        }
        for block in body.blocks.values().flatten() {
            match &block.dynamic {
                None => self.mentioned(&block.body, outcome)?,
                Some(dynamic) => {
                    self.refer(&dynamic.for_each, outcome)?;
                    let iterator = iterator(Value::DYNAMIC, Value::DYNAMIC);
                    self.with_iterator(&dynamic.iterator, iterator).mentioned(&block.body, outcome)?;
                }
            }
        }
        Ok(())
    }

    /// The keys and values of what a `dynamic` block goes through. `None` if they are not known.
    fn items(&self, collection: &Value, dynamic: &Dynamic, outcome: &mut Outcome) -> Option<Vec<(Value, Value)>> {
        const INVALID: &str = "Invalid dynamic for_each value";
        if collection.is_null() {
            self.problem(INVALID, "The value is null.", &dynamic.for_each, outcome);
            return None;
        }
        if let Some(entries) = collection.as_entries() {
            return Some(entries.iter().map(|(key, value)| (Value::string(key), value.clone())).collect());
        }
        if let Some(items) = collection.as_items() {
            let is_set = matches!(collection.ty(), Type::Set(_));
            if is_set && !collection.is_wholly_known() {
                return None;
            }
            let items = (0..).zip(items).map(|(at, value)| {
                let key = if is_set { value.clone() } else { Value::int(at) };
                (key, value.clone())
            });
            return Some(items.collect());
        }
        let is_possible = !collection.ty().is_primitive();
        if !is_possible {
            let detail = format!("A list, set, map or object is required, and the value is a {}.", collection.ty());
            self.problem(INVALID, detail, &dynamic.for_each, outcome);
        }
        None
    }

    fn joined(
        &self,
        name: &str,
        nested: &NestedBlock,
        parts: Parts,
        range: Range,
        outcome: &mut Outcome,
    ) -> Result<Value, Stop> {
        let ty = nested.ty.clone();
        let Some(mut parts) = parts else { return Ok(Value::unknown(ty)) };
        let wrong = match parts.len() {
            few if few < nested.min => {
                Some(("Insufficient", format!("At least {} `{name}` blocks are required.", nested.min)))
            }
            many if nested.max.is_some_and(|max| many > max) || (many > 1 && is_one(nested.nesting)) => {
                Some(("Too many", format!("No more than {} `{name}` blocks are allowed.", nested.max.unwrap_or(1))))
            }
            _ => None,
        };
        if let Some((summary, detail)) = wrong {
            self.evaluation.report(Diagnostic::new(format!("{summary} {name} blocks"), detail, range));
            outcome.failed = true;
            return Ok(Value::unknown(ty));
        }
        let element = nested.element.clone();
        Ok(match nested.nesting {
            Nesting::Single => parts.pop().map_or_else(|| Value::null(ty), |(_, part)| part),
            Nesting::Group => match parts.pop() {
                Some((_, part)) => part,
                None => self.body(&Compiled::default(), &nested.block, true, outcome)?,
            },
            Nesting::List if ty == Type::Dynamic => Value::tuple(parts.into_iter().map(|(_, part)| part)),
            Nesting::List => Value::list(element, parts.into_iter().map(|(_, part)| part)),
            Nesting::Set => Value::set(element, parts.into_iter().map(|(_, part)| part)),
            Nesting::Map if ty == Type::Dynamic => Value::object(parts),
            Nesting::Map => Value::map(element, parts),
        })
    }
}

fn is_one(nesting: Nesting) -> bool {
    matches!(nesting, Nesting::Single | Nesting::Group)
}

fn iterator(key: Value, value: Value) -> Value {
    Value::object([("key", key), ("value", value)])
}

//! `for` expressions, splats and `dynamic` blocks.

use hcl_edit::expr::ForExpr;
use serde_json::Value as Json;

use super::{Cel, Place, Translator, Untranslated};
use crate::configuration::{DynamicBlock, Source};
use engine::load::expression::{is_identifier, path_expression};
use model::InstanceKey;

/// The names of the key and of the value in a loop.
type Names<'n> = (Option<&'n str>, &'n str);

impl Translator<'_> {
    pub(super) fn for_expression(&self, expression: &ForExpr, place: &Place) -> Result<Cel, Untranslated> {
        let intro = &expression.intro;
        let names = (intro.key_var.as_ref().map(|name| name.as_str()), intro.value_var.as_str());
        let collection = self.expression(&intro.collection_expr, place)?;
        let condition = expression.cond.as_ref().map(|condition| &condition.expr);
        let value = |place: &Place| self.expression(&expression.value_expr, place);
        let Some(elements) = elements(&collection) else {
            if expression.key_expr.is_some() {
                return Err("a map that is made by a loop has no counterpart".to_owned());
            }
            let Some(condition) = condition else { return self.each(&collection, names, place, &value) };
            let (target, name, inside) = self.loop_over(&collection, names, place)?;
            let condition = self.expression(condition, &inside)?.to_code()?;
            return Ok(Cel::code(format!(
                "{target}.filter({name}, {condition}).map({name}, {})",
                value(&inside)?.to_code()?
            )));
        };
        let mut entries: Vec<(String, Cel)> = Vec::new();
        let mut items = Vec::new();
        for (key, item) in elements {
            let inside = with_element(place, names, key, item);
            if let Some(condition) = condition {
                match self.expression(condition, &inside)?.as_constant() {
                    Some(Json::Bool(true)) => {}
                    Some(Json::Bool(false)) => continue,
                    _ => return Err("a condition of a loop is not a constant".to_owned()),
                }
            }
            match &expression.key_expr {
                None => items.push(value(&inside)?),
                Some(key) => {
                    let key = self.expression(key, &inside)?;
                    let key = key.as_text().ok_or("a key of a loop is not a constant")?.to_owned();
                    match entries.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, Cel::List(all))) if expression.grouping => all.push(value(&inside)?),
                        _ if expression.grouping => entries.push((key, Cel::List(vec![value(&inside)?]))),
                        _ => entries.push((key, value(&inside)?)),
                    }
                }
            }
        }
        if expression.key_expr.is_none() {
            return Ok(Cel::List(items).simplified());
        }
        let entries = entries.into_iter().map(|(key, one)| (key, one.simplified())).collect();
        Ok(Cel::Map(entries).simplified())
    }

    /// Applies `inner` to each element. The result is a list.
    pub(super) fn each(
        &self,
        collection: &Cel,
        names: Names<'_>,
        place: &Place,
        inner: &dyn Fn(&Place) -> Result<Cel, Untranslated>,
    ) -> Result<Cel, Untranslated> {
        if let Some(elements) = elements(collection) {
            let items = elements.into_iter().map(|(key, item)| inner(&with_element(place, names, key, item)));
            return Ok(Cel::List(items.collect::<Result<_, _>>()?).simplified());
        }
        let (target, name, inside) = self.loop_over(collection, names, place)?;
        Ok(Cel::code(format!("{target}.map({name}, {})", inner(&inside)?.to_code()?)))
    }

    /// The target of a macro, its variable, and where its expressions are.
    fn loop_over(
        &self,
        collection: &Cel,
        (key, value): Names<'_>,
        place: &Place,
    ) -> Result<(String, String, Place), Untranslated> {
        let target = collection.to_operand()?;
        // A macro of CEL reads the keys of a map. With a key, it is a map, because the index of a list has no
        // counterpart.
        let key = key.or_else(|| self.is_map(collection).then_some("key"));
        let name = self.loop_variable(key.unwrap_or(value), place);
        let variable = Cel::code(name.clone());
        let inside = match key {
            None => place.with(value, variable),
            Some(key) => {
                let element = collection.index(&variable)?;
                place.with(key, variable).with(value, element)
            }
        };
        Ok((target, name, inside))
    }

    /// Whether it is a resource with `for_each`.
    fn is_map(&self, collection: &Cel) -> bool {
        let is_it = |one: &super::NamedResource| {
            matches!(one.keys.as_deref(), Some([InstanceKey::Key(_), ..]))
                && *collection == Cel::code(path_expression(&one.name, &[]))
        };
        self.resources.is_some_and(|all| all.by_address.values().any(is_it))
    }

    /// A name that hides no object.
    fn loop_variable(&self, name: &str, place: &Place) -> String {
        let is_used = |name: &str| {
            let own = place.variables.iter().any(|(_, value)| *value == Cel::code(name));
            let hides = |one: &super::NamedResource| one.name.replace('-', "_") == name;
            own || !is_identifier(name) || self.resources.is_some_and(|all| all.by_address.values().any(hides))
        };
        let mut name = name.replace('-', "_");
        while is_used(&name) {
            name.push('_');
        }
        name
    }

    /// Applies the operators after a splat to each element.
    pub(super) fn splat(
        &self,
        target: &Cel,
        place: &Place,
        rest: &dyn Fn(Cel) -> Result<Cel, Untranslated>,
    ) -> Result<Cel, Untranslated> {
        let is_null = target.as_constant() == Some(&Json::Null);
        if let Some(items) = if is_null { Some(Vec::new()) } else { target.items() } {
            return Ok(Cel::List(items.into_iter().map(rest).collect::<Result<_, _>>()?).simplified());
        }
        let name = self.loop_variable("it", place);
        Ok(Cel::code(format!("{}.map({name}, {})", target.to_operand()?, rest(Cel::code(name.clone()))?.to_code()?)))
    }

    /// The blocks of one type, of which some are dynamic.
    pub(super) fn dynamic_blocks(&self, blocks: &[Source], place: &Place) -> Result<Cel, Untranslated> {
        let mut all: Vec<Cel> = Vec::new();
        for block in blocks {
            let list = match block {
                Source::Dynamic(block) => self.dynamic_block(block, place)?,
                other => Cel::List(vec![self.source(other, place)?]),
            };
            match (all.last().and_then(Cel::items), list.items()) {
                (Some(before), Some(more)) => {
                    all.pop();
                    all.push(Cel::List(before.into_iter().chain(more).collect()));
                }
                _ => all.push(list),
            }
        }
        if all.len() < 2 {
            return Ok(all.pop().unwrap_or(Cel::List(Vec::new())));
        }
        let all: Result<Vec<String>, Untranslated> = all.iter().map(Cel::to_operand).collect();
        Ok(Cel::operation(all?.join(" + ")))
    }

    pub(super) fn dynamic_block(&self, block: &DynamicBlock, place: &Place) -> Result<Cel, Untranslated> {
        let collection = self.source(&block.for_each, place)?;
        let content = Source::Object(block.content.clone());
        let with = |key: Cel, value: Cel| {
            let object = Cel::Map(vec![("key".to_owned(), key), ("value".to_owned(), value)]);
            self.source(&content, &place.with(&block.iterator, object))
        };
        if let Some(elements) = elements(&collection) {
            let items = elements.into_iter().map(|(key, item)| with(key, item));
            return Ok(Cel::List(items.collect::<Result<_, _>>()?));
        }
        // Whether it is a list or a map is not known: a list, if no content needs the key.
        let name = self.loop_variable(&block.iterator, place);
        let variable = Cel::code(name.clone());
        let content = with(Cel::Module(Vec::new()), variable)?.to_code();
        Ok(Cel::code(format!("{}.map({name}, {})", collection.to_operand()?, content?)))
    }
}

/// The keys and values of a collection, if they are known.
fn elements(collection: &Cel) -> Option<Vec<(Cel, Cel)>> {
    if let Some(mut entries) = collection.entries() {
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        return Some(entries.into_iter().map(|(key, item)| (Cel::string(key), item)).collect());
    }
    let items = collection.items()?;
    Some(items.into_iter().enumerate().map(|(at, item)| (Cel::Constant(Json::from(at)), item)).collect())
}

fn with_element(place: &Place, (key_name, value_name): Names<'_>, key: Cel, item: Cel) -> Place {
    let inside = place.with(value_name, item);
    match key_name {
        Some(name) => inside.with(name, key),
        None => inside,
    }
}

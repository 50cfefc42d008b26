//! References: variables, locals, modules, and the attributes of objects.

use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use serde_json::Value as Json;

use super::{Cel, Place, Repetition, Translator, Untranslated};
use crate::address::{Key, ModuleStep, ResourceAddress};
use engine::load::expression::path_expression;
use model::InstanceKey;

impl Translator<'_> {
    pub(super) fn traversal(&self, traversal: &Traversal, place: &Place) -> Result<Cel, Untranslated> {
        let operators: Vec<&TraversalOperator> = traversal.operators.iter().map(hcl_edit::Decorated::value).collect();
        let (value, used) = match &traversal.expr {
            Expression::Variable(root) => self.root(root.as_str(), &operators, place)?,
            other => (self.expression(other, place)?, 0),
        };
        self.apply(value, &operators[used..], place)
    }

    /// A name without operators.
    pub(super) fn variable(&self, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        Ok(self.root(name, &[], place)?.0)
    }

    fn apply(&self, value: Cel, operators: &[&TraversalOperator], place: &Place) -> Result<Cel, Untranslated> {
        let Some((first, rest)) = operators.split_first() else { return Ok(value) };
        let next = match (first, &value) {
            (TraversalOperator::GetAttr(name), Cel::Module(path)) => self.output(path, name.as_str(), place)?,
            (TraversalOperator::GetAttr(name), _) => value.member(name.as_str())?,
            (TraversalOperator::Index(key), _) => {
                let key = self.expression(key, place)?;
                match (value.entries(), key.as_constant()) {
                    // The instances of a module are separate Resources.
                    (Some(entries), None) if entries.iter().any(|(_, one)| matches!(one, Cel::Module(_))) => {
                        let entry = |(name, one): (String, Cel)| Ok((name, self.apply(one, rest, place)?));
                        let all = entries.into_iter().map(entry).collect::<Result<_, Untranslated>>()?;
                        return Cel::Map(all).index(&key);
                    }
                    _ => value.index(&key)?,
                }
            }
            (TraversalOperator::LegacyIndex(at), _) => value.index(&Cel::Constant(Json::from(*at.value())))?,
            (TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_), _) => {
                return self.splat(&value, place, &|item| self.apply(item, rest, place));
            }
        };
        self.apply(next, rest, place)
    }

    /// The value at the start of a reference, and how many operators belong to it.
    fn root(&self, root: &str, operators: &[&TraversalOperator], place: &Place) -> Result<(Cel, usize), Untranslated> {
        let name = |at: usize| match operators.get(at) {
            Some(TraversalOperator::GetAttr(name)) => Ok(name.as_str()),
            _ => Err(format!("`{root}` is no value")),
        };
        if let Some((_, value)) = place.variables.iter().rev().find(|(known, _)| known == root) {
            return Ok((value.clone(), 0));
        }
        match root {
            "var" => Ok((self.module_variable(name(0)?, place)?, 1)),
            "local" => Ok((self.local(name(0)?, place)?, 1)),
            "each" | "count" => Ok((self.repeated(root, name(0)?, place)?, 1)),
            "path" => Ok((self.path(name(0)?, place)?, 1)),
            "terraform" => Err("`terraform.workspace` has no counterpart".to_owned()),
            "self" if place.allows_self => Ok((Cel::code("self"), 0)),
            "module" => Ok((self.called(name(0)?, place)?, 1)),
            "data" => self.object(true, (name(0)?, name(1)?), operators.get(2).copied(), place).map(|value| (value, 2)),
            type_name => {
                self.object(false, (type_name, name(0)?), operators.get(1).copied(), place).map(|value| (value, 1))
            }
        }
    }

    fn local(&self, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        let local = self.module(&place.module)?.locals.get(name);
        let local = local.ok_or_else(|| format!("there is no local `{name}`"))?;
        let repetition = place.repetition.clone();
        self.source(local, &place.inside(&place.module, repetition)?)
    }

    /// `each.key`, `each.value` and `count.index`.
    fn repeated(&self, root: &str, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        let missing = || format!("`{root}.{name}` is not available");
        match (&place.repetition, root, name) {
            (Repetition::Family(_), "each", "key") => Ok(Cel::code("each.key")),
            (Repetition::Family(true), "each", "value") => Ok(Cel::code("each.value")),
            (Repetition::Family(_), "count", "index") => Ok(Cel::code("count.index")),
            (Repetition::Call(Key::Index(at), _), "count", "index") => Ok(Cel::Constant(Json::from(*at))),
            (Repetition::Call(Key::Key(key), _), "each", "key") => Ok(Cel::string(key)),
            (Repetition::Call(Key::Key(key), Some(for_each)), "each", "value") => {
                let collection = self.source(for_each, &place.inside(&place.module, Repetition::None)?)?;
                match collection.items() {
                    Some(_) => Ok(Cel::string(key)),
                    None => collection.member(key),
                }
            }
            _ => Err(missing()),
        }
    }

    fn path(&self, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        match name {
            "module" => Ok(Cel::string(self.module(&place.module)?.folder.as_str())),
            "root" => Ok(Cel::string(".")),
            _ => Err(format!("`path.{name}` has no counterpart")),
        }
    }

    /// A called module, or the instances of a repeated one.
    fn called(&self, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        let call = self.module(&place.module)?.calls.get(name);
        let call = call.ok_or_else(|| format!("there is no module `{name}`"))?;
        let at = |key: Option<Key>| {
            let path: Vec<ModuleStep> = place.module.iter().cloned().chain([(name.to_owned(), key)]).collect();
            Cel::Module(path)
        };
        if call.count.is_none() && call.for_each.is_none() {
            return Ok(at(None));
        }
        let mut keys: Vec<Key> = Vec::new();
        for path in self.resources.into_iter().flat_map(|all| &all.modules) {
            let (Some((step, key)), true) = (path.get(place.module.len()), path.starts_with(&place.module)) else {
                continue;
            };
            if let Some(key) = key.as_ref().filter(|key| step == name && !keys.contains(key)) {
                keys.push(key.clone());
            }
        }
        keys.sort();
        if call.count.is_some() {
            return Ok(Cel::List(keys.into_iter().map(|key| at(Some(key))).collect()));
        }
        let entry = |key: Key| match &key {
            Key::Key(text) => (text.clone(), at(Some(key.clone()))),
            Key::Index(place) => (place.to_string(), at(Some(key.clone()))),
        };
        Ok(Cel::Map(keys.into_iter().map(entry).collect()))
    }

    fn output(&self, path: &[ModuleStep], name: &str, place: &Place) -> Result<Cel, Untranslated> {
        let output = self.module(path)?.outputs.get(name).ok_or_else(|| format!("there is no output `{name}`"))?;
        self.source(&output.value, &place.inside(path, Repetition::None)?)
    }

    /// A resource or data source. `next` is the operator after it.
    fn object(
        &self,
        is_data: bool,
        (type_name, name): (&str, &str),
        next: Option<&TraversalOperator>,
        place: &Place,
    ) -> Result<Cel, Untranslated> {
        let (type_name, name) = (type_name.to_owned(), name.to_owned());
        let address = ResourceAddress { module: place.module.clone(), is_data, type_name, name };
        let Some(resources) = self.resources else { return Err(format!("it reads `{address}`")) };
        let Some(found) = resources.by_address.get(&address.to_string()) else {
            let block = self.configuration.resource(&address);
            return match block {
                Some(block) if block.count.is_some() => Ok(Cel::Constant(Json::Array(Vec::new()))),
                Some(block) if block.for_each.is_some() => Ok(Cel::Constant(Json::Object(serde_json::Map::new()))),
                Some(block) if block.lifecycle.enabled.is_some() => Ok(Cel::Constant(Json::Null)),
                _ => Err(format!("`{address}` is not migrated")),
            };
        };
        let code = path_expression(&found.name, &[]);
        let is_splat = matches!(next, Some(TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_)));
        Ok(match found.keys.as_deref() {
            None if is_splat => Cel::List(vec![Cel::code(code)]),
            Some([InstanceKey::Key(_), ..]) if is_splat => Cel::code(format!("{code}.map(key, {code}[key])")),
            _ => Cel::code(code),
        })
    }
}

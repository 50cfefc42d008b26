//! The configuration that a state belongs to, as `terraform show -json PLANFILE` prints it: which arguments were written,
//! and what they refer to. It has no expressions, only what is read in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::Problem;
use super::address::{self, Key, ModuleStep, ResourceAddress};
use super::state::ProviderAddress;
use crate::model::Segment;

/// How many modules a value is followed through: as deep as anybody nests them.
const DEEPEST: usize = 32;

/// A configuration.
#[derive(Debug)]
pub struct Configuration(Json);

/// Something in another resource that an argument reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The resource as configuration names it.
    pub resource: String,
    /// The instance, when it is named.
    pub key: Option<Key>,
    /// What of it; empty when that is not known.
    pub path: Vec<Segment>,
}

impl Configuration {
    /// How the user comes by one.
    pub const HINT: &str = "`terraform plan -out FILE` and `terraform show -json FILE` write one (or `tofu`)";

    /// Reads plans as JSON. Exactly one of them must hold a configuration.
    ///
    /// # Errors
    /// When none does, or more than one, or one is no JSON.
    pub fn parse(texts: &[String]) -> Result<Self, Problem> {
        let mut found = Vec::new();
        for text in texts {
            let document: Json =
                serde_json::from_str(text).map_err(|error| Problem::hinted(error.to_string(), Self::HINT))?;
            if let Some(configuration) = document.get("configuration") {
                found.push(Self(configuration.clone()));
            }
        }
        match (found.pop(), found.len()) {
            (Some(one), 0) => Ok(one),
            (None, _) => Err(Problem::hinted("it holds no `configuration`", Self::HINT)),
            (Some(_), others) => {
                let what = format!("{} files hold a `configuration`, and one is needed", others + 1);
                Err(Problem::hinted(what, Self::HINT))
            }
        }
    }

    /// A module by its names.
    fn module(&self, path: &[&str]) -> Option<&Json> {
        let mut module = self.0.get("root_module")?;
        for name in path {
            module = module.get("module_calls")?.get(name)?.get("module")?;
        }
        Some(module)
    }

    fn resource(&self, address: &ResourceAddress) -> Option<&Json> {
        let resources = self.module(&address.modules())?.get("resources")?.as_array()?;
        let is_it = |one: &&Json| {
            one["mode"] == if address.is_data { "data" } else { "managed" }
                && one["type"] == address.type_name.as_str()
                && one["name"] == address.name.as_str()
        };
        resources.iter().find(is_it)
    }

    /// The arguments of a resource that were written; `None` when the configuration does not have it.
    pub fn written(&self, address: &ResourceAddress) -> Option<BTreeSet<Arc<str>>> {
        let written = self.resource(address)?.get("expressions").and_then(Json::as_object);
        Some(written.map(|written| written.keys().map(|name| name.as_str().into()).collect()).unwrap_or_default())
    }

    /// What a resource depends on besides what it reads, as configuration names it.
    pub fn depends_on(&self, address: &ResourceAddress) -> Vec<String> {
        let named = self.resource(address).and_then(|one| one.get("depends_on")?.as_array());
        let names = address.modules();
        let mut found = Vec::new();
        for reference in named.into_iter().flatten().filter_map(Json::as_str) {
            self.resolve(reference, &names, 0, &mut found);
        }
        found.into_iter().map(|target| target.resource).collect()
    }

    /// What one argument of a resource reads.
    pub fn reads(&self, address: &ResourceAddress, argument: &str) -> Vec<Target> {
        let Some(expression) = self.resource(address).and_then(|one| one.get("expressions")?.get(argument)) else {
            return Vec::new();
        };
        let names = address.modules();
        let mut found = Vec::new();
        self.follow(expression, &names, 0, &mut found);
        found
    }

    fn follow(&self, expression: &Json, module: &[&str], depth: usize, found: &mut Vec<Target>) {
        if depth > DEEPEST {
            return;
        }
        let mut references = Vec::new();
        collect_references(expression, &mut references);
        for reference in references {
            self.resolve(reference, module, depth, found);
        }
    }

    fn resolve(&self, reference: &str, module: &[&str], depth: usize, found: &mut Vec<Target>) {
        let Some(parts) = address::parts(reference) else { return };
        match &parts[..] {
            [(word, _), (name, _), ..] if word == "var" => {
                let Some((own, parent)) = module.split_last() else { return };
                let call = self.module(parent).and_then(|module| module.get("module_calls")?.get(own));
                if let Some(given) = call.and_then(|call| call.get("expressions")?.get(name)) {
                    self.follow(given, parent, depth + 1, found);
                }
            }
            [(word, _), (name, _), (output, _), ..] if word == "module" => {
                let inner: Vec<&str> = module.iter().copied().chain([name.as_str()]).collect();
                let output =
                    self.module(&inner).and_then(|module| module.get("outputs")?.get(output)?.get("expression"));
                if let Some(given) = output {
                    self.follow(given, &inner, depth + 1, found);
                }
            }
            [(word, None), (type_name, None), (name, key), rest @ ..] if word == "data" => {
                found_in(true, module, type_name, (name, key.as_ref()), rest, found);
            }
            [(word, _), ..]
                if matches!(
                    word.as_str(),
                    "data" | "local" | "each" | "count" | "path" | "self" | "terraform" | "module" | "var"
                ) => {}
            [(type_name, None), (name, key), rest @ ..] => {
                found_in(false, module, type_name, (name, key.as_ref()), rest, found);
            }
            _ => {}
        }
    }

    /// What was written of a configuration of a provider, by `name` and `alias`.
    pub fn provider(&self, address: &ProviderAddress, name: &str) -> Option<&Map<String, Json>> {
        let module = address::module_names(&address.module);
        let module = module.iter().map(|name| format!("module.{name}")).collect::<Vec<_>>().join(".");
        let all = self.0.get("provider_config")?.as_object()?;
        let is_it = |one: &&Map<String, Json>| {
            let text = |field: &str| one.get(field).and_then(Json::as_str).unwrap_or_default();
            let named =
                if text("full_name").is_empty() { text("name") == name } else { text("full_name") == address.source };
            named && text("alias") == address.alias.as_deref().unwrap_or_default() && text("module_address") == module
        };
        all.values().filter_map(Json::as_object).find(is_it)
    }
}

/// Takes down what is read of a resource or data source of a module.
fn found_in(
    is_data: bool,
    module: &[&str],
    type_name: &str,
    (name, key): (&str, Option<&Key>),
    rest: &[(String, Option<Key>)],
    found: &mut Vec<Target>,
) {
    let module = module.iter().map(|name| ((*name).to_owned(), None::<Key>)).collect::<Vec<ModuleStep>>();
    let address = ResourceAddress { module, is_data, type_name: type_name.to_owned(), name: name.to_owned() };
    let path = rest.iter().flat_map(|(name, key)| {
        let key = key.as_ref().map(|key| match key {
            Key::Index(place) => Segment::Index(usize::try_from(*place).unwrap_or(usize::MAX)),
            Key::Key(key) => Segment::Name(key.as_str().into()),
        });
        [Some(Segment::Name(name.as_str().into())), key].into_iter().flatten()
    });
    let target = Target { resource: address.in_configuration(), key: key.cloned(), path: path.collect() };
    if !found.contains(&target) {
        found.push(target);
    }
}

/// The texts of all `references` in an expression, the longest of each first as they are listed.
fn collect_references<'a>(expression: &'a Json, found: &mut Vec<&'a str>) {
    match expression {
        Json::Object(map) => {
            if let Some(Json::Array(references)) = map.get("references") {
                found.extend(references.iter().filter_map(Json::as_str));
            }
            map.iter()
                .filter(|(name, _)| *name != "constant_value")
                .for_each(|(_, inner)| collect_references(inner, found));
        }
        Json::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// The constants of expressions, by name, and the names of those that are none.
pub fn constants(expressions: &Map<String, Json>) -> (Map<String, Json>, Vec<String>) {
    let mut constants = Map::new();
    let mut others = Vec::new();
    for (name, expression) in expressions {
        match constant(expression) {
            Some(value) => drop(constants.insert(name.clone(), value)),
            None => others.push(name.clone()),
        }
    }
    (constants, others)
}

fn constant(expression: &Json) -> Option<Json> {
    match expression {
        Json::Object(map) if map.contains_key("constant_value") => map.get("constant_value").cloned(),
        Json::Object(map) if map.contains_key("references") => None,
        Json::Object(map) => {
            let inner = map.iter().map(|(name, inner)| Some((name.clone(), constant(inner)?)));
            inner.collect::<Option<Map<_, _>>>().map(Json::Object)
        }
        Json::Array(items) => items.iter().map(constant).collect::<Option<Vec<_>>>().map(Json::Array),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_through_modules() {
        let inner = json!({
            "resources": [{"mode": "managed", "type": "random_id", "name": "i", "expressions":
                {"prefix": {"references": ["var.p"]}, "keepers": {"references": ["random_pet.x[\"a.b\"].tags[0].k", "each.key"]}}}],
            "outputs": {"o": {"expression": {"references": ["random_id.i.hex", "random_id.i"]}}},
        });
        let configuration = Configuration(json!({"root_module": {
            "resources": [{"mode": "managed", "type": "local_file", "name": "f",
                "expressions": {"content": {"references": ["module.m[0].o", "module.m[0]", "module.m"]},
                    "filename": {"references": ["data.http.d[0].body"]}}}],
            "module_calls": {"m": {"module": inner, "expressions": {"p": {"references": ["random_pet.p.id", "random_pet.p"]}}}},
        }}));
        let read = |module: &str, type_name: &str, name: &str, argument: &str| {
            let module = address::module(module).unwrap();
            let address = ResourceAddress { module, is_data: false, type_name: type_name.into(), name: name.into() };
            let all = configuration.reads(&address, argument);
            all.iter()
                .map(|target| format!("{} {:?} {}", target.resource, target.key, target.path.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read("", "local_file", "f", "content"),
            ["module.m.random_id.i None 1", "module.m.random_id.i None 0"]
        );
        assert_eq!(read("module.m[0]", "random_id", "i", "prefix"), ["random_pet.p None 1", "random_pet.p None 0"]);
        let keyed = "module.m.random_pet.x Some(Key(\"a.b\")) 3";
        assert_eq!(read("module.m", "random_id", "i", "keepers"), [keyed]);
        assert_eq!(read("", "local_file", "f", "filename"), ["data.http.d Some(Index(0)) 1"]);
        let (type_name, name) = ("local_file".into(), "f".into());
        let file = ResourceAddress { module: Vec::new(), is_data: false, type_name, name };
        assert_eq!(configuration.written(&file), Some(BTreeSet::from(["content".into(), "filename".into()])));
        assert_eq!(configuration.written(&ResourceAddress { name: "g".into(), ..file }), None);
    }

    #[test]
    fn constants_are_told_from_what_is_computed() {
        let expressions = json!({"region": {"constant_value": "eu"}, "token": {"references": ["var.t"]},
            "block": [{"a": {"constant_value": 1}}]});
        let (constants, others) = constants(expressions.as_object().unwrap());
        assert_eq!(
            (Json::Object(constants), others),
            (json!({"region": "eu", "block": [{"a": 1}]}), vec!["token".into()])
        );
    }
}

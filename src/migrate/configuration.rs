//! The configuration of a state, as `terraform show -json PLANFILE` prints it: the configured arguments and their
//! references. It contains no expressions, only the references in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::Problem;
use super::address::{self, Key, ModuleStep, ResourceAddress};
use super::state::ProviderAddress;
use crate::model::Segment;

/// The maximum number of modules through which a value is followed.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub struct Configuration(Json);

/// A value of another resource that an argument references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedValue {
    /// The address in the configuration.
    pub resource: String,
    /// The key of the instance, if the reference has one.
    pub key: Option<Key>,
    /// The path of the attribute. Empty: it is not known.
    pub path: Vec<Segment>,
}

impl Configuration {
    pub const HINT: &str = "create one with `terraform plan -out FILE` and `terraform show -json FILE` (or `tofu`)";

    /// Parses plans as JSON.
    ///
    /// # Errors
    /// A string is not JSON, or the number of configurations is not one.
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
            (None, _) => Err(Problem::hinted("it contains no `configuration`", Self::HINT)),
            (Some(_), others) => {
                let what = format!("{} files contain a `configuration`, but exactly one is needed", others + 1);
                Err(Problem::hinted(what, Self::HINT))
            }
        }
    }

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

    /// Returns the arguments that the configuration sets. `None`: it does not contain the resource.
    pub fn configured_arguments(&self, address: &ResourceAddress) -> Option<BTreeSet<Arc<str>>> {
        let written = self.resource(address)?.get("expressions").and_then(Json::as_object);
        Some(written.map(|written| written.keys().map(|name| name.as_str().into()).collect()).unwrap_or_default())
    }

    /// Returns the configuration addresses in `depends_on`.
    pub fn depends_on(&self, address: &ResourceAddress) -> Vec<String> {
        let named = self.resource(address).and_then(|one| one.get("depends_on")?.as_array());
        let names = address.modules();
        let mut found = Vec::new();
        for reference in named.into_iter().flatten().filter_map(Json::as_str) {
            self.resolve(reference, &names, 0, &mut found);
        }
        found.into_iter().map(|target| target.resource).collect()
    }

    pub fn references(&self, address: &ResourceAddress, argument: &str) -> Vec<ReferencedValue> {
        let Some(expression) = self.resource(address).and_then(|one| one.get("expressions")?.get(argument)) else {
            return Vec::new();
        };
        let names = address.modules();
        let mut found = Vec::new();
        self.follow(expression, &names, 0, &mut found);
        found
    }

    fn follow(&self, expression: &Json, module: &[&str], depth: usize, found: &mut Vec<ReferencedValue>) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut references = Vec::new();
        collect_references(expression, &mut references);
        for reference in references {
            self.resolve(reference, module, depth, found);
        }
    }

    fn resolve(&self, reference: &str, module: &[&str], depth: usize, found: &mut Vec<ReferencedValue>) {
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
                add_reference(true, module, type_name, (name, key.as_ref()), rest, found);
            }
            [(word, _), ..]
                if matches!(
                    word.as_str(),
                    "data" | "local" | "each" | "count" | "path" | "self" | "terraform" | "module" | "var"
                ) => {}
            [(type_name, None), (name, key), rest @ ..] => {
                add_reference(false, module, type_name, (name, key.as_ref()), rest, found);
            }
            _ => {}
        }
    }

    /// Returns a provider configuration by `name` and `alias`.
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

/// Adds a reference to a resource or data source of a module.
fn add_reference(
    is_data: bool,
    module: &[&str],
    type_name: &str,
    (name, key): (&str, Option<&Key>),
    rest: &[(String, Option<Key>)],
    found: &mut Vec<ReferencedValue>,
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
    let target = ReferencedValue { resource: address.in_configuration(), key: key.cloned(), path: path.collect() };
    if !found.contains(&target) {
        found.push(target);
    }
}

/// Collects all `references` of an expression, in their order: the longest form of each comes first.
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

/// Returns the constants by name, and the names of all other expressions.
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
            let all = configuration.references(&address, argument);
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
        assert_eq!(
            configuration.configured_arguments(&file),
            Some(BTreeSet::from(["content".into(), "filename".into()]))
        );
        assert_eq!(configuration.configured_arguments(&ResourceAddress { name: "g".into(), ..file }), None);
    }

    #[test]
    fn constants_are_separated_from_other_expressions() {
        let expressions = json!({"region": {"constant_value": "eu"}, "token": {"references": ["var.t"]},
            "block": [{"a": {"constant_value": 1}}]});
        let (constants, others) = constants(expressions.as_object().unwrap());
        assert_eq!(
            (Json::Object(constants), others),
            (json!({"region": "eu", "block": [{"a": 1}]}), vec!["token".into()])
        );
    }
}

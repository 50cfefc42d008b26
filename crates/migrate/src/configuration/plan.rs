//! Reads a configuration from a plan, as `terraform show -json PLANFILE` prints it.

use serde_json::{Map, Value as Json};

use super::{
    Arguments, Configuration, Module, ModuleCall, Output, ProviderBlock, Requirement, ResourceBlock, Source, Variable,
};
use crate::Problem;
use crate::address;

type Object = Map<String, Json>;

impl Configuration {
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
                found.push(Self::of_plan(configuration, &document));
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

    fn of_plan(configuration: &Json, plan: &Json) -> Self {
        let mut root = module(&configuration["root_module"]);
        for one in entries(&configuration["provider_config"]).map(|(_, one)| one) {
            add_provider(&mut root, one);
        }
        let values = entries(&plan["variables"]).map(|(name, one)| (name.clone(), one["value"].clone())).collect();
        Self { root, values, ..Self::default() }
    }
}

fn entries(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}

fn items(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

fn module(json: &Json) -> Module {
    let expression = |one: &Json, name: &str| one.get(name).map(source);
    let mut found = Module::default();
    for one in items(&json["resources"]) {
        let block = ResourceBlock {
            arguments: arguments(&one["expressions"]),
            count: expression(one, "count_expression"),
            for_each: expression(one, "for_each_expression"),
            depends_on: items(&one["depends_on"]).map(text).collect(),
            ..ResourceBlock::default()
        };
        found.resources.insert((one["mode"] == "data", text(&one["type"]), text(&one["name"])), block);
    }
    for (name, call) in entries(&json["module_calls"]) {
        let call = ModuleCall {
            arguments: arguments(&call["expressions"]),
            count: expression(call, "count_expression"),
            for_each: expression(call, "for_each_expression"),
            depends_on: items(&call["depends_on"]).map(text).collect(),
            module: module(&call["module"]),
        };
        found.calls.insert(name.clone(), call);
    }
    let output = |one: &Json| Output { value: source(&one["expression"]), sensitive: one["sensitive"] == true };
    found.outputs = entries(&json["outputs"]).map(|(name, one)| (name.clone(), output(one))).collect();
    let variable =
        |one: &Json| Variable { default: one.get("default").cloned(), sensitive: one["sensitive"] == true, kind: None };
    found.variables = entries(&json["variables"]).map(|(name, one)| (name.clone(), variable(one))).collect();
    found
}

fn add_provider(root: &mut Module, one: &Json) {
    let path = address::module(&text(&one["module_address"])).unwrap_or_default();
    let module = path.iter().try_fold(root, |module, (name, _)| Some(&mut module.calls.get_mut(name)?.module));
    let Some(module) = module else { return };
    let name = text(&one["name"]);
    let optional = |field: &str| one[field].as_str().map(str::to_owned);
    let required = Requirement { source: optional("full_name"), version: optional("version_constraint") };
    module.required.entry(name.clone()).or_insert(required);
    let arguments = arguments(&one["expressions"]);
    module.providers.push(ProviderBlock { name, alias: optional("alias"), version: None, arguments });
}

fn arguments(json: &Json) -> Arguments {
    entries(json).map(|(name, one)| (name.as_str().into(), source(one))).collect()
}

fn source(json: &Json) -> Source {
    let of_object = |map: &Object| match (map.get("constant_value"), map.get("references")) {
        (Some(constant), _) => Source::Constant(constant.clone()),
        (None, Some(Json::Array(references))) => Source::References(references.iter().map(text).collect()),
        // An expression without references that is not a constant, such as a call of a function.
        _ if map.is_empty() => Source::References(Vec::new()),
        _ => Source::Object(arguments(json)),
    };
    match json {
        Json::Object(map) => of_object(map),
        Json::Array(items) => Source::List(items.iter().map(source).collect()),
        other => Source::Constant(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn constants_references_and_blocks_are_distinguished() {
        let found = arguments(&json!({
            "region": {"constant_value": "eu"}, "token": {"references": ["var.t"]},
            "block": [{"a": {"constant_value": 1}}], "now": {},
        }));
        assert!(matches!(&found["region"], Source::Constant(value) if value == "eu"));
        assert!(matches!(&found["token"], Source::References(names) if *names == ["var.t"]));
        assert!(matches!(&found["block"], Source::List(items) if matches!(&items[0], Source::Object(_))));
        assert!(matches!(&found["now"], Source::References(names) if names.is_empty()));
    }

    #[test]
    fn provider_configurations_belong_to_their_module() {
        let plan = json!({
            "variables": {"region": {"value": "eu"}},
            "configuration": {
                "provider_config": {
                    "aws": {"name": "aws", "full_name": "registry.opentofu.org/hashicorp/aws", "version_constraint": "~> 5"},
                    "m:aws.b": {"name": "aws", "full_name": "registry.opentofu.org/hashicorp/aws", "alias": "b", "module_address": "module.m",
                        "expressions": {"region": {"constant_value": "us"}}},
                },
                "root_module": {"module_calls": {"m": {"module": {}}}},
            },
        });
        let found = Configuration::parse(&[plan.to_string()]).unwrap();
        assert_eq!(found.version("registry.opentofu.org/hashicorp/aws").as_deref(), Some("~> 5"));
        assert_eq!(found.values, BTreeMap::from([("region".to_owned(), json!("eu"))]));
        assert_eq!(found.module(&["m"]).unwrap().providers[0].alias.as_deref(), Some("b"));
    }
}

//! Values that are set and change, and what is computed from them on demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Type, Value};
use language::NoFiles;

use super::{Evaluation, Manifest, Memory, Settings, Things, load, text};
use crate::address::{InstanceAddress, ResourceAddress, Target};
use crate::evaluation::BlockKeys;

const MAIN: &str = r#"
    resource "thing_a" "a" {}
    locals { both = "${thing_a.a.id}-${thing_a.a.name}" }
    resource "thing_a" "b" { name = local.both }
    resource "thing_a" "many" {
      count = thing_a.a.size
      name  = "n${count.index}"
    }
    module "m" {
      source   = "./m"
      for_each = thing_a.a.tags
      name     = each.value
    }
    resource "thing_a" "last" { tags = { for key, m in module.m : key => m.name } }
    output "o" { value = local.both }
    "#;

const MODULE: &str = r#"
    variable "name" {}
    resource "thing_a" "y" { name = var.name }
    output "name" { value = thing_a.y.name }
    "#;

fn evaluation(main: &str) -> Evaluation {
    let files = [("main.tf", main), ("m/main.tf", MODULE)].map(|(path, text)| (path.to_owned(), text.to_owned()));
    let (tree, found) = load(".", &Memory(files.into()), &Manifest::default(), &BTreeMap::new());
    assert_eq!(found.errors, []);
    let settings = Settings { on_demand: true, ..Settings::new(Arc::new(NoFiles)) };
    Evaluation::new(Arc::new(tree), Arc::new(Things::new()), settings)
}

fn address(text: &str) -> InstanceAddress {
    let parsed = hcl::parse_traversal(hcl::Source::new(hcl::FileId(0), "", text)).value.unwrap();
    let Some(Target { module, resource: Some((resource, key)) }) = Target::parse(&parsed) else { panic!("{text}") };
    InstanceAddress { resource: ResourceAddress { module, resource }, key }
}

fn config(evaluation: &Evaluation, object: &str) -> Option<String> {
    evaluation.configured(&address(object)).map(|object| text(&object.config))
}

/// The objects that there are, and the blocks whose objects are not known.
fn objects(evaluation: &Evaluation) -> Vec<String> {
    let mut all = Vec::new();
    for block in evaluation.blocks() {
        match &block.keys {
            BlockKeys::Known(keys) if block.resource.is_some() => {
                let key = |key: &Option<_>| key.as_ref().map(ToString::to_string).unwrap_or_default();
                all.extend(keys.iter().map(|own| format!("{}{}", block.address(), key(own))));
            }
            BlockKeys::Known(_) => {}
            _ => all.push(format!("{}?", block.address())),
        }
    }
    all.sort();
    all
}

fn value(id: &str, size: i64, tags: &[(&str, &str)]) -> Value {
    let tags = tags.iter().map(|(key, value)| (*key, Value::string(value)));
    Value::object([
        ("id", Value::string(id)),
        ("name", Value::string("n")),
        ("size", Value::int(size)),
        ("tags", Value::map(Type::String, tags)),
    ])
}

#[test]
fn what_comes_from_a_value_follows_its_changes() {
    let evaluation = evaluation(MAIN);
    let at_first = ["module.m?", "thing_a.a", "thing_a.b", "thing_a.last", "thing_a.many?"];
    assert_eq!(objects(&evaluation), at_first);
    assert_eq!(config(&evaluation, "thing_a.b").unwrap(), "{name: ?}");
    let last = evaluation.configured(&address("thing_a.last")).unwrap();
    let uses: Vec<String> = last.uses.iter().map(ToString::to_string).collect();
    assert_eq!(uses, ["thing_a.a", "module.m"], "what waits for a module waits for its call");

    evaluation.set(&address("thing_a.a"), Some(&value("1", 2, &[("x", "one")])));
    assert_eq!(config(&evaluation, "thing_a.b").unwrap(), r#"{name: "1-n"}"#);
    let now =
        ["module.m[\"x\"].thing_a.y", "thing_a.a", "thing_a.b", "thing_a.last", "thing_a.many[0]", "thing_a.many[1]"];
    assert_eq!(objects(&evaluation), now);
    assert_eq!(config(&evaluation, r#"module.m["x"].thing_a.y"#).unwrap(), r#"{name: "one"}"#);
    assert_eq!(config(&evaluation, "thing_a.many[1]").unwrap(), r#"{name: "n1"}"#);

    evaluation.set(&address("thing_a.a"), Some(&value("2", 1, &[("x", "other"), ("y", "two")])));
    assert_eq!(config(&evaluation, "thing_a.b").unwrap(), r#"{name: "2-n"}"#);
    assert_eq!(config(&evaluation, "thing_a.many[1]"), None);
    assert_eq!(config(&evaluation, r#"module.m["x"].thing_a.y"#).unwrap(), r#"{name: "other"}"#);
    let y = Value::object([("name", Value::string("named"))]);
    evaluation.set(&address(r#"module.m["y"].thing_a.y"#), Some(&y));
    assert_eq!(config(&evaluation, "thing_a.last").unwrap(), r#"{tags: {x: ?, y: "named"}}"#);

    evaluation.set(&address("thing_a.a"), None);
    assert_eq!(objects(&evaluation), at_first);
    assert_eq!(config(&evaluation, r#"module.m["x"].thing_a.y"#), None);
}

#[test]
fn a_problem_goes_with_the_value_that_it_comes_from() {
    let main = r#"
        resource "thing_a" "a" {}
        locals { first = split("-", thing_a.a.name)[1] }
        resource "thing_a" "b" { name = local.first }
        resource "thing_a" "c" { size = tonumber(thing_a.a.name) }
        "#;
    let evaluation = evaluation(main);
    let named = |name: &str| Value::object([("name", Value::string(name))]);
    let failed = |object: &str| evaluation.configured(&address(object)).unwrap().failed;
    assert!(!failed("thing_a.b") && !failed("thing_a.c"));
    evaluation.set(&address("thing_a.a"), Some(&named("x")));
    assert!(failed("thing_a.b") && failed("thing_a.c"));
    assert_eq!(evaluation.general_problems().errors.len(), 1, "that of the local value");
    assert_eq!(evaluation.problems_of(&address("thing_a.b")).errors, [], "it only follows");
    assert_eq!(evaluation.problems_of(&address("thing_a.c")).errors.len(), 1);
    evaluation.set(&address("thing_a.a"), Some(&named("1-2")));
    assert!(!failed("thing_a.b"));
    assert_eq!(evaluation.general_problems().errors, []);
    assert_eq!(evaluation.problems_of(&address("thing_a.c")).errors, [], "it was not asked for again");
}

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use hcl::{FileId, Source};
use language::{Budget, NoFiles, Scope, TypeConstraint, evaluate};
use serde_json::Value as Json;

use crate::encoding::{decode, encode, same};
use crate::excuses::{Excuse, Excuses};

#[test]
fn values_meet_type_constraints_as_in_opentofu() {
    let text = crate::lines("constraints.jsonl.gz");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let variables = lines.next().unwrap();
    let variables = variables["variables"].as_object().unwrap().iter();
    let variables: BTreeMap<Arc<str>, Value> =
        variables.map(|(name, value)| (name.as_str().into(), decode(value))).collect();
    let (mut different, mut count) = (Vec::new(), 0);
    let mut excuses = Excuses::new(OTHER_HERE);
    for vector in lines {
        let parsed = |key: &str| hcl::parse_expression(Source::new(FileId(0), "", vector[key].as_str().unwrap()));
        let (ty, value) = (parsed("c"), parsed("e"));
        let budget = Budget::default();
        let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
        let value = match vector.get("a") {
            Some(operand) => decode(operand),
            None => evaluate(&value.value, &variables, &scope).value,
        };
        let result = match TypeConstraint::parse(&ty.value) {
            Ok(constraint) => constraint.convert(&value).map_err(|error| error.to_string()),
            Err(problems) => Err(problems[0].detail.clone()),
        };
        count += 1;
        let same = match (&result, vector.get("r")) {
            (Ok(value), Some(expected)) => same(&encode(value), expected),
            (Err(_), None) => true,
            _ => false,
        };
        if !same && !excuses.has(&vector.to_string()) {
            let here = result.map_or_else(|error| error, |value| encode(&value).to_string());
            let expected = vector.get("r").map_or("error".to_owned(), Json::to_string);
            let given = vector.get("a").unwrap_or(&vector["e"]);
            different.push(format!("{given} for {}\n    there: {expected}\n    here:  {here}", vector["c"]));
        }
    }
    assert!(different.is_empty(), "{} of {count} differ\n{}", different.len(), different.join("\n"));
    excuses.check();
}

const OTHER_HERE: &[Excuse] = &[(
    &["object({a = optional(object(", "tomap({k ="],
    "Of a map of strings where an optional attribute is an object, the result has a type that no value can have.",
)];

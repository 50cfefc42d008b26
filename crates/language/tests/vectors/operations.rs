use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use hcl::{FileId, Source};
use language::{Budget, Scope, evaluate};
use serde_json::Value as Json;

use crate::directory::Directory;
use crate::encoding::{decode, encode, same};

/// What an operation gives here, or why it fails.
fn result(vector: &Json) -> Result<Json, String> {
    let operands = vector["a"].as_object().unwrap().iter();
    let variables: BTreeMap<Arc<str>, Value> =
        operands.map(|(name, operand)| (name.as_str().into(), decode(operand))).collect();
    let source = Source::new(FileId(0), "", vector["e"].as_str().unwrap());
    let is_json = vector.get("json").is_some();
    let parsed = if is_json { hcl::parse_json_expression(source) } else { hcl::parse_expression(source) };
    let files = Directory(crate::recorded().join("files"));
    let budget = Budget::default();
    let scope = Scope { files: &files, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
    let evaluated = evaluate(&parsed.value, &variables, &scope);
    match parsed.diagnostics.first().or(evaluated.diagnostics.first()) {
        None => Ok(encode(&evaluated.value)),
        Some(problem) => Err(format!("{}: {}", problem.summary, problem.detail)),
    }
}

#[test]
fn operations_give_what_opentofu_gives() {
    let (mut different, mut count) = (Vec::new(), 0);
    for line in crate::lines("operations.jsonl.gz").lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        let here = result(&vector);
        count += 1;
        let same = match (&here, vector.get("r")) {
            (Ok(value), Some(expected)) => same(value, expected),
            (Err(_), None) => true,
            _ => false,
        };
        if !same {
            let here = here.map_or_else(|problem| format!("error: {problem}"), |value| value.to_string());
            let there = vector.get("r").map_or("error".to_owned(), Json::to_string);
            let (source, operands) = (&vector["e"], &vector["a"]);
            different.push(format!("{source}\n    {operands}\n    there: {there}\n    here:  {here}"));
        }
    }
    assert!(different.is_empty(), "{} of {count} differ\n{}", different.len(), different.join("\n"));
}

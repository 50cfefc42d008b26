use std::collections::BTreeMap;

use language::{Budget, Scope, functions};
use serde_json::Value as Json;

use crate::directory::Directory;
use crate::encoding::{decode, encode, same};
use crate::excuses::{Excuse, Excuses};

#[test]
fn calls_give_what_opentofu_gives() {
    let files = Directory(crate::recorded().join("files"));
    let mut different: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    let mut excuses = Excuses::new(OTHER_HERE);
    for line in crate::lines("calls.jsonl.gz").lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        let name = vector["f"].as_str().unwrap();
        let arguments: Vec<_> = vector["a"].as_array().unwrap().iter().map(decode).collect();
        let budget = Budget::default();
        let scope = Scope { files: &files, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
        let function = functions::find(name).unwrap_or_else(|| panic!("no function {name}"));
        let result = function.call(&arguments, &scope);
        count += 1;
        let same = match (&result, vector.get("r")) {
            (Ok(value), Some(expected)) => same(&encode(value), expected),
            (Err(_), None) => true,
            _ => false,
        };
        if !same && !excuses.has(line) {
            let result = result.map_or_else(|failure| format!("error: {failure}"), |value| encode(&value).to_string());
            different.entry(name.to_owned()).or_default().push(format!("{line}\n    here: {result}"));
        }
    }
    let total: usize = different.values().map(Vec::len).sum();
    let shown: Vec<String> =
        different.iter().map(|(name, all)| format!("{name} ({})\n  {}", all.len(), all.join("\n  "))).collect();
    assert!(different.is_empty(), "{total} of {count} differ\n{}", shown.join("\n"));
    excuses.check();
}

/// Calls whose results are of no use upstream.
const OTHER_HERE: &[Excuse] = &[
    (&["\"cidrhost\"", "::ffff:"], "An IPv4 address in IPv6 gives half of an address."),
    (
        &["\"cidrsubnet\"", r#"{"t":"number","v":"8"},{"t":"number","v":"-1"}"#],
        "A negative number of a subnet gives a network outside of the prefix.",
    ),
    (&[r#""fileset","a":[{"t":"string","v":"*"#], "The name of the directory is taken for a pattern."),
    (
        &["\"jsondecode\"", r#"{\"b\":1,\"a\":2,\"b\":\"x\"}"#],
        "A key twice with values of different types is an error there, with values of the same type it is not.",
    ),
];

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use hcl::{FileId, Source};
use language::{Budget, Scope, evaluate};
use serde_json::Value as Json;

use crate::directory::Directory;
use crate::encoding::{decode, encode, same};

#[test]
fn expressions_give_what_opentofu_gives() {
    let files = Directory(crate::recorded().join("files"));
    let text = crate::lines("expressions.jsonl.gz");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let variables = lines.next().unwrap();
    let variables = variables["variables"].as_object().unwrap().iter();
    let variables: BTreeMap<Arc<str>, Value> =
        variables.map(|(name, value)| (name.as_str().into(), decode(value))).collect();
    let (mut different, mut count) = (Vec::new(), 0);
    for vector in lines {
        let source = vector["e"].as_str().unwrap();
        let budget = Budget::default();
        let scope = Scope { files: &files, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
        let parsed = hcl::parse_expression(Source::new(FileId(0), "", source));
        let evaluated = evaluate(&parsed.value, &variables, &scope);
        let problem = parsed.diagnostics.first().or(evaluated.diagnostics.first());
        count += 1;
        let same = match (problem, vector.get("r")) {
            (None, Some(expected)) => same(&encode(&evaluated.value), expected),
            (Some(_), None) => true,
            _ => false,
        };
        if !same {
            let here = match problem {
                Some(problem) => format!("error: {}: {}", problem.summary, problem.detail),
                None => encode(&evaluated.value).to_string(),
            };
            let expected = vector.get("r").map_or("error".to_owned(), Json::to_string);
            different.push(format!("{source}\n    there: {expected}\n    here:  {here}"));
        }
    }
    assert!(different.is_empty(), "{} of {count} differ\n{}", different.len(), different.join("\n"));
}

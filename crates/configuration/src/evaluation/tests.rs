use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Data, Mark, Value};
use language::{Failure, NoFiles};

use super::{Evaluation, Input, Object, Settings, World};
use crate::address::Mode;
use crate::directory::File;
use crate::providers::ProviderSource;
use crate::schema::Block;
use crate::tree::{Directories, Manifest, load};

mod conditions;
mod data;
mod demand;
mod hostile;
mod modules;
mod resources;

/// Files by their paths.
struct Memory(BTreeMap<String, String>);

impl Directories for Memory {
    fn files(&self, directory: &str) -> Result<Vec<File>, String> {
        let prefix = if directory == "." { String::new() } else { format!("{directory}/") };
        let own = self.0.iter().filter_map(|(path, text)| {
            let name = path.strip_prefix(&prefix).filter(|name| !name.contains('/'))?;
            Some(File { name: name.to_owned(), content: text.clone().into() })
        });
        let own: Vec<File> = own.collect();
        if own.is_empty() { Err("it does not exist".to_owned()) } else { Ok(own) }
    }
}

/// Every resource type has the same schema.
struct Things(Arc<Block>);

impl Things {
    fn new() -> Self {
        let rule = serde_json::json!({ "attributes": {
            "port": { "type": "number", "required": true },
            "name": { "type": "string", "optional": true },
        } });
        let json = serde_json::json!({
            "attributes": {
                "id": { "type": "string", "computed": true },
                "name": { "type": "string", "optional": true },
                "size": { "type": "number", "optional": true },
                "tags": { "type": ["map", "string"], "optional": true },
                "any": { "type": "dynamic", "optional": true },
                "secret": { "type": "string", "optional": true, "sensitive": true },
                "ingress": { "type": ["set", ["object", { "port": "number", "cidr": "string" }]], "optional": true, "computed": true },
            },
            "block_types": {
                "rule": { "nesting_mode": "list", "block": rule },
                "limit": { "nesting_mode": "set", "max_items": 2, "block": rule },
                "timeouts": { "nesting_mode": "single", "block": { "attributes": { "create": { "type": "string", "optional": true } } } },
            },
        });
        Self(Arc::new(Block::from_json(&json).unwrap()))
    }
}

impl World for Things {
    fn resource_schema(&self, provider: &ProviderSource, _: Mode, kind: &str) -> Result<Arc<Block>, String> {
        if kind.ends_with("_nothing") { Err(format!("{provider} has no type \"{kind}\".")) } else { Ok(self.0.clone()) }
    }

    fn provider_schema(&self, _: &ProviderSource) -> Result<Arc<Block>, String> {
        Ok(self.0.clone())
    }

    fn provider_meta_schema(&self, provider: &ProviderSource) -> Result<Option<Arc<Block>>, String> {
        Ok((&*provider.name == "thing").then(|| self.0.clone()))
    }

    fn call(&self, provider: &ProviderSource, function: &str, arguments: &[Value]) -> Option<Result<Value, Failure>> {
        let text = format!("{provider} {function} {}", arguments.len());
        (function == "echo").then(|| Ok(Value::string(&text)))
    }
}

/// What an evaluation gave.
#[derive(Debug)]
struct Run {
    /// A line for each object: its address, and what is set in its configuration.
    objects: Vec<String>,
    all: Vec<std::sync::Arc<Object>>,
    waiting: Vec<String>,
    outputs: BTreeMap<String, String>,
    /// The errors and warnings in one line each.
    errors: Vec<String>,
    warnings: Vec<String>,
}

fn run(files: &[(&str, &str)]) -> Run {
    run_with(files, &[], &[])
}

/// Evaluates a configuration. `unplanned` objects are given a wholly unknown value.
fn run_with(files: &[(&str, &str)], variables: &[(&str, &str)], unplanned: &[&str]) -> Run {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let variables: BTreeMap<String, Input> =
        variables.iter().map(|(name, text)| ((*name).to_owned(), Input::Text((*text).to_owned()))).collect();
    let (tree, mut diagnostics) = load(".", &Memory(files), &Manifest::default(), &variables);
    let tree = Arc::new(tree);
    let things = Things::new();
    let mut settings = Settings::new(Arc::new(NoFiles));
    settings.variables = variables;
    let evaluation = Evaluation::new(tree.clone(), Arc::new(things), settings);
    let mut run = Run {
        objects: Vec::new(),
        all: Vec::new(),
        waiting: Vec::new(),
        outputs: BTreeMap::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    loop {
        let advance = evaluation.advance();
        run.waiting.extend(advance.waiting.iter().map(|waiting| {
            let uses: Vec<String> = waiting.uses.iter().map(ToString::to_string).collect();
            format!("{} waits for {}", waiting.address, uses.join(", "))
        }));
        if advance.objects.is_empty() {
            break;
        }
        for object in advance.objects {
            let address = object.address.to_string();
            if !object.failed {
                run.objects.push(format!("{address} {}", text(&object.config)));
                let value = planned(&object.config, unplanned.contains(&address.as_str()));
                evaluation.give(&object.address, &value);
            }
            run.all.push(object);
        }
    }
    assert!(evaluation.awaited().is_empty(), "{:?}", evaluation.awaited());
    diagnostics.extend(evaluation.diagnostics());
    run.outputs = tree
        .root()
        .outputs
        .keys()
        .filter_map(|name| Some((name.to_string(), text(&evaluation.output(name)?))))
        .collect();
    run.errors = diagnostics.errors.iter().map(|error| tree.sources.line(error)).collect();
    run.warnings = diagnostics.warnings.iter().map(|warning| tree.sources.line(warning)).collect();
    run
}

/// The planned value: what is computed is unknown.
fn planned(config: &Value, is_unknown: bool) -> Value {
    if is_unknown {
        return Value::unknown(config.ty().clone());
    }
    let entries = config.as_entries().unwrap().iter().map(|(name, value)| {
        let is_computed = (&**name == "id" || &**name == "ingress") && value.is_null();
        (name.clone(), if is_computed { Value::unknown(value.ty().clone()) } else { value.clone() })
    });
    Value::object(entries)
}

/// A value for people: `?` is unknown, and attributes that are null are left out.
fn text(value: &Value) -> String {
    if value.has_mark(&Mark::Sensitive) {
        return "(sensitive)".to_owned();
    }
    let all = |parts: Vec<String>| parts.join(", ");
    match value.data() {
        Data::Null => "null".to_owned(),
        Data::Unknown(_) => "?".to_owned(),
        Data::Bool(bool) => bool.to_string(),
        Data::Number(number) => number.to_string(),
        Data::String(text) => format!("{text:?}"),
        Data::Items(items) => format!("[{}]", all(items.iter().map(text).collect())),
        Data::Entries(entries) => {
            let is_empty = |value: &Value| value.is_null() || value.as_items().is_some_and(<[_]>::is_empty);
            let set = entries.iter().filter(|(_, value)| !is_empty(value));
            format!("{{{}}}", all(set.map(|(name, value)| format!("{name}: {}", text(value))).collect()))
        }
    }
}

/// What an object depends on, by its address.
fn uses(run: &Run, address: &str) -> Vec<String> {
    let object = run.all.iter().find(|object| object.address.to_string() == address).unwrap();
    object.uses.iter().map(ToString::to_string).collect()
}

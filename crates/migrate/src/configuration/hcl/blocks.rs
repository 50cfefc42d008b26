//! The blocks of a module.

use std::collections::BTreeMap;

use hcl_edit::expr::{Expression, Traversal};
use hcl_edit::structure::{Block, Body};
use serde_json::Value as Json;

use super::values::source;
use crate::configuration::references::reference;
use crate::configuration::{
    Arguments, Condition, DynamicBlock, Lifecycle, Module, ModuleCall, Output, ProviderBlock, Provisioner, Requirement,
    ResourceBlock, Scalar, Source, Variable,
};

/// Where the blocks of a file are collected.
pub struct Place<'a> {
    pub module: &'a mut Module,
    /// The calls of modules, with their sources.
    pub calls: &'a mut Vec<(String, ModuleCall, String)>,
    pub notes: &'a mut Vec<String>,
}

/// Arguments of a resource that are not those of its type.
const META: &[&str] = &["count", "for_each", "provider", "depends_on", "lifecycle", "provisioner", "connection"];

/// The settings of `lifecycle` with a counterpart.
const LIFECYCLE: &[&str] = &[
    "create_before_destroy",
    "prevent_destroy",
    "destroy",
    "enabled",
    "ignore_changes",
    "replace_triggered_by",
    "precondition",
    "postcondition",
];

impl Place<'_> {
    /// # Errors
    /// The block has not the labels of its kind.
    pub fn add(&mut self, block: &Block) -> Result<(), String> {
        let (labels, body) = (labels(block), &block.body);
        let name = || labels.first().map(|name| (*name).to_owned()).ok_or_else(|| "a block has no name".to_owned());
        match block.ident.as_str() {
            kind @ ("resource" | "data") => {
                let [type_name, name] = labels[..] else { return Err(format!("a block `{kind}` needs two labels")) };
                let key = (kind == "data", type_name.to_owned(), name.to_owned());
                self.module.resources.insert(key, resource(body));
            }
            "module" => {
                let mut arguments =
                    arguments(body, &["source", "version", "providers", "count", "for_each", "depends_on"]);
                arguments.remove("lifecycle");
                let call = ModuleCall {
                    arguments,
                    count: attribute(body, "count"),
                    for_each: attribute(body, "for_each"),
                    depends_on: addresses(body, "depends_on"),
                    module: Module::default(),
                };
                let from = attribute(body, "source").and_then(|source| source.constant());
                let from = from.as_ref().and_then(Json::as_str).ok_or("the source of a module is not a constant")?;
                self.calls.push((name()?, call, from.to_owned()));
            }
            "variable" => {
                self.note_conditions(block, "validation");
                drop(self.module.variables.insert(name()?, variable(body)));
            }
            "output" => {
                self.note_conditions(block, "precondition");
                let value = attribute(body, "value").unwrap_or(Source::Constant(Json::Null));
                drop(self.module.outputs.insert(name()?, Output { value, sensitive: is_true(body, "sensitive") }));
            }
            "locals" => {
                let locals = body.attributes().map(|one| (one.key.as_str().to_owned(), source(&one.value)));
                self.module.locals.extend(locals);
            }
            "provider" => {
                let text = |name: &str| Some(attribute(body, name)?.constant()?.as_str()?.to_owned());
                let (alias, version) = (text("alias"), text("version"));
                let arguments = arguments(body, &["alias", "version"]);
                self.module.providers.push(ProviderBlock { name: name()?, alias, version, arguments });
            }
            "terraform" => {
                for one in body.get_blocks("required_providers") {
                    self.module.required.extend(requirements(&one.body));
                }
                body.get_blocks("provider_meta").for_each(|one| self.skip(one));
            }
            "moved" => {
                let address = |field: &str| address(&body.get_attribute(field)?.value);
                if let (Some(from), Some(to)) = (address("from"), address("to")) {
                    self.module.moved.push((from, to));
                }
            }
            // They have no effect on what exists, because they are already applied.
            "import" | "removed" => {}
            _ => self.skip(block),
        }
        Ok(())
    }

    fn skip(&mut self, block: &Block) {
        let block = format!("{} {}", block.ident.as_str(), labels(block).join("."));
        self.note(format!("`{}` is skipped: Purlin has no such block", block.trim_end()));
    }

    /// Notes the conditions of a variable or an output.
    fn note_conditions(&mut self, block: &Block, kind: &str) {
        if block.body.has_blocks(kind) {
            let what = format!("the conditions of the {} `{}`", block.ident.as_str(), labels(block).join("."));
            self.note(format!("{what} are left out: Purlin has only those of Resources"));
        }
    }

    /// A module can be called several times.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn labels(block: &Block) -> Vec<&str> {
    block.labels.iter().map(hcl_edit::structure::BlockLabel::as_str).collect()
}

fn resource(body: &Body) -> ResourceBlock {
    ResourceBlock {
        arguments: arguments(body, META),
        count: attribute(body, "count"),
        for_each: attribute(body, "for_each"),
        depends_on: addresses(body, "depends_on"),
        lifecycle: body.get_blocks("lifecycle").last().map(|block| lifecycle(&block.body)).unwrap_or_default(),
        has_lifecycle: true,
        provisioners: body.get_blocks("provisioner").map(provisioner).collect(),
    }
}

fn lifecycle(body: &Body) -> Lifecycle {
    let attributes = body.attributes().map(|one| one.key.as_str());
    let settings = attributes.chain(body.blocks().map(|one| one.ident.as_str()));
    Lifecycle {
        create_before_destroy: is_true(body, "create_before_destroy"),
        prevent_destroy: boolean(body, "prevent_destroy"),
        destroy: body.get_attribute("destroy").map(|_| is_true(body, "destroy")),
        enabled: boolean(body, "enabled"),
        ignore_changes: addresses(body, "ignore_changes"),
        replace_triggered_by: list(body, "replace_triggered_by"),
        preconditions: body.get_blocks("precondition").map(|one| condition(&one.body)).collect(),
        postconditions: body.get_blocks("postcondition").map(|one| condition(&one.body)).collect(),
        others: settings.filter(|name| !LIFECYCLE.contains(name)).map(str::to_owned).collect(),
    }
}

fn condition(body: &Body) -> Condition {
    let part = |name: &str| attribute(body, name).unwrap_or(Source::Constant(Json::Null));
    Condition { condition: part("condition"), message: part("error_message") }
}

fn provisioner(block: &Block) -> Provisioner {
    let word = |name: &str| block.body.get_attribute(name).and_then(|one| address(&one.value));
    Provisioner {
        kind: block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default(),
        before_destroy: word("when").as_deref() == Some("destroy"),
        continues: word("on_failure").as_deref() == Some("continue"),
        arguments: arguments(&block.body, &["when", "on_failure", "connection"]),
    }
}

/// The arguments of a block, without these.
fn arguments(body: &Body, without: &[&str]) -> Arguments {
    let mut found: Arguments = body.attributes().map(|one| (one.key.as_str().into(), source(&one.value))).collect();
    let mut blocks: BTreeMap<&str, Vec<Source>> = BTreeMap::new();
    for block in body.blocks() {
        match (block.ident.as_str(), block.labels.first()) {
            ("dynamic", Some(label)) => blocks.entry(label.as_str()).or_default().push(dynamic(label.as_str(), block)),
            (name, _) => blocks.entry(name).or_default().push(Source::Object(arguments(&block.body, &[]))),
        }
    }
    found.extend(blocks.into_iter().map(|(name, all)| (name.into(), Source::List(all))));
    found.retain(|name, _| !without.contains(&&**name));
    found
}

fn dynamic(name: &str, block: &Block) -> Source {
    let iterator = block.body.get_attribute("iterator").and_then(|one| address(&one.value));
    let content = block.body.get_blocks("content").next();
    Source::Dynamic(Box::new(DynamicBlock {
        for_each: attribute(&block.body, "for_each").unwrap_or(Source::Constant(Json::Null)),
        iterator: iterator.unwrap_or_else(|| name.to_owned()),
        content: content.map(|content| arguments(&content.body, &[])).unwrap_or_default(),
    }))
}

fn variable(body: &Body) -> Variable {
    let kind = body.get_attribute("type").and_then(|one| address(&one.value));
    let kind = kind.and_then(|kind| match kind.as_str() {
        "string" => Some(Scalar::String),
        "number" => Some(Scalar::Number),
        "bool" => Some(Scalar::Bool),
        _ => None,
    });
    let default = attribute(body, "default").and_then(|default| default.constant());
    Variable { default, sensitive: is_true(body, "sensitive"), kind }
}

fn requirements(body: &Body) -> Vec<(String, Requirement)> {
    let one = |attribute: &hcl_edit::structure::Attribute| {
        let value = source(&attribute.value).constant().unwrap_or_default();
        let text = |value: &Json| value.as_str().map(str::to_owned);
        // Before Terraform 0.13, it was only the version.
        let (source, version) = (text(&value["source"]), text(&value["version"]).or_else(|| text(&value)));
        (attribute.key.as_str().to_owned(), Requirement { source, version })
    };
    body.attributes().map(one).collect()
}

fn attribute(body: &Body, name: &str) -> Option<Source> {
    body.get_attribute(name).map(|one| source(&one.value))
}

fn list(body: &Body, name: &str) -> Vec<Expression> {
    match body.get_attribute(name).map(|one| &one.value) {
        Some(Expression::Array(items)) => items.iter().cloned().collect(),
        Some(other) => vec![other.clone()],
        None => Vec::new(),
    }
}

fn addresses(body: &Body, name: &str) -> Vec<String> {
    list(body, name).iter().filter_map(address).collect()
}

/// A boolean, which can be written as a string.
fn boolean(body: &Body, name: &str) -> Option<Source> {
    let value = attribute(body, name)?;
    Some(match value.constant().as_ref().and_then(Json::as_str) {
        Some(text @ ("true" | "false")) => Source::Constant(Json::from(text == "true")),
        _ => value,
    })
}

fn is_true(body: &Body, name: &str) -> bool {
    boolean(body, name).and_then(|one| one.constant()) == Some(Json::Bool(true))
}

/// The text of a name or a reference.
fn address(expression: &Expression) -> Option<String> {
    match expression {
        Expression::Variable(name) => Some(name.as_str().to_owned()),
        Expression::String(text) => Some(text.as_str().to_owned()),
        Expression::Traversal(traversal) => {
            let traversal: &Traversal = traversal;
            let Expression::Variable(root) = &traversal.expr else { return None };
            Some(reference(root.as_str(), traversal))
        }
        _ => None,
    }
}

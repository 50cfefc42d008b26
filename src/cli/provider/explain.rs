//! `purlin explain-type TYPE[.ATTRIBUTE...]`: what a type takes and gives, told as `kubectl explain` tells it.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{json_schema, named, schema};
use crate::cli::args::{ExplainTypeArgs, TypeFormat};
use crate::cli::failure::{Exit, Failure};
use crate::cli::json;
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cty::Type;
use crate::install::{Installed, Installer};
use crate::load::{BUILT_IN, ProviderSpec};
use crate::model::Provider;
use crate::plugin::schema::{Attribute, Block, NestedBlock, Nesting, ProviderSchema, Schema};

/// How wide text is.
const WIDTH: usize = 100;

/// One attribute or block of a type, as it is told.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name.
    pub name: String,
    /// The words of its type.
    pub kind: String,
    /// The configuration must have it.
    pub required: bool,
    /// The configuration may have it.
    pub settable: bool,
    /// What else there is to know: `sensitive`, `write-only`, `deprecated`.
    pub marks: Vec<&'static str>,
    /// For people.
    pub description: String,
    /// What is in it.
    pub fields: Vec<Field>,
}

/// Runs `purlin explain-type`.
pub async fn run(args: ExplainTypeArgs, console: Console) -> anyhow::Result<Exit> {
    let mut steps = args.type_name.split('.');
    let type_name = steps.next().unwrap_or_default();
    if BUILT_IN.contains(&type_name) {
        let hint = format!("docs/types/{type_name}.md describes it");
        return Err(Failure::hinted(format!("`{type_name}` is built in"), hint));
    }
    let files = Files::new(args.files, None);
    let provider = provider_of(&files, type_name)?;
    let (installed, told) = schema(&Installer::new(local::installing(&files)), &provider).await?;
    let (kind, found) =
        lookup(&told, type_name, args.data)?.ok_or_else(|| unknown(&provider, &told, type_name, args.data))?;
    if args.output == TypeFormat::JsonSchema {
        let document = json_schema::document(type_name, &found.block);
        console.result(|out| json::line(out, &document))?;
        return Ok(Exit::Success);
    }
    let head = head(kind, type_name, &installed);
    let (description, fields) = (found.block.description.clone(), fields(&found.block));
    let mut level = Level { path: type_name.to_owned(), field: None, description, fields };
    for step in steps {
        level = level.into(step)?;
    }
    let text = format!("{head}{level}", level = level.text());
    console.result(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

/// The provider that the files name for a type. Without files it is the one that a document with nothing but the name
/// would stand for.
fn provider_of(files: &Files, type_name: &str) -> anyhow::Result<Arc<Provider>> {
    let prefix = type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix);
    let found = named(files)?.into_iter().find(|provider| *provider.name == *prefix);
    found.map_or_else(|| bare(prefix), Ok)
}

fn bare(name: &str) -> anyhow::Result<Arc<Provider>> {
    let ProviderSpec { provider, problems, .. } = ProviderSpec::named(name);
    if !problems.is_empty() {
        let hint = "types are named like their provider: `random_pet` is of the provider `random`";
        return Err(Failure::hinted(format!("`{name}` is no name of a provider"), hint));
    }
    Ok(provider)
}

fn lookup(told: &ProviderSchema, type_name: &str, data: bool) -> anyhow::Result<Option<(&'static str, Schema)>> {
    let resource = if data { None } else { told.resource(type_name)?.map(|schema| ("TYPE", schema)) };
    Ok(match resource {
        Some(found) => Some(found),
        None => told.data_source(type_name)?.map(|schema| ("DATA SOURCE", schema)),
    })
}

fn unknown(provider: &Provider, told: &ProviderSchema, type_name: &str, data: bool) -> anyhow::Error {
    let names: Vec<&str> = if data { told.data_source_types().collect() } else { told.resource_types().collect() };
    let what = if data { "data source" } else { "type" };
    let hint = format!("it has {}", names.join(", "));
    Failure::hinted(format!("the provider `{}` has no {what} `{type_name}`", provider.name), hint)
}

fn head(kind: &str, type_name: &str, installed: &Installed) -> String {
    let version = installed.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    format!("{:<14}{type_name}\n{:<14}{}{version}\n\n", format!("{kind}:"), "PROVIDER:", installed.source)
}

/// Where in a type we are.
struct Level {
    path: String,
    /// The line of the field; none at the top.
    field: Option<String>,
    description: String,
    fields: Vec<Field>,
}

impl Level {
    fn into(self, step: &str) -> anyhow::Result<Self> {
        let names: Vec<String> = self.fields.iter().map(|field| field.name.clone()).collect();
        let found = self.fields.into_iter().find(|field| field.name == step).ok_or_else(|| {
            let hint =
                if names.is_empty() { "nothing is in it".into() } else { format!("it has {}", names.join(", ")) };
            Failure::hinted(format!("`{}` has no attribute `{step}`", self.path), hint)
        })?;
        let path = format!("{}.{step}", self.path);
        Ok(Self { path, field: Some(line(&found)), description: found.description, fields: found.fields })
    }

    fn text(&self) -> String {
        let mut text = self.field.as_ref().map_or_else(String::new, |field| format!("{:<14}{field}\n\n", "FIELD:"));
        if !self.description.trim().is_empty() {
            text.push_str("DESCRIPTION:\n");
            text.push_str(&wrapped(&self.description, 4));
            text.push('\n');
        }
        for (title, settable) in [("ARGUMENTS:\n", true), ("SET BY THE PROVIDER:\n", false)] {
            let fields: Vec<&Field> = self.fields.iter().filter(|field| field.settable == settable).collect();
            if fields.is_empty() {
                continue;
            }
            text.push_str(title);
            for field in fields {
                // Nobody writes text of a size that a string could not take.
                let _ = writeln!(text, "  {}", line(field));
                text.push_str(&wrapped(&field.description, 4));
                text.push('\n');
            }
        }
        text
    }
}

/// `length  <number> -required-`, as `kubectl explain` has it.
fn line(field: &Field) -> String {
    let required = if field.required { " -required-" } else { "" };
    let marks = if field.marks.is_empty() { String::new() } else { format!(" ({})", field.marks.join(", ")) };
    format!("{}  <{}>{required}{marks}", field.name, field.kind)
}

/// Text in lines of a bearable length, indented; paragraphs stay apart.
fn wrapped(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut out = String::new();
    for paragraph in text.trim().lines() {
        let mut length = 0;
        for word in paragraph.split_whitespace() {
            let size = word.chars().count();
            if length > 0 && indent + length + 1 + size > WIDTH {
                out.push('\n');
                length = 0;
            }
            out.push_str(if length == 0 { &margin } else { " " });
            out.push_str(word);
            length += size + usize::from(length > 0);
        }
        out.push('\n');
    }
    if text.trim().is_empty() { String::new() } else { out }
}

/// What is in a block: what must be set first, then what can be, then the rest, each in order of names.
pub(super) fn fields(block: &Block) -> Vec<Field> {
    let attributes = block.attributes.iter().map(attribute);
    sorted(attributes.chain(block.blocks.iter().map(nested_block)).collect())
}

fn sorted(mut fields: Vec<Field>) -> Vec<Field> {
    fields.sort_by(|a, b| (!a.required, !a.settable, &a.name).cmp(&(!b.required, !b.settable, &b.name)));
    fields
}

fn attribute(of: &Attribute) -> Field {
    let (kind, fields) = match &of.nested {
        Some(nested) => {
            let fields = sorted(nested.attributes.iter().map(attribute).collect());
            (nesting("object", nested.nesting), fields)
        }
        None => match Type::from_json(&of.r#type) {
            Ok(ty) => (ty.to_string(), inside(&ty)),
            Err(_) => ("unknown".to_owned(), Vec::new()),
        },
    };
    let marks = [("sensitive", of.sensitive), ("write-only", of.write_only), ("deprecated", of.deprecated)];
    let description = match of.deprecation_message.as_str() {
        "" => of.description.clone(),
        message => format!("{}\nDeprecated: {message}", of.description),
    };
    Field {
        name: of.name.clone(),
        kind,
        required: of.required,
        settable: of.required || of.optional,
        marks: marks.into_iter().filter(|(_, is_set)| *is_set).map(|(mark, _)| mark).collect(),
        description,
        fields,
    }
}

/// The attributes of objects in a type; nobody describes them.
fn inside(ty: &Type) -> Vec<Field> {
    match ty {
        Type::List(element) | Type::Set(element) | Type::Map(element) => inside(element),
        Type::Object(attributes) => {
            let field = |(name, ty): (&Arc<str>, &Type)| Field {
                name: name.to_string(),
                kind: ty.to_string(),
                required: false,
                settable: true,
                marks: Vec::new(),
                description: String::new(),
                fields: inside(ty),
            };
            attributes.iter().map(field).collect()
        }
        _ => Vec::new(),
    }
}

fn nested_block(of: &NestedBlock) -> Field {
    let most = if of.max_items > 0 { format!(", at most {}", of.max_items) } else { String::new() };
    Field {
        name: of.name.clone(),
        kind: nesting("block", of.nesting) + &most,
        required: of.min_items > 0,
        settable: true,
        marks: if of.block.deprecated { vec!["deprecated"] } else { Vec::new() },
        description: of.block.description.clone(),
        fields: fields(&of.block),
    }
}

fn nesting(what: &str, how: Nesting) -> String {
    match how {
        Nesting::Single | Nesting::Group => what.to_owned(),
        Nesting::List => format!("list of {what}s"),
        Nesting::Set => format!("set of {what}s"),
        Nesting::Map => format!("map of {what}s"),
    }
}

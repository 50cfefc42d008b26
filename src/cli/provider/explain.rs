//! `purlin explain-type TYPE[.ATTRIBUTE...]`: describes a type in the form of `kubectl explain`.

use std::fmt::Write as _;
use std::str::Split;
use std::sync::Arc;

use super::text::wrap;
use super::{built_in, json_schema, required_providers, schemas};
use crate::cli::args::{ExplainTypeArgs, TypeFormat};
use crate::cli::failure::{Exit, Failure};
use crate::cli::json;
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use cty::Type;
use engine::load::{BUILT_IN, ProviderSpec};
use model::Provider;
use tfprovider::install::Installer;
use tfprovider::plugin::ProviderSchema;
use tfprovider::schema::{Attribute, Block, NestedBlock, Nesting, Schema, Shape};

/// The description of an attribute or block of a type.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub kind: String,
    /// Must be set in the configuration.
    pub required: bool,
    /// Can be set in the configuration.
    pub settable: bool,
    /// `sensitive`, `write-only`, `deprecated`.
    pub marks: Vec<&'static str>,
    pub description: String,
    /// Nested attributes and blocks.
    pub fields: Vec<Field>,
}

pub async fn run(args: ExplainTypeArgs, console: Console) -> anyhow::Result<Exit> {
    let mut steps = args.type_name.split('.');
    let type_name = steps.next().unwrap_or_default();
    if BUILT_IN.contains(&type_name) {
        return built_in_type(type_name, steps, &args, console);
    }
    let files = Files::new(args.files, None);
    let provider = provider_for(&files, type_name)?;
    let (installed, schemas) = schemas(&Installer::new(local::install_options(&files)?), &provider).await?;
    let schema = schemas.provider;
    let (kind, found) =
        lookup(&schema, type_name, args.data)?.ok_or_else(|| unknown(&provider, &schema, type_name, args.data))?;
    if args.output == TypeFormat::JsonSchema {
        let document = json_schema::document(type_name, &found.block);
        console.result(|out| json::write_line(out, &document))?;
        return Ok(Exit::Success);
    }
    let version = installed.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let head = head(kind, type_name, &format!("{}{version}", installed.source));
    console.lines(format_args!("{head}{}", Level::of(type_name, &found.block).descend_all(steps)?.text()))?;
    Ok(Exit::Success)
}

/// A built-in type is described by its page, its attributes and the data source by the schema.
fn built_in_type(
    type_name: &str,
    steps: Split<'_, char>,
    args: &ExplainTypeArgs,
    console: Console,
) -> anyhow::Result<Exit> {
    let Some(block) = built_in::block(type_name, args.data) else {
        let hint = format!("`purlin explain-type {type_name}` describes the resource type");
        return Err(Failure::hinted(format!("`{type_name}` has no data source"), hint));
    };
    if args.output == TypeFormat::JsonSchema {
        console.result(|out| json::write_line(out, &json_schema::document(type_name, &block)))?;
        return Ok(Exit::Success);
    }
    let level = Level::of(type_name, &block).descend_all(steps)?;
    let page = built_in::page(type_name).filter(|_| level.field.is_none() && !args.data);
    let head = head(if args.data { "DATA SOURCE" } else { "TYPE" }, type_name, "built in");
    let text = format!("{head}{}", page.unwrap_or_else(|| level.text()));
    console.lines(format_args!("{text}"))?;
    Ok(Exit::Success)
}

/// Returns the provider of a type from the manifests, or the one that a Provider manifest with only a name would
/// define.
fn provider_for(files: &Files, type_name: &str) -> anyhow::Result<Arc<Provider>> {
    let prefix = type_name.split_once('_').map_or(type_name, |(prefix, _)| prefix);
    let provider = required_providers(files)?.into_iter().find(|provider| *provider.name == *prefix);
    provider.map_or_else(|| default_provider(prefix), Ok)
}

fn default_provider(name: &str) -> anyhow::Result<Arc<Provider>> {
    let ProviderSpec { provider, problems, .. } = ProviderSpec::named(name);
    if !problems.is_empty() {
        let hint = "type names start with the provider name: `random_pet` belongs to the provider `random`";
        return Err(Failure::hinted(format!("`{name}` is not a valid provider name"), hint));
    }
    Ok(provider)
}

fn lookup(schema: &ProviderSchema, type_name: &str, data: bool) -> anyhow::Result<Option<(&'static str, Schema)>> {
    let resource = if data { None } else { schema.resource(type_name)?.map(|schema| ("TYPE", schema)) };
    Ok(match resource {
        Some(found) => Some(found),
        None => schema.data_source(type_name)?.map(|schema| ("DATA SOURCE", schema)),
    })
}

fn unknown(provider: &Provider, schema: &ProviderSchema, type_name: &str, data: bool) -> anyhow::Error {
    let names: Vec<&str> = if data { schema.data_source_types().collect() } else { schema.resource_types().collect() };
    let what = if data { "data source" } else { "type" };
    let hint = format!("available: {}", names.join(", "));
    Failure::hinted(format!("the provider `{}` has no {what} `{type_name}`", provider.name), hint)
}

fn head(kind: &str, type_name: &str, provider: &str) -> String {
    format!("{:<14}{type_name}\n{:<14}{provider}\n\n", format!("{kind}:"), "PROVIDER:")
}

/// A position in a type.
struct Level {
    path: String,
    /// The line of the field; `None` at the top level.
    field: Option<String>,
    description: String,
    fields: Vec<Field>,
}

impl Level {
    fn of(type_name: &str, block: &Block) -> Self {
        let description = block.description.to_string();
        Self { path: type_name.to_owned(), field: None, description, fields: fields(block) }
    }

    fn descend_all(self, mut steps: Split<'_, char>) -> anyhow::Result<Self> {
        steps.try_fold(self, Self::descend)
    }

    fn descend(self, step: &str) -> anyhow::Result<Self> {
        let names: Vec<String> = self.fields.iter().map(|field| field.name.clone()).collect();
        let field = self.fields.into_iter().find(|field| field.name == step).ok_or_else(|| {
            let hint = if names.is_empty() { "it has none".into() } else { format!("available: {}", names.join(", ")) };
            Failure::hinted(format!("`{}` has no attribute `{step}`", self.path), hint)
        })?;
        let path = format!("{}.{step}", self.path);
        Ok(Self { path, field: Some(field_line(&field)), description: field.description, fields: field.fields })
    }

    fn text(&self) -> String {
        let mut text = self.field.as_ref().map_or_else(String::new, |field| format!("{:<14}{field}\n\n", "FIELD:"));
        if !self.description.trim().is_empty() {
            text.push_str("DESCRIPTION:\n");
            text.push_str(&wrap(&self.description, 4));
            text.push('\n');
        }
        for (title, settable) in [("ARGUMENTS:\n", true), ("SET BY THE PROVIDER:\n", false)] {
            let fields: Vec<&Field> = self.fields.iter().filter(|field| field.settable == settable).collect();
            if fields.is_empty() {
                continue;
            }
            text.push_str(title);
            for field in fields {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  {}", field_line(field));
                text.push_str(&wrap(&field.description, 4));
                text.push('\n');
            }
        }
        text
    }
}

/// `length  <number> -required-`, as `kubectl explain` prints it.
fn field_line(field: &Field) -> String {
    let required = if field.required { " -required-" } else { "" };
    let marks = if field.marks.is_empty() { String::new() } else { format!(" ({})", field.marks.join(", ")) };
    format!("{}  <{}>{required}{marks}", field.name, field.kind)
}

/// The fields of a block: first the required, then the optional, then the computed ones, each sorted by name.
pub fn fields(block: &Block) -> Vec<Field> {
    let attributes = block.attributes().iter().map(attribute);
    sorted(attributes.chain(block.blocks().iter().map(nested_block)).collect())
}

fn sorted(mut fields: Vec<Field>) -> Vec<Field> {
    fields.sort_by(|a, b| (!a.required, !a.settable, &a.name).cmp(&(!b.required, !b.settable, &b.name)));
    fields
}

fn attribute((name, of): (&Arc<str>, &Attribute)) -> Field {
    let (kind, fields) = match &of.shape {
        Shape::Nested(nested) => {
            let fields = sorted(nested.attributes().iter().map(attribute).collect());
            (nesting("object", nested.nesting), fields)
        }
        Shape::Plain(ty) => (ty.to_string(), nested_fields(ty)),
    };
    let marks = [("sensitive", of.sensitive), ("write-only", of.write_only), ("deprecated", of.deprecated.is_some())];
    let description = match of.deprecated.as_deref() {
        None | Some("") => of.description.to_string(),
        Some(message) => format!("{}\nDeprecated: {message}", of.description),
    };
    Field {
        name: name.to_string(),
        kind,
        required: of.required,
        settable: of.required || of.optional,
        marks: marks.into_iter().filter(|(_, is_set)| *is_set).map(|(mark, _)| mark).collect(),
        description,
        fields,
    }
}

/// The attributes of objects in a type. They have no descriptions.
fn nested_fields(ty: &Type) -> Vec<Field> {
    match ty {
        Type::List(element) | Type::Set(element) | Type::Map(element) => nested_fields(element),
        Type::Object(object) => {
            let fields = object.attributes.iter().map(|(name, ty)| Field {
                name: name.to_string(),
                kind: ty.to_string(),
                required: false,
                settable: true,
                marks: Vec::new(),
                description: String::new(),
                fields: nested_fields(ty),
            });
            fields.collect()
        }
        _ => Vec::new(),
    }
}

fn nested_block((name, of): (&Arc<str>, &NestedBlock)) -> Field {
    let most = if of.max_items > 0 { format!(", at most {}", of.max_items) } else { String::new() };
    Field {
        name: name.to_string(),
        kind: nesting("block", of.nesting) + &most,
        required: of.min_items > 0,
        settable: true,
        marks: if of.block.deprecated.is_some() { vec!["deprecated"] } else { Vec::new() },
        description: of.block.description.to_string(),
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

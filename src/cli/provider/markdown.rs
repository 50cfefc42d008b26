//! `purlin provider docs`: a Markdown page for each type of a provider, with an example manifest.

use std::fmt::Write as _;

use super::explain::{Field, fields};
use model::Provider;
use tfprovider::install::InstalledProvider;
use tfprovider::plugin::{InvalidSchema, ProviderSchema};
use tfprovider::schema::Block;

pub struct Page {
    /// The path of its file.
    pub name: String,
    pub text: String,
}

/// The pages of a provider: the overview, and one for each type and data source.
pub fn pages(
    provider: &Provider,
    installed: &InstalledProvider,
    schema: &ProviderSchema,
) -> Result<Vec<Page>, InvalidSchema> {
    let mut pages = vec![overview(provider, installed, schema)?];
    for name in schema.resource_types() {
        if let Some(found) = schema.resource(name)? {
            pages.push(page("types", name, &manifest(name, &found.block), &found.block));
        }
    }
    for name in schema.data_source_types() {
        if let Some(found) = schema.data_source(name)? {
            pages.push(page("data-sources", name, "", &found.block));
        }
    }
    Ok(pages)
}

fn overview(
    provider: &Provider,
    installed: &InstalledProvider,
    schema: &ProviderSchema,
) -> Result<Page, InvalidSchema> {
    let version = installed.version.as_ref().map_or_else(String::new, |version| format!(", version {version}"));
    let mut text = format!("# {}\n\nThe provider `{}`{version}.\n", provider.name, installed.source);
    text.push_str(&links("Types", "types", &mut schema.resource_types()));
    text.push_str(&links("Data sources", "data-sources", &mut schema.data_source_types()));
    let provider_fields = fields(&schema.provider()?.block);
    section(&mut text, "Provider configuration", &provider_fields, |_| true);
    Ok(Page { name: "index.md".to_owned(), text })
}

fn links(title: &str, directory: &str, names: &mut dyn Iterator<Item = &str>) -> String {
    let lines: String = names.map(|name| format!("- [{name}]({directory}/{name}.md)\n")).collect();
    if lines.is_empty() { lines } else { format!("\n## {title}\n\n{lines}") }
}

fn page(directory: &str, name: &str, manifest: &str, block: &Block) -> Page {
    let mut text = format!("# {name}\n\n");
    if !block.description.is_empty() {
        text.push_str(block.description.trim());
        text.push_str("\n\n");
    }
    text.push_str(manifest);
    let fields = fields(block);
    section(&mut text, "Arguments", &fields, |field| field.settable);
    section(&mut text, "Set by the provider", &fields, |field| !field.settable);
    Page { name: format!("{directory}/{name}.md"), text }
}

/// A manifest with the required arguments.
fn manifest(name: &str, block: &Block) -> String {
    let required: Vec<Field> = fields(block).into_iter().filter(|field| field.required).collect();
    let lines: String = required.iter().map(|field| format!("    {}: # {}\n", field.name, field.kind)).collect();
    let config = if lines.is_empty() { "  config: {}\n".to_owned() } else { format!("  config:\n{lines}") };
    let short = name.split_once('_').map_or(name, |(_, rest)| rest).replace('_', "-");
    let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:";
    format!("```yaml\n{head} {{ name: my-{short} }}\nspec:\n  type: {name}\n{config}```\n")
}

fn section(text: &mut String, title: &str, fields: &[Field], is_included: impl Fn(&Field) -> bool) {
    let fields: Vec<&Field> = fields.iter().filter(|field| is_included(field)).collect();
    if fields.is_empty() {
        return;
    }
    let _ = write!(text, "\n## {title}\n\n");
    fields.into_iter().for_each(|field| item(text, field, 0));
}

fn item(text: &mut String, field: &Field, depth: usize) {
    let margin = "  ".repeat(depth);
    let required = field.required.then_some("required");
    let words: Vec<&str> = required.into_iter().chain(field.marks.iter().copied()).collect();
    let words = if words.is_empty() { String::new() } else { format!(", {}", words.join(", ")) };
    let description = field.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let description = if description.is_empty() { description } else { format!(": {description}") };
    let _ = writeln!(text, "{margin}- `{}` ({}{words}){description}", field.name, field.kind);
    field.fields.iter().for_each(|field| item(text, field, depth + 1));
}

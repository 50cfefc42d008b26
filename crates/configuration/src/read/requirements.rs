//! `terraform` and `provider` blocks.

use std::sync::Arc;

use hcl::{Attribute, Diagnostic, Expr, ExprKind, Range, Schema, Step};
use version::VersionConstraint;

use super::Reader;
use crate::LANGUAGE_VERSION;
use crate::layers::Block;
use crate::module::{ProviderBlock, ProviderReference};
use crate::providers::{LocalProvider, ProviderSource, RequiredProvider};

/// The summary of the error of a module that is for another version.
const UNSUPPORTED: &str = "Incompatible module";

/// The edition of the language.
const EDITION: &str = "tofu2024";

impl Reader {
    pub fn terraform(&mut self, block: Block) {
        let blocks: [(&str, &[&str]); 5] = [
            ("backend", &["type"]),
            ("cloud", &[]),
            ("encryption", &[]),
            ("required_providers", &[]),
            ("provider_meta", &["provider"]),
        ];
        let schema = Schema::new(&["required_version", "experiments", "language"], &blocks);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        // As upstream: in other files, it is a version of Terraform.
        let required = content.take("required_version");
        if let Some(attribute) = required.filter(|own| self.tofu_files.contains(&own.range.file)) {
            self.required_version(attribute);
        }
        for block in content.blocks {
            match block.kind.text.as_str() {
                "required_providers" => {
                    if let Some(first) = self.required_providers.replace(block.range) {
                        let detail = "A module has one `required_providers` block.";
                        let hint = "move its providers to the other block";
                        let range = first.max(block.range);
                        self.diagnostics.hinted("Duplicate required providers configuration", detail, hint, range);
                    }
                    let attributes = block.body.attributes(&mut self.diagnostics);
                    attributes.into_iter().for_each(|attribute| self.required_provider(&attribute));
                }
                "provider_meta" => {
                    let name = self.provider_name(&block.labels[0]);
                    let values = block.body.base.attributes.iter().map(|attribute| &attribute.value);
                    for reference in values.flat_map(hcl::Expr::references) {
                        let detail = "The values of `provider_meta` are constant.";
                        self.diagnostics.error("Variables not allowed", detail, reference.range);
                    }
                    let what = format!("provider_meta \"{name}\"");
                    let meta = (block.body, block.range);
                    Self::declare(
                        &mut self.diagnostics,
                        &mut self.module.provider_metas,
                        name,
                        meta,
                        |own| own.1,
                        &what,
                    );
                }
                kind => {
                    let detail = format!("State is kept in records, so the `{kind}` block means nothing here.");
                    if ["backend", "cloud"].contains(&kind) {
                        let hint = "`purlin migrate` takes the objects of its state over";
                        self.diagnostics
                            .warnings
                            .push(Diagnostic::new("Block is ignored", detail, block.range).hint(hint));
                    } else {
                        self.diagnostics.warning("Block is ignored", detail, block.range);
                    }
                }
            }
        }
    }

    /// What a module says about versions of the language, of which there is one.
    pub(super) fn language(&mut self, block: Block) {
        let schema = Schema::new(&["edition", "experiments"], &[("compatible_with", &[])]);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        if let Some(edition) = content.take("edition").filter(|own| own.value.keyword() != Some(EDITION)) {
            let summary = match edition.value.keyword() {
                Some(_) => "Unsupported language edition",
                None => "Invalid language edition",
            };
            let detail = format!("The only edition is `{EDITION}`, and it is written without quotes.");
            self.diagnostics.error(summary, detail, edition.value.range);
        }
        let experiments = content.take("experiments");
        for one in experiments.iter().filter_map(|own| own.value.as_list()).flatten() {
            self.diagnostics.error("Unknown experiment keyword", "There are no experiments.", one.range);
        }
        for compatible in content.blocks {
            // Other arguments are those of other programs.
            if let Some(attribute) = compatible.body.base.attribute("opentofu") {
                self.required_version(attribute.clone());
            }
        }
    }

    /// Checks that the module is for this version of the language.
    fn required_version(&mut self, attribute: Attribute) {
        let range = attribute.value.range;
        let versions = self.versions(attribute);
        let constraint: Option<VersionConstraint> = versions.as_ref().and_then(|text| text.parse().ok());
        if let Some(text) = versions.filter(|_| constraint.is_some_and(|own| !own.allows(&LANGUAGE_VERSION))) {
            let detail = format!(
                "The module requires a version \"{text}\" of OpenTofu. Purlin has the language of OpenTofu {LANGUAGE_VERSION}."
            );
            let hint = format!("if the module works with {LANGUAGE_VERSION}, write a constraint that includes it");
            self.unsupported_version = Some(Diagnostic::new(UNSUPPORTED, detail, range).hint(hint));
        }
    }

    fn required_provider(&mut self, attribute: &Attribute) {
        const INVALID: &str = "Invalid required_providers object";
        let name = self.provider_name(&attribute.name);
        let (mut source, mut version, mut aliases) = (None, None, Vec::new());
        if attribute.value.as_text().is_some() {
            version = self.versions(attribute.clone());
        } else if let Some(items) = attribute.value.as_object() {
            for item in items {
                let argument = Attribute { value: item.value.clone(), ..attribute.clone() };
                match item.key.word().or_else(|| item.key.expr.as_text()) {
                    Some("source") => source = self.provider_source(argument),
                    Some("version") => version = self.versions(argument),
                    Some("configuration_aliases") => aliases = self.aliases(&item.value, &name),
                    _ => {
                        let detail = "Only `source`, `version` and `configuration_aliases` are possible here.";
                        self.diagnostics.error(INVALID, detail, item.key.expr.range);
                    }
                }
            }
        } else {
            let detail = "A required provider is an object with `source` and `version`.";
            self.diagnostics.error(INVALID, detail, attribute.value.range);
        }
        let source = source.unwrap_or_else(|| ProviderSource::implied(&name));
        let required = RequiredProvider { source, version, aliases, range: attribute.name.range };
        let what = format!("required provider \"{name}\"");
        Self::declare(
            &mut self.diagnostics,
            &mut self.module.required_providers,
            name,
            required,
            |own| own.range,
            &what,
        );
    }

    /// A constraint on versions, as it is written.
    fn versions(&mut self, attribute: Attribute) -> Option<String> {
        let range = attribute.value.range;
        let text = self.text(Some(attribute))?;
        if let Err(error) = text.parse::<VersionConstraint>() {
            let detail = format!("{error}.");
            self.diagnostics.hinted("Invalid version constraint", detail, VersionConstraint::HINT, range);
            return None;
        }
        Some(text)
    }

    /// The local name of a provider, which is a part of addresses in registries.
    fn provider_name(&mut self, name: &hcl::Name) -> Arc<str> {
        self.check_provider_name(&name.text, name.range);
        name.text.as_str().into()
    }

    fn check_provider_name(&mut self, name: &str, range: Range) {
        const DETAIL: &str = "The name of a provider has lower case letters, digits and single dashes inside.";
        let is_right = name.split('-').all(|part| {
            !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() && !letter.is_uppercase())
        });
        if !is_right {
            let lower = name.to_lowercase();
            let hint = if lower == name { "rename it".to_owned() } else { format!("write `{lower}`") };
            self.diagnostics.hinted("Invalid provider local name", DETAIL, hint, range);
        }
    }

    fn provider_source(&mut self, attribute: Attribute) -> Option<ProviderSource> {
        let range = attribute.value.range;
        let text = self.text(Some(attribute))?;
        let source = ProviderSource::parse(&text);
        let name = source.as_ref().map_or("", |source| &source.name);
        if let Some(rest) = name.strip_prefix("terraform-").map(|rest| rest.strip_prefix("provider-").unwrap_or(rest)) {
            let detail = "The name of a provider is without the prefix that its repository has.";
            let hint = format!("write \"{}\"", text.replace(name, rest));
            self.diagnostics.hinted("Invalid provider type", detail, hint, range);
        }
        if source.is_none() {
            let detail = format!("\"{text}\" is not the address of a provider.");
            let hint = "write \"NAMESPACE/NAME\", or \"HOST/NAMESPACE/NAME\"";
            self.diagnostics.hinted("Invalid provider source string", detail, hint, range);
        }
        source
    }

    fn aliases(&mut self, list: &Expr, provider: &str) -> Vec<LocalProvider> {
        const INVALID: &str = "Invalid configuration_aliases value";
        let Some(items) = list.as_list() else {
            self.diagnostics.error(INVALID, "A list of references such as `aws.west` is required.", list.range);
            return Vec::new();
        };
        let mut aliases = Vec::new();
        for item in items {
            match self.provider_reference(item) {
                Some(found) if *found.name.name == *provider => aliases.push(found.name),
                Some(_) => {
                    let detail = format!(
                        "A reference to a configuration of this provider, such as `{provider}.west`, is required."
                    );
                    self.diagnostics.error(INVALID, detail, item.range);
                }
                None => {}
            }
        }
        aliases
    }

    /// Reads `aws`, `aws.west` or `aws.by_region[each.key]`, also in quotes.
    pub fn provider_reference(&mut self, expr: &Expr) -> Option<ProviderReference> {
        let (configuration, key) = match &expr.kind {
            ExprKind::Index(index) => (&index.collection, Some(index.key.clone())),
            _ => (expr, None),
        };
        let quoted = configuration.as_text().filter(|_| key.is_none());
        let traversal = match quoted {
            Some(text) => hcl::parse_traversal(hcl::Source::new(expr.range.file, "", text)).value,
            None => configuration.as_traversal().ok(),
        };
        let name = traversal.and_then(|traversal| {
            let name: Arc<str> = traversal.root.text.into();
            let (alias, key) = match traversal.steps.as_slice() {
                [] => (None, key),
                [Step::Attribute(alias)] => (Some(alias), key),
                [Step::Attribute(alias), Step::Index { key, range }] => {
                    (Some(alias), Some(Expr::literal(key.clone(), *range)))
                }
                _ => return None,
            };
            Some((LocalProvider { name, alias: alias.map(|alias| alias.text.as_str().into()) }, key))
        });
        let Some((name, key)) = name else {
            let detail = "A provider configuration is named by the provider, or by the provider and an alias.";
            self.diagnostics.hinted(
                "Invalid provider configuration reference",
                detail,
                "write `aws` or `aws.west`",
                expr.range,
            );
            return None;
        };
        self.check_provider_name(&name.name, expr.range);
        Some(ProviderReference { name, key, range: expr.range })
    }

    pub fn provider(&mut self, block: Block) {
        let name = self.provider_name(&block.labels[0]);
        let schema = Schema::new(
            &["alias", "version", "for_each", "count", "depends_on", "source"],
            &[("_", &[]), ("lifecycle", &[]), ("locals", &[])],
        );
        let (mut content, body) = block.body.partial(&schema, &mut self.diagnostics);
        let alias: Option<Arc<str>> = match content.take("alias") {
            Some(attribute) => {
                let range = attribute.value.range;
                let alias = self.text(Some(attribute));
                if alias.as_deref().is_some_and(|alias| !hcl::is_identifier(alias)) {
                    self.diagnostics.error(
                        "Invalid provider configuration alias",
                        "An alias has to be a valid name.",
                        range,
                    );
                }
                alias.map(Arc::from)
            }
            None => None,
        };
        let for_each = content.take("for_each").map(|attribute| attribute.value);
        if let (Some(keys), None) = (&for_each, &alias) {
            let detail = "A provider configuration with `for_each` needs an alias.";
            self.diagnostics.error("Alias required when using \"for_each\"", detail, keys.range);
        }
        self.text(content.take("version"));
        for attribute in &content.attributes {
            let detail = format!("The argument `{}` has no meaning in a `provider` block yet.", attribute.name.text);
            self.diagnostics.error("Reserved argument name in provider block", detail, attribute.name.range);
        }
        self.reserved(&content.blocks, "provider");
        let local = LocalProvider { name, alias };
        let what = format!("provider configuration \"{local}\"");
        let block = ProviderBlock { for_each, body, range: block.range };
        Self::declare(&mut self.diagnostics, &mut self.module.providers, local, block, |own| own.range, &what);
    }

    pub fn reserved(&mut self, blocks: &[Block], place: &str) {
        for block in blocks {
            let kind = &block.kind.text;
            let detail = format!("The block type `{kind}` has no meaning in a `{place}` block yet.");
            self.diagnostics.error(&format!("Reserved block type name in {place} block"), detail, block.range);
        }
    }
}

//! Module calls and checks.

use std::sync::Arc;

use hcl::{Attribute, Schema};

use super::Reader;
use crate::layers::{Block, Content};
use crate::module::{Check, ModuleCall, PassedProvider, Repetition};

impl Reader {
    pub fn module_call(&mut self, block: Block) {
        let name = self.name(&block.labels[0], "module instance");
        let blocks: [(&str, &[&str]); 4] = [("_", &[]), ("lifecycle", &[]), ("locals", &[]), ("provider", &["type"])];
        let mut schema = Schema::new(&["source", "version", "count", "for_each", "depends_on", "providers"], &blocks);
        schema.attributes[0].required = true;
        let (mut content, rest) = block.body.partial(&schema, &mut self.diagnostics);
        let mut enabled = None;
        for lifecycle in content.take_blocks("lifecycle") {
            let mut lifecycle = lifecycle.body.content(&Schema::new(&["enabled"], &[]), &mut self.diagnostics);
            enabled = lifecycle.take("enabled");
        }
        let call = ModuleCall {
            source: content.take("source").map(|source| source.value),
            version: content.take("version").map(|version| version.value),
            repetition: self.repetition(&mut content, enabled),
            providers: content.take("providers").map(|attribute| self.passed_providers(&attribute)),
            depends_on: self.references(content.take("depends_on")),
            arguments: rest.attributes(&mut self.diagnostics),
            range: block.range,
        };
        self.reserved(&content.blocks, "module");
        let what = format!("module call \"{name}\"");
        Self::declare(&mut self.diagnostics, &mut self.module.calls, name, call, |own| own.range, &what);
    }

    /// `count`, `for_each` or `enabled`, of which there can be one.
    pub fn repetition(&mut self, content: &mut Content, enabled: Option<Attribute>) -> Repetition {
        let given = [content.take("count"), content.take("for_each"), enabled];
        let mut given = given.into_iter().flatten();
        let Some(first) = given.next() else { return Repetition::Once };
        if let Some(second) = given.next() {
            let both = format!("`{}` and `{}`", first.name.text, second.name.text);
            let detail = format!("{both} cannot be used together: each says how often the block is repeated.");
            self.diagnostics.hinted(
                &format!("Invalid combination of {both}"),
                detail,
                "remove one of the two",
                second.name.range,
            );
        }
        match first.name.text.as_str() {
            "count" => Repetition::Count(first.value),
            "for_each" => Repetition::ForEach(first.value),
            _ => Repetition::Enabled(first.value),
        }
    }

    fn passed_providers(&mut self, attribute: &Attribute) -> Vec<PassedProvider> {
        let Some(items) = attribute.value.as_object() else {
            let detail = "`providers` is written out, as in `{ aws = aws.west }`.";
            self.diagnostics.error("Invalid expression", detail, attribute.value.range);
            return Vec::new();
        };
        let mut passed: Vec<PassedProvider> = Vec::new();
        for item in items {
            let (child, parent) = (self.provider_reference(&item.key.expr), self.provider_reference(&item.value));
            let (Some(child), Some(parent)) = (child, parent) else { continue };
            if passed.iter().any(|own| own.child == child.name) {
                let detail = format!("A configuration for `{}` is passed already.", child.name);
                self.diagnostics.error("Duplicate provider address", detail, child.range);
            }
            passed.push(PassedProvider { child: child.name, parent, range: item.key.expr.range });
        }
        passed
    }

    pub fn check(&mut self, block: Block) {
        let name: Arc<str> = self.name(&block.labels[0], "check block");
        let schema = Schema::new(&[], &[("data", &["type", "name"]), ("assert", &[])]);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let mut data = None;
        for block in content.take_blocks("data") {
            if data.is_some() {
                let detail = "A `check` block has at most one data source.";
                self.diagnostics.error("Multiple data resource blocks", detail, block.range);
                continue;
            }
            data = Some(self.resource(block, Some(name.clone())));
        }
        let assertions: Vec<_> =
            content.take_blocks("assert").into_iter().filter_map(|block| self.rule(block)).collect();
        if assertions.is_empty() {
            let detail = "A `check` block has at least one `assert` block.";
            self.diagnostics.error("Zero assert blocks", detail, block.range);
        }
        let what = format!("check \"{name}\"");
        let check = Check { data, assertions, range: block.range };
        Self::declare(&mut self.diagnostics, &mut self.module.checks, name, check, |own| own.range, &what);
    }
}

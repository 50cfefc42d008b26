//! Resources, data sources and ephemeral resources.

use std::sync::Arc;

use hcl::{Attribute, Schema};

use super::Reader;
use crate::address::{Mode, ResourceName};
use crate::layers::{Block, Layers};
use crate::module::{IgnoreChanges, Lifecycle, Provisioner, Resource};

impl Reader {
    pub fn resource(&mut self, block: Block, check: Option<Arc<str>>) -> ResourceName {
        let mode = match block.kind.text.as_str() {
            "resource" => Mode::Managed,
            "data" => Mode::Data,
            _ => Mode::Ephemeral,
        };
        let kind = self.name(&block.labels[0], "resource type");
        let name = ResourceName { mode, kind, name: self.name(&block.labels[1], "resource") };
        let blocks: [(&str, &[&str]); 5] =
            [("_", &[]), ("lifecycle", &[]), ("locals", &[]), ("connection", &[]), ("provisioner", &["type"])];
        let (mut content, body) = {
            let blocks = if mode == Mode::Data { &blocks[..3] } else { &blocks };
            block
                .body
                .partial(&Schema::new(&["count", "for_each", "provider", "depends_on"], blocks), &mut self.diagnostics)
        };
        let (lifecycle, enabled) = self.lifecycle(content.take_blocks("lifecycle"), mode);
        let connection = self.connection(content.take_blocks("connection"));
        let provisioners = content.take_blocks("provisioner");
        if let (Mode::Ephemeral, Some(block)) = (mode, provisioners.first()) {
            let detail = "An ephemeral resource has no provisioners.";
            self.diagnostics.error("Invalid configuration block for ephemeral resource", detail, block.range);
        }
        let resource = Resource {
            repetition: self.repetition(&mut content, enabled),
            provider: content.take("provider").and_then(|attribute| self.provider_reference(&attribute.value)),
            depends_on: self.references(content.take("depends_on")),
            lifecycle,
            provisioners: provisioners.into_iter().filter_map(|block| self.provisioner(block)).collect(),
            connection,
            body,
            check,
            range: block.range,
        };
        self.reserved(&content.blocks, mode.block());
        let what = format!("{} \"{name}\"", mode.block());
        Self::declare(
            &mut self.diagnostics,
            &mut self.module.resources,
            name.clone(),
            resource,
            |own| own.range,
            &what,
        );
        name
    }

    fn lifecycle(&mut self, blocks: Vec<Block>, mode: Mode) -> (Lifecycle, Option<Attribute>) {
        const ARGUMENTS: &[&str] = &[
            "create_before_destroy",
            "prevent_destroy",
            "destroy",
            "ignore_changes",
            "replace_triggered_by",
            "enabled",
        ];
        let mut blocks = blocks.into_iter();
        let Some(block) = blocks.next() else { return (Lifecycle::default(), None) };
        for second in blocks {
            let detail = "A block has one `lifecycle` block.";
            self.diagnostics.error("Duplicate lifecycle block", detail, second.range);
        }
        let schema = Schema::new(ARGUMENTS, &[("precondition", &[]), ("postcondition", &[])]);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let enabled = content.take("enabled");
        if mode != Mode::Managed {
            for attribute in content.attributes.drain(..) {
                let detail = format!("`{}` means something only in a `resource` block.", attribute.name.text);
                self.diagnostics.error(
                    &format!("Invalid {} lifecycle argument", mode.block()),
                    detail,
                    attribute.name.range,
                );
            }
        }
        let preconditions = content.take_blocks("precondition").into_iter();
        let preconditions = preconditions.filter_map(|block| self.rule(block)).collect();
        let postconditions = content.take_blocks("postcondition").into_iter();
        let postconditions = postconditions.filter_map(|block| self.rule(block)).collect();
        let lifecycle = Lifecycle {
            create_before_destroy: self.flag(content.take("create_before_destroy")),
            prevent_destroy: content.take("prevent_destroy").map(|attribute| attribute.value),
            destroy: self.flag(content.take("destroy")),
            ignore_changes: self.ignore_changes(content.take("ignore_changes")),
            replace_triggered_by: self.triggers(content.take("replace_triggered_by")),
            preconditions,
            postconditions,
        };
        (lifecycle, enabled)
    }

    fn ignore_changes(&mut self, attribute: Option<Attribute>) -> IgnoreChanges {
        let Some(attribute) = attribute else { return IgnoreChanges::None };
        if attribute.value.keyword() == Some("all") {
            return IgnoreChanges::All;
        }
        if let Some([item]) = attribute.value.as_list()
            && item.as_text() == Some("*")
        {
            let detail = "The wildcard is written as the word `all`, without brackets.";
            self.diagnostics.hinted(
                "Invalid ignore_changes wildcard",
                detail,
                "write ignore_changes = all",
                item.range,
            );
            return IgnoreChanges::All;
        }
        IgnoreChanges::Paths(self.references(Some(attribute)))
    }

    fn triggers(&mut self, attribute: Option<Attribute>) -> Vec<hcl::Expr> {
        let Some(attribute) = attribute else { return Vec::new() };
        match attribute.value.as_list() {
            Some(items) => {
                let mut found = Vec::new();
                for item in items {
                    match item.native() {
                        Ok(item) => found.push(item.into_owned()),
                        Err(problems) => self.invalid(problems),
                    }
                }
                found
            }
            None => {
                let detail = "`replace_triggered_by` is a list of references, written out in brackets.";
                self.diagnostics.error("Invalid replace_triggered_by expression", detail, attribute.value.range);
                Vec::new()
            }
        }
    }

    fn connection(&mut self, blocks: Vec<Block>) -> Option<Layers> {
        let mut blocks = blocks.into_iter();
        let connection = blocks.next()?;
        for second in blocks {
            let detail = "A block has one `connection` block.";
            self.diagnostics.error("Duplicate connection block", detail, second.range);
        }
        Some(connection.body)
    }

    pub fn provisioner(&mut self, block: Block) -> Option<Provisioner> {
        let schema = Schema::new(&["when", "on_failure"], &[("_", &[]), ("connection", &[]), ("lifecycle", &[])]);
        let kind = block.label(0).to_owned();
        let (mut content, body) = block.body.partial(&schema, &mut self.diagnostics);
        let connection = self.connection(content.take_blocks("connection"));
        let on_destroy = self.choice(content.take("when"), ["create", "destroy"], "Invalid \"when\" keyword");
        let continues = self.choice(content.take("on_failure"), ["fail", "continue"], "Invalid \"on_failure\" keyword");
        if ["chef", "habitat", "puppet", "salt-masterless"].contains(&kind.as_str()) {
            let detail = format!("The provisioner \"{kind}\" was removed from Terraform.");
            self.diagnostics.error(&format!("The \"{kind}\" provisioner has been removed"), detail, block.range);
            return None;
        }
        self.reserved(&content.blocks, "provisioner");
        Some(Provisioner { kind, on_destroy, continue_on_failure: continues, connection, body, range: block.range })
    }

    /// Whether an argument is the second of two words.
    fn choice(&mut self, attribute: Option<Attribute>, words: [&str; 2], summary: &str) -> bool {
        let Some(attribute) = attribute else { return false };
        let word = attribute.value.keyword().or_else(|| attribute.value.as_text()).unwrap_or_default();
        if !words.contains(&word) {
            let detail = format!("`{}` is either `{}` or `{}`.", attribute.name.text, words[0], words[1]);
            self.diagnostics.error(summary, detail, attribute.value.range);
        }
        word == words[1]
    }
}

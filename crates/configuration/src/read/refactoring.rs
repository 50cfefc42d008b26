//! Blocks about addresses: `moved`, `import` and `removed`.

use hcl::{Attribute, Schema, Step, Traversal};

use super::Reader;
use crate::layers::Block;
use crate::module::{Import, Moved, Removed};

impl Reader {
    pub(super) fn moved(&mut self, block: Block) {
        let mut schema = Schema::new(&["from", "to"], &[]);
        schema.attributes.iter_mut().for_each(|attribute| attribute.required = true);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let (from, to) = (content.take("from"), content.take("to"));
        let from = from.and_then(|attribute| self.address(&attribute, "Invalid \"moved\" address"));
        let to = to.and_then(|attribute| self.address(&attribute, "Invalid \"moved\" address"));
        let (Some(from), Some(to)) = (from, to) else { return };
        self.module.moved.push(Moved { from, to, range: block.range });
    }

    pub(super) fn removed(&mut self, block: Block) {
        let mut schema = Schema::new(&["from"], &[("lifecycle", &[]), ("provisioner", &["type"])]);
        schema.attributes[0].required = true;
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let mut destroy = None;
        for lifecycle in content.take_blocks("lifecycle") {
            let mut lifecycle = lifecycle.body.content(&Schema::new(&["destroy"], &[]), &mut self.diagnostics);
            destroy = self.flag(lifecycle.take("destroy"));
        }
        let provisioners = content.take_blocks("provisioner").into_iter();
        let provisioners = provisioners.filter_map(|block| self.provisioner(block)).collect();
        let from = content.take("from").and_then(|attribute| self.address(&attribute, "Invalid \"removed\" address"));
        let Some(from) = from else { return };
        self.module.removed.push(Removed { from, destroy: destroy.unwrap_or(true), provisioners, range: block.range });
    }

    /// The address of a resource or module, with keys that are written out.
    fn address(&mut self, attribute: &Attribute, summary: &str) -> Option<Traversal> {
        let traversal = match attribute.value.as_traversal() {
            Ok(traversal) => traversal,
            Err(problems) => {
                self.invalid(problems);
                return None;
            }
        };
        if !is_address(&traversal) {
            let detail = "The address of a resource, a module, or an instance of one is required.";
            self.diagnostics.hinted(
                summary,
                detail,
                "write it as plans show it, such as `module.a.aws_vpc.b[0]`",
                traversal.range,
            );
            return None;
        }
        Some(traversal)
    }

    pub(super) fn import(&mut self, block: Block) {
        let mut schema = Schema::new(&["to", "id", "identity", "for_each", "provider"], &[]);
        schema.attributes[0].required = true;
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let Some(to) = content.take("to") else { return };
        let value = |attribute: Option<Attribute>| attribute.map(|attribute| attribute.value);
        let import = Import {
            to: to.value,
            id: value(content.take("id")),
            identity: value(content.take("identity")),
            for_each: value(content.take("for_each")),
            provider: content.take("provider").and_then(|attribute| self.provider_reference(&attribute.value)),
            range: block.range,
        };
        if import.id.is_some() == import.identity.is_some() {
            let detail = "An import is made by either `id` or `identity`.";
            self.diagnostics.error("Invalid import arguments", detail, block.range);
        }
        self.module.imports.push(import);
    }
}

/// Whether a traversal is the address of a resource or module.
fn is_address(traversal: &Traversal) -> bool {
    let mut steps = traversal.steps.as_slice();
    let mut root = traversal.root.text.as_str();
    loop {
        match (root, steps) {
            ("module", [Step::Attribute(_)] | [Step::Attribute(_), Step::Index { .. }]) => return true,
            (
                "module",
                [Step::Attribute(_), Step::Index { .. }, Step::Attribute(next), rest @ ..]
                | [Step::Attribute(_), Step::Attribute(next), rest @ ..],
            ) => {
                root = &next.text;
                steps = rest;
            }
            ("data" | "ephemeral" | "resource", [Step::Attribute(_), rest @ ..]) => {
                return matches!(rest, [Step::Attribute(_)] | [Step::Attribute(_), Step::Index { .. }]);
            }
            ("var" | "local" | "each" | "count" | "self" | "path" | "terraform", _) => return false,
            (_, rest) => return matches!(rest, [Step::Attribute(_)] | [Step::Attribute(_), Step::Index { .. }]),
        }
    }
}

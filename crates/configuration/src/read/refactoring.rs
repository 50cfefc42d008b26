//! Blocks about addresses: `moved`, `import` and `removed`.

use hcl::{Attribute, Diagnostic, Schema};

use super::Reader;
use crate::address::{Mode, Target};
use crate::layers::Block;
use crate::module::{Import, Moved, Removed};

impl Reader {
    pub fn moved(&mut self, block: Block) {
        let mut schema = Schema::new(&["from", "to"], &[]);
        schema.attributes.iter_mut().for_each(|attribute| attribute.required = true);
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let (from, to) = (content.take("from"), content.take("to"));
        let from = from.and_then(|attribute| self.address(&attribute, "Invalid \"moved\" address"));
        let to = to.and_then(|attribute| self.address(&attribute, "Invalid \"moved\" address"));
        let (Some(from), Some(to)) = (from, to) else { return };
        if from.resource.is_some() != to.resource.is_some() {
            let detail = "A resource moves to a resource, and a module to a module.";
            self.diagnostics.error("Invalid \"moved\" addresses", detail, block.range);
        }
        self.module.moved.push(Moved { from, to, range: block.range });
    }

    pub fn removed(&mut self, block: Block) {
        let mut schema = Schema::new(&["from"], &[("lifecycle", &[]), ("provisioner", &["type"])]);
        schema.attributes[0].required = true;
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let mut destroy = None;
        let mut lifecycles = content.take_blocks("lifecycle").into_iter();
        if let Some(lifecycle) = lifecycles.next() {
            let mut lifecycle = lifecycle.body.content(&Schema::new(&["destroy"], &[]), &mut self.diagnostics);
            destroy = self.flag(lifecycle.take("destroy"));
        }
        for second in lifecycles {
            let detail = "A block has one `lifecycle` block.";
            self.diagnostics.error("Duplicate lifecycle block", detail, second.range);
        }
        let provisioners = content.take_blocks("provisioner").into_iter();
        let provisioners: Vec<_> = provisioners.filter_map(|block| self.provisioner(block)).collect();
        for provisioner in provisioners.iter().filter(|provisioner| !provisioner.on_destroy) {
            let detail = "A provisioner of a `removed` block runs before an object is destroyed.";
            let hint = "write when = destroy";
            self.diagnostics.hinted("Invalid \"removed.provisioner\" block", detail, hint, provisioner.range);
        }
        let from = content.take("from").and_then(|attribute| self.address(&attribute, "Invalid \"removed\" address"));
        let Some(from) = from else { return };
        let has_key = from.module.0.iter().any(|step| step.key.is_some());
        let kind = from.resource.as_ref().map(|(name, key)| (name.mode, key.is_some()));
        if has_key || matches!(kind, Some((_, true))) {
            let detail = "A block or a module is removed as a whole, so the address has no keys.";
            self.diagnostics.error("Invalid \"removed\" address", detail, block.range);
            return;
        }
        if kind.is_some_and(|(mode, _)| mode != Mode::Managed) {
            let detail = "Only resources are removed: data sources have no objects of their own.";
            self.diagnostics.error("Invalid \"removed\" address", detail, block.range);
        }
        if kind.is_none() && !provisioners.is_empty() {
            let detail = "A `removed` block with provisioners is for a resource, and this one is for a module.";
            self.diagnostics.error("Invalid \"removed\" block", detail, block.range);
        }
        if destroy.is_none() {
            let detail = "The objects are only forgotten, as `destroy = false` does.";
            let hint = "write a `lifecycle` block with `destroy`";
            let warning = Diagnostic::new("Missing lifecycle from the removed block", detail, block.range).hint(hint);
            self.diagnostics.warnings.push(warning);
        } else if destroy == Some(false) && !provisioners.is_empty() {
            let detail = "The objects are forgotten and not destroyed, so the provisioners do not run.";
            let warning = Diagnostic::new("Removed block provisioners will not be executed", detail, block.range);
            self.diagnostics.warnings.push(warning);
        }
        let destroy = destroy.unwrap_or(false);
        self.module.removed.push(Removed { from, destroy, provisioners, range: block.range });
    }

    /// The address of a resource or module, with keys that are written out.
    fn address(&mut self, attribute: &Attribute, summary: &str) -> Option<Target> {
        let traversal = match attribute.value.as_traversal() {
            Ok(traversal) => traversal,
            Err(problems) => {
                self.invalid(problems);
                return None;
            }
        };
        let target = Target::parse(&traversal);
        if target.is_none() {
            let detail = "The address of a resource, a module, or an instance of one is required.";
            let hint = "write it as plans show it, such as `module.a.aws_vpc.b[0]`";
            self.diagnostics.hinted(summary, detail, hint, traversal.range);
        }
        let mode = target.as_ref().and_then(|target| target.resource.as_ref()).map(|(name, _)| name.mode);
        if mode == Some(Mode::Ephemeral) {
            let detail = "An ephemeral resource is in no state, so there is nothing to move or to remove.";
            self.diagnostics.error(summary, detail, traversal.range);
            return None;
        }
        target
    }

    pub fn import(&mut self, block: Block) {
        let mut schema = Schema::new(&["to", "id", "identity", "for_each", "provider"], &[]);
        schema.attributes[0].required = true;
        let mut content = block.body.content(&schema, &mut self.diagnostics);
        let Some(to) = content.take("to") else { return };
        let import = Import {
            to: to.value,
            id: content.take("id").map(|id| id.value),
            identity: content.take("identity").map(|identity| identity.value),
            for_each: content.take("for_each").map(|for_each| for_each.value),
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

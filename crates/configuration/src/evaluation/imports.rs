//! What `import` blocks ask for.

use std::collections::BTreeSet;

use cty::{Mark, Type, Value};
use hcl::{Diagnostic, Expr, ExprKind, Range, Step};

use super::demand::Computing;
use super::item::Item;
use super::objects::flattened;
use super::scope::{Outcome, Scope};
use super::uses::Dependency;
use super::{Each, Evaluation, Stop};
use crate::address::{InstanceAddress, Mode, ResourceAddress, Target};
use crate::diagnostics::Diagnostics;
use crate::module::Import;

/// An object that is to be taken over.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// Its address.
    pub to: InstanceAddress,
    /// The identifier for the provider.
    pub id: Option<Value>,
    /// The identity for the provider.
    pub identity: Option<Value>,
    /// The place of the block.
    pub range: Range,
}

/// An `import` block, with the values that are known.
#[derive(Clone, Debug)]
pub struct EvaluatedImport {
    /// What it asks for.
    pub requests: Vec<ImportRequest>,
    /// The objects that its values come from.
    pub uses: BTreeSet<Dependency>,
    /// Whether it may ask for more: a value is not known before other objects are changed, or has an error.
    pub is_open: bool,
    /// What is wrong in it.
    pub problems: Diagnostics,
    /// The names in the address of its target, without keys.
    target: Vec<String>,
}

impl EvaluatedImport {
    /// Whether the block imports into objects of a resource block.
    pub fn is_into(&self, block: &ResourceAddress) -> bool {
        is_block(&self.target, block)
    }
}

/// Whether names are those of the address of a resource block.
fn is_block(found: &[String], block: &ResourceAddress) -> bool {
    let calls = block.module.0.iter().flat_map(|step| ["module", &*step.name]);
    calls.chain([&*block.resource.kind, &*block.resource.name]).eq(found.iter().map(String::as_str))
}

/// The names in the address of a target, without keys.
fn target(import: &Import) -> Vec<String> {
    let mut found = Vec::new();
    names(&import.to, &mut found);
    found
}

/// The names in an address, without keys.
fn names(expr: &Expr, found: &mut Vec<String>) {
    let steps = match &expr.kind {
        ExprKind::RelativeTraversal(relative) => {
            names(&relative.source, found);
            relative.steps.clone()
        }
        ExprKind::Index(index) => return names(&index.collection, found),
        _ => match expr.as_traversal() {
            Ok(traversal) => {
                found.push(traversal.root.text.clone());
                traversal.steps
            }
            Err(_) => return,
        },
    };
    found.extend(steps.into_iter().filter_map(|step| match step {
        Step::Attribute(name) => Some(name.text.clone()),
        _ => None,
    }));
}

impl Evaluation {
    /// The `import` blocks of the root module with the values that are set. `Err` has the object whose value is needed first.
    pub fn imports(&self) -> Result<Vec<EvaluatedImport>, InstanceAddress> {
        self.imports_of(|_| true)
    }

    /// Those that import into objects of a resource block.
    pub fn imports_into(&self, block: &ResourceAddress) -> Result<Vec<EvaluatedImport>, InstanceAddress> {
        self.imports_of(|import| is_block(&target(import), block))
    }

    fn imports_of(&self, is_wanted: impl Fn(&Import) -> bool) -> Result<Vec<EvaluatedImport>, InstanceAddress> {
        let wanted = self.tree.root().imports.iter().filter(|import| is_wanted(import));
        wanted.map(|import| self.completed(|| self.evaluated_import(import))).collect()
    }

    fn evaluated_import(&self, import: &Import) -> Result<EvaluatedImport, Stop> {
        self.computing.replace(Some(Computing::default()));
        let mut outcome = Outcome::default();
        let requests = self.import(import, &mut outcome);
        let problems = self.computing.take().unwrap_or_default().problems;
        let target = target(import);
        let is_open = outcome.failed || !problems.errors.is_empty();
        Ok(EvaluatedImport { requests: requests?, uses: outcome.uses.to_set(), is_open, problems, target })
    }

    fn import(&self, import: &Import, outcome: &mut Outcome) -> Result<Vec<ImportRequest>, Stop> {
        let Some(expr) = &import.for_each else {
            return Ok(self.import_of(import, &Each::default(), outcome)?.into_iter().collect());
        };
        let scope = Scope::new(self, 0, None);
        let value = scope.eval(expr, outcome)?;
        if !outcome.failed && !value.is_wholly_known() {
            scope.problem("Invalid for_each argument", "The keys of an import have to be known.", expr, outcome);
        }
        let mut all = Vec::new();
        for each in super::expansion::provider_keys(&value) {
            all.extend(self.import_of(import, &each, outcome)?);
        }
        Ok(all)
    }

    fn import_of(&self, import: &Import, each: &Each, outcome: &mut Outcome) -> Result<Option<ImportRequest>, Stop> {
        let scope = Scope::new(self, 0, Some(each));
        let mut steps = Vec::new();
        let root = flattened(&scope, &import.to, &mut steps, outcome)?;
        let target = root.and_then(|root| Target::parse(&hcl::Traversal { root, steps, range: import.to.range }));
        let Some(Target { module, resource: Some((resource, key)) }) = target else {
            scope.problem(
                "Invalid import address",
                "The address of a resource instance is required.",
                &import.to,
                outcome,
            );
            return Ok(None);
        };
        if resource.mode != Mode::Managed {
            let why = format!(
                "Only what a block `resource` has is imported, and this is a block `{}`.",
                resource.mode.block()
            );
            scope.problem("Invalid import address", &why, &import.to, outcome);
            return Ok(None);
        }
        let id = match &import.id {
            Some(expr) => Some(scope.converted(expr, &Type::String, "`id`", outcome)?),
            None => None,
        };
        let identity = match &import.identity {
            Some(expr) => Some(scope.eval(expr, outcome)?),
            None => None,
        };
        if outcome.failed {
            return Ok(None);
        }
        for value in id.iter().chain(&identity) {
            let why = if !value.is_wholly_known() {
                "The identifier is not known before other objects are changed."
            } else if value.is_null() || value.as_str() == Some("") {
                "The identifier is empty."
            } else if value.contains_mark(&Mark::Ephemeral) || value.contains_mark(&Mark::Sensitive) {
                "The identifier is shown in plans, so it cannot be sensitive or ephemeral."
            } else {
                continue;
            };
            self.report(Diagnostic::new("Invalid import id argument", why, import.range));
            return Ok(None);
        }
        let to = InstanceAddress { resource: ResourceAddress { module, resource }, key };
        if let Some(why) = self.no_target(&to)? {
            let hint =
                format!("write a block `resource \"{}\" \"{}\"`", to.resource.resource.kind, to.resource.resource.name);
            self.report(Diagnostic::new("Import target does not exist", why, import.to.range).hint(hint));
            return Ok(None);
        }
        Ok(Some(ImportRequest { to, id, identity, range: import.range }))
    }

    /// Why there is no object that something could be imported into.
    fn no_target(&self, to: &InstanceAddress) -> Result<Option<String>, Stop> {
        let exists = self.exists(to)?;
        Ok((!exists).then(|| format!("There is no object `{to}` in the configuration to import into.")))
    }

    fn exists(&self, object: &InstanceAddress) -> Result<bool, Stop> {
        let mut module = 0;
        for step in object.resource.module.0.iter() {
            if !self.module(module).module.calls.contains_key(&step.name) {
                return Ok(false);
            }
            self.instances_of(Item::Call(module, step.name.clone()))?;
            match self.children.borrow().get(&(module, step.name.clone(), step.key.clone())) {
                Some(child) => module = *child,
                None => return Ok(false),
            }
        }
        let name = &object.resource.resource;
        if !self.module(module).module.resources.contains_key(name) {
            return Ok(false);
        }
        let instances = self.instances_of(Item::Resource(module, name.clone()))?;
        Ok(instances.has(object.key.as_ref()))
    }
}

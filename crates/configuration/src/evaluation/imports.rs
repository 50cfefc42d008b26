//! What `import` blocks ask for.

use cty::{Mark, Type, Value};
use hcl::{Diagnostic, Range};

use super::objects::flattened;
use super::scope::{Outcome, Scope};
use super::{Each, Evaluation, Stop};
use crate::address::{InstanceAddress, ModulePath, ResourceAddress, Target};
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

impl Evaluation<'_> {
    /// The imports of the root module. `Err` has the object whose value is needed first. Imports whose values are not known
    /// are reported.
    pub fn imports(&self) -> Result<Vec<ImportRequest>, InstanceAddress> {
        self.completed(|| {
            let mut all = Vec::new();
            for import in &self.tree.root().imports {
                all.extend(self.import(import)?);
            }
            Ok(all)
        })
    }

    fn import(&self, import: &Import) -> Result<Vec<ImportRequest>, Stop> {
        let mut outcome = Outcome::default();
        let Some(expr) = &import.for_each else {
            return Ok(self.import_of(import, &Each::default(), &mut outcome)?.into_iter().collect());
        };
        let scope = Scope::new(self, 0, None);
        let value = scope.eval(expr, &mut outcome)?;
        if !outcome.failed && !value.is_wholly_known() {
            scope.problem("Invalid for_each argument", "The keys of an import have to be known.", expr, &mut outcome);
        }
        let mut all = Vec::new();
        for each in super::expansion::provider_keys(&value) {
            all.extend(self.import_of(import, &each, &mut outcome)?);
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
        let resource = ResourceAddress { module: ModulePath(module.0), resource };
        Ok(Some(ImportRequest { to: InstanceAddress { resource, key }, id, identity, range: import.range }))
    }
}

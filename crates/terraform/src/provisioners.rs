//! Provisioners as hooks.

use std::collections::BTreeMap;
use std::sync::Arc;

use configuration::InstanceAddress;
use configuration::module::Provisioner;
use cty::Type;
use engine::load::expression::{Foreign, Variable};
use engine::load::{Hook, HookPhase, Scope, Template};
use model::{Diagnostic, Diagnostics, HookKind, OnFailure, Path, Reason, RecordedHook, Source, Value};

use crate::program::{Shared, Use};
use crate::templates::template;
use crate::{address, problem, value};

/// Whose provisioners they are.
#[derive(Clone, Debug)]
pub struct Provisioned {
    pub shared: Arc<Shared>,
    pub object: InstanceAddress,
    /// What they refer to.
    pub uses: Arc<[Use]>,
    /// The place of the block.
    pub place: Option<Source>,
    /// Whether they are those of a `removed` block.
    pub is_removed: bool,
}

/// The arguments of a provisioner.
#[derive(Debug)]
struct Arguments {
    of: Provisioned,
    on_destroy: bool,
    /// The position among those of its phase.
    position: usize,
}

/// The provisioners as hooks in their order.
pub fn hooks(of: &Provisioned, provisioners: &[Provisioner]) -> Vec<Hook> {
    let mut positions: BTreeMap<bool, usize> = BTreeMap::new();
    let hooks = provisioners.iter().map(|provisioner| {
        let on_destroy = provisioner.on_destroy;
        let next = positions.entry(on_destroy).or_default();
        let position = std::mem::replace(next, *next + 1);
        let name = match position {
            0 => provisioner.kind.clone(),
            _ => format!("{} {}", provisioner.kind, position + 1),
        };
        Hook {
            when: if on_destroy { HookPhase::BeforeDestroy } else { HookPhase::AfterCreate },
            recorded: RecordedHook {
                name: name.into(),
                kind: HookKind::Exec,
                on_failure: if provisioner.continue_on_failure { OnFailure::Continue } else { OnFailure::Fail },
                definition: Value::Null,
            },
            template: template(Arguments { of: of.clone(), on_destroy, position }),
            at: Path::default(),
            records_values: true,
        }
    });
    hooks.collect()
}

/// A hook as it was recorded.
pub fn as_recorded(recorded: &RecordedHook) -> Hook {
    Hook {
        when: HookPhase::BeforeDestroy,
        recorded: recorded.clone(),
        template: Template::literal(recorded.definition.clone()),
        at: Path::default(),
        records_values: false,
    }
}

impl Foreign for Arguments {
    fn source(&self) -> String {
        let Provisioned { object, shared, .. } = &self.of;
        let (phase, at) = (if self.on_destroy { "destroy" } else { "create" }, self.position);
        format!("{phase} provisioner {at} of {object} {}", shared.origin.generation)
    }

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Diagnostics> {
        let instance = &self.of.object;
        let address = address::address(&self.of.shared.origin.name, instance);
        let object = scope.variable(Variable::Itself).unwrap_or(Value::Unknown);
        // Before a destroy, other objects may not be there any more, and nothing refers to them.
        let uses = if self.on_destroy { &[][..] } else { &self.of.uses };
        let state = self.of.shared.observe(uses, scope);
        let ty = state.evaluation.type_of(instance).unwrap_or(Type::Dynamic);
        let this = value::from_model(&object, &ty);
        let found = match self.of.is_removed {
            true => state.evaluation.provisioners_of_removed(instance, &this),
            false => state.evaluation.provisioners(instance, &this, self.on_destroy),
        };
        let Ok((configs, problems)) = found else { return Ok(Value::Unknown) };
        match configs.get(self.position) {
            Some(found) if !found.failed => Ok(value::to_config(&found.config)),
            _ if !problems.errors.is_empty() => Err(problem::of_resource(&problems, &self.of.shared, &address)),
            _ => {
                let what = "the provisioner is not in the configuration any more";
                Err(vec![
                    Diagnostic::error(&address, Reason::InvalidExpression, what).from_source(self.of.place.clone()),
                ])
            }
        }
    }
}

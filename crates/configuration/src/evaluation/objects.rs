//! The configuration of an object, and that of a provider.

use std::collections::BTreeSet;

use std::sync::Arc;

use cty::{Type, Value};
use hcl::{Diagnostic, Expr, ExprKind, Literal, Range, Step, Traversal};

use super::compiled::Place;
use super::item::{Item, ModuleId};
use super::scope::{Outcome, Scope};
use super::uses::{Dependency, Uses};
use super::{Computed, Each, Evaluation, Stop};
use crate::address::{InstanceAddress, Key, Mode, ResourceAddress, ResourceName};
use crate::module::{IgnoreChanges, Resource};
use crate::providers::{LocalProvider, ProviderAddress, ProviderSource};
use crate::reference::{Reference, Subject};
use crate::schema::Block;
use crate::tree::NodeId;

/// What an object should be.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its address.
    pub address: InstanceAddress,
    /// The provider configuration that manages it.
    pub provider: ProviderAddress,
    /// The configuration by the schema: what is not written is null.
    pub config: Value,
    /// The schema.
    pub schema: Option<Arc<Block>>,
    /// The `provider_meta` block of the module for this provider, which goes with every plan and change.
    pub provider_meta: Option<Value>,
    /// The objects from which the configuration comes, also through other values, and those that the block's keys come from.
    pub uses: Uses,
    /// What `depends_on` names, of the block and of the module calls around it.
    pub depends_on: Uses,
    /// Of a data source: what delays its read if it is about to change, also if the configuration is known.
    pub reads_after: BTreeSet<ReadsAfter>,
    /// The `lifecycle` block.
    pub lifecycle: EvaluatedLifecycle,
    /// Whether an error took the configuration away. The object must not be changed then.
    pub failed: bool,
    /// The place of the block.
    pub range: Range,
}

/// Objects whose changes delay the read of a data source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadsAfter {
    /// The objects.
    pub dependency: Dependency,
    /// Whether changes of what they depend on delay it too.
    pub transitive: bool,
}

/// The arguments of a `lifecycle` block.
#[derive(Clone, Debug, Default)]
pub struct EvaluatedLifecycle {
    /// As it is written.
    pub create_before_destroy: Option<bool>,
    /// Whether a plan that destroys the object is an error.
    pub prevent_destroy: bool,
    /// Whether the object is only forgotten when it is not wanted any more.
    pub forget: bool,
    /// The arguments whose changes are ignored.
    pub ignore_changes: IgnoreChanges,
    /// Changes of these replace the object.
    pub replace_triggered_by: Vec<Trigger>,
}

/// An item of `replace_triggered_by`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The block.
    pub resource: ResourceAddress,
    /// The instance, or every one.
    pub key: Option<Key>,
    /// The attribute in it, or any.
    pub path: Vec<Step>,
}

/// The configuration of a provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its address.
    pub address: ProviderAddress,
    /// The configuration by the schema. Without a block everything is null.
    pub config: Value,
    /// The objects from which it comes.
    pub uses: BTreeSet<Dependency>,
    /// Whether an error took the configuration away.
    pub failed: bool,
}

/// A schema, and the type of the values that it describes.
#[derive(Clone)]
pub struct Shape {
    pub block: Arc<Block>,
    pub ty: Type,
}

impl Resource {
    /// The name of the provider configuration that the block uses.
    fn provider_name(&self, name: &ResourceName) -> LocalProvider {
        match &self.provider {
            Some(reference) => reference.name.clone(),
            None => LocalProvider { name: name.implied_provider(), alias: None },
        }
    }
}

impl Evaluation {
    pub(crate) fn object(&self, module: ModuleId, name: &ResourceName, key: Option<&Key>) -> Result<Object, Stop> {
        let instance = self.module(module);
        let resource = &instance.module.resources[name];
        let instances = self.instances_of(Item::Resource(module, name.clone()))?;
        let each = instances.known().iter().find(|each| each.key.as_ref() == key);
        let scope = Scope::new(self, module, each);
        let own_depends_on = self.named(module, &resource.depends_on)?;
        let mut depends_on = own_depends_on.clone();
        depends_on.add(&instance.depends_on);
        let mut outcome = Outcome::default();
        self.check(&scope, &resource.lifecycle.preconditions, "Resource precondition failed", &mut outcome)
            .map(|holds| outcome.failed |= !holds)?;
        let lifecycle = lifecycle(&scope, resource, &mut outcome)?;
        let provider = self.provider_address(module, name, each, &mut outcome)?;
        let shape = self.shape(instance.node, name);
        let place = Place::Resource(self.read[instance.node], name.clone());
        let compiled = shape.as_ref().and_then(|shape| self.compiled(&place, &resource.body, &shape.block));
        let config = match (&shape, &compiled) {
            (Some(shape), Some(compiled)) => {
                scope.body(compiled, &shape.block, name.mode == Mode::Ephemeral, &mut outcome)?
            }
            _ => {
                outcome.failed = true;
                Value::DYNAMIC
            }
        };
        if let Some(shape) = &shape {
            self.check_provisioners(&scope, (name, resource), Value::unknown(shape.ty.clone()), &mut outcome)?;
        }
        let mut uses = instance.uses.clone();
        uses.add(&instances.uses);
        uses.add(&outcome.uses);
        let mut named = own_depends_on;
        named.add(&outcome.direct);
        named.add(&instances.direct);
        let reads_after = match name.mode {
            Mode::Data => reads_after(resource, &named, &instance.depends_on, &uses),
            Mode::Managed | Mode::Ephemeral => BTreeSet::new(),
        };
        Ok(Object {
            provider,
            config,
            schema: shape.map(|shape| shape.block),
            provider_meta: self.provider_meta(&scope, &resource.provider_name(name).name, &mut outcome)?,
            uses,
            depends_on,
            reads_after,
            lifecycle,
            failed: outcome.failed,
            address: InstanceAddress {
                resource: ResourceAddress { module: instance.path.clone(), resource: name.clone() },
                key: key.cloned(),
            },
            range: resource.range,
        })
    }

    /// An object of which only the address is known.
    pub(crate) fn failed_object(&self, module: ModuleId, name: &ResourceName, key: Option<&Key>) -> Object {
        let instance = self.module(module);
        let resource = &instance.module.resources[name];
        let local = resource.provider_name(name);
        let source = instance.module.provider_source(&local.name);
        let address = ResourceAddress { module: instance.path.clone(), resource: name.clone() };
        Object {
            address: InstanceAddress { resource: address, key: key.cloned() },
            provider: ProviderAddress { module: instance.path.clone(), source, local, key: None },
            config: Value::DYNAMIC,
            schema: None,
            provider_meta: None,
            uses: Uses::default(),
            depends_on: Uses::default(),
            reads_after: BTreeSet::new(),
            lifecycle: EvaluatedLifecycle::default(),
            failed: true,
            range: resource.range,
        }
    }

    /// The schema of a block. `None` if the provider does not know the type, which is reported.
    pub(crate) fn shape(&self, node: NodeId, name: &ResourceName) -> Option<Shape> {
        let place = (self.read[node], name.clone());
        if let Some(shape) = self.shapes.borrow().get(&place) {
            return shape.clone();
        }
        let module = &self.tree.nodes[node].module;
        let resource = &module.resources[name];
        let source = module.provider_source(&resource.provider_name(name).name);
        let mut types = self.types.borrow_mut();
        let shape = types.entry((source, name.mode, name.kind.clone())).or_insert_with_key(|(source, mode, kind)| {
            let block = self.world.resource_schema(source, *mode, kind)?;
            Ok(Shape { ty: block.implied_type(), block })
        });
        let shape = match shape.clone() {
            Ok(shape) => Some(shape),
            Err(why) => {
                self.report_once(Diagnostic::new(format!("Invalid {} type", name.mode.block()), why, resource.range));
                None
            }
        };
        self.shapes.borrow_mut().insert(place, shape.clone());
        shape
    }

    /// Checks that a schema has what is taken of an object.
    pub(crate) fn check_steps(&self, node: NodeId, name: &ResourceName, steps: &[Step]) -> Result<(), Diagnostic> {
        let Some(shape) = self.shape(node, name).filter(|_| !steps.is_empty()) else { return Ok(()) };
        language::traverse(Value::unknown(shape.ty), steps).map(|_| ())
    }

    fn undeclared(&self, what: &str, range: Range) {
        let detail = format!("There is no {what} in this module.");
        self.report(Diagnostic::new("Reference to undeclared resource", detail, range));
    }

    /// What references name that stand for whole objects and modules, as in `depends_on`.
    pub(crate) fn named(&self, module: ModuleId, references: &[Traversal]) -> Result<Uses, Stop> {
        let instance = self.module(module);
        let mut uses = Uses::default();
        for traversal in references {
            let reference = match Reference::parse(traversal) {
                Ok(reference) => reference,
                Err(diagnostic) => {
                    self.report(diagnostic);
                    continue;
                }
            };
            match reference.subject {
                Subject::Resource(name, _)
                    if name.mode == Mode::Ephemeral && instance.module.resources.contains_key(&name) =>
                {
                    uses.add(&self.value_of(Item::ResourceValue(module, name))?.uses);
                }
                Subject::Resource(name, key) if instance.module.resources.contains_key(&name) => {
                    let address = ResourceAddress { module: instance.path.clone(), resource: name };
                    uses.insert(Dependency::Resource(address, key));
                }
                Subject::Resource(name, _) => {
                    self.undeclared(&format!("{} \"{name}\"", name.mode.block()), reference.range);
                }
                Subject::Module { call, key, .. } if instance.module.calls.contains_key(&call) => {
                    uses.insert(Dependency::Module { module: instance.path.clone(), call, key });
                }
                Subject::Module { call, .. } => self.undeclared(&format!("module call \"{call}\""), reference.range),
                Subject::Variable(name) if instance.module.variables.contains_key(&name) => {
                    uses.add(&self.value_of(Item::Variable(module, name))?.uses);
                }
                Subject::Local(name) if instance.module.locals.contains_key(&name) => {
                    uses.add(&self.value_of(Item::Local(module, name))?.uses);
                }
                _ => {
                    let detail = "`depends_on` names resources, data sources and modules.";
                    self.report(Diagnostic::new("Invalid depends_on reference", detail, reference.range));
                }
            }
        }
        Ok(uses)
    }

    /// The `provider_meta` block for a provider.
    fn provider_meta(
        &self,
        scope: &Scope<'_>,
        provider: &Arc<str>,
        outcome: &mut Outcome,
    ) -> Result<Option<Value>, Stop> {
        let module = &scope.module.module;
        let Some((body, range)) = module.provider_metas.get(provider) else { return Ok(None) };
        let source = module.provider_source(provider);
        let schema = self.world.provider_meta_schema(&source);
        let schema =
            schema.and_then(|schema| schema.ok_or_else(|| format!("{source} does not support `provider_meta`.")));
        let schema = match schema {
            Ok(schema) => schema,
            Err(why) => {
                self.report(Diagnostic::new("Provider does not support provider_meta", why, *range));
                outcome.failed = true;
                return Ok(None);
            }
        };
        match self.compiled(&Place::Meta(scope.module.node, provider.clone()), body, &schema) {
            Some(compiled) => scope.body(&compiled, &schema, false, outcome).map(Some),
            None => {
                outcome.failed = true;
                Ok(None)
            }
        }
    }

    /// The provider configuration of a block, through the calls that pass configurations on.
    fn provider_address(
        &self,
        module: ModuleId,
        name: &ResourceName,
        each: Option<&Each>,
        outcome: &mut Outcome,
    ) -> Result<ProviderAddress, Stop> {
        let instance = self.module(module);
        let resource = &instance.module.resources[name];
        let reference = resource.provider.clone().unwrap_or_else(|| crate::module::ProviderReference {
            name: resource.provider_name(name),
            key: None,
            range: resource.range,
        });
        let configured = self.tree.provider(instance.node, &reference);
        // From the module of the block up to that of the configuration. A key that a call passes is in the scope of the call.
        let mut at = module;
        let mut keys = each.cloned().unwrap_or_default();
        let mut key = None;
        loop {
            let own = self.module(at);
            if let Some((node, chosen)) = &configured.chosen
                && *node == own.node
                && let Some(expr) = &chosen.key
            {
                let scope = Scope::new(self, at, Some(&keys));
                let value = scope.converted(expr, &Type::String, "a provider's key", outcome)?;
                key = value.as_str().map(|text| Key::Text(text.into()));
            }
            match &own.caller {
                Some((caller, _)) if own.node != configured.node => {
                    keys = own.each.clone();
                    at = *caller;
                }
                _ => {
                    let path = own.path.clone();
                    return Ok(ProviderAddress {
                        module: path,
                        source: configured.source,
                        local: configured.local,
                        key,
                    });
                }
            }
        }
    }

    /// The instances of a provider configuration.
    pub(crate) fn provider_configs(
        &self,
        module: ModuleId,
        source: &ProviderSource,
        local: &LocalProvider,
    ) -> Result<Computed, Stop> {
        let instance = self.module(module);
        // A provider that only modules inside require may have no name in this one.
        let is_named = instance.module.provider_source(&local.name) == *source;
        let block = instance.module.providers.get(local).filter(|_| is_named);
        let range = block.map_or_else(Range::default, |block| block.range);
        let schema = match self.world.provider_schema(source) {
            Ok(schema) => schema,
            Err(why) => {
                self.report(Diagnostic::new("Provider without schema", why, range));
                return Ok(Computed::failed(Uses::default()));
            }
        };
        let mut outcome = Outcome::default();
        let mut all = vec![Each::default()];
        if let Some(expr) = block.and_then(|block| block.for_each.as_ref()) {
            let value = Scope::new(self, module, None).eval(expr, &mut outcome)?;
            all = super::expansion::provider_keys(&value);
        }
        let place = Place::Provider(instance.node, local.clone());
        // Without a block the provider gets null for everything, and says itself what it needs.
        let compiled = match block {
            Some(block) => self.compiled(&place, &block.body, &schema),
            None => Some(Arc::default()),
        };
        let mut is_known = true;
        for each in all {
            let scope = Scope::new(self, module, Some(&each));
            let mut own = Outcome { uses: outcome.uses.clone(), failed: outcome.failed, ..Outcome::default() };
            let config = match &compiled {
                Some(compiled) => scope.body(compiled, &schema, true, &mut own)?,
                None => Value::DYNAMIC,
            };
            let address = ProviderAddress {
                module: instance.path.clone(),
                source: source.clone(),
                local: local.clone(),
                key: each.key.clone(),
            };
            let failed = own.failed || compiled.is_none();
            is_known &= config.is_wholly_known();
            let config = ProviderConfig { address: address.clone(), config, uses: own.uses.to_set(), failed };
            self.providers.borrow_mut().insert(address, Arc::new(config));
        }
        // The value says only whether functions with effects may change it.
        let value = if is_known { Value::bool(true) } else { Value::DYNAMIC };
        Ok(Computed { value, uses: outcome.uses, failed: outcome.failed })
    }
}

/// What delays the read of a data source, as upstream has it: pending changes of the resources that the block itself names
/// (also if their values are known), of what the modules depend on that it names or stands in, and of everything that it
/// uses if it has conditions, because a change may be what a condition needs. Other data sources change nothing.
fn reads_after(resource: &Resource, named: &Uses, around: &Uses, uses: &Uses) -> BTreeSet<ReadsAfter> {
    let checks = &resource.lifecycle;
    let is_checked = !checks.preconditions.is_empty() || !checks.postconditions.is_empty();
    let mut reads: BTreeSet<ReadsAfter> = reads_after_each(named, is_checked).collect();
    reads.extend(reads_after_each(around, true));
    if is_checked {
        reads.extend(reads_after_each(uses, true));
    }
    reads
}

fn reads_after_each(uses: &Uses, transitive: bool) -> impl Iterator<Item = ReadsAfter> {
    uses.iter().filter_map(move |dependency| match dependency {
        Dependency::Resource(address, _) if address.resource.mode != Mode::Managed && !transitive => None,
        // Upstream waits for the whole block, of which instances cannot be distinguished while their keys change.
        Dependency::Resource(address, _) => {
            Some(ReadsAfter { dependency: Dependency::Resource(address.clone(), None), transitive })
        }
        Dependency::Module { .. } | Dependency::Variable(_) => {
            Some(ReadsAfter { dependency: dependency.clone(), transitive: true })
        }
    })
}

/// The `lifecycle` block of an instance.
fn lifecycle(scope: &Scope<'_>, resource: &Resource, outcome: &mut Outcome) -> Result<EvaluatedLifecycle, Stop> {
    let written = &resource.lifecycle;
    let prevent_destroy = match &written.prevent_destroy {
        Some(expr) => scope.converted(expr, &Type::Bool, "`prevent_destroy`", outcome)?.as_bool().unwrap_or(true),
        None => false,
    };
    let mut triggers = Vec::new();
    for expr in &written.replace_triggered_by {
        triggers.extend(trigger(scope, expr, outcome)?);
    }
    Ok(EvaluatedLifecycle {
        create_before_destroy: written.create_before_destroy,
        prevent_destroy,
        forget: written.destroy == Some(false),
        ignore_changes: written.ignore_changes.clone(),
        replace_triggered_by: triggers,
    })
}

/// What an item of `replace_triggered_by` names.
fn trigger(scope: &Scope<'_>, expr: &Expr, outcome: &mut Outcome) -> Result<Option<Trigger>, Stop> {
    const INVALID: &str = "Invalid replace_triggered_by expression";
    let mut steps = Vec::new();
    let Some(root) = flattened(scope, expr, &mut steps, outcome)? else {
        scope.problem(INVALID, "A reference to a resource, or to an attribute of one, is required.", expr, outcome);
        return Ok(None);
    };
    let traversal = Traversal { root, steps, range: expr.range };
    let reference = match Reference::parse(&traversal) {
        Ok(reference) => reference,
        Err(diagnostic) => {
            scope.evaluation.report(diagnostic);
            return Ok(None);
        }
    };
    let Subject::Resource(name, key) = reference.subject else {
        scope.problem(INVALID, "Only resources can be named here.", expr, outcome);
        return Ok(None);
    };
    if !scope.module.module.resources.contains_key(&name) {
        scope.problem(INVALID, format!("There is no resource \"{name}\" in this module."), expr, outcome);
        return Ok(None);
    }
    let resource = ResourceAddress { module: scope.module.path.clone(), resource: name };
    let path = traversal.steps[reference.steps + usize::from(key.is_some())..].to_vec();
    outcome.uses.insert(Dependency::Resource(resource.clone(), key.clone()));
    Ok(Some(Trigger { resource, key, path }))
}

/// The steps of a reference whose indexes may be expressions, such as `each.key`.
pub fn flattened(
    scope: &Scope<'_>,
    expr: &Expr,
    steps: &mut Vec<Step>,
    outcome: &mut Outcome,
) -> Result<Option<hcl::Name>, Stop> {
    match &expr.kind {
        ExprKind::RelativeTraversal(relative) => {
            let root = flattened(scope, &relative.source, steps, outcome)?;
            steps.extend(relative.steps.iter().cloned());
            Ok(root)
        }
        ExprKind::Index(index) => {
            let root = flattened(scope, &index.collection, steps, outcome)?;
            let key = scope.eval(&index.key, outcome)?;
            let key = match (key.as_number(), key.as_str()) {
                (Some(number), _) => Literal::Number(number.to_string()),
                (_, Some(text)) => Literal::String(text.to_owned()),
                _ => return Ok(None),
            };
            steps.push(Step::Index { key, range: index.brackets_range });
            Ok(root)
        }
        _ => Ok(expr.as_traversal().ok().map(|traversal| {
            steps.extend(traversal.steps);
            traversal.root
        })),
    }
}

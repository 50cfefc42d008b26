//! Families: Resources with `count`, `forEach` or `enabled`, and their instances.

use std::sync::Arc;

use super::expression::Scope;
use super::instance_scope::InstanceScope;
use super::publication;
use super::repetition::{InstanceKeys, Repeat, Repetition, RepetitionResult};
use super::{EachValue, Instance};
use model::{Address, Diagnostic, Diagnostics, ImportRequest, InstanceKey, Value, errors};

#[derive(Clone, Debug)]
pub struct Family {
    /// The configuration that all instances share. Its address is the address of the Resource.
    pub shared: Arc<Instance>,
    /// The instances, as far as they are known.
    pub expansion: Expansion,
}

/// The instances of a family.
#[derive(Clone, Debug)]
pub enum Expansion {
    /// An expression must be evaluated first.
    Pending,
    Known(InstanceKeys),
    /// The Resource has errors, so its recorded instances stay unchanged.
    Failed(Diagnostics),
}

impl Family {
    /// Creates the family of a Resource that has a repetition.
    pub(crate) fn new(shared: Arc<Instance>, repetition: &Repetition) -> Self {
        let expansion = if shared.has_errors() {
            Expansion::Failed(errors(&shared.problems).cloned().collect())
        } else if !repetition.is_literal() && shared.is_desired() && !shared.inputs.problems.is_empty() {
            // The instances may depend on the missing input.
            Expansion::Failed(shared.inputs.problems.clone())
        } else if !repetition.is_literal() {
            Expansion::Pending
        } else {
            match repetition.evaluate(&InstanceScope { instance: &shared, others: &EmptyScope }) {
                Ok(RepetitionResult::Instances(members)) => Expansion::Known(members),
                Ok(RepetitionResult::Unknown(_)) => Expansion::Pending,
                Err(problems) => {
                    let address = Some(shared.address.clone());
                    let problems =
                        problems.into_iter().map(|problem| Diagnostic { address: address.clone(), ..problem });
                    Expansion::Failed(problems.collect())
                }
            }
        };
        Self { shared, expansion }
    }

    /// The repetition of the Resource.
    pub fn repetition(&self) -> &Repetition {
        self.shared.repetition.as_deref().expect("a family has a Resource with a repetition")
    }

    /// Evaluates the repetition. An error names its field and has no address.
    ///
    /// # Errors
    /// An expression failed, or its value is not a valid count, key set or boolean.
    pub fn evaluate(&self, others: &dyn Scope) -> Result<RepetitionResult, Diagnostics> {
        self.repetition().evaluate(&InstanceScope { instance: &self.shared, others })
    }

    pub fn has_keys(&self) -> bool {
        self.repetition().repeat.is_some()
    }

    /// Whether the instances depend on expressions.
    pub fn has_expressions(&self) -> bool {
        !self.repetition().is_literal()
    }

    /// Whether its expressions decide which objects are desired.
    pub fn is_gate(&self) -> bool {
        let is_settled = matches!(self.expansion, Expansion::Known(_)) && !self.has_expressions();
        self.shared.is_desired() && !is_settled
    }

    /// Whether its expressions have not been evaluated yet.
    pub fn is_pending(&self) -> bool {
        matches!(self.expansion, Expansion::Pending)
    }

    pub fn is_disabled(&self) -> bool {
        matches!(self.expansion, Expansion::Known(InstanceKeys::Disabled))
    }

    /// The value of the whole family in expressions: a list for `count`, a map for `forEach`, and null for a disabled
    /// Resource. Instances without a value are omitted.
    pub fn value(&self, members: impl Iterator<Item = (InstanceKey, Option<Value>)>) -> Value {
        let mut members = members.filter_map(|(key, value)| Some((key, value?)));
        match &self.repetition().repeat {
            None => members.next().map_or(Value::Null, |(_, value)| value),
            Some(Repeat::Count(_)) => Value::list(members.map(|(_, value)| value)),
            Some(Repeat::ForEach(_)) => Value::map(members.filter_map(|(key, value)| match key {
                InstanceKey::Key(key) => Some((key, value)),
                _ => None,
            })),
        }
    }

    fn instance(&self, key: InstanceKey, value: Option<&Value>) -> Instance {
        let source = match &self.repetition().repeat {
            Some(Repeat::ForEach(template)) => Some(template),
            _ => None,
        };
        let each = value.zip(source).map(|(value, source)| EachValue { value: value.clone(), source: source.clone() });
        let mut instance = Instance {
            address: self.shared.address.stem.clone().instance(key),
            each: each.map(Arc::new),
            repetition: None,
            // The Resource reports these problems once.
            problems: Vec::new(),
            ..Instance::clone(&self.shared)
        };
        let (publish, mut problems) = publication::for_instance(&self.shared.publish, &instance.address.key);
        match self.repetition().import.as_ref().map(|import| import.of(instance.count(), instance.each())) {
            Some(Ok(request)) => instance.import = request,
            Some(Err(problem)) => problems.push(*problem),
            None => {}
        }
        for problem in &mut problems {
            problem.address = Some(instance.address.clone());
            problem.source = instance.source_of(problem.path.as_ref());
        }
        (instance.publish, instance.problems) = (publish, problems);
        instance
    }

    /// Returns an instance that is no longer desired, but has a record. `each.value` is unknown if its key was removed.
    pub fn former_instance(&self, key: &InstanceKey) -> Instance {
        self.instance(key.clone(), self.each_value(key))
    }

    /// The value of a key, as far as the keys are known.
    fn each_value(&self, key: &InstanceKey) -> Option<&Value> {
        match (&self.expansion, key) {
            (Expansion::Known(InstanceKeys::Keys(keys)), InstanceKey::Key(key)) => keys.get(key),
            _ => None,
        }
    }

    /// The desired instances, as far as they are known.
    pub(crate) fn instances(&self) -> Vec<Instance> {
        let Expansion::Known(members) = &self.expansion else { return Vec::new() };
        if !self.shared.is_desired() {
            return Vec::new();
        }
        members.keys().map(|key| self.instance(key.clone(), self.each_value(&key))).collect()
    }
}

impl Instance {
    /// Returns what a Resource, or the instances of a family as far as they are known, import.
    pub fn imports(self: &Arc<Self>) -> Vec<(Address, ImportRequest)> {
        let Some(repetition) = self.repetition.as_ref().filter(|repetition| repetition.import.is_some()) else {
            return self.import.iter().map(|request| (self.address.clone(), request.clone())).collect();
        };
        let instances = Family::new(Arc::clone(self), repetition).instances();
        instances.into_iter().filter_map(|instance| Some((instance.address, instance.import?))).collect()
    }

    /// Whether it imports objects.
    pub fn has_import(&self) -> bool {
        self.import.is_some() || self.repetition.as_ref().is_some_and(|repetition| repetition.import.is_some())
    }
}

/// The scope of expressions without references.
struct EmptyScope;

impl Scope for EmptyScope {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Null
    }
}

//! Resources that stand for several objects, or for none: the Resource, and the instances that come of it.

use std::sync::Arc;

use super::expression::Scope;
use super::own::Own;
use super::publication;
use super::repetition::{Made, Members, Repeat, Repetition};
use super::{Each, Instance};
use crate::model::{Address, Diagnostic, Diagnostics, InstanceKey, Severity, Value};

/// A Resource with a [`Repetition`].
#[derive(Clone, Debug)]
pub struct Family {
    /// What all instances share; its address is that of the Resource.
    pub shared: Arc<Instance>,
    /// Which instances there are, as far as that is known.
    pub expansion: Expansion,
}

/// Which instances there are.
#[derive(Clone, Debug)]
pub enum Expansion {
    /// An expression tells it, which was not evaluated yet.
    Open,
    /// These.
    Known(Members),
    /// The Resource cannot be understood: what is recorded of it stays as it is.
    Failed(Diagnostics),
}

impl Family {
    /// A Resource that says how many objects it stands for.
    pub(super) fn new(shared: Arc<Instance>, repetition: &Repetition) -> Self {
        let errors = || shared.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let expansion = if errors().next().is_some() {
            Expansion::Failed(errors().cloned().collect())
        } else if !repetition.is_literal() && shared.is_wanted() && !shared.inputs.problems.is_empty() {
            // Which instances there are may hang on an input that is not there.
            Expansion::Failed(shared.inputs.problems.clone())
        } else if !repetition.is_literal() {
            Expansion::Open
        } else {
            match repetition.evaluate(&Own { instance: &shared, others: &Nothing }) {
                Ok(Made::Members(members)) => Expansion::Known(members),
                Ok(Made::Unknown(_)) => Expansion::Open,
                Err(problems) => {
                    let address = Some(shared.address.clone());
                    let own = |problem| Diagnostic { address: address.clone(), ..problem };
                    Expansion::Failed(problems.into_iter().map(own).collect())
                }
            }
        };
        Self { shared, expansion }
    }

    /// How many objects the Resource stands for, as it is written.
    pub fn repetition(&self) -> &Repetition {
        self.shared.repetition.as_deref().expect("a family is made of a Resource with a repetition")
    }

    /// Which instances there are, as far as others are known. An error names its field and no address.
    ///
    /// # Errors
    /// An expression failed, or gave what says nothing about instances.
    pub fn evaluate(&self, others: &dyn Scope) -> Result<Made, Diagnostics> {
        self.repetition().evaluate(&Own { instance: &self.shared, others })
    }

    /// Whether its instances have keys.
    pub fn has_keys(&self) -> bool {
        self.repetition().repeat.is_some()
    }

    /// Whether expressions tell which instances there are.
    pub fn is_evaluated(&self) -> bool {
        !self.repetition().is_literal()
    }

    /// Whether its expressions are not evaluated yet.
    pub fn is_open(&self) -> bool {
        matches!(self.expansion, Expansion::Open)
    }

    /// Whether it is disabled.
    pub fn is_disabled(&self) -> bool {
        matches!(self.expansion, Expansion::Known(Members::Disabled))
    }

    /// What expressions see of the whole family: a list of a `count` family, a map of a `forEach` family, null of a
    /// disabled Resource. An instance without a value is left out.
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
        let each = value.zip(source).map(|(value, source)| Each { value: value.clone(), source: source.clone() });
        let mut instance = Instance {
            address: Address { name: self.shared.address.name.clone(), key },
            each: each.map(Arc::new),
            repetition: None,
            // What is wrong with the Resource is told once, of the Resource.
            problems: Vec::new(),
            ..Instance::clone(&self.shared)
        };
        let (publish, problems) = publication::of_instance(&self.shared.publish, &instance.address.key);
        let (address, source) = (&instance.address, &instance.source);
        let own = |problem| Diagnostic { address: Some(address.clone()), source: source.clone(), ..problem };
        let problems = problems.into_iter().map(own).collect();
        (instance.publish, instance.problems) = (publish, problems);
        instance
    }

    /// The wanted instances, as far as they are known.
    pub(super) fn instances(&self) -> Vec<Instance> {
        let Expansion::Known(members) = &self.expansion else { return Vec::new() };
        if !self.shared.is_wanted() {
            return Vec::new();
        }
        let value = |key: &InstanceKey| match (members, key) {
            (Members::Keys(keys), InstanceKey::Key(key)) => keys.get(key),
            _ => None,
        };
        members.keys().map(|key| self.instance(key.clone(), value(&key))).collect()
    }
}

/// A scope for what reads nothing.
struct Nothing;

impl Scope for Nothing {
    fn object(&self, _: &Address) -> Option<Value> {
        None
    }

    fn namespace(&self) -> Value {
        Value::Null
    }
}

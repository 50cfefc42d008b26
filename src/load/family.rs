//! Resources that stand for several objects, or for none: `count`, `forEach`, `enabled`.
//!
//! Takes what a Resource says and, where that is an expression, a scope; gives the instances that are wanted. It does
//! not decide when an expression can be evaluated: that is the planner's, since it may hang on what a plan does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expression::Scope;
use super::own::Own;
use super::publish;
use super::{Choice, Config, Each, Instance, Reference, Template};
use crate::model::{Address, Diagnostic, Diagnostics, InstanceKey, Number, Path, Reason, Segment, Severity, Value};

/// The most instances of one Resource: far more than anybody has reviewed, and few enough that a mistyped number does
/// not fill a cluster.
pub const MOST_INSTANCES: usize = 10_000;

/// The longest key of a `forEach`, in bytes: as long as the longest name in Kubernetes.
const LONGEST_KEY: usize = 253;

/// How many objects a Resource stands for, as it is written.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// `count` or `forEach`; `None`: one object without a key.
    pub repeat: Option<Repeat>,
    /// `enabled` or `enabledWhen`; `None`: it is enabled.
    pub enabled: Option<Template>,
    /// What these refer to.
    pub references: Arc<[Reference]>,
}

/// `count` or `forEach`.
#[derive(Clone, Debug)]
pub enum Repeat {
    /// So many, with the keys 0, 1, ...
    Count(Template),
    /// One for each key of a map, or for each text of a list.
    ForEach(Template),
}

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

/// The instances of a Resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// None: `enabled` is false.
    Disabled,
    /// The one without a key.
    One,
    /// So many, numbered from 0.
    Count(u64),
    /// These keys, each with its value, which may hold unknown places.
    Keys(BTreeMap<Arc<str>, Value>),
}

/// What became of evaluating a [`Repetition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// The instances.
    Members(Members),
    /// Not known before something was applied: the field.
    Unknown(Path),
}

impl Members {
    /// The keys, in order.
    pub fn keys(&self) -> Box<dyn Iterator<Item = InstanceKey> + '_> {
        match self {
            Self::Disabled => Box::new(std::iter::empty()),
            Self::One => Box::new(std::iter::once(InstanceKey::None)),
            Self::Count(count) => Box::new((0..*count).map(InstanceKey::Index)),
            Self::Keys(keys) => Box::new(keys.keys().cloned().map(InstanceKey::Key)),
        }
    }

    /// Whether both have the same keys, whatever the values are.
    pub fn same_keys(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keys(a), Self::Keys(b)) => a.keys().eq(b.keys()),
            (a, b) => a == b,
        }
    }
}

impl Repetition {
    /// Which instances there are. An error names its field and no address.
    ///
    /// # Errors
    /// An expression failed, or gave what says nothing about instances.
    pub fn evaluate(&self, shared: &Instance, others: &dyn Scope) -> Result<Made, Diagnostics> {
        let scope = Own { instance: shared, others };
        if let Some(enabled) = &self.enabled {
            let field = if enabled.as_literal().is_some() { "enabled" } else { "enabledWhen" };
            let at = spec(field);
            let value = enabled.evaluate(&scope).map_err(|problems| placed(problems, &at))?;
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(Made::Members(Members::Disabled)),
                Value::Unknown => return Ok(Made::Unknown(at)),
                Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                other => {
                    let what = format!("it is {}, and must be true or false", describe(&other));
                    return Err(vec![wrong(at, what, "compare it: `${a == b}`")]);
                }
            }
        }
        let (template, at) = match &self.repeat {
            None => return Ok(Made::Members(Members::One)),
            Some(Repeat::Count(template)) => (template, spec("count")),
            Some(Repeat::ForEach(template)) => (template, spec("forEach")),
        };
        let value = template.evaluate(&scope).map_err(|problems| placed(problems, &at))?;
        if matches!(value.unmarked(), Value::Unknown) {
            return Ok(Made::Unknown(at));
        }
        match &self.repeat {
            Some(Repeat::Count(_)) => count(&value, at).map(|count| Made::Members(Members::Count(count))),
            _ => keys(&value, at),
        }
    }

    /// Whether nothing has to be evaluated.
    fn is_literal(&self) -> bool {
        let repeat = self.repeat.as_ref().map(|(Repeat::Count(template) | Repeat::ForEach(template))| template);
        self.enabled.iter().chain(repeat).all(|template| template.as_literal().is_some())
    }
}

impl Family {
    /// A Resource that says how many objects it stands for.
    fn new(shared: Arc<Instance>, repetition: &Repetition) -> Self {
        let errors = || shared.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let expansion = if errors().next().is_some() {
            Expansion::Failed(errors().cloned().collect())
        } else if !repetition.is_literal() && shared.is_wanted() && !shared.inputs.problems.is_empty() {
            // Which instances there are may hang on an input that is not there.
            Expansion::Failed(shared.inputs.problems.clone())
        } else if !repetition.is_literal() {
            Expansion::Open
        } else {
            match repetition.evaluate(&shared, &Nothing) {
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
        let (publish, problems) = publish::of_instance(&self.shared.publish, &instance.address.key);
        let (address, source) = (&instance.address, &instance.source);
        let own = |problem| Diagnostic { address: Some(address.clone()), source: source.clone(), ..problem };
        let problems = problems.into_iter().map(own).collect();
        (instance.publish, instance.problems) = (publish, problems);
        instance
    }

    /// The wanted instances, as far as they are known.
    fn instances(&self) -> Vec<Instance> {
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

impl Config {
    /// Adds a Resource: its instance, or its family and the instances that are known at once. Call [`Config::link`]
    /// when all are there.
    pub fn add(&mut self, resource: Arc<Instance>) {
        let Some(repetition) = &resource.repetition else {
            self.instances.insert(resource.address.clone(), resource);
            return;
        };
        let family = Family::new(resource.clone(), repetition);
        self.instances.extend(family.instances().into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        self.families.insert(resource.address.name.clone(), Arc::new(family));
    }

    /// The instances of a Resource, in order.
    pub fn family<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Address> {
        let from = self.instances.range(Address::single(name)..);
        from.map(|(address, _)| address).take_while(move |address| *address.name == *name)
    }

    /// Takes a Resource out, with all its instances.
    pub fn remove(&mut self, name: &Arc<str>) {
        self.families.remove(name);
        self.instances.retain(|address, _| address.name != *name);
    }

    /// The names of all Resources, in order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let singles = self.instances.keys().filter(|address| !self.families.contains_key(&address.name));
        singles.map(|address| &address.name).chain(self.families.keys()).collect::<BTreeSet<_>>().into_iter()
    }

    /// Whether there is no Resource.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.families.is_empty()
    }

    /// The Resource of an address, with what all of its instances share.
    pub fn resource(&self, address: &Address) -> Option<&Arc<Instance>> {
        self.instances.get(address).or_else(|| self.families.get(&address.name).map(|family| &family.shared))
    }

    /// The same with families whose instances are known by now.
    #[must_use]
    pub fn expanded(&self, expansions: &BTreeMap<Arc<str>, Members>) -> Self {
        let mut config = self.clone();
        for (name, members) in expansions {
            let Some(family) = config.families.get_mut(name) else { continue };
            Arc::make_mut(family).expansion = Expansion::Known(members.clone());
            let made = family.instances();
            config.instances.extend(made.into_iter().map(|made| (made.address.clone(), Arc::new(made))));
        }
        config.link();
        config
    }

    /// Lets references name instances where the Resource that they name turns out to be a family. To be called again
    /// whenever instances were added.
    pub fn link(&mut self) {
        self.provide();
        let keyed: BTreeSet<Arc<str>> =
            self.families.iter().filter(|(_, family)| family.has_keys()).map(|(name, _)| name.clone()).collect();
        if keyed.is_empty() {
            return;
        }
        for instance in self.instances.values_mut() {
            if let Some(references) = linked(instance, &instance.references, &keyed) {
                Arc::make_mut(instance).references = references;
            }
        }
        for family in self.families.values_mut() {
            let Some(repetition) = &family.shared.repetition else { continue };
            let Some(references) = linked(&family.shared, &repetition.references, &keyed) else { continue };
            let repetition = Arc::new(Repetition { references, ..Repetition::clone(repetition) });
            let shared = Arc::new(Instance { repetition: Some(repetition), ..Instance::clone(&family.shared) });
            Arc::make_mut(family).shared = shared;
        }
    }
}

/// The references with the instances that they mean, when any of them means another target than it has now.
fn linked(instance: &Instance, references: &[Reference], keyed: &BTreeSet<Arc<str>>) -> Option<Arc<[Reference]>> {
    let target = |reference: &Reference| {
        let name = &reference.target.name;
        if !keyed.contains(name) {
            return Address::single(name.clone());
        }
        let key = reference.choice.as_ref().and_then(|choice| chosen(instance, choice)).unwrap_or(InstanceKey::All);
        Address { name: name.clone(), key }
    };
    if references.iter().all(|reference| target(reference) == reference.target) {
        return None;
    }
    let mut linked: Vec<Reference> =
        references.iter().map(|reference| Reference { target: target(reference), ..reference.clone() }).collect();
    linked.sort();
    Some(linked.into())
}

/// The instance that an expression of `instance` names; `None` when only the whole family can be meant, since the
/// choice hangs on a value that is not known yet.
fn chosen(instance: &Instance, choice: &Choice) -> Option<InstanceKey> {
    let key = match choice {
        Choice::Instance(Segment::Name(key)) => return Some(InstanceKey::Key(key.clone())),
        Choice::Instance(Segment::Index(index)) => return Some(InstanceKey::Index(*index as u64)),
        Choice::By(variable, segments) => {
            let value = match variable {
                super::expression::Variable::Count => instance.count(),
                super::expression::Variable::Each => instance.each(),
                _ => None,
            };
            value?.at(&Path(segments.to_vec()))?
        }
    };
    match key.unmarked() {
        Value::String(key) => Some(InstanceKey::Key(key.clone())),
        Value::Number(Number::Int(index)) => u64::try_from(*index).ok().map(InstanceKey::Index),
        _ => None,
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

fn count(value: &Value, at: Path) -> Result<u64, Diagnostics> {
    if matches!(value, Value::Sensitive(_)) {
        return Err(vec![sensitive(at)]);
    }
    let number = match value {
        Value::Number(Number::Int(number)) => Some(*number),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        let found = match value {
            Value::Number(number) => number.to_string(),
            other => describe(other).to_owned(),
        };
        let what = format!("it is {found}, and must be a whole number");
        let hint = match value {
            Value::String(_) => "an expression is written as `${...}`",
            _ => "for no object at all write 0",
        };
        return Err(vec![wrong(at, what, hint)]);
    };
    let Ok(count) = u64::try_from(number) else {
        return Err(vec![wrong(at, format!("it is {number}, and cannot be negative"), "for no object at all write 0")]);
    };
    match usize::try_from(count) {
        Ok(count) if count <= MOST_INSTANCES => Ok(count as u64),
        _ => Err(vec![too_many(at, count)]),
    }
}

fn keys(value: &Value, at: Path) -> Result<Made, Diagnostics> {
    let mut keys = BTreeMap::new();
    match value {
        Value::Map(map) => keys.extend(map.iter().map(|(key, value)| (key.clone(), value.clone()))),
        Value::List(items) => {
            for item in items.iter() {
                let key = match item {
                    Value::String(key) => key,
                    Value::Unknown => return Ok(Made::Unknown(at)),
                    Value::Sensitive(_) => return Err(vec![sensitive(at)]),
                    other => {
                        let what = format!("the list holds {}, and must hold texts", describe(other));
                        return Err(vec![wrong(at, what, "or give a map, whose values `each.value` tells")]);
                    }
                };
                if keys.insert(key.clone(), item.clone()).is_some() {
                    let what = format!("the key `{key}` is in the list twice");
                    return Err(vec![wrong(at, what, "`distinct()` leaves each once")]);
                }
            }
        }
        Value::Sensitive(_) => return Err(vec![sensitive(at)]),
        other => {
            let what = format!("it is {}, and must be a map or a list of texts", describe(other));
            let hint = match other {
                Value::String(_) => "an expression is written as `${...}`",
                _ => "for no object at all write `{}`",
            };
            return Err(vec![wrong(at, what, hint)]);
        }
    }
    if keys.len() > MOST_INSTANCES {
        return Err(vec![too_many(at, keys.len() as u64)]);
    }
    let unfit = |key: &&Arc<str>| key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control);
    if let Some(key) = keys.keys().find(unfit) {
        let hint = format!("keys have 1 to {LONGEST_KEY} bytes, none of them control characters");
        return Err(vec![wrong(at, format!("{} cannot be a key", serde_json::Value::from(key.as_ref())), &hint)]);
    }
    Ok(Made::Members(Members::Keys(keys)))
}

fn describe(value: &Value) -> &'static str {
    super::expression::kind(value)
}

fn wrong(at: Path, what: impl Into<String>, hint: &str) -> Diagnostic {
    Diagnostic::general(Reason::InvalidRepetition, what).at(at).hint(hint)
}

fn sensitive(at: Path) -> Diagnostic {
    wrong(
        at,
        "a sensitive value cannot tell which objects there are",
        "keys and numbers of objects are shown everywhere",
    )
}

fn too_many(at: Path, count: u64) -> Diagnostic {
    wrong(
        at,
        format!("{count} objects are more than the {MOST_INSTANCES} that one Resource may stand for"),
        "use several Resources",
    )
}

fn spec(field: &'static str) -> Path {
    Path::default().name("spec").name(field)
}

/// Problems of an expression, with the field that it stands in.
fn placed(problems: Diagnostics, at: &Path) -> Diagnostics {
    let below = |problem: Diagnostic| {
        let mut path = at.clone();
        path.0.extend(problem.path.iter().flat_map(|path| path.0.iter().cloned()));
        problem.at(path)
    };
    problems.into_iter().map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::source::read_texts;

    fn config(specs: &[(&str, &str)]) -> Config {
        let document = |(name, spec): &(&str, &str)| {
            format!(
                "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: {name}}}\nspec: {{type: t, {spec}}}\n---\n"
            )
        };
        read_texts(&[("f.yaml", &specs.iter().map(document).collect::<String>())]).config
    }

    fn told(config: &Config) -> Vec<String> {
        let told = |(address, instance): (&Address, &Arc<Instance>)| {
            let targets: Vec<String> = instance.references.iter().map(|r| r.target.to_string()).collect();
            format!("{address}: {}", targets.join(" "))
        };
        config.instances.iter().map(told).collect()
    }

    #[test]
    fn references_name_instances_where_the_place_tells_which() {
        let config = config(&[
            ("a", "forEach: {x: 1, y: 2}"),
            ("n", "count: 2"),
            ("s", "config: {x: 1}"),
            ("b", "forEach: [x, y], config: {v: ['${a[each.key].id}', \"${a['x'].id + a.y.id}\", '${s[each.key]}']}"),
            ("c", "count: 1, config: {v: ['${n[count.index].id}', '${size(n)}', '${has(a.x)}', '${n[0].id + 1}']}"),
            ("d", "dependsOn: [{name: a}], config: {v: '${n[7].id}'}"),
        ]);
        let found = told(&config);
        let expected = [
            r#"a["x"]: "#,
            r#"a["y"]: "#,
            r#"b["x"]: a["x"] a["x"] a["y"] s"#,
            r#"b["y"]: a["x"] a["y"] a["y"] s"#,
            "c[0]: a n n[0] n[0]",
            "d: a n[7]",
            "n[0]: ",
            "n[1]: ",
            "s: ",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_instance_chosen_by_a_value_that_is_not_known_yet_means_the_whole_family() {
        let mut config = config(&[
            ("a", "forEach: [x]"),
            ("b", "forEach: '${s.all}', config: {v: '${a[each.value].id}', w: '${a[each.key].id}'}"),
        ]);
        let keys = BTreeMap::from([("x".into(), Value::Unknown), ("z".into(), Value::from("x"))]);
        config = config.expanded(&BTreeMap::from([("b".into(), Members::Keys(keys))]));
        assert_eq!(told(&config), [r#"a["x"]: "#, r#"b["x"]: a a["x"] s"#, r#"b["z"]: a["x"] a["z"] s"#]);
    }

    #[test]
    fn what_hangs_on_expressions_stays_open() {
        let config = config(&[("a", "count: '${b.n}'"), ("b", "enabled: false"), ("c", "enabledWhen: '${a == []}'")]);
        assert!(config.instances.is_empty() && !config.is_empty());
        assert!(config.families["a"].is_open() && config.families["b"].is_disabled() && config.families["c"].is_open());
        assert_eq!(config.names().map(AsRef::as_ref).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

//! Desired states, drawn from dice, as the YAML that a user would write.

mod edits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use purlin::model::{Address, InstanceKey};

use super::world::TYPE;
use crate::kit::Dice;

/// How many objects a Resource stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Repeat {
    /// One, without a key.
    #[default]
    One,
    /// `count`.
    Count(u64),
    /// `forEach`: the keys, each with its value.
    Keys(BTreeMap<&'static str, usize>),
}

/// What a reference means, should its target be a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// All of it. Of a Resource without keys: its object, or nothing when it is disabled.
    Whole,
    /// The instance with the key of the instance that refers to it.
    Same,
    /// The instance with the key of that number.
    At(usize),
}

/// What a reference comes to.
#[derive(Clone, Debug)]
pub(super) enum Meant {
    /// An instance, which may not exist.
    One(Address),
    /// An instance if it is there, otherwise a word that says that it is not.
    IfThere(Address),
    /// These instances.
    All(Vec<Address>),
}

/// Which part of a Resource is meant.
enum Part {
    /// All of it, or its only one.
    Whole,
    /// The instance with the key of the one that refers to it.
    WithSameKey,
    /// The instance with this key.
    With(InstanceKey),
}

const KEYS: [&str; 3] = ["x", "y", "z"];

/// What stands in the place of the object of a disabled Resource.
pub(super) const NOTHING: &str = "nothing";

/// One wanted Resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Want {
    pub label: usize,
    pub shape: usize,
    /// Objects whose id it holds; can be changed in place.
    pub links: BTreeSet<String>,
    /// Objects whose id it holds; a change replaces.
    pub anchors: BTreeSet<String>,
    /// Objects whose `echo` it holds, which every update changes.
    pub notes: BTreeSet<String>,
    /// `dependsOn`.
    pub after: BTreeSet<String>,
    /// `replaceTriggeredBy`.
    pub triggers: BTreeSet<String>,
    pub create_first: Option<bool>,
    pub prevent_destroy: bool,
    /// The protection is written as an expression.
    pub by_expression: bool,
    /// What `managementPolicies` does not hold: of `Update` and `Replace`.
    pub forbids: BTreeSet<&'static str>,
    pub orphan: bool,
    pub suspended: bool,
    /// Arguments named by `ignoreChanges`: of `label` and `shape`.
    pub ignores: BTreeSet<&'static str>,
    /// Being deleted, though its manifest is still there.
    pub deleting: bool,
    pub repeat: Repeat,
    /// `enabled`, when it is given.
    pub enabled: Option<bool>,
    /// What tells the instances is written as an expression.
    pub is_evaluated: bool,
    /// By target: what is meant of it.
    pub picks: BTreeMap<String, Pick>,
    /// A precondition, if any.
    pub before: Option<Doubt>,
    /// A postcondition, if any.
    pub after_all: Option<Doubt>,
    /// A hook after a create; whether it may fail.
    pub warm_up: Option<bool>,
    /// A hook before a destroy; whether it may fail.
    pub drain: Option<bool>,
    /// Names that it had before, the newest first.
    pub moved_from: Vec<String>,
    /// The id of what exists already and is to be adopted.
    pub import: Option<String>,
}

/// What is asked by a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// What never holds.
    Never,
    /// Something that every update may change, of itself or of the first object that it reads.
    Perhaps,
}

impl Want {
    /// The keys of its instances.
    pub(super) fn keys(&self) -> Vec<InstanceKey> {
        match &self.repeat {
            _ if self.enabled == Some(false) => Vec::new(),
            Repeat::One => vec![InstanceKey::None],
            Repeat::Count(count) => (0..*count).map(InstanceKey::Index).collect(),
            Repeat::Keys(keys) => keys.keys().map(|key| InstanceKey::Key((*key).into())).collect(),
        }
    }

    /// What is to be adopted; a Resource with keys says nothing of that.
    pub(super) fn adopts(&self) -> Option<&String> {
        self.import.as_ref().filter(|_| !self.has_keys())
    }

    pub(super) fn has_keys(&self) -> bool {
        self.repeat != Repeat::One
    }

    /// What `want` refers to of this Resource, `target`.
    fn meant(&self, want: &Self, target: &str) -> Part {
        let alike = matches!(
            (&self.repeat, &want.repeat),
            (Repeat::Count(_), Repeat::Count(_)) | (Repeat::Keys(_), Repeat::Keys(_))
        );
        match (want.picks.get(target), &self.repeat) {
            (Some(Pick::At(at)), Repeat::Count(_)) => Part::With(InstanceKey::Index(*at as u64)),
            (Some(Pick::At(at)), Repeat::Keys(_)) => Part::With(InstanceKey::Key(KEYS[*at].into())),
            (Some(Pick::Same), _) if alike => Part::WithSameKey,
            _ => Part::Whole,
        }
    }

    /// `count` or `forEach`, and `enabled`, as lines of the spec.
    fn repetition(&self) -> String {
        let mut text = match (&self.repeat, self.is_evaluated) {
            (Repeat::One, _) => String::new(),
            (Repeat::Count(count), false) => format!("  count: {count}\n"),
            (Repeat::Count(count), true) => format!("  count: '${{{count} + 0}}'\n"),
            (Repeat::Keys(keys), evaluated) => {
                let all: Vec<String> = keys.iter().map(|(key, value)| format!("\"{key}\": \"v{value}\"")).collect();
                let map = format!("{{{}}}", all.join(", "));
                if evaluated { format!("  forEach: '${{{map}}}'\n") } else { format!("  forEach: {map}\n") }
            }
        };
        match (self.enabled, self.is_evaluated) {
            (None, _) => {}
            (Some(enabled), false) => writeln!(text, "  enabled: {enabled}").unwrap(),
            (Some(enabled), true) => {
                writeln!(text, "  enabledWhen: '${{1 == {}}}'", if enabled { 1 } else { 2 }).unwrap();
            }
        }
        text
    }

    fn label_text(&self) -> String {
        match &self.repeat {
            Repeat::One => format!("l{}", self.label),
            Repeat::Count(_) => format!("'l{} ${{count.index}}'", self.label),
            Repeat::Keys(_) => format!("'l{} ${{each.key}} ${{each.value}}'", self.label),
        }
    }

    /// `label` of an instance.
    pub(super) fn label_of(&self, key: &InstanceKey) -> String {
        let value = |key: &str| match &self.repeat {
            Repeat::Keys(keys) => keys.get(key).copied().unwrap_or_default(),
            _ => 0,
        };
        match key {
            InstanceKey::None | InstanceKey::All => format!("l{}", self.label),
            InstanceKey::Index(index) => format!("l{} {index}", self.label),
            InstanceKey::Key(key) => format!("l{} {key} v{}", self.label, value(key)),
        }
    }

    fn references(&mut self) -> [&mut BTreeSet<String>; 5] {
        [&mut self.links, &mut self.anchors, &mut self.notes, &mut self.after, &mut self.triggers]
    }

    fn let_go(&mut self, target: &str) {
        for targets in self.references() {
            targets.remove(target);
        }
    }

    /// Everything that it refers to.
    pub(super) fn targets(&self) -> BTreeSet<String> {
        [&self.links, &self.anchors, &self.notes, &self.after, &self.triggers].into_iter().flatten().cloned().collect()
    }
}

/// A desired state.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub wants: BTreeMap<String, Want>,
    /// References lead from a higher rank to a lower one, so that there is no ring.
    rank: BTreeMap<String, usize>,
    generation: i64,
    /// How many names there are.
    size: usize,
    /// Of a hundred Resources so many stand for several objects, or can be disabled.
    families: usize,
    /// Of a hundred edits so many are about conditions, about hooks, and about names.
    conditions: usize,
    hooks: usize,
    renames: usize,
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

impl Wish {
    pub(super) fn new(dice: &Dice) -> Self {
        let families = [0, 30, 70][dice.below(3)];
        let most = if families > 0 { NAMES.len() / 2 } else { NAMES.len() };
        let [conditions, hooks, renames] = [(); 3].map(|()| [0, 0, 10][dice.below(3)]);
        let size = 2 + dice.below(most - 1);
        let mut wish = Self { size, families, conditions, hooks, renames, ..Self::default() };
        wish.shuffle(dice);
        for name in wish.names() {
            if dice.chance(75) {
                wish.add(dice, name);
            }
        }
        wish
    }

    fn names(&self) -> Vec<&'static str> {
        NAMES[..self.size].to_vec()
    }

    /// Counts the states; every edit makes a new one.
    pub(super) fn generation(&self) -> i64 {
        self.generation
    }

    /// The Resource of an instance that is wanted.
    pub(super) fn wanted(&self, x: &Address) -> Option<&Want> {
        self.configured(x).filter(|want| !want.deleting)
    }

    /// The Resource of an instance that it asks for, be it that it is being deleted.
    pub(super) fn configured(&self, x: &Address) -> Option<&Want> {
        self.wants.get(&*x.name).filter(|want| want.keys().contains(&x.key))
    }

    /// Every instance that some Resource asks for, also one that is being deleted.
    pub(super) fn instances(&self) -> BTreeSet<Address> {
        let of = |(name, want): (&String, &Want)| {
            let name: std::sync::Arc<str> = name.as_str().into();
            want.keys().into_iter().map(|key| Address { name: name.clone(), key }).collect::<Vec<_>>()
        };
        self.wants.iter().flat_map(of).collect()
    }

    /// The instances of one Resource that are wanted.
    pub(super) fn members(&self, name: &str) -> Vec<Address> {
        let want = self.wants.get(name).filter(|want| !want.deleting);
        let keys = want.map(Want::keys).unwrap_or_default();
        keys.into_iter().map(|key| Address { name: name.into(), key }).collect()
    }

    /// What a reference of `x` to a Resource means, as it is recorded: an instance, or the name of all.
    pub(super) fn meaning(&self, x: &Address, target: &str) -> Address {
        let part = self.wants.get(target).zip(self.wants.get(&*x.name)).map(|(of, want)| of.meant(want, target));
        let key = match part {
            Some(Part::With(key)) => key,
            Some(Part::WithSameKey) => x.key.clone(),
            Some(Part::Whole) if self.wants[target].has_keys() => InstanceKey::All,
            Some(Part::Whole) | None => InstanceKey::None,
        };
        Address { name: target.into(), key }
    }

    /// What is to be recorded as the direct dependencies of an instance.
    pub(super) fn references(&self, x: &Address) -> BTreeSet<Address> {
        let Some(want) = self.wants.get(&*x.name) else { return BTreeSet::new() };
        let read = [&want.links, &want.anchors, &want.notes, &want.triggers].into_iter().flatten();
        let whole = want.after.iter().map(|target| match self.wants.get(target) {
            Some(of) if of.has_keys() => Address::whole(target.as_str()),
            _ => Address::single(target.as_str()),
        });
        read.map(|target| self.meaning(x, target)).chain(whole).collect()
    }

    /// The instances that an instance is triggered by, each with the entry that names it: what another entry saw of it
    /// does not count.
    pub(super) fn triggers(&self, x: &Address) -> BTreeSet<String> {
        let Some(want) = self.wants.get(&*x.name) else { return BTreeSet::new() };
        let mut all = BTreeSet::new();
        for target in &want.triggers {
            let meaning = self.meaning(x, target);
            let entry = self.expression(want, target, None);
            let targets = if meaning.is_instance() { vec![meaning] } else { self.members(target) };
            let targets = targets.into_iter().filter(|target| self.wanted(target).is_some());
            all.extend(targets.map(|target| format!("{target} by {entry}")));
        }
        all
    }

    /// What the expression of `x` that reads a Resource comes to.
    pub(super) fn meant(&self, x: &Address, target: &str) -> Meant {
        let meaning = self.meaning(x, target);
        match self.wants.get(target) {
            Some(_) if meaning.key == InstanceKey::All => Meant::All(self.members(target)),
            Some(_) if !meaning.is_instance() && self.wants[&*x.name].picks.contains_key(target) => {
                Meant::IfThere(meaning)
            }
            _ => Meant::One(meaning),
        }
    }

    /// The expression with which a Resource reads an attribute of another one, or all of it.
    fn expression(&self, want: &Want, target: &str, attribute: Option<&str>) -> String {
        let attribute = attribute.map(|name| format!(".{name}")).unwrap_or_default();
        let Some(of) = self.wants.get(target) else { return format!("{target}{attribute}") };
        match (of.meant(want, target), &of.repeat) {
            (Part::With(key), _) => format!("{target}{key}{attribute}"),
            (Part::WithSameKey, Repeat::Count(_)) => format!("{target}[count.index]{attribute}"),
            (Part::WithSameKey, _) => format!("{target}[each.key]{attribute}"),
            (Part::Whole, _) if attribute.is_empty() => target.to_owned(),
            (Part::Whole, Repeat::Count(_)) => format!("{target}.map(one, one{attribute})"),
            (Part::Whole, Repeat::Keys(_)) => format!("{target}.map(key, {target}[key]{attribute})"),
            (Part::Whole, Repeat::One) if want.picks.contains_key(target) => {
                format!("has({target}{attribute}) ? {target}{attribute} : \"{NOTHING}\"")
            }
            (Part::Whole, Repeat::One) => format!("{target}{attribute}"),
        }
    }

    /// The manifests, without what says nothing.
    pub(super) fn yaml(&self) -> String {
        self.wants.iter().map(|(name, want)| self.manifest(name, want)).collect()
    }

    fn manifest(&self, name: &str, want: &Want) -> String {
        let moved = match want.moved_from.as_slice() {
            [] => String::new(),
            names => format!(", annotations: {{ purlin.dev/moved-from: \"{}\" }}", names.join(",")),
        };
        let mut text = format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name}{moved} }}\nspec:\n  type: {TYPE}\n{}  \
             config:\n    label: {}\n    shape: s{}\n",
            want.repetition(),
            want.label_text(),
            want.shape,
        );
        let mut list = |argument: &str, targets: &BTreeSet<String>, attribute: &str| {
            let read = |target: &String| format!("'${{{}}}'", self.expression(want, target, Some(attribute)));
            let all = targets.iter().map(read).collect::<Vec<_>>().join(", ");
            writeln!(text, "    {argument}: [{all}]").unwrap();
        };
        list("links", &want.links, "id");
        list("anchors", &want.anchors, "id");
        list("notes", &want.notes, "echo");
        for target in want.after.iter().take(1) {
            let others = want.after.iter().skip(1).map(|target| format!(", {{ name: {target} }}")).collect::<String>();
            writeln!(text, "  dependsOn: [{{ name: {target} }}{others}]").unwrap();
        }
        let lifecycle = self.lifecycle(want);
        if !lifecycle.is_empty() {
            writeln!(text, "  lifecycle: {{ {} }}", lifecycle.join(", ")).unwrap();
        }
        if want.warm_up.is_some() || want.drain.is_some() {
            text.push_str("  hooks:\n");
        }
        for (hook, when, may_fail) in [("warm-up", "AfterCreate", want.warm_up), ("drain", "BeforeDestroy", want.drain)]
        {
            if let Some(may_fail) = may_fail {
                let policy = if may_fail { "Continue" } else { "Fail" };
                let exec = format!("exec: {{ command: [{hook}] }}");
                writeln!(text, "  - {{ name: {hook}, when: {when}, onFailure: {policy}, {exec} }}").unwrap();
            }
        }
        if want.orphan {
            text.push_str("  deletionPolicy: Orphan\n");
        }
        if want.suspended {
            text.push_str("  suspend: true\n");
        }
        if let Some(id) = want.adopts() {
            writeln!(text, "  import: {{ id: '{id}' }}").unwrap();
        }
        if !want.forbids.is_empty() {
            let policies = ["Observe", "Create", "Update", "Replace", "Delete"];
            let allowed: Vec<&str> = policies.into_iter().filter(|policy| !want.forbids.contains(policy)).collect();
            writeln!(text, "  managementPolicies: [{}]", allowed.join(", ")).unwrap();
        }
        text
    }

    fn lifecycle(&self, want: &Want) -> Vec<String> {
        let mut lifecycle: Vec<String> =
            want.create_first.map(|flag| format!("createBeforeDestroy: {flag}")).into_iter().collect();
        match (want.by_expression, want.prevent_destroy) {
            (false, false) => {}
            (false, true) => lifecycle.push("preventDestroy: true".into()),
            (true, prevent) => {
                lifecycle.push(format!("preventDestroyWhen: \"${{1 == {}}}\"", if prevent { 1 } else { 2 }));
            }
        }
        if !want.triggers.is_empty() {
            let triggers: Vec<String> =
                want.triggers.iter().map(|target| format!("'{}'", self.expression(want, target, None))).collect();
            lifecycle.push(format!("replaceTriggeredBy: [{}]", triggers.join(", ")));
        }
        let other =
            want.links.first().map_or_else(|| "\"9\"".to_owned(), |target| self.expression(want, target, Some("echo")));
        for (list, doubt, read) in
            [("preconditions", want.before, other), ("postconditions", want.after_all, "self.echo".into())]
        {
            let condition = match doubt {
                None => continue,
                Some(Doubt::Never) => "1 == 2".to_owned(),
                // Every update changes the last digit.
                Some(Doubt::Perhaps) => format!("!json.marshal({read}).contains(\"3\")"),
            };
            lifecycle.push(format!("{list}: [{{ condition: '${{{condition}}}', errorMessage: refused }}]"));
        }
        if !want.ignores.is_empty() {
            lifecycle.push(format!("ignoreChanges: [{}]", want.ignores.iter().copied().collect::<Vec<_>>().join(", ")));
        }
        lifecycle
    }
}

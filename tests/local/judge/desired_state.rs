//! Random desired states, as YAML manifests.

mod edits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use purlin::model::{Address, InstanceKey, Stem};

use super::fake_driver::TYPE;
use crate::kit::Dice;
use model::Name;

/// The instances of a Resource.
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

/// The part of a family that a reference selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The whole family. For a Resource without keys: its object, or null if it is disabled.
    Whole,
    /// The instance with the key of the referencing instance.
    Same,
    /// The instance with the key at this index.
    At(usize),
}

/// The result of a reference.
#[derive(Clone, Debug)]
pub(super) enum ReferenceTarget {
    /// An instance, which may not exist.
    One(Address),
    /// An instance, or [`NOTHING`] if it does not exist.
    IfThere(Address),
    /// These instances.
    All(Vec<Address>),
}

enum Part {
    /// The whole family, or the only object.
    Whole,
    /// The instance with the key of the referencing instance.
    WithSameKey,
    /// The instance with this key.
    With(InstanceKey),
}

const KEYS: [&str; 3] = ["x", "y", "z"];

/// The value of a reference to a disabled Resource.
pub(super) const NOTHING: &str = "nothing";

#[derive(Clone, Debug, Default)]
pub(super) struct DesiredResource {
    pub label: usize,
    pub shape: usize,
    /// Objects whose ID it contains, in an attribute that can be updated.
    pub links: BTreeSet<String>,
    /// Objects whose ID it contains, in an attribute that forces a replacement.
    pub anchors: BTreeSet<String>,
    /// Objects whose `echo` it contains, which every update changes.
    pub notes: BTreeSet<String>,
    /// `dependsOn`.
    pub depends_on: BTreeSet<String>,
    /// `replaceTriggeredBy`.
    pub triggers: BTreeSet<String>,
    pub create_first: Option<bool>,
    pub prevent_destroy: bool,
    /// Whether the protection is an expression.
    pub by_expression: bool,
    /// Which of `Update` and `Replace` are missing in `managementPolicies`.
    pub forbids: BTreeSet<&'static str>,
    pub orphan: bool,
    pub suspended: bool,
    /// Arguments named by `ignoreChanges`: of `label` and `shape`.
    pub ignores: BTreeSet<&'static str>,
    /// Whether it is being deleted.
    pub deleting: bool,
    pub repeat: Repeat,
    /// `enabled`.
    pub enabled: Option<bool>,
    /// Whether the repetition is an expression.
    pub is_evaluated: bool,
    /// The selected part, by target.
    pub picks: BTreeMap<String, Pick>,
    pub precondition: Option<ConditionKind>,
    pub postcondition: Option<ConditionKind>,
    /// Whether the hook after a create may fail.
    pub warm_up: Option<bool>,
    /// Whether the hook before a destroy may fail.
    pub drain: Option<bool>,
    /// Earlier names, the newest first.
    pub moved_from: Vec<String>,
    /// `spec.moved`: former addresses of instances, with their keys.
    pub moved: Vec<(Address, InstanceKey)>,
    /// The ID of the existing object to import.
    pub import: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionKind {
    /// Always false.
    Never,
    /// Depends on a value that every update changes, of the object itself or of the first referenced object.
    Perhaps,
}

impl DesiredResource {
    pub(super) fn keys(&self) -> Vec<InstanceKey> {
        match &self.repeat {
            _ if self.enabled == Some(false) => Vec::new(),
            Repeat::One => vec![InstanceKey::None],
            Repeat::Count(count) => (0..*count).map(InstanceKey::Index).collect(),
            Repeat::Keys(keys) => keys.keys().map(|key| InstanceKey::Key((*key).into())).collect(),
        }
    }

    /// Returns the import ID, which a Resource with keys does not have.
    pub(super) fn adopts(&self) -> Option<&String> {
        self.import.as_ref().filter(|_| !self.has_keys())
    }

    pub(super) fn has_keys(&self) -> bool {
        self.repeat != Repeat::One
    }

    /// Returns the part of this Resource (`target`) that `want` references.
    fn selected_part(&self, want: &Self, target: &str) -> Part {
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

    /// Renders `count`, `forEach` and `enabled` as lines of the spec.
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
                writeln!(text, "  enabled: '${{1 == {}}}'", if enabled { 1 } else { 2 }).unwrap();
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

    /// Returns the `label` of an instance.
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
        [&mut self.links, &mut self.anchors, &mut self.notes, &mut self.depends_on, &mut self.triggers]
    }

    fn drop_reference(&mut self, target: &str) {
        for targets in self.references() {
            targets.remove(target);
        }
    }

    /// Returns all referenced Resources.
    pub(super) fn targets(&self) -> BTreeSet<String> {
        [&self.links, &self.anchors, &self.notes, &self.depends_on, &self.triggers]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct DesiredState {
    pub resources: BTreeMap<String, DesiredResource>,
    /// References lead from a higher rank to a lower one, so that there are no cycles.
    rank: BTreeMap<String, usize>,
    generation: i64,
    /// The number of possible names.
    size: usize,
    /// The percentage of Resources that are families.
    families: usize,
    /// The percentages of edits that change conditions, hooks and names.
    conditions: usize,
    hooks: usize,
    renames: usize,
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

impl DesiredState {
    pub(super) fn new(dice: &Dice) -> Self {
        let families = [0, 30, 70][dice.below(3)];
        let most = if families > 0 { NAMES.len() / 2 } else { NAMES.len() };
        let [conditions, hooks, renames] = [(); 3].map(|()| [0, 0, 10][dice.below(3)]);
        let size = 2 + dice.below(most - 1);
        let mut state = Self { size, families, conditions, hooks, renames, ..Self::default() };
        state.shuffle(dice);
        for name in state.names() {
            if dice.chance(75) {
                state.add(dice, name);
            }
        }
        state
    }

    fn names(&self) -> Vec<&'static str> {
        NAMES[..self.size].to_vec()
    }

    /// Every edit increases the generation.
    pub(super) fn generation(&self) -> i64 {
        self.generation
    }

    /// Returns the Resource of a desired instance.
    pub(super) fn desired(&self, x: &Address) -> Option<&DesiredResource> {
        self.configured(x).filter(|want| !want.deleting)
    }

    /// Returns the Resource of a configured instance, also if it is being deleted.
    pub(super) fn configured(&self, x: &Address) -> Option<&DesiredResource> {
        self.resources.get(&**x.name()).filter(|want| want.keys().contains(&x.key))
    }

    /// Returns all configured instances, including those that are being deleted.
    pub(super) fn instances(&self) -> BTreeSet<Address> {
        let of = |(name, want): (&String, &DesiredResource)| {
            let name: Name = name.as_str().into();
            want.keys().into_iter().map(|key| Stem::from(name.clone()).instance(key)).collect::<Vec<_>>()
        };
        self.resources.iter().flat_map(of).collect()
    }

    /// Returns the desired instances of a Resource.
    pub(super) fn members(&self, name: &str) -> Vec<Address> {
        let want = self.resources.get(name).filter(|want| !want.deleting);
        let keys = want.map(DesiredResource::keys).unwrap_or_default();
        keys.into_iter().map(|key| Stem::from(name).instance(key)).collect()
    }

    /// Returns the recorded form of a reference: an instance or a family.
    pub(super) fn recorded_address(&self, x: &Address, target: &str) -> Address {
        let part = self
            .resources
            .get(target)
            .zip(self.resources.get(&**x.name()))
            .map(|(of, want)| of.selected_part(want, target));
        let key = match part {
            Some(Part::With(key)) => key,
            Some(Part::WithSameKey) => x.key.clone(),
            Some(Part::Whole) if self.resources[target].has_keys() => InstanceKey::All,
            Some(Part::Whole) | None => InstanceKey::None,
        };
        Stem::from(target).instance(key)
    }

    /// Returns the expected recorded dependencies of an instance.
    pub(super) fn references(&self, x: &Address) -> BTreeSet<Address> {
        let Some(want) = self.resources.get(&**x.name()) else { return BTreeSet::new() };
        let read = [&want.links, &want.anchors, &want.notes, &want.triggers].into_iter().flatten();
        let whole = want.depends_on.iter().map(|target| match self.resources.get(target) {
            Some(of) if of.has_keys() => Address::family(target.as_str()),
            _ => Address::single(target.as_str()),
        });
        read.map(|target| self.recorded_address(x, target)).chain(whole).collect()
    }

    /// Returns the triggers of an instance, each with its entry, because every entry records its own value.
    pub(super) fn triggers(&self, x: &Address) -> BTreeSet<String> {
        let Some(want) = self.resources.get(&**x.name()) else { return BTreeSet::new() };
        let mut all = BTreeSet::new();
        for target in &want.triggers {
            let meaning = self.recorded_address(x, target);
            let entry = self.expression(want, target, None);
            let targets = if meaning.is_instance() { vec![meaning] } else { self.members(target) };
            let targets = targets.into_iter().filter(|target| self.desired(target).is_some());
            all.extend(targets.map(|target| format!("{target} by {entry}")));
        }
        all
    }

    /// Returns the result of a reference of `x`.
    pub(super) fn resolve(&self, x: &Address, target: &str) -> ReferenceTarget {
        let meaning = self.recorded_address(x, target);
        match self.resources.get(target) {
            Some(_) if meaning.key == InstanceKey::All => ReferenceTarget::All(self.members(target)),
            Some(_) if !meaning.is_instance() && self.resources[&**x.name()].picks.contains_key(target) => {
                ReferenceTarget::IfThere(meaning)
            }
            _ => ReferenceTarget::One(meaning),
        }
    }

    /// Renders a reference to a Resource or to one of its attributes.
    fn expression(&self, want: &DesiredResource, target: &str, attribute: Option<&str>) -> String {
        let attribute = attribute.map(|name| format!(".{name}")).unwrap_or_default();
        let Some(of) = self.resources.get(target) else { return format!("{target}{attribute}") };
        match (of.selected_part(want, target), &of.repeat) {
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

    /// Renders the manifests.
    pub(super) fn yaml(&self) -> String {
        self.resources.iter().map(|(name, want)| self.manifest(name, want)).collect()
    }

    fn manifest(&self, name: &str, want: &DesiredResource) -> String {
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
        for target in want.depends_on.iter().take(1) {
            let others =
                want.depends_on.iter().skip(1).map(|target| format!(", {{ name: {target} }}")).collect::<String>();
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
        if !want.moved.is_empty() {
            text.push_str("  moved:\n");
        }
        for (from, to) in &want.moved {
            writeln!(text, "  - {{ from: '{from}', to: '{to}' }}").unwrap();
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

    fn lifecycle(&self, want: &DesiredResource) -> Vec<String> {
        let mut lifecycle: Vec<String> =
            want.create_first.map(|flag| format!("createBeforeDestroy: {flag}")).into_iter().collect();
        match (want.by_expression, want.prevent_destroy) {
            (false, false) => {}
            (false, true) => lifecycle.push("preventDestroy: true".into()),
            (true, prevent) => {
                lifecycle.push(format!("preventDestroy: \"${{1 == {}}}\"", if prevent { 1 } else { 2 }));
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
            [("preconditions", want.precondition, other), ("postconditions", want.postcondition, "self.echo".into())]
        {
            let condition = match doubt {
                None => continue,
                Some(ConditionKind::Never) => "1 == 2".to_owned(),
                // Every update changes the last digit.
                Some(ConditionKind::Perhaps) => format!("!json.marshal({read}).contains(\"3\")"),
            };
            lifecycle.push(format!("{list}: [{{ condition: '${{{condition}}}', errorMessage: refused }}]"));
        }
        if !want.ignores.is_empty() {
            lifecycle.push(format!("ignoreChanges: [{}]", want.ignores.iter().copied().collect::<Vec<_>>().join(", ")));
        }
        lifecycle
    }
}

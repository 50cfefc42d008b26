//! Desired states, drawn from dice, as the YAML that a user would write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::world::TYPE;
use crate::kit::Dice;

/// One wanted object.
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
}

impl Want {
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
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

impl Wish {
    pub(super) fn new(dice: &Dice) -> Self {
        let mut wish = Self { size: 2 + dice.below(NAMES.len() - 1), ..Self::default() };
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

    fn shuffle(&mut self, dice: &Dice) {
        let mut names = self.names();
        let mut rank = 0;
        while !names.is_empty() {
            self.rank.insert(names.swap_remove(dice.below(names.len())).to_owned(), rank);
            rank += 1;
        }
        let rank = self.rank.clone();
        for (name, want) in &mut self.wants {
            for targets in want.references() {
                targets.retain(|target| rank[target] < rank[name]);
            }
        }
    }

    fn add(&mut self, dice: &Dice, name: &str) {
        let create_first = match dice.below(10) {
            0..=2 => Some(true),
            3 => Some(false),
            _ => None,
        };
        let want = Want { create_first, prevent_destroy: dice.chance(4), orphan: dice.chance(4), ..Want::default() };
        self.wants.insert(name.to_owned(), want);
        for _ in 0..dice.below(4) {
            self.refer(dice, name);
        }
    }

    /// One reference more.
    fn refer(&mut self, dice: &Dice, name: &str) {
        let lower: Vec<String> =
            self.wants.keys().filter(|other| self.rank[*other] < self.rank[name]).cloned().collect();
        let Some(target) = dice.pick(&lower).cloned() else { return };
        let Some(want) = self.wants.get_mut(name) else { return };
        want.references()[[0, 0, 0, 1, 2, 3, 4][dice.below(7)]].insert(target);
    }

    /// A few edits at once, as a person makes them between two looks at the result.
    pub(super) fn edit(&mut self, dice: &Dice) {
        self.generation += 1;
        if dice.chance(15) {
            self.shuffle(dice);
        }
        if dice.chance(5) {
            self.wants.clear();
        }
        for _ in 0..=dice.below(5) {
            self.edit_once(dice);
        }
    }

    fn edit_once(&mut self, dice: &Dice) {
        let names = self.names();
        let Some(name) = dice.pick(&names).copied() else { return };
        if !self.wants.contains_key(name) {
            self.add(dice, name);
            if dice.chance(50) {
                // Somebody uses it from now on.
                let higher: Vec<String> =
                    self.wants.keys().filter(|other| self.rank[*other] > self.rank[name]).cloned().collect();
                if let Some(user) = dice.pick(&higher) {
                    self.wants.entry(user.clone()).or_default().links.insert(name.to_owned());
                }
            }
            return;
        }
        match dice.below(14) {
            0..=2 => self.wants.entry(name.to_owned()).or_default().shape += 1,
            3..=4 => self.wants.entry(name.to_owned()).or_default().label += 1,
            5..=6 => self.refer(dice, name),
            7..=8 => {
                let want = self.wants.entry(name.to_owned()).or_default();
                let all: Vec<String> = want.targets().into_iter().collect();
                if let Some(target) = dice.pick(&all) {
                    want.let_go(target);
                }
            }
            9 => {
                let want = self.wants.entry(name.to_owned()).or_default();
                want.create_first = [None, Some(true), Some(false)][dice.below(3)];
            }
            10 => {
                let want = self.wants.entry(name.to_owned()).or_default();
                match dice.below(7) {
                    0 => {
                        want.prevent_destroy = !want.prevent_destroy;
                        want.by_expression = dice.chance(50);
                    }
                    1 => want.orphan = !want.orphan,
                    3 => want.forbids = ["Update", "Replace"].into_iter().filter(|_| dice.chance(60)).collect(),
                    2 => want.ignores = ["label", "shape"].into_iter().filter(|_| dice.chance(60)).collect(),
                    _ => want.suspended = !want.suspended,
                }
            }
            11 => {
                self.wants.entry(name.to_owned()).or_default().deleting = true;
                self.let_go(dice, name);
            }
            _ => {
                self.wants.remove(name);
                self.let_go(dice, name);
            }
        }
    }

    /// Most users stop referring to what goes; some are forgotten, and point at nothing.
    fn let_go(&mut self, dice: &Dice, name: &str) {
        for want in self.wants.values_mut() {
            if dice.chance(93) {
                want.let_go(name);
            }
        }
    }

    /// What a person does in the end to get everything through: nothing is protected, held or dangling any more.
    pub(super) fn calm_down(&mut self) {
        self.generation += 1;
        let going: Vec<String> =
            self.wants.iter().filter(|(_, want)| want.deleting).map(|(name, _)| name.clone()).collect();
        let present: BTreeSet<String> = self.wants.keys().filter(|name| !going.contains(name)).cloned().collect();
        for want in self.wants.values_mut() {
            want.prevent_destroy = false;
            want.suspended = false;
            want.ignores.clear();
            want.forbids.clear();
            want.references().into_iter().for_each(|targets| targets.retain(|target| present.contains(target)));
        }
    }

    pub(super) fn wanted(&self, name: &str) -> Option<&Want> {
        self.wants.get(name).filter(|want| !want.deleting)
    }

    /// The manifests.
    pub(super) fn yaml(&self) -> String {
        let mut text = String::new();
        let list = |targets: &BTreeSet<String>, attribute: &str| {
            targets.iter().map(|target| format!("\"${{{target}.{attribute}}}\"")).collect::<Vec<_>>().join(", ")
        };
        for (name, want) in &self.wants {
            let after: Vec<String> = want.after.iter().map(|target| format!("{{ name: {target} }}")).collect();
            let mut lifecycle = vec![match want.by_expression {
                true => format!("preventDestroyWhen: \"${{1 == {}}}\"", if want.prevent_destroy { 1 } else { 2 }),
                false => format!("preventDestroy: {}", want.prevent_destroy),
            }];
            let triggers: Vec<&str> = want.triggers.iter().map(String::as_str).collect();
            lifecycle.push(format!("replaceTriggeredBy: [{}]", triggers.join(", ")));
            let policies = ["Observe", "Create", "Update", "Replace", "Delete"];
            let allowed: Vec<&str> = policies.into_iter().filter(|policy| !want.forbids.contains(policy)).collect();
            lifecycle.push(format!("ignoreChanges: [{}]", want.ignores.iter().copied().collect::<Vec<_>>().join(", ")));
            lifecycle.extend(want.create_first.map(|flag| format!("createBeforeDestroy: {flag}")));
            write!(
                text,
                "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  \
                 type: {TYPE}\n  config:\n    label: l{}\n    shape: s{}\n    links: [{}]\n    anchors: [{}]\n    \
                 notes: [{}]\n  dependsOn: [{}]\n  lifecycle: {{ {} }}\n  deletionPolicy: {}\n  suspend: {}\n  \
                 managementPolicies: [{}]\n",
                want.label,
                want.shape,
                list(&want.links, "id"),
                list(&want.anchors, "id"),
                list(&want.notes, "echo"),
                after.join(", "),
                lifecycle.join(", "),
                if want.orphan { "Orphan" } else { "Delete" },
                want.suspended,
                allowed.join(", "),
            )
            .unwrap();
        }
        text
    }
}

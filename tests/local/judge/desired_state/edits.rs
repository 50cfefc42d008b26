//! Random edits of the desired state, and the final edit that makes it reachable.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Address, InstanceKey, Stem};

use super::*;

impl DesiredState {
    pub(super) fn shuffle(&mut self, dice: &Dice) {
        let mut names = self.names();
        let mut rank = 0;
        while !names.is_empty() {
            self.rank.insert(names.swap_remove(dice.below(names.len())).to_owned(), rank);
            rank += 1;
        }
        let rank = self.rank.clone();
        for (name, want) in &mut self.resources {
            for targets in want.references() {
                targets.retain(|target| rank[target] < rank[name]);
            }
        }
    }

    pub(super) fn add(&mut self, dice: &Dice, name: &str) {
        let create_first = match dice.below(10) {
            0..=2 => Some(true),
            3 => Some(false),
            _ => None,
        };
        let want = DesiredResource {
            create_first,
            prevent_destroy: dice.chance(4),
            orphan: dice.chance(4),
            ..DesiredResource::default()
        };
        self.resources.insert(name.to_owned(), want);
        if dice.chance(self.families) {
            self.repeat(dice, name);
        }
        for _ in 0..dice.below(4) {
            self.refer(dice, name);
        }
    }

    fn refer(&mut self, dice: &Dice, name: &str) {
        let lower: Vec<String> =
            self.resources.keys().filter(|other| self.rank[*other] < self.rank[name]).cloned().collect();
        let Some(target) = dice.pick(&lower).cloned() else { return };
        let Some(want) = self.resources.get_mut(name) else { return };
        if self.families > 0 {
            let pick = match dice.below(6) {
                0..=1 => Pick::Whole,
                2..=3 => Pick::Same,
                _ => Pick::At(dice.below(3)),
            };
            want.picks.insert(target.clone(), pick);
        }
        want.references()[[0, 0, 0, 1, 2, 3, 4][dice.below(7)]].insert(target);
    }

    /// Changes the repetition.
    fn repeat(&mut self, dice: &Dice, name: &str) {
        let Some(want) = self.resources.get_mut(name) else { return };
        match (&mut want.repeat, dice.below(8)) {
            (_, 0) => want.enabled = [None, Some(true), Some(false)][dice.below(3)],
            (_, 1) => want.is_evaluated = !want.is_evaluated,
            (repeat, 2) => *repeat = Repeat::One,
            (Repeat::Count(count), 3..=6) => *count = dice.below(4) as u64,
            (Repeat::Keys(keys), 3..=6) => {
                let key = KEYS[dice.below(KEYS.len())];
                match keys.remove(key) {
                    Some(value) if dice.chance(30) => drop(keys.insert(key, value + 1)),
                    Some(_) => {}
                    None => drop(keys.insert(key, 0)),
                }
            }
            (repeat, _) if dice.chance(50) => *repeat = Repeat::Count(1 + dice.below(3) as u64),
            (repeat, _) => {
                *repeat = Repeat::Keys(KEYS.into_iter().filter(|_| dice.chance(60)).map(|key| (key, 0)).collect());
            }
        }
    }

    /// Changes the keys of a Resource and moves its objects along, sometimes with a mistake.
    fn rekey(&mut self, dice: &Dice, name: &str) {
        let Some(want) = self.resources.get_mut(name).filter(|want| want.enabled != Some(false)) else { return };
        let before = want.keys();
        let after: Vec<InstanceKey> = match &mut want.repeat {
            Repeat::Keys(keys) if dice.chance(50) => {
                let free = KEYS.into_iter().find(|key| !keys.contains_key(key));
                let Some((new, old)) = free.zip(keys.keys().next().copied()) else { return };
                let value = keys.remove(old).unwrap_or_default();
                keys.insert(new, value);
                let renamed = |key: &InstanceKey| match key {
                    InstanceKey::Key(key) if **key == *old => InstanceKey::Key(new.into()),
                    other => other.clone(),
                };
                before.iter().map(renamed).collect()
            }
            Repeat::Keys(keys) => {
                let count = keys.len() as u64;
                want.repeat = Repeat::Count(count);
                (0..count).map(InstanceKey::Index).collect()
            }
            Repeat::Count(_) | Repeat::One => {
                let keys = KEYS.into_iter().take(before.len());
                want.repeat = Repeat::Keys(keys.clone().map(|key| (key, 0)).collect());
                keys.map(|key| InstanceKey::Key(key.into())).collect()
            }
        };
        let moves = before.into_iter().zip(after).filter(|(from, to)| from != to);
        want.moved = moves.map(|(key, to)| (Stem::from(name).instance(key), to)).collect();
        if let Some((from, to)) = want.moved.first_mut().filter(|_| dice.chance(20)) {
            match dice.chance(50) {
                true => *to = InstanceKey::Key("nowhere".into()),
                false => from.key = InstanceKey::Index(9),
            }
        }
    }

    /// Makes several edits.
    pub(in crate::judge) fn edit(&mut self, dice: &Dice) {
        self.generation += 1;
        if dice.chance(15) {
            self.shuffle(dice);
        }
        if dice.chance(5) {
            self.resources.clear();
        }
        for _ in 0..=dice.below(5) {
            self.edit_once(dice);
        }
    }

    fn edit_once(&mut self, dice: &Dice) {
        let names = self.names();
        let Some(name) = dice.pick(&names).copied() else { return };
        if !self.resources.contains_key(name) {
            self.add(dice, name);
            if dice.chance(50) {
                // Adds a dependent.
                let higher: Vec<String> =
                    self.resources.keys().filter(|other| self.rank[*other] > self.rank[name]).cloned().collect();
                if let Some(user) = dice.pick(&higher) {
                    self.resources.entry(user.clone()).or_default().links.insert(name.to_owned());
                }
            }
            return;
        }
        if dice.chance(self.families / 8) {
            return self.rekey(dice, name);
        }
        if dice.chance(self.families / 2) {
            return self.repeat(dice, name);
        }
        if dice.chance(self.renames) {
            return self.rename(dice, name);
        }
        let may_fail = [None, Some(true), Some(false)][dice.below(3)];
        let doubt = [None, Some(ConditionKind::Never), Some(ConditionKind::Perhaps)][dice.below(3)];
        let want = self.resources.entry(name.to_owned()).or_default();
        match dice.below(100) {
            at if at < self.conditions => want.precondition = doubt,
            at if at < 2 * self.conditions => want.postcondition = doubt,
            at if at < 2 * self.conditions + self.hooks => want.warm_up = may_fail,
            at if at < 2 * self.conditions + 2 * self.hooks => want.drain = may_fail,
            _ => self.edit_field(dice, name),
        }
    }

    /// Renames a Resource and all references to it.
    fn rename(&mut self, dice: &Dice, name: &str) {
        let free: Vec<&str> = self.names().into_iter().filter(|other| !self.resources.contains_key(*other)).collect();
        let Some(&new) = dice.pick(&free) else { return };
        // Dangling references to the new name could close a cycle.
        self.resources.values_mut().for_each(|want| want.drop_reference(new));
        let Some(mut want) = self.resources.remove(name) else { return };
        want.moved_from.insert(0, name.to_owned());
        want.moved_from.retain(|old| old != new);
        want.moved.clear();
        self.resources.insert(new.to_owned(), want);
        if let (Some(&old), Some(&other)) = (self.rank.get(name), self.rank.get(new)) {
            self.rank.insert(name.to_owned(), other);
            self.rank.insert(new.to_owned(), old);
        }
        for want in self.resources.values_mut() {
            if let Some(pick) = want.picks.remove(name) {
                want.picks.insert(new.to_owned(), pick);
            }
            for targets in want.references() {
                if targets.remove(name) {
                    targets.insert(new.to_owned());
                }
            }
        }
    }

    fn edit_field(&mut self, dice: &Dice, name: &str) {
        match dice.below(14) {
            0..=2 => self.resources.entry(name.to_owned()).or_default().shape += 1,
            3..=4 => self.resources.entry(name.to_owned()).or_default().label += 1,
            5..=6 => self.refer(dice, name),
            7..=8 => {
                let want = self.resources.entry(name.to_owned()).or_default();
                let all: Vec<String> = want.targets().into_iter().collect();
                if let Some(target) = dice.pick(&all) {
                    want.drop_reference(target);
                }
            }
            9 => {
                let want = self.resources.entry(name.to_owned()).or_default();
                want.create_first = [None, Some(true), Some(false)][dice.below(3)];
            }
            10 => {
                let want = self.resources.entry(name.to_owned()).or_default();
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
                self.resources.entry(name.to_owned()).or_default().deleting = true;
                self.drop_references(dice, name);
            }
            _ => {
                self.resources.remove(name);
                self.drop_references(dice, name);
            }
        }
    }

    /// Removes most references to a removed Resource. The others stay dangling.
    fn drop_references(&mut self, dice: &Dice, name: &str) {
        for want in self.resources.values_mut() {
            if dice.chance(93) {
                want.drop_reference(name);
            }
        }
    }

    /// Removes protections, suspensions, conditions and dangling references.
    pub(in crate::judge) fn make_reachable(&mut self) {
        self.generation += 1;
        let going: Vec<String> =
            self.resources.iter().filter(|(_, want)| want.deleting).map(|(name, _)| name.clone()).collect();
        let present: BTreeSet<String> = self.resources.keys().filter(|name| !going.contains(name)).cloned().collect();
        let names: BTreeSet<String> = self.resources.keys().cloned().collect();
        let mut claimed = BTreeSet::new();
        for want in self.resources.values_mut() {
            want.prevent_destroy = false;
            want.suspended = false;
            want.moved.clear();
            want.ignores.clear();
            want.forbids.clear();
            (want.precondition, want.postcondition) = (None, None);
            // Another Resource has the name, or claims it.
            want.moved_from.retain(|old| !names.contains(old) && claimed.insert(old.clone()));
            want.references().into_iter().for_each(|targets| targets.retain(|target| present.contains(target)));
        }
        self.select_existing_instances();
    }

    /// Replaces references to missing instances by references to the whole family.
    fn select_existing_instances(&mut self) {
        let keys: BTreeMap<String, Vec<InstanceKey>> =
            self.resources.iter().map(|(name, want)| (name.clone(), want.keys())).collect();
        let all = self.clone();
        for (name, want) in &mut self.resources {
            for target in want.targets() {
                let mut own = keys[name].iter().map(|key| Stem::from(name.as_str()).instance(key.clone()));
                let is_there = |x: Address| {
                    let key = all.recorded_address(&x, &target).key;
                    matches!(key, InstanceKey::None | InstanceKey::All) || keys[&target].contains(&key)
                };
                if !own.all(is_there) || keys[&target].is_empty() {
                    want.picks.insert(target, Pick::Whole);
                }
            }
        }
    }
}

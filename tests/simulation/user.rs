//! Users, who create, change, revert and delete Resources at any time.

mod references;
mod rekey;
mod rename;

use purlin::model::Record;
use serde_json::{Value, json};

pub(crate) use self::references::source_of;
use self::references::{SAME_INDEX, value_reference};
use self::rekey::{forget_open_moves, resize};
use self::rename::{Unfinished, claim_of, healed_claim, is_move_blocked};
use crate::approver::some_kinds;
use crate::judge::{Judge, is_desired};
use crate::random::Seeded;

/// The operations of a user on the API server. They are subject to no faults.
pub(crate) trait Kubectl {
    fn namespace(&self) -> &str;
    fn get(&self, name: &str) -> Option<Value>;
    /// Creates a Resource, or replaces its spec and the annotations of users.
    fn apply(&mut self, name: &str, spec: &Value, annotations: &Value);
    fn delete(&mut self, name: &str);
    /// Removes all finalizers of a Resource.
    fn force(&mut self, name: &str);
    /// Sets an annotation on every record.
    fn touch_records(&mut self, with: &str);
    /// The names of all Resources of the namespace.
    fn names(&self) -> Vec<String>;
    /// The records of a Resource.
    fn records(&self, name: &str) -> Vec<Record>;
}

/// The number of names. A name only references names with lower numbers.
const NAMES: u64 = 6;
/// The numbers of the families.
const FAMILIES: [u64; 2] = [1, 4];

/// How often in a row a user sees that a move is blocked before removing claims.
const LOOKS: u32 = 24;

/// One user of a namespace, or all of them.
pub(crate) struct User {
    pub(crate) namespace: &'static str,
    /// The random numbers of the current act.
    random: Seeded,
    /// Names and earlier specs of Resources, for reverts.
    before: Vec<(String, Value)>,
    unfinished: Vec<Unfinished>,
    /// How often in a row the user has seen that a move is blocked.
    seen_blocked: u32,
    /// Whether the user also suspends, protects and removes finalizers by force.
    pub(crate) is_wild: bool,
    /// Whether Resources require approvals.
    requires_approvals: bool,
    count: u64,
}

impl User {
    pub(crate) fn new(seed: u64, namespace: &'static str, is_wild: bool, requires_approvals: bool) -> Self {
        let (random, before, unfinished) = (Seeded::new(seed, "user"), Vec::new(), Vec::new());
        let seen_blocked = 0;
        Self { namespace, random, before, unfinished, seen_blocked, is_wild, requires_approvals, count: 0 }
    }

    /// Carries out one random act.
    pub(crate) fn act(&mut self, random: Seeded, kubectl: &mut dyn Kubectl, judge: &Judge) {
        self.random = random;
        if self.random.chance(700) {
            self.finish_rename(kubectl, judge);
        }
        match self.random.below(20) {
            0 => delete_all(kubectl, judge),
            1 => self.apply_all(kubectl, judge),
            2 | 3 => self.delete_one(kubectl, judge),
            4 | 5 => self.revert(kubectl, judge),
            6 => self.replace_all(kubectl, judge),
            7 if self.is_wild => self.disturb(kubectl, judge),
            8 if self.is_wild => {
                judge.note("user touches the metadata of all records");
                self.count += 1;
                kubectl.touch_records(&self.count.to_string());
            }
            9 | 10 => self.rename(kubectl, judge),
            11 | 12 => self.rekey(kubectl, judge),
            _ => self.change_one(kubectl, judge),
        }
    }

    fn name(&mut self) -> String {
        let index = self.random.below(NAMES);
        name(index)
    }

    fn apply(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge, name: &str, spec: &Value, annotations: &Value) {
        if let Some(old) = kubectl.get(name) {
            self.before.push((name.to_owned(), old["spec"].clone()));
        }
        judge.note(&format!("user applies {}/{name} {spec} {annotations}", kubectl.namespace()));
        kubectl.apply(name, spec, annotations);
    }

    fn change_one(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let name = self.name();
        let (spec, annotations) = match kubectl.get(&name) {
            Some(old) => self.changed(&name, &old),
            None => (self.fresh(&name), json!({})),
        };
        self.apply(kubectl, judge, &name, &spec, &annotations);
    }

    fn fresh(&mut self, name: &str) -> Value {
        let mut spec = json!({ "type": "scripted_thing", "config": {
            "value": format!("v{}", self.random.below(3)),
            "force": format!("f{}", self.random.below(2)),
        }});
        if is_family(name) {
            spec["count"] = json!(self.random.below(3));
        }
        for _ in 0..self.random.below(3) {
            self.alter(name, &mut spec);
        }
        spec
    }

    fn changed(&mut self, name: &str, old: &Value) -> (Value, Value) {
        let mut spec = old["spec"].clone();
        let mut annotations = if self.random.chance(800) { claim_of(old) } else { json!({}) };
        self.alter(name, &mut spec);
        self.count += 1;
        if self.random.chance(60) {
            annotations["purlin.dev/reconcile-requested-at"] = json!(format!("look-{}", self.count));
        }
        if self.random.chance(40) {
            annotations["purlin.dev/replace-requested-at"] = json!(format!("again-{}", self.count));
        }
        if self.is_wild && self.random.chance(80) {
            spec["suspend"] = json!(self.random.chance(500));
        }
        (spec, annotations)
    }

    fn alter(&mut self, name: &str, spec: &mut Value) {
        let index = index(name);
        if self.requires_approvals && self.random.chance(300) {
            spec["approval"] = json!({ "requireFor": some_kinds(&mut self.random) });
        }
        match self.random.below(13) {
            0..=2 => spec["config"]["value"] = json!(format!("v{}", self.random.below(4))),
            3 | 4 => spec["config"]["force"] = json!(format!("f{}", self.random.below(3))),
            5 | 6 if index > 0 => {
                let has_index = !spec["count"].is_null();
                spec["config"]["value"] = json!(self.some_reference(name, has_index));
            }
            7 if index > 0 => {
                let target = self.random.below(index);
                spec["dependsOn"] = json!([{ "name": self::name(target) }]);
            }
            8 => spec["lifecycle"]["createBeforeDestroy"] = json!(self.random.chance(700)),
            9 if self.is_wild => spec["lifecycle"]["preventDestroy"] = json!(self.random.chance(500)),
            10 if self.is_wild => spec["suspend"] = json!(self.random.chance(500)),
            11 if is_family(name) => {
                let size = self.random.below(4);
                resize(spec, size);
            }
            11 => spec["enabled"] = json!(self.random.chance(600)),
            12 => spec["timeouts"] = json!({ "create": "10s", "update": "10s", "delete": "10s" }),
            _ => {
                spec["dependsOn"] = json!([]);
                spec["config"]["value"] = json!("v0");
            }
        }
    }

    /// An expression that references an object or an instance with a lower number.
    fn some_reference(&mut self, name: &str, has_index: bool) -> String {
        let target = self::name(self.random.below(index(name)));
        // An author can change the value of an object after an approval.
        let attribute =
            if self.requires_approvals && self.random.clone().below(1000).is_multiple_of(2) { "value" } else { "id" };
        match (is_family(&target), has_index && self.random.chance(500)) {
            (false, _) => format!("${{{target}.{attribute}}}"),
            (true, false) => format!("${{{target}[{}].{attribute}}}", self.random.below(3)),
            (true, true) => format!("${{{target}[{SAME_INDEX}].{attribute}}}"),
        }
    }

    fn revert(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let Some((name, spec)) = self.before.pop() else { return self.change_one(kubectl, judge) };
        if kubectl.get(&name).is_some() {
            judge.note(&format!("user reverts {}/{name} to {spec}", kubectl.namespace()));
            kubectl.apply(&name, &spec, &json!({}));
        }
    }

    fn delete_one(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let name = self.name();
        delete(kubectl, judge, &name);
    }

    fn apply_all(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        judge.note(&format!("user applies all missing Resources of {}", kubectl.namespace()));
        for name in (0..NAMES).map(name) {
            if kubectl.get(&name).is_none() {
                let spec = self.fresh(&name);
                self.apply(kubectl, judge, &name, &spec, &json!({}));
            }
        }
    }

    fn replace_all(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        judge.note(&format!("user replaces all objects of {}", kubectl.namespace()));
        let force = json!(format!("f{}", self.random.below(3)));
        for name in kubectl.names() {
            let Some(old) = kubectl.get(&name) else { continue };
            let mut spec = old["spec"].clone();
            spec["config"]["force"] = force.clone();
            self.apply(kubectl, judge, &name, &spec, &claim_of(&old));
        }
    }

    fn disturb(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let name = self.name();
        if kubectl.get(&name).is_some() {
            judge.note(&format!("user removes the finalizers of {}/{name}", kubectl.namespace()));
            kubectl.force(&name);
        }
    }

    /// Sets the value of some Resources to another constant.
    pub(crate) fn change_values(&mut self, random: &mut Seeded, kubectl: &mut dyn Kubectl, judge: &Judge) {
        for name in kubectl.names() {
            let Some(old) = kubectl.get(&name).filter(|_| random.chance(500)) else { continue };
            let mut spec = old["spec"].clone();
            self.count += 1;
            spec["config"]["value"] = json!(format!("w{}", self.count));
            self.apply(kubectl, judge, &name, &spec, &json!({}));
        }
    }

    /// Changes every Resource to a spec that can be applied: not suspended, not protected, without dangling references,
    /// and without a claim that cannot be fulfilled.
    pub(crate) fn heal(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        judge.note(&format!("user changes every Resource of {} to a spec that can be applied", kubectl.namespace()));
        while !self.unfinished.is_empty() {
            self.finish_rename(kubectl, judge);
        }
        let there = all(kubectl);
        let stays = |target: &str| there.iter().any(|(name, one)| name == target && is_desired(one));
        for one in &there {
            let (name, old) = one;
            let mut spec = old["spec"].clone();
            spec["suspend"] = json!(false);
            spec["lifecycle"]["preventDestroy"] = json!(false);
            if value_reference(&spec).is_some_and(|reference| !there.iter().any(|other| reference.fits(other, &spec))) {
                spec["config"]["value"] = json!("v0");
            }
            let depends: Vec<Value> = spec["dependsOn"].as_array().cloned().unwrap_or_default();
            let depends: Vec<Value> = depends.into_iter().filter(|one| stays(one["name"].as_str().unwrap())).collect();
            spec["dependsOn"] = json!(depends);
            self.count += 1;
            forget_open_moves(kubectl, name, &mut spec);
            let mut annotations = healed_claim(kubectl, &there, one);
            annotations["purlin.dev/reconcile-requested-at"] = json!(format!("heal-{}", self.count));
            kubectl.apply(name, &spec, &annotations);
        }
    }

    /// Removes the claims that cannot be fulfilled, as the hints say, once moves have been blocked for a while.
    pub(crate) fn remove_blocked_claims(&mut self, kubectl: &mut dyn Kubectl, judge: &Judge) {
        let there = all(kubectl);
        self.seen_blocked = if there.iter().any(|(_, one)| is_move_blocked(one)) { self.seen_blocked + 1 } else { 0 };
        if self.seen_blocked < LOOKS {
            return;
        }
        self.seen_blocked = 0;
        for one in &there {
            let (name, old) = one;
            let mut spec = old["spec"].clone();
            forget_open_moves(kubectl, name, &mut spec);
            let annotations = healed_claim(kubectl, &there, one);
            let has_open_moves =
                spec["moved"].as_array().map(Vec::len) != old["spec"]["moved"].as_array().map(Vec::len);
            if has_open_moves || annotations != claim_of(old) {
                self.apply(kubectl, judge, name, &spec, &annotations);
            }
        }
    }
}

/// All Resources of the namespace.
fn all(kubectl: &dyn Kubectl) -> Vec<(String, Value)> {
    kubectl.names().into_iter().filter_map(|name| Some((name.clone(), kubectl.get(&name)?))).collect()
}

fn delete(kubectl: &mut dyn Kubectl, judge: &Judge, name: &str) {
    if kubectl.get(name).is_some() {
        judge.note(&format!("user deletes {}/{name}", kubectl.namespace()));
        kubectl.delete(name);
    }
}

fn delete_all(kubectl: &mut dyn Kubectl, judge: &Judge) {
    judge.note(&format!("user deletes all Resources of {}", kubectl.namespace()));
    for name in kubectl.names() {
        kubectl.delete(&name);
    }
}

fn name(index: u64) -> String {
    let kind = if FAMILIES.contains(&index) { 'f' } else { 's' };
    format!("{kind}{index}")
}

fn is_family(name: &str) -> bool {
    name.starts_with('f')
}

fn index(name: &str) -> u64 {
    name[1..].parse().unwrap()
}

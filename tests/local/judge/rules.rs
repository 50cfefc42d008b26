//! The ordering rules R1 to R9, implemented directly from their text, with loops over all pairs of steps and plain
//! sets. It shares no code with the planner or the graph.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Action, Address, DeposedKey, InstanceKey, Stem, Step};

/// A step, named as in the rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// Create, update or record-only step.
    C(Address),
    /// Destroy or forget of the current object.
    D(Address),
    /// Destroy or forget of a deposed object.
    L(Address, DeposedKey),
}

impl Node {
    pub(super) fn of(step: &Step) -> Self {
        match (step.deposed, step.operation.removes()) {
            (Some(key), _) => Self::L(step.address.clone(), key),
            (None, true) => Self::D(step.address.clone()),
            (None, false) => Self::C(step.address.clone()),
        }
    }
}

pub(super) type Relation = BTreeMap<Address, BTreeSet<Address>>;

/// Represents all desired instances of a Resource in relations. It has no steps.
pub(super) fn all_desired(name: &str) -> Address {
    Stem::from(name).instance(InstanceKey::Key("* wanted".into()))
}

/// Represents all recorded instances of a Resource.
pub(super) fn all_recorded(name: &str) -> Address {
    Stem::from(name).instance(InstanceKey::Key("* recorded".into()))
}

/// The input of the rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Desired objects.
    pub desired: BTreeSet<Address>,
    /// Desired objects with create-before-destroy, by their flag or because a replacement forgets the old object.
    pub configured_create_first: BTreeSet<Address>,
    /// Objects whose record has the flag.
    pub flagged: BTreeSet<Address>,
    /// References of desired objects, in the recorded form.
    pub references: Relation,
    /// Direct references between desired objects.
    pub configured: Relation,
    /// Direct dependencies of recorded current objects.
    pub used: Relation,
    /// Direct dependencies of deposed objects.
    pub deposed: BTreeMap<(Address, DeposedKey), BTreeSet<Address>>,
    /// The planned actions of current objects.
    pub actions: BTreeMap<Address, Action>,
    /// Deposed objects that the plan destroys or forgets.
    pub removed_deposed: BTreeSet<(Address, DeposedKey)>,
    /// Create-before-destroy replacements whose destroy is held.
    pub held: BTreeSet<Address>,
}

/// The order of the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The first waits for the second.
    pub waits: BTreeSet<(Node, Node)>,
    /// Released objects with the usual order (R6).
    pub fallbacks: BTreeSet<Address>,
    /// Edges of deposed objects that were dropped, or that the rules exclude.
    pub dropped: BTreeSet<(Node, Node)>,
}

/// Returns the transitive closure.
fn closure(direct: &Relation) -> Relation {
    let reached = |start: &Address| {
        let mut found = BTreeSet::new();
        let mut open: Vec<&Address> = direct[start].iter().collect();
        while let Some(here) = open.pop() {
            if found.insert(here.clone()) {
                open.extend(direct.get(here).into_iter().flatten());
            }
        }
        found
    };
    direct.keys().map(|start| (start.clone(), reached(start))).collect()
}

/// Whether an object depends on itself through others. The rules assume that none does.
pub(super) fn has_cycle(direct: &Relation) -> bool {
    closure(direct).iter().any(|(one, reached)| reached.contains(one))
}

/// Returns the objects with create-before-destroy, including inherited.
pub(super) fn create_first(facts: &Facts) -> BTreeSet<Address> {
    let mut set = facts.configured_create_first.clone();
    set.extend(facts.flagged.difference(&facts.desired).cloned());
    set.extend(facts.deposed.values().flatten().cloned());
    loop {
        let of = |relation: &Relation| -> Vec<Address> {
            set.iter().filter_map(|one| relation.get(one)).flatten().cloned().collect()
        };
        let more: BTreeSet<Address> = of(&facts.configured).into_iter().chain(of(&facts.used)).collect();
        if more.is_subset(&set) {
            return set;
        }
        set.extend(more);
    }
}

struct Rules<'a> {
    facts: &'a Facts,
    first: &'a BTreeSet<Address>,
    /// All objects of the plan.
    objects: BTreeSet<Address>,
    configured: Relation,
    used: Relation,
    /// Transitive dependencies of deposed objects.
    deposed: BTreeMap<(Address, DeposedKey), BTreeSet<Address>>,
}

/// Applies the rules.
pub(super) fn order(facts: &Facts, first: &BTreeSet<Address>) -> Order {
    let used = closure(&facts.used);
    let through = |direct: &BTreeSet<Address>| -> BTreeSet<Address> {
        direct.iter().chain(direct.iter().filter_map(|one| used.get(one)).flatten()).cloned().collect()
    };
    let deposed = facts.deposed.iter().map(|(key, direct)| (key.clone(), through(direct))).collect();
    let objects = facts.actions.keys().cloned().collect();
    Rules { facts, first, objects, configured: closure(&facts.configured), used, deposed }.order()
}

impl Rules<'_> {
    fn has_c(&self, x: &Address) -> bool {
        let action = self.facts.actions.get(x);
        matches!(action, Some(Action::Create | Action::Update | Action::Record | Action::Replace))
    }

    /// Whether it has a step `C` that changes the object. A record-only step does not.
    fn changes(&self, x: &Address) -> bool {
        self.has_c(x) && self.facts.actions.get(x) != Some(&Action::Record)
    }

    fn has_d(&self, x: &Address) -> bool {
        let action = self.facts.actions.get(x);
        matches!(action, Some(Action::Destroy | Action::Forget | Action::Replace)) && !self.facts.held.contains(x)
    }

    fn is_first(&self, x: &Address) -> bool {
        self.first.contains(x)
    }

    fn references(&self, b: &Address, a: &Address) -> bool {
        self.configured.get(b).is_some_and(|all| all.contains(a))
    }

    fn used(&self, b: &Address, a: &Address) -> bool {
        self.used.get(b).is_some_and(|all| all.contains(a))
    }

    fn order(&self) -> Order {
        let mut order = Order { dropped: self.mutual(), ..Order::default() };
        let fixed = without_contradictions(self.fixed(), &mut order.dropped);
        let mut soft = self.between_deposed_and_later_dependents();
        let released: BTreeSet<Address> = self.objects.iter().filter(|a| self.is_released(a)).cloned().collect();
        loop {
            let mut waits = fixed.clone();
            waits.extend(soft.iter().cloned());
            for a in &released {
                waits.extend(self.released(a, order.fallbacks.contains(a)));
            }
            let reach = Reach::new(&waits);
            let closes_cycle = |edge: &&(Node, Node)| reach.has(&edge.1, &edge.0);
            let in_cycles: Vec<_> = soft.iter().filter(closes_cycle).cloned().collect();
            if !in_cycles.is_empty() {
                for edge in in_cycles {
                    soft.remove(&edge);
                    order.dropped.insert(edge);
                }
                continue;
            }
            let is_in_cycle = |a: &&Address| {
                !order.fallbacks.contains(*a) && self.released(a, false).iter().any(|edge| closes_cycle(&edge))
            };
            match released.iter().find(is_in_cycle) {
                Some(a) => drop(order.fallbacks.insert(a.clone())),
                None => {
                    order.waits = waits;
                    self.newcomers(&mut order.waits);
                    return order;
                }
            }
        }
    }

    /// R9.
    fn newcomers(&self, waits: &mut BTreeSet<(Node, Node)>) {
        for x in self.objects.iter().filter(|x| self.has_c(x) && self.has_d(x) && !self.is_first(x)) {
            for a in self.objects.iter().filter(|a| self.has_c(a) && self.references(x, a) && !self.used(x, a)) {
                let edge = (Node::D(x.clone()), Node::C(a.clone()));
                if edge.0 != edge.1 && !Reach::new(waits).has(&edge.1, &edge.0) {
                    waits.insert(edge);
                }
            }
        }
    }

    /// Whether it is destroyed, is not create-before-destroy, and a dependent with a step no longer references it.
    fn is_released(&self, a: &Address) -> bool {
        self.has_d(a) && !self.is_first(a) && self.objects.iter().any(|b| self.releases(b, a))
    }

    fn releases(&self, b: &Address, a: &Address) -> bool {
        self.used(b, a) && self.has_c(b) && !self.references(b, a)
    }

    /// R5 for the former dependents of a released object, and R6.
    fn released(&self, a: &Address, fell_back: bool) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        let turned = |from: Node, to: Node| if fell_back { (to, from) } else { (from, to) };
        for b in self.objects.iter().filter(|b| self.releases(b, a)) {
            edges.insert(turned(Node::D(a.clone()), Node::C(b.clone())));
        }
        if !self.has_c(a) {
            for z in self.objects.iter().filter(|z| self.used(a, z) && self.changes(z)) {
                edges.insert(turned(Node::D(a.clone()), Node::C(z.clone())));
            }
        }
        edges
    }

    fn fixed(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        let c = |x: &Address| Node::C(x.clone());
        let d = |x: &Address| Node::D(x.clone());
        for b in &self.objects {
            if self.has_c(b) && self.has_d(b) {
                edges.insert(if self.is_first(b) { (d(b), c(b)) } else { (c(b), d(b)) }); // R3
            }
            for a in &self.objects {
                if self.references(b, a) && self.has_c(b) && self.has_c(a) {
                    edges.insert((c(b), c(a))); // R1
                }
                if !self.used(b, a) {
                    continue;
                }
                if self.has_d(a) && self.has_d(b) {
                    edges.insert((d(a), d(b))); // R2
                }
                // R4. R6 applies to a released object that is only destroyed.
                let is_r6 = self.is_released(b) && !self.has_c(b);
                if self.has_d(b) && self.changes(a) && !is_r6 {
                    edges.insert(if self.is_first(b) { (d(b), c(a)) } else { (c(a), d(b)) });
                }
                // R5, except for released objects.
                if self.has_c(b) && self.has_d(a) {
                    if self.is_first(a) {
                        edges.insert((d(a), c(b)));
                    } else if self.references(b, a) {
                        edges.insert((c(b), d(a)));
                    }
                }
            }
        }
        edges.extend(self.fixed_deposed());
        edges
    }

    fn fixed_deposed(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        for (x, key) in &self.facts.removed_deposed {
            let this = Node::L(x.clone(), *key);
            if self.has_c(x) {
                edges.insert((this.clone(), Node::C(x.clone())));
            }
            for y in self.deposed.get(&(x.clone(), *key)).into_iter().flatten() {
                if self.changes(y) {
                    edges.insert((this.clone(), Node::C(y.clone())));
                }
                if self.has_d(y) {
                    edges.insert((Node::D(y.clone()), this.clone()));
                }
                for (other, other_key) in self.facts.removed_deposed.iter().filter(|(other, _)| other == y) {
                    let mutual = self.deposed.get(&(other.clone(), *other_key)).is_some_and(|all| all.contains(x));
                    if !mutual {
                        edges.insert((Node::L(other.clone(), *other_key), this.clone()));
                    }
                }
            }
        }
        edges
    }

    /// Returns the unordered pairs: deposed objects that depended on each other, or on a current dependent.
    fn mutual(&self) -> BTreeSet<(Node, Node)> {
        let used = |x: &(Address, DeposedKey), y: &Address| self.deposed.get(x).is_some_and(|all| all.contains(y));
        let all = &self.facts.removed_deposed;
        let pairs = all.iter().flat_map(|x| all.iter().map(move |y| (x, y)));
        let mutual = pairs.filter(|(x, y)| used(x, &y.0) && used(y, &x.0));
        let mut pairs: BTreeSet<_> =
            mutual.map(|(x, y)| (Node::L(x.0.clone(), x.1), Node::L(y.0.clone(), y.1))).collect();
        for x in all {
            for b in self.objects.iter().filter(|b| used(x, b) && self.used(b, &x.0)).cloned() {
                pairs.insert((Node::L(x.0.clone(), x.1), Node::C(b.clone())));
                pairs.insert((Node::L(x.0.clone(), x.1), Node::D(b)));
            }
        }
        pairs
    }

    /// The last part of R7.
    fn between_deposed_and_later_dependents(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        for (x, key) in &self.facts.removed_deposed {
            let of_this = self.deposed.get(&(x.clone(), *key));
            for b in self.objects.iter().filter(|b| self.used(b, x)) {
                if of_this.is_some_and(|all| all.contains(b)) {
                    continue;
                }
                let this = Node::L(x.clone(), *key);
                if self.changes(b) {
                    edges.insert((this.clone(), Node::C(b.clone())));
                }
                if self.has_d(b) {
                    edges.insert((this, Node::D(b.clone())));
                }
            }
        }
        edges
    }
}

/// Removes contradictory edges between deposed objects, which were recorded at different times.
fn without_contradictions(
    edges: BTreeSet<(Node, Node)>,
    dropped: &mut BTreeSet<(Node, Node)>,
) -> BTreeSet<(Node, Node)> {
    let among = |edge: &(Node, Node)| matches!(edge, (Node::L(..), Node::L(..)));
    let reach = Reach::new(&edges.iter().filter(|edge| among(edge)).cloned().collect());
    let is_void = |edge: &(Node, Node)| among(edge) && reach.has(&edge.1, &edge.0);
    let (void, kept): (BTreeSet<_>, BTreeSet<_>) = edges.into_iter().partition(is_void);
    dropped.extend(void);
    kept
}

/// The transitive order of steps.
pub(super) struct Reach {
    numbers: BTreeMap<Node, usize>,
    reached: Vec<Vec<bool>>,
}

impl Reach {
    pub(super) fn new(waits: &BTreeSet<(Node, Node)>) -> Self {
        let nodes: BTreeSet<&Node> = waits.iter().flat_map(|(from, to)| [from, to]).collect();
        let numbers: BTreeMap<Node, usize> = nodes.into_iter().cloned().zip(0..).collect();
        let mut next = vec![Vec::new(); numbers.len()];
        for (from, to) in waits {
            next[numbers[from]].push(numbers[to]);
        }
        let from = |start: usize| {
            let mut found = vec![false; next.len()];
            let mut open: Vec<usize> = next[start].clone();
            while let Some(here) = open.pop() {
                if !std::mem::replace(&mut found[here], true) {
                    open.extend(&next[here]);
                }
            }
            found
        };
        let reached = (0..next.len()).map(from).collect();
        Self { numbers, reached }
    }

    pub(super) fn has(&self, from: &Node, to: &Node) -> bool {
        match (self.numbers.get(from), self.numbers.get(to)) {
            (Some(from), Some(to)) => self.reached[*from][*to],
            _ => false,
        }
    }

    pub(super) fn pairs(&self) -> BTreeSet<(&Node, &Node)> {
        let nodes: Vec<&Node> = self.numbers.keys().collect();
        let all = (0..nodes.len()).flat_map(|from| (0..nodes.len()).map(move |to| (from, to)));
        all.filter(|(from, to)| self.reached[*from][*to]).map(|(from, to)| (nodes[from], nodes[to])).collect()
    }
}

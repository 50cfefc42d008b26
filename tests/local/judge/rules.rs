//! The ordering rules R1 to R9, read off their text: every pair of steps is looked at, closures are plain sets.
//! Shares nothing with the planner or the graph.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Action, Address, DeposedKey, InstanceKey, Step};

/// A step, as the rules name them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// Create, update or record-only step.
    C(Address),
    /// Destroy or forget of the current object.
    D(Address),
    /// Destroy or forget of a leftover.
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

/// Stands for all wanted instances of a Resource, in relations. It has no steps.
pub(super) fn all_wanted(name: &str) -> Address {
    Address { name: name.into(), key: InstanceKey::Key("* wanted".into()) }
}

/// Stands for all recorded instances of a Resource.
pub(super) fn all_recorded(name: &str) -> Address {
    Address { name: name.into(), key: InstanceKey::Key("* recorded".into()) }
}

/// What the rules speak of.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Wanted objects.
    pub wanted: BTreeSet<Address>,
    /// Those of them that ask for create-before-destroy, by their flag or by being orphaned when replaced.
    pub asks: BTreeSet<Address>,
    /// Objects whose record has the flag.
    pub flagged: BTreeSet<Address>,
    /// What wanted objects refer to, as it is recorded.
    pub refers: Relation,
    /// Direct references between wanted objects.
    pub wants: Relation,
    /// Direct dependencies of recorded current objects.
    pub used: Relation,
    /// Direct dependencies of leftovers.
    pub leftovers: BTreeMap<(Address, DeposedKey), BTreeSet<Address>>,
    /// What the plan does with current objects.
    pub actions: BTreeMap<Address, Action>,
    /// Which leftovers it removes.
    pub removed: BTreeSet<(Address, DeposedKey)>,
    /// Create-first replacements whose old object has to stay for now.
    pub held: BTreeSet<Address>,
}

/// Which steps wait for which.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The first waits for the second.
    pub waits: BTreeSet<(Node, Node)>,
    /// Released objects that went back to the classic order.
    pub fell_back: BTreeSet<Address>,
    /// Edges of leftovers that were dropped, or that the rules except.
    pub dropped: BTreeSet<(Node, Node)>,
}

/// Everything that each one reaches in one or more steps.
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

/// Whether somebody uses itself through others. These rules say nothing about that, and it never is.
pub(super) fn has_ring(direct: &Relation) -> bool {
    closure(direct).iter().any(|(one, reached)| reached.contains(one))
}

/// Who creates first.
pub(super) fn create_first(facts: &Facts) -> BTreeSet<Address> {
    let mut set = facts.asks.clone();
    set.extend(facts.flagged.difference(&facts.wanted).cloned());
    set.extend(facts.leftovers.values().flatten().cloned());
    loop {
        let of = |relation: &Relation| -> Vec<Address> {
            set.iter().filter_map(|one| relation.get(one)).flatten().cloned().collect()
        };
        let more: BTreeSet<Address> = of(&facts.wants).into_iter().chain(of(&facts.used)).collect();
        if more.is_subset(&set) {
            return set;
        }
        set.extend(more);
    }
}

/// The rules at work.
struct Rules<'a> {
    facts: &'a Facts,
    first: &'a BTreeSet<Address>,
    /// Everything that the plan tells of.
    objects: BTreeSet<Address>,
    wants: Relation,
    used: Relation,
    /// What each leftover used, through everything.
    leftovers: BTreeMap<(Address, DeposedKey), BTreeSet<Address>>,
}

/// What the rules say.
pub(super) fn order(facts: &Facts, first: &BTreeSet<Address>) -> Order {
    let used = closure(&facts.used);
    let through = |direct: &BTreeSet<Address>| -> BTreeSet<Address> {
        direct.iter().chain(direct.iter().filter_map(|one| used.get(one)).flatten()).cloned().collect()
    };
    let leftovers = facts.leftovers.iter().map(|(key, direct)| (key.clone(), through(direct))).collect();
    let objects = facts.actions.keys().cloned().collect();
    Rules { facts, first, objects, wants: closure(&facts.wants), used, leftovers }.order()
}

impl Rules<'_> {
    fn has_c(&self, x: &Address) -> bool {
        let action = self.facts.actions.get(x);
        matches!(action, Some(Action::Create | Action::Update | Action::Record | Action::Replace))
    }

    /// Whether it has a step `C` that changes it: a record-only step orders nothing but records.
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

    fn wants(&self, b: &Address, a: &Address) -> bool {
        self.wants.get(b).is_some_and(|all| all.contains(a))
    }

    fn used(&self, b: &Address, a: &Address) -> bool {
        self.used.get(b).is_some_and(|all| all.contains(a))
    }

    fn order(&self) -> Order {
        let mut order = Order { dropped: self.mutual(), ..Order::default() };
        let fixed = without_contradictions(self.fixed(), &mut order.dropped);
        let mut soft = self.between_leftovers_and_later_users();
        let released: BTreeSet<Address> = self.objects.iter().filter(|a| self.is_released(a)).cloned().collect();
        loop {
            let mut waits = fixed.clone();
            waits.extend(soft.iter().cloned());
            for a in &released {
                waits.extend(self.released(a, order.fell_back.contains(a)));
            }
            let reach = Reach::new(&waits);
            let rings = |edge: &&(Node, Node)| reach.has(&edge.1, &edge.0);
            let ringed: Vec<_> = soft.iter().filter(rings).cloned().collect();
            if !ringed.is_empty() {
                for edge in ringed {
                    soft.remove(&edge);
                    order.dropped.insert(edge);
                }
                continue;
            }
            let in_ring =
                |a: &&Address| !order.fell_back.contains(*a) && self.released(a, false).iter().any(|edge| rings(&edge));
            match released.iter().find(in_ring) {
                Some(a) => drop(order.fell_back.insert(a.clone())),
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
            for a in self.objects.iter().filter(|a| self.has_c(a) && self.wants(x, a) && !self.used(x, a)) {
                let edge = (Node::D(x.clone()), Node::C(a.clone()));
                if edge.0 != edge.1 && !Reach::new(waits).has(&edge.1, &edge.0) {
                    waits.insert(edge);
                }
            }
        }
    }

    /// Whether somebody with a step used it and wants it no more, and it is not create-before-destroy.
    fn is_released(&self, a: &Address) -> bool {
        self.has_d(a) && !self.is_first(a) && self.objects.iter().any(|b| self.lets_go(b, a))
    }

    fn lets_go(&self, b: &Address, a: &Address) -> bool {
        self.used(b, a) && self.has_c(b) && !self.wants(b, a)
    }

    /// R5 for those who let go of a released object, and R6.
    fn released(&self, a: &Address, fell_back: bool) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        let turned = |from: Node, to: Node| if fell_back { (to, from) } else { (from, to) };
        for b in self.objects.iter().filter(|b| self.lets_go(b, a)) {
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
                if self.wants(b, a) && self.has_c(b) && self.has_c(a) {
                    edges.insert((c(b), c(a))); // R1
                }
                if !self.used(b, a) {
                    continue;
                }
                if self.has_d(a) && self.has_d(b) {
                    edges.insert((d(a), d(b))); // R2
                }
                // R4; a released object that only goes is R6's.
                let is_r6 = self.is_released(b) && !self.has_c(b);
                if self.has_d(b) && self.changes(a) && !is_r6 {
                    edges.insert(if self.is_first(b) { (d(b), c(a)) } else { (c(a), d(b)) });
                }
                // R5, but for released objects.
                if self.has_c(b) && self.has_d(a) {
                    if self.is_first(a) {
                        edges.insert((d(a), c(b)));
                    } else if self.wants(b, a) {
                        edges.insert((c(b), d(a)));
                    }
                }
            }
        }
        edges.extend(self.leftovers_fixed());
        edges
    }

    fn leftovers_fixed(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        for (x, key) in &self.facts.removed {
            let this = Node::L(x.clone(), *key);
            if self.has_c(x) {
                edges.insert((this.clone(), Node::C(x.clone())));
            }
            for y in self.leftovers.get(&(x.clone(), *key)).into_iter().flatten() {
                if self.changes(y) {
                    edges.insert((this.clone(), Node::C(y.clone())));
                }
                if self.has_d(y) {
                    edges.insert((Node::D(y.clone()), this.clone()));
                }
                for (other, other_key) in self.facts.removed.iter().filter(|(other, _)| other == y) {
                    let mutual = self.leftovers.get(&(other.clone(), *other_key)).is_some_and(|all| all.contains(x));
                    if !mutual {
                        edges.insert((Node::L(other.clone(), *other_key), this.clone()));
                    }
                }
            }
        }
        edges
    }

    /// Leftovers that used each other, or what uses their object now: they have no order.
    fn mutual(&self) -> BTreeSet<(Node, Node)> {
        let used = |x: &(Address, DeposedKey), y: &Address| self.leftovers.get(x).is_some_and(|all| all.contains(y));
        let all = &self.facts.removed;
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

    /// The last kind of R7.
    fn between_leftovers_and_later_users(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        for (x, key) in &self.facts.removed {
            let of_this = self.leftovers.get(&(x.clone(), *key));
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

/// Leftovers were recorded at different times, so they may contradict each other; what they say of each other's order
/// is void then.
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

/// Who waits for whom, directly or through others.
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

    /// Every pair.
    pub(super) fn pairs(&self) -> BTreeSet<(&Node, &Node)> {
        let nodes: Vec<&Node> = self.numbers.keys().collect();
        let all = (0..nodes.len()).flat_map(|from| (0..nodes.len()).map(move |to| (from, to)));
        all.filter(|(from, to)| self.reached[*from][*to]).map(|(from, to)| (nodes[from], nodes[to])).collect()
    }
}

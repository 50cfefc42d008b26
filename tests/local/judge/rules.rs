//! The ordering rules R1 to R7, read off their text: every pair of steps is looked at, closures are plain sets.
//! Shares nothing with the planner or the graph.

use std::collections::{BTreeMap, BTreeSet};

use purlin::model::{Action, Address, DeposedKey, Step};

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

/// What the rules speak of.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Wanted objects.
    pub wanted: BTreeSet<Address>,
    /// Those of them that ask for create-before-destroy, by their flag or by being orphaned when replaced.
    pub asks: BTreeSet<Address>,
    /// Objects whose record has the flag.
    pub flagged: BTreeSet<Address>,
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

fn closure(direct: &Relation) -> Relation {
    let mut all = direct.clone();
    loop {
        let mut grown = all.clone();
        for reached in grown.values_mut() {
            let further: Vec<_> = reached.iter().filter_map(|one| all.get(one)).flatten().cloned().collect();
            reached.extend(further);
        }
        if grown == all {
            return all;
        }
        all = grown;
    }
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
    Rules { facts, first, wants: closure(&facts.wants), used, leftovers }.order()
}

impl Rules<'_> {
    fn has_c(&self, x: &Address) -> bool {
        let action = self.facts.actions.get(x);
        matches!(action, Some(Action::Create | Action::Update | Action::Record | Action::Replace))
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

    fn objects(&self) -> BTreeSet<Address> {
        self.facts.actions.keys().cloned().collect()
    }

    fn order(&self) -> Order {
        let mut order = Order { dropped: self.mutual(), ..Order::default() };
        let fixed = without_contradictions(self.fixed(), &mut order.dropped);
        let mut soft = self.between_leftovers_and_later_users();
        let released: BTreeSet<Address> = self.objects().into_iter().filter(|a| self.is_released(a)).collect();
        loop {
            let mut waits = fixed.clone();
            waits.extend(soft.iter().cloned());
            for a in &released {
                waits.extend(self.released(a, order.fell_back.contains(a)));
            }
            let reach = reach(&waits);
            let rings = |edge: &&(Node, Node)| reach.contains(&(edge.1.clone(), edge.0.clone()));
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
                    return order;
                }
            }
        }
    }

    /// Whether somebody with a step used it and wants it no more, and it is not create-before-destroy.
    fn is_released(&self, a: &Address) -> bool {
        self.has_d(a) && !self.is_first(a) && self.objects().iter().any(|b| self.lets_go(b, a))
    }

    fn lets_go(&self, b: &Address, a: &Address) -> bool {
        self.used(b, a) && self.has_c(b) && !self.wants(b, a)
    }

    /// R5 for those who let go of a released object, and R6.
    fn released(&self, a: &Address, fell_back: bool) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        let turned = |from: Node, to: Node| if fell_back { (to, from) } else { (from, to) };
        for b in self.objects().iter().filter(|b| self.lets_go(b, a)) {
            edges.insert(turned(Node::D(a.clone()), Node::C(b.clone())));
        }
        if !self.has_c(a) {
            for z in self.objects().iter().filter(|z| self.used(a, z) && self.has_c(z)) {
                edges.insert(turned(Node::D(a.clone()), Node::C(z.clone())));
            }
        }
        edges
    }

    fn fixed(&self) -> BTreeSet<(Node, Node)> {
        let mut edges = BTreeSet::new();
        let c = |x: &Address| Node::C(x.clone());
        let d = |x: &Address| Node::D(x.clone());
        let objects = self.objects();
        for b in &objects {
            if self.has_c(b) && self.has_d(b) {
                edges.insert(if self.is_first(b) { (d(b), c(b)) } else { (c(b), d(b)) }); // R3
            }
            for a in &objects {
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
                if self.has_d(b) && self.has_c(a) && !is_r6 {
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
                if self.has_c(y) {
                    edges.insert((this.clone(), Node::C(y.clone())));
                }
                if self.has_d(y) {
                    edges.insert((Node::D(y.clone()), this.clone()));
                }
                for (other, other_key) in self.facts.removed.iter().filter(|(other, _)| other == y) {
                    let mutual = self.leftovers.get(&(other.clone(), *other_key)).is_some_and(|all| all.contains(x));
                    if !mutual && other != x {
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
            for b in self.objects().into_iter().filter(|b| used(x, b) && self.used(b, &x.0)) {
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
            for b in self.objects().iter().filter(|b| self.used(b, x)) {
                if of_this.is_some_and(|all| all.contains(b)) {
                    continue;
                }
                let this = Node::L(x.clone(), *key);
                if self.has_c(b) {
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
    let reach = reach(&edges.iter().filter(|edge| among(edge)).cloned().collect());
    let is_void = |edge: &(Node, Node)| among(edge) && reach.contains(&(edge.1.clone(), edge.0.clone()));
    let (void, kept): (BTreeSet<_>, BTreeSet<_>) = edges.into_iter().partition(is_void);
    dropped.extend(void);
    kept
}

/// Every pair of which the first waits for the second, directly or through others.
pub(super) fn reach(waits: &BTreeSet<(Node, Node)>) -> BTreeSet<(Node, Node)> {
    let mut next: BTreeMap<&Node, BTreeSet<&Node>> = BTreeMap::new();
    for (from, to) in waits {
        next.entry(from).or_default().insert(to);
    }
    let mut all = BTreeSet::new();
    for start in next.keys() {
        let mut open: Vec<&Node> = next[start].iter().copied().collect();
        while let Some(node) = open.pop() {
            if all.insert(((*start).clone(), node.clone())) {
                open.extend(next.get(node).into_iter().flatten());
            }
        }
    }
    all
}

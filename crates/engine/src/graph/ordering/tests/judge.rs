//! Checks the rules on the closure of a graph.

use super::super::topology::Adjacency;
use super::super::{Object, Ordering, Presence, order};
use super::plain::{self, Terms};

/// Panics if there is a cycle.
pub fn assert_acyclic(ordering: &Ordering) -> (Adjacency, Vec<u32>) {
    let adjacency = Adjacency::new(ordering.nodes, ordering.edges.iter().map(|edge| (edge.from, edge.to)));
    let (targets_first, sound) = adjacency.targets_first();
    assert_eq!(sound, ordering.nodes, "a cycle");
    (adjacency, targets_first)
}

/// Returns the set of steps that each step waits for directly or indirectly.
pub fn reach(ordering: &Ordering) -> Vec<u64> {
    let mut below = vec![0_u64; ordering.nodes];
    let (adjacency, targets_first) = assert_acyclic(ordering);
    for at in targets_first {
        for &to in adjacency.of(at) {
            let own = if (to as usize) < ordering.steps.len() { 1 << to } else { 0 };
            below[at as usize] |= own | below[to as usize];
        }
    }
    below.truncate(ordering.steps.len());
    below
}

/// Builds the graph and checks it. The error names the violated rule.
pub fn judge(objects: &[Object]) -> Result<Ordering, String> {
    judge_against(objects, objects)
}

/// Builds the graph of `drawn` and checks it with `objects`, which are the same without families.
pub fn judge_against(drawn: &[Object], objects: &[Object]) -> Result<Ordering, String> {
    let plain = plain::order(objects);
    if let Some(at) = (0..plain.steps.len()).find(|&at| plain.reach[at] >> at & 1 == 1) {
        let others =
            (0..plain.steps.len()).filter(|&to| plain.reach[at] >> to & 1 == 1 && plain.reach[to] >> at & 1 == 1);
        return Err(format!(
            "a cycle in the simple implementation: {:?}",
            others.map(|at| plain.steps[at]).collect::<Vec<_>>()
        ));
    }
    let terms = Terms::new(objects);
    let ordering = order(drawn);
    let reach = reach(&ordering);
    if ordering.steps != plain.steps {
        return Err("the steps differ".to_owned());
    }
    let is_fallback = |at: usize| ordering.fallbacks.iter().any(|fell| fell.object as usize == at);
    if let Some(at) = (0..objects.len()).find(|&at| is_fallback(at) != plain.fallbacks[at]) {
        return Err(format!("the fallback of {at} differs"));
    }
    // R9 and the exceptions of R7 can add edges to running steps that the rules do not require. They cause no cycle.
    let running = (0..reach.len()).filter(|&at| terms.presence(terms.steps[at]) == Presence::Running);
    let running: u64 = running.map(|at| 1 << at).sum();
    for (step, (ours, theirs)) in plain.steps.iter().zip(reach.iter().zip(&plain.reach)) {
        if theirs & !ours != 0 || ours & !theirs & !running != 0 {
            return Err(format!("{step:?} waits for {ours:b}, and should for {theirs:b} of {:?}", plain.steps));
        }
    }
    check_rules(&terms, &reach, &is_fallback)?;
    check_new_dependencies(&terms, &reach)?;
    Ok(ordering)
}

/// Checks R1 to R7 separately.
pub fn check_rules(terms: &Terms<'_>, reach: &[u64], is_fallback: &dyn Fn(usize) -> bool) -> Result<(), String> {
    let planned = |step: usize| terms.presence(terms.steps[step]) == Presence::Planned;
    let holds = |rule: &str, from: Option<usize>, to: Option<usize>| match (from, to) {
        (Some(from), Some(to)) if planned(from) && reach[from] >> to & 1 == 0 => {
            Err(format!("{rule}: {:?} does not wait for {:?}", terms.steps[from], terms.steps[to]))
        }
        _ => Ok(()),
    };
    let count = terms.objects.len();
    for a in 0..count {
        let (first, last) = if terms.cbd(a) { (terms.c(a), terms.d(a)) } else { (terms.d(a), terms.c(a)) };
        holds("R3", last, first)?;
        for b in 0..count {
            if terms.wants(b, a) {
                holds("R1", terms.c(b), terms.c(a))?;
            }
            if !terms.used(b, a) {
                continue;
            }
            holds("R2", terms.d(a), terms.d(b))?;
            let late = terms.cbd(b) || (terms.released_for_good(b) && !is_fallback(b));
            let (last, first) = if late { (terms.d(b), terms.change(a)) } else { (terms.change(a), terms.d(b)) };
            holds("R4", last, first)?;
            let late = terms.cbd(a) || (!terms.wants(b, a) && !is_fallback(a));
            let (last, first) = if late { (terms.d(a), terms.c(b)) } else { (terms.c(b), terms.d(a)) };
            holds("R5", last, first)?;
        }
        for k in 0..terms.objects[a].deposed.len() {
            holds("R7", terms.deposed(a, k), terms.c(a))?;
            let used = terms.deposed_used(a, k);
            for y in (0..count).filter(|y| used >> y & 1 == 1) {
                holds("R7", terms.deposed(a, k), terms.change(y))?;
                holds("R7", terms.d(y), terms.deposed(a, k))?;
            }
        }
    }
    Ok(())
}

/// R9: new dependencies come first, unless that would cause a cycle.
fn check_new_dependencies(terms: &Terms<'_>, reach: &[u64]) -> Result<(), String> {
    let count = terms.objects.len();
    for (x, a) in (0..count).flat_map(|x| (0..count).map(move |a| (x, a))) {
        if terms.cbd(x) || !terms.wants(x, a) || terms.used(x, a) || terms.objects[x].apply != Presence::Planned {
            continue;
        }
        if let (Some(remove), Some(make)) = (terms.d(x), terms.c(a))
            && terms.objects[x].remove == Presence::Planned
            && reach[remove] >> make & 1 == 0
            && reach[make] >> remove & 1 == 0
        {
            return Err(format!("R9: {x} does not wait for {a}"));
        }
    }
    Ok(())
}

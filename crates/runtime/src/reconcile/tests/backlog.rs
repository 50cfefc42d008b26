//! New Resources, and deleted ones, are planned when there is room for their steps.

use super::*;
use crate::execute::{Permit, Permits};
use model::{Address, ProviderUse, Quota};

const NEW: usize = 40;

/// The environment of one of several namespaces.
pub struct SharedEnvironment<'a> {
    pub workers: &'a mut Workers,
    pub namespaces: usize,
}

impl Permits for SharedEnvironment<'_> {
    fn try_take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Permit> {
        self.workers.try_take(type_name, provider)
    }

    fn is_exhausted(&self) -> bool {
        self.workers.is_exhausted()
    }
}

impl Environment for SharedEnvironment<'_> {
    fn can_watch(&self, type_name: &str) -> bool {
        self.workers.can_watch(type_name)
    }

    fn reports_health(&self, type_name: &str) -> bool {
        self.workers.reports_health(type_name)
    }

    fn is_watching(&self, type_name: &str, address: &Address) -> bool {
        self.workers.is_watching(type_name, address)
    }

    fn sharing_namespaces(&self) -> usize {
        self.namespaces
    }
}

/// A bench with room for four waiting steps, and plans of two names.
fn bench() -> Bench {
    Bench::with_policy(|policy| {
        policy.quota = Quota::default();
        policy.max_names_per_plan = 2;
        policy.max_waiting_steps = Some(4);
    })
}

fn names() -> impl Iterator<Item = String> {
    (0..NEW).map(|number| format!("n{number:02}"))
}

async fn create_all(bench: &mut Bench) {
    names().for_each(|name| bench.observe(thing(&name, 1), 1));
    bench.react(Signal::Started);
    bench.run_until_idle(Duration::from_secs(1)).await;
}

/// The largest number of objects that were planned and not started.
fn longest_backlog(log: &[String]) -> usize {
    let (mut waiting, mut longest) = (0, 0);
    for line in log {
        waiting += if line.contains(" plan {") { line.matches("\"n").count() } else { 0 };
        waiting -= usize::from(line.contains(" start n"));
        longest = longest.max(waiting);
    }
    longest
}

#[tokio::test]
async fn new_resources_are_planned_as_the_steps_of_others_start() {
    let mut bench = bench();
    create_all(&mut bench).await;
    assert_eq!(bench.recorded().len(), NEW);
    assert!(names().all(|name| bench.ready(&name) == (1, "True Available".to_owned())));
    let longest = longest_backlog(&bench.log);
    assert!(longest <= 8 + 4 + 2, "{longest}: {:#?}", bench.log);
}

#[tokio::test]
async fn deletions_are_planned_as_the_steps_of_others_start() {
    let mut bench = bench();
    create_all(&mut bench).await;
    bench.log.clear();
    names().for_each(|name| bench.observe(deleting(thing(&name, 1)), 1));
    bench.run_until_idle(Duration::from_secs(10)).await;
    assert_eq!(bench.recorded(), [""; 0]);
    let longest = longest_backlog(&bench.log);
    assert!(longest <= 8 + 4 + 2, "{longest}: {:#?}", bench.log);
}

#[tokio::test]
async fn new_resources_and_deletions_do_not_wait_for_each_other() {
    let mut bench = bench();
    create_all(&mut bench).await;
    bench.log.clear();
    let (deleted, new) = (|name: &String| deleting(thing(name, 1)), |name: &String| thing(&format!("{name}-new"), 1));
    names().for_each(|name| bench.observe(deleted(&name), 1));
    names().for_each(|name| bench.observe(new(&name), 1));
    bench.run_until_idle(Duration::from_secs(10)).await;
    assert_eq!(bench.recorded(), names().map(|name| format!("{name}-new")).collect::<Vec<_>>());
    let (creates, deletions) = (planned(&bench.log, "-new\""), planned(&bench.log, "0\""));
    assert!(creates.0 < deletions.1 && deletions.0 < creates.1, "{:#?}", bench.log);
}

/// The positions of the first and the last plan of a name that ends so.
fn planned(log: &[String], suffix: &str) -> (usize, usize) {
    let plans = log.iter().enumerate().filter(|(_, line)| line.contains(" plan {") && line.contains(suffix));
    let positions: Vec<usize> = plans.map(|(position, _)| position).collect();
    (positions[0], positions[positions.len() - 1])
}

#[tokio::test]
async fn namespaces_share_the_room_for_waiting_steps() {
    for (sharing, share) in [(1, 32), (2, 16), (1000, 8)] {
        let mut bench = bench();
        bench.reconciler.policy.max_waiting_steps = Some(32);
        bench.sharing = sharing;
        create_all(&mut bench).await;
        assert_eq!(bench.recorded().len(), NEW);
        let longest = longest_backlog(&bench.log);
        assert!((share..share + 8 + 2).contains(&longest), "{sharing} namespaces: {longest}");
    }
}

#[tokio::test(start_paused = true)]
async fn behind_slow_steps_all_resources_soon_have_a_status_and_other_changes_do_not_wait() {
    let mut bench = bench();
    bench.observe(thing("old", 1), 1);
    bench.react(Signal::Started);
    bench.run_until_idle(MINUTE).await;
    for name in names() {
        bench.script(&name, Operation::Create, vec![ScriptedOutcome::Hold("never".to_owned())]);
        bench.observe(thing(&name, 1), 1);
    }
    bench.react(Signal::Wake);
    bench.run_until("eight creates", |bench| bench.count(" start n") == 8).await;
    bench.observe(thing("old", 2), 2);
    bench.react(Signal::Wake);
    let began = bench.now;
    bench.run_until("the plan of the update", |bench| bench.count("plan {\"old\"}") == 2).await;
    assert!(bench.now < began + Duration::from_secs(1));
    assert!(bench.status.len() < NEW / 2, "{:?}", bench.status.keys());
    bench.observe(deleting(thing("n39", 1)), 1);
    bench.react(Signal::Wake);
    bench.run_until("the plan of the deletion", |bench| bench.count("\"n39\"") == 1).await;
    assert!(bench.now < began + Duration::from_secs(2));
    bench.run_until("a status", |bench| names().all(|name| bench.status.contains_key(&name))).await;
    assert!(bench.now <= began + MINUTE * 4);
}

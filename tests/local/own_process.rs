//! What a process makes of its own operations, while it goes on: a scenario settles intents in the next process only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use purlin::driver::scripted::{self, Answer, Line, Script, World};
use purlin::driver::{Registry, Scripted};
use purlin::execute::{self, Adoption, Engine, HolderState, Limits, Progress, ProgressKind, Recovery, Run};
use purlin::model::{Address, Holder, Reason};
use purlin::plan::{Memo, PlanOptions, Refresh};
use purlin::process::{Clock as _, SystemClock, SystemRandom};
use purlin::store::memory::{MemoryJournal, Moment, Operation, Verdict};

use crate::kit::load;

/// A process over a world of scripted objects.
struct Process {
    world: Arc<World>,
    journal: MemoryJournal,
    engine: Arc<Engine>,
    /// What the next intent comes to.
    intends: Arc<Mutex<Verdict>>,
}

impl Process {
    fn start(recovery: &str) -> Self {
        let script: Script = serde_json::from_value(serde_json::json!({ "createRecovery": recovery })).unwrap();
        let world = World::new(script);
        let intends = Arc::new(Mutex::new(Verdict::Proceed));
        let verdict = Arc::clone(&intends);
        let journal = MemoryJournal::new(Arc::new(move |point| match (point.operation, point.moment) {
            (Operation::Intend, Moment::After) => std::mem::replace(&mut *verdict.lock().unwrap(), Verdict::Proceed),
            _ => Verdict::Proceed,
        }));
        let engine = Arc::new(Engine::new(
            Registry::default().with("scripted", Arc::new(Scripted::new(Arc::clone(&world)))),
            Arc::new(journal.clone()),
            Arc::new(SystemClock),
            Arc::new(SystemRandom),
            Limits::default(),
            Holder { pod: "".into(), process: "this".into() },
        ));
        Self { world, journal, engine, intends }
    }

    /// Plans for the manifests, and hands the plan to a new run.
    async fn adopt(&self, yaml: &str) -> Run {
        let loaded = load(yaml);
        let recorded = self.journal.load("default").records;
        let mut run = Run::new(Arc::clone(&self.engine), recorded);
        let options = PlanOptions { seed: 1, refresh: Refresh::All, ..PlanOptions::default() };
        let config = Arc::new(loaded.config);
        let planned =
            purlin::pipeline::plan(&self.engine, &config, run.schedule.records(), &options, &mut Memo::default()).await;
        let scope: BTreeSet<Address> =
            planned.config.instances.keys().chain(run.schedule.records().keys()).cloned().collect();
        let (config, plan, graph) = (planned.config, planned.plan, planned.graph);
        let (namespace, wishes) = (loaded.namespace, Arc::default());
        let adoption = Adoption { scope, config, plan, graph, namespace, running: Vec::new(), wishes };
        run.schedule.adopt(adoption).unwrap();
        run
    }

    /// Carries out what the manifests ask for.
    async fn apply(&self, yaml: &str) -> Vec<Progress> {
        let mut run = self.adopt(yaml).await;
        let mut happened = Vec::new();
        while let Some(progress) = run.next().await {
            happened.push(progress);
        }
        happened
    }

    /// Settles the open intent of `a`.
    async fn recover(&self, yaml: &str) -> Recovery {
        let loaded = load(yaml);
        let stored = self.journal.load("default").records.remove(&address()).unwrap();
        assert!(stored.record.intent.is_some());
        let instance = loaded.config.instances.get(&address()).map(|instance| &**instance);
        execute::recover(&self.engine, &stored, instance, HolderState::Gone).await.0
    }
}

fn address() -> Address {
    "a".parse().unwrap()
}

fn manifest(force: u32) -> String {
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: a }}\nspec: {{ type: scripted, config: {{ force: \
         {force} }}, lifecycle: {{ createBeforeDestroy: true }} }}\n"
    )
}

fn failed(happened: &[Progress], expected: Reason) -> bool {
    happened.iter().any(|one| matches!(one.kind, ProgressKind::Failed { reason, .. } if reason == expected))
}

#[tokio::test]
async fn an_intent_whose_answer_was_lost_and_that_was_never_called_is_taken_back() {
    let process = Process::start("unknown");
    process.apply(&manifest(1)).await;
    let before = process.journal.load("default").records.remove(&address()).unwrap();
    *process.intends.lock().unwrap() = Verdict::Fail;
    assert!(failed(&process.apply(&manifest(2)).await, Reason::RecordNotWritten));
    let Recovery::Settled(settled) = process.recover(&manifest(2)).await else { panic!("nobody has to be asked") };
    assert_eq!((&settled.record.current, settled.record.deposed.len()), (&before.record.current, 0));
    assert_eq!(process.world.objects().len(), 1);
    process.apply(&manifest(2)).await;
    let after = process.journal.load("default").records.remove(&address()).unwrap();
    assert!(after.record.current.as_ref().unwrap().id() != before.record.current.as_ref().unwrap().id());
    assert_eq!((after.record.deposed.len(), process.world.objects().len()), (0, 1));
}

#[tokio::test]
async fn a_first_create_that_was_never_called_leaves_no_record() {
    let process = Process::start("unknown");
    *process.intends.lock().unwrap() = Verdict::Fail;
    assert!(failed(&process.apply(&manifest(1)).await, Reason::RecordNotWritten));
    assert!(matches!(process.recover(&manifest(1)).await, Recovery::Erased));
    assert!(process.journal.load("default").records.is_empty());
}

#[tokio::test]
async fn another_process_does_not_know_that_the_call_was_not_made() {
    let process = Process::start("unknown");
    process.apply(&manifest(1)).await;
    *process.intends.lock().unwrap() = Verdict::Fail;
    process.apply(&manifest(2)).await;
    let next = Process { engine: Process::start("unknown").engine, ..process };
    let outcome = next.recover(&manifest(2)).await;
    let Recovery::Held(held, None) = outcome else { panic!("{outcome:?}") };
    assert_eq!(held.reason, Reason::CreateOutcomeUnknown);
}

fn slow(limit: &str) -> String {
    manifest(1).replace("lifecycle:", &format!("timeouts: {{ create: {limit} }}, lifecycle:"))
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_limit_is_waited_for_and_its_late_answer_is_recorded() {
    let process = Process::start("unknown");
    let answers = vec![Answer::Hold("answer".into())];
    process.world.script(Line { on: "a".into(), operation: scripted::Operation::Create, answers });
    let mut run = process.adopt(&slow("30s")).await;
    let late = loop {
        match run.next().await.unwrap().kind {
            ProgressKind::Delayed(why) => break why,
            ProgressKind::Started => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(late.reason, Reason::TimeLimitExceeded);
    assert_eq!(
        late.summary,
        "the create takes longer than its limit of 30s: its provider is asked to give up, and Purlin waits for its answer"
    );
    // Nothing else is done about the object, by this process or, as the intent says, by another one.
    let Recovery::Held(held, Some(_)) = process.recover(&slow("30s")).await else { panic!("it is under way") };
    assert_eq!(held.reason, Reason::OperationInProgress);
    let record = process.journal.load("default").records.remove(&address()).unwrap().record;
    let deadline = record.intent.as_ref().unwrap().deadline;
    let minutes = deadline.duration_since(SystemClock.now()).as_mins();
    assert!(minutes >= 5, "{minutes}");
    process.world.release("answer");
    while let Some(progress) = run.next().await {
        assert!(matches!(progress.kind, ProgressKind::Delayed(_) | ProgressKind::Finished), "{progress:?}");
    }
    let record = process.journal.load("default").records.remove(&address()).unwrap().record;
    assert!(record.intent.is_none() && record.current.is_some());
    assert_eq!(process.world.objects().len(), 1);
}

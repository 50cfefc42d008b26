//! Recovery of a process's own intents while it runs. In scenarios, only the next process resolves intents.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use purlin::driver::Registry;
use purlin::execute::{self, Adoption, Engine, HolderState, Limits, Progress, ProgressKind, Recovery, Run};
use purlin::model::{Address, Holder, Reason};
use purlin::plan::{PlanOptions, Refresh, ResponseCache};
use purlin::process::{Clock as _, SystemClock, SystemRandom};
use purlin::store::memory::{FaultAction, MemoryJournal, Moment, Operation};
use testkit::scripted::Scripted;
use testkit::scripted::{self, Script, ScriptLine, ScriptedOutcome, World};

use crate::kit::load;

/// A process with scripted objects.
struct TestProcess {
    world: Arc<World>,
    journal: MemoryJournal,
    engine: Arc<Engine>,
    /// The fault for the next intent.
    intends: Arc<Mutex<FaultAction>>,
}

impl TestProcess {
    fn start(recovery: &str) -> Self {
        let script: Script = serde_json::from_value(serde_json::json!({ "createRecovery": recovery })).unwrap();
        let world = World::new(script);
        let intends = Arc::new(Mutex::new(FaultAction::Proceed));
        let verdict = Arc::clone(&intends);
        let journal = MemoryJournal::new(Arc::new(move |point| match (point.operation, point.moment) {
            (Operation::Intend, Moment::After) => {
                std::mem::replace(&mut *verdict.lock().unwrap(), FaultAction::Proceed)
            }
            _ => FaultAction::Proceed,
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

    /// Plans the manifests and adopts the plan in a new run.
    async fn adopt(&self, yaml: &str) -> Run {
        let loaded = load(yaml);
        let recorded = self.journal.load("default").records;
        let mut run = Run::new(Arc::clone(&self.engine), "default".into(), recorded);
        let options = PlanOptions { seed: 1, refresh: Refresh::All, ..PlanOptions::default() };
        let config = Arc::new(loaded.config);
        let planned =
            purlin::pipeline::plan(&self.engine, &config, &run.records, &options, &mut ResponseCache::default()).await;
        let scope: BTreeSet<Address> = planned.config.instances.keys().chain(run.records.keys()).cloned().collect();
        let (config, plan, graph) = (planned.config, planned.plan, planned.graph);
        let adoption = Adoption {
            scope,
            config,
            plan,
            graph: Arc::new(graph),
            namespace: loaded.namespace,
            running: Vec::new(),
            desired_digests: Arc::default(),
            components: Arc::default(),
        };
        run.schedule.adopt(adoption).unwrap();
        run
    }

    async fn apply(&self, yaml: &str) -> Vec<Progress> {
        let mut run = self.adopt(yaml).await;
        let mut happened = Vec::new();
        while let Some(progress) = run.next().await {
            happened.push(progress);
        }
        happened
    }

    /// Resolves the open intent of `a`.
    async fn recover(&self, yaml: &str) -> Recovery {
        let loaded = load(yaml);
        let stored = self.journal.load("default").records.remove(&address()).unwrap();
        assert!(stored.record.intent.is_some());
        let instance = loaded.config.instances.get(&address()).map(|instance| &**instance);
        execute::recover(&self.engine, &stored, instance, HolderState::Ended).await.0
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
async fn a_lost_intent_without_a_call_is_reverted() {
    let process = TestProcess::start("unknown");
    process.apply(&manifest(1)).await;
    let before = process.journal.load("default").records.remove(&address()).unwrap();
    *process.intends.lock().unwrap() = FaultAction::Fail;
    assert!(failed(&process.apply(&manifest(2)).await, Reason::RecordNotWritten));
    let Recovery::Resolved(resolved) = process.recover(&manifest(2)).await else {
        panic!("the intent is not resolved")
    };
    assert_eq!((&resolved.record.current, resolved.record.deposed.len()), (&before.record.current, 0));
    assert_eq!(process.world.objects().len(), 1);
    process.apply(&manifest(2)).await;
    let after = process.journal.load("default").records.remove(&address()).unwrap();
    assert!(after.record.current.as_ref().unwrap().id() != before.record.current.as_ref().unwrap().id());
    assert_eq!((after.record.deposed.len(), process.world.objects().len()), (0, 1));
}

#[tokio::test]
async fn a_first_create_without_a_call_leaves_no_record() {
    let process = TestProcess::start("unknown");
    *process.intends.lock().unwrap() = FaultAction::Fail;
    assert!(failed(&process.apply(&manifest(1)).await, Reason::RecordNotWritten));
    assert!(matches!(process.recover(&manifest(1)).await, Recovery::Erased));
    assert!(process.journal.load("default").records.is_empty());
}

/// A request can wait in a proxy after its client has given it up.
#[tokio::test]
async fn an_intent_without_a_call_that_becomes_durable_late_is_reverted() {
    let process = TestProcess::start("unknown");
    *process.intends.lock().unwrap() = FaultAction::Fail;
    process.apply(&manifest(1)).await;
    let late = process.journal.load("default").records.remove(&address()).unwrap().record;
    assert!(matches!(process.recover(&manifest(1)).await, Recovery::Erased));
    process.apply(&manifest(1)).await;
    assert_eq!(process.world.objects().len(), 1);
    let disabled = manifest(1).replace("lifecycle:", "enabled: false, lifecycle:");
    process.apply(&disabled).await;
    assert!(process.world.objects().is_empty() && process.journal.load("default").records.is_empty());
    process.journal.put(&late).unwrap();
    assert!(matches!(process.recover(&disabled).await, Recovery::Erased));
}

#[tokio::test]
async fn another_process_does_not_know_that_the_call_was_not_made() {
    let process = TestProcess::start("unknown");
    process.apply(&manifest(1)).await;
    *process.intends.lock().unwrap() = FaultAction::Fail;
    process.apply(&manifest(2)).await;
    let next = TestProcess { engine: TestProcess::start("unknown").engine, ..process };
    let outcome = next.recover(&manifest(2)).await;
    let Recovery::Blocked(held, None) = outcome else { panic!("{outcome:?}") };
    assert_eq!(held.reason, Reason::CreateOutcomeUnknown);
}

fn slow(limit: &str) -> String {
    manifest(1).replace("lifecycle:", &format!("timeouts: {{ create: {limit} }}, lifecycle:"))
}

#[tokio::test(start_paused = true)]
async fn the_late_response_of_a_call_past_its_limit_is_recorded() {
    let process = TestProcess::start("unknown");
    let answers = vec![ScriptedOutcome::Hold("answer".into())];
    process.world.script(ScriptLine { on: "a".into(), operation: scripted::Operation::Create, answers });
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
        "the create exceeds its time limit of 30s: Purlin has requested that the provider stop it, and waits for the result"
    );
    // Neither this process nor, because of the intent, another one starts a second operation.
    let Recovery::Blocked(held, Some(_)) = process.recover(&slow("30s")).await else {
        panic!("the operation is still running")
    };
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

//! Two processes that recover the same operation.

use std::sync::Arc;

use super::*;
use crate::execute::Limits;
use crate::store::MemoryJournal;
use drivers::Registry;
use model::{Address, Holder, PlannedObject, Version};
use process::{Clock as _, SystemClock, SystemRandom};
use testkit::scripted::{self, ScriptLine, Scripted, ScriptedOutcome, World};

/// The records and the service that all processes share.
struct Scene {
    world: Arc<World>,
    journal: MemoryJournal,
}

impl Scene {
    /// A process has ended during this operation on `a`, before its call had an effect.
    fn after(operation: Operation) -> Self {
        let script = serde_json::json!({ "createRecovery": "repeat" });
        let scene =
            Self { world: World::new(serde_json::from_value(script).unwrap()), journal: MemoryJournal::default() };
        let config = Value::map([("value", Value::from(1)), ("secret", Value::from("hunter22"))]);
        let mut record = Record::empty("shop".into(), Address::single("a"), "".into(), "scripted".into());
        if operation != Operation::Create {
            scene.world.put("it", &config);
            let value = config.with("id", Value::from("it"));
            record.current = Some(Arc::new(RecordedObject { value, ..RecordedObject::default() }));
        }
        let planned = config.with("id", Value::Unknown).with("computed", Value::Unknown);
        record.intent = Some(Box::new(Intent {
            operation,
            operation_id: "op".into(),
            holder: Holder { pod: "".into(), process: "ended".into() },
            epoch: 1,
            started: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::UNIX_EPOCH,
            deposed: None,
            planned: Some(PlannedObject { config, planned, private: [].into(), recorded: Box::default() }),
            import: None,
            cause: model::Cause::default(),
        }));
        scene.journal.put(&record).unwrap();
        scene
    }

    fn process(&self, name: &str) -> Engine {
        Engine::new(
            Registry::default().with("scripted", Arc::new(Scripted::new(self.world.clone()))),
            Arc::new(self.journal.clone()),
            Arc::new(SystemClock),
            Arc::new(SystemRandom),
            Limits::default(),
            Holder { pod: "".into(), process: name.into() },
        )
    }

    fn answer(&self, operation: scripted::Operation, answers: Vec<ScriptedOutcome>) {
        self.world.script(ScriptLine { on: "a".to_owned(), operation, answers });
    }

    fn stored(&self) -> Stored {
        self.journal.load("shop").records.remove(&Address::single("a")).unwrap()
    }

    fn version(&self) -> Version {
        self.stored().version
    }
}

#[tokio::test]
async fn a_process_makes_no_call_that_the_recovery_of_another_one_makes() {
    let calls = [(Operation::Create, scripted::Operation::Create), (Operation::Destroy, scripted::Operation::Destroy)];
    for (operation, call) in calls {
        let scene = Scene::after(operation);
        scene.answer(call, vec![ScriptedOutcome::Hold("slow".to_owned())]);
        let (first, second, left) = (scene.process("first"), scene.process("second"), scene.stored());
        let ((ended, _), ()) = futures::join!(recover(&first, &left, None, HolderState::Ended), async {
            scene.world.until_waiting("slow", "a").await;
            // By these, the next leader judges whether the call may still run.
            let intent = scene.stored().record.intent.clone().unwrap();
            assert_eq!(intent.holder, first.holder);
            assert!(intent.started > Timestamp::UNIX_EPOCH && intent.deadline > intent.started, "{intent:?}");
            // It has read the record before.
            let (outcome, _) = recover(&second, &left, None, HolderState::Ended).await;
            let Recovery::Blocked(block, Some(_)) = outcome else { panic!("{outcome:?}") };
            assert_eq!(block.reason, Reason::OperationInProgress);
            scene.world.release("slow");
        });
        assert!(matches!(ended, Recovery::Resolved(_) | Recovery::Erased), "{ended:?}");
        assert_eq!(scene.world.effects().len(), 1, "{operation:?}");
    }
}

#[tokio::test]
async fn what_recovery_resumes_is_known_before_it_calls() {
    for operation in [Operation::Create, Operation::Destroy] {
        let scene = Scene::after(operation);
        let process = scene.process("first");
        assert_eq!(resumed(&process, &scene.stored(), None), Some(operation));
        assert!(scene.world.effects().is_empty());
        recover(&process, &scene.stored(), None, HolderState::Ended).await;
        assert_eq!(scene.world.effects().len(), 1, "{operation:?}");
    }
    let scene = Scene::after(Operation::Update);
    assert_eq!(resumed(&scene.process("first"), &scene.stored(), None), None, "an update is only read");
}

#[tokio::test]
async fn an_attempt_soon_after_a_failed_one_takes_nothing_over_again() {
    let scene = Scene::after(Operation::Create);
    let fails = ScriptedOutcome::Fail { kind: scripted::Kind::Transient, message: "not now".to_owned() };
    scene.answer(scripted::Operation::Create, vec![fails.clone(), fails]);
    let process = scene.process("first");
    let left = scene.version();
    let mut versions = Vec::new();
    for _ in 0..2 {
        let (outcome, _) = recover(&process, &scene.stored(), None, HolderState::Ended).await;
        assert!(matches!(outcome, Recovery::Blocked(..)), "{outcome:?}");
        versions.push(scene.version());
    }
    assert!(versions[0] > left && versions[0] == versions[1], "{left:?} {versions:?}");
    // After half of the time limit, it is extended.
    let mut late = scene.stored().record.as_ref().clone();
    late.intent.as_mut().unwrap().deadline = SystemClock.now();
    scene.journal.put(&late).unwrap();
    let (outcome, _) = recover(&process, &scene.stored(), None, HolderState::Ended).await;
    assert!(matches!(outcome, Recovery::Resolved(_)), "{outcome:?}");
    assert_eq!(scene.world.objects().len(), 1);
}

#[tokio::test]
async fn an_error_of_a_recovery_shows_no_secret() {
    let scene = Scene::after(Operation::Update);
    let message = "hunter22 is no password".to_owned();
    let fails = ScriptedOutcome::Fail { kind: scripted::Kind::Transient, message };
    scene.answer(scripted::Operation::Read, vec![fails]);
    let (recovery, _) = recover(&scene.process("second"), &scene.stored(), None, HolderState::Ended).await;
    let Recovery::Blocked(block, _) = recovery else { panic!("{recovery:?}") };
    let expected = "recovery of an interrupted update failed: (sensitive) is no password";
    assert_eq!((block.reason, block.message.as_str()), (Reason::OperationFailed, expected));
}

#[tokio::test]
async fn the_operation_of_a_crashed_process_can_be_ended_earlier_without_losing_its_object() {
    for (pod, operation, hint) in [
        ("", Operation::Create, "`purlin state rm a --force`"),
        ("", Operation::Update, ""),
        ("pod-uid", Operation::Create, "delete the Pod"),
        ("pod-uid", Operation::Update, "delete the Pod"),
    ] {
        let scene = Scene::after(operation);
        let mut stored = scene.stored();
        let record = Arc::make_mut(&mut stored.record);
        record.intent.as_mut().unwrap().holder.pod = pod.into();
        let state = HolderState::MayRun { until: Timestamp::MAX };
        let (recovery, _) = recover(&scene.process("new"), &stored, None, state).await;
        let Recovery::Blocked(block, _) = recovery else { panic!("{pod} {operation:?}") };
        let shown = block.error(&stored.record.address).hint.unwrap_or_default();
        assert!(shown.contains(hint) && shown.is_empty() == hint.is_empty(), "{pod} {operation:?}: {shown}");
    }
}

use std::sync::Arc;

use super::*;
use model::{ChangeCause, Drift, Path, RecordedObject, ReplaceOrder, Value};

fn instance() -> Instance {
    Instance {
        uid: "u1".into(),
        generation: 3,
        service_account: "default".into(),
        record_annotation: "u1".into(),
        has_finalizer: true,
        ..Instance::plain(Address::single("app"), "terraform_data")
    }
}

fn record() -> Record {
    let mut record = Record::empty("shop".into(), Address::single("app"), "u1".into(), "terraform_data".into());
    record.current = Some(Arc::new(RecordedObject {
        value: Value::map([("id", Value::from("i-1")), ("input", Value::from("x"))]),
        ..RecordedObject::default()
    }));
    record
}

fn change(action: Action) -> Change {
    Change::plain(Address::single("app"), "terraform_data", action)
}

fn blocked(reason: Reason, message: &str) -> Change {
    Change { blocked: Some(reason), message: message.into(), ..change(Action::Blocked) }
}

fn step(operation: Operation) -> Step {
    Step { address: Address::single("app"), deposed: None, operation, replaces: false }
}

#[test]
fn reported_drift_is_a_condition_and_only_a_missing_object_is_not_ready() {
    let drifted = |drift, action| {
        let mut case = case(action);
        case.change.as_mut().unwrap().drift = Some(drift);
        case
    };
    let changed = Drift::Changed(vec![Path::default().name("input")]);
    let reported = drifted(changed.clone(), Action::NoOp).sum(1);
    assert_eq!(conditions(&reported), ["Ready=True/Available", "Synced=True/Available", "Drifted=True/Drifted"]);
    assert!(reported.status.conditions[2].message.starts_with("changed outside of Purlin: `input`; not corrected"));
    let missing = drifted(Drift::Missing, Action::NoOp).sum(1);
    let of_missing = ["Ready=False", "Synced=False", "Stalled=True", "Drifted=True"];
    assert_eq!(conditions(&missing), of_missing.map(|condition| format!("{condition}/ObjectMissing")));
    assert!(missing.notes.is_empty(), "the plan reports the event");
    let recorded = drifted(Drift::Missing, Action::Record).at(Operation::Record, StepState::Finished).sum(1);
    assert_eq!(recorded.status.conditions, missing.status.conditions, "the record got another setting meanwhile");
    let correcting = drifted(changed.clone(), Action::Update).at(Operation::Update, StepState::Running).sum(1);
    assert!(conditions(&correcting).contains(&"Drifted=True/Drifted".to_owned()));
    let corrected = drifted(changed, Action::Update).at(Operation::Update, StepState::Finished).sum(1);
    assert_eq!(conditions(&corrected), ["Ready=True/Available", "Synced=True/Available"]);
}

#[test]
fn a_delayed_step_shows_its_reason_and_is_reported_once() {
    let late = StepState::Delayed {
        reason: Reason::TimeLimitExceeded,
        message: "takes longer than 30m".into(),
        is_stalled: false,
    };
    let summary = case(Action::Create).at(Operation::Create, late.clone()).sum(1);
    let reasons: Vec<_> = summary.status.conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str())).collect();
    let expected = ["Ready", "Synced", "Reconciling"].map(|kind| (kind, "TimeLimitExceeded"));
    assert_eq!(reasons, expected);
    assert_eq!((summary.notes.len(), summary.notes[0].reason), (1, "TimeLimitExceeded"));
    let again = case(Action::Create).at(Operation::Create, late).then(&summary).sum(2);
    assert!(again.notes.is_empty());
}

#[test]
fn a_step_that_is_tried_again_shows_the_last_failure() {
    let delayed = StepState::Delayed {
        reason: Reason::Progressing,
        message: "0 of 1 Pods are available".into(),
        is_stalled: false,
    };
    for (state, message) in [
        (StepState::Running, "creating the object; the last attempt failed: 503 no capacity"),
        (StepState::Waiting, "waiting to create; the last attempt failed: 503 no capacity"),
        (delayed, "0 of 1 Pods are available"),
    ] {
        let case = Case { last_failure: Some("503 no capacity"), ..case(Action::Create) };
        assert_eq!(case.at(Operation::Create, state).sum(1).status.conditions[0].message, message);
    }
}

struct Case {
    instance: Instance,
    record: Option<Record>,
    only_waits: bool,
    change: Option<Change>,
    deposed: Vec<Change>,
    steps: Steps<StepState>,
    health: Option<Health>,
    is_unseen: bool,
    waiting_for: Vec<Step>,
    last_failure: Option<&'static str>,
    previous: PublishedStatus,
}

fn case(action: Action) -> Case {
    Case {
        instance: instance(),
        record: Some(record()),
        only_waits: false,
        change: Some(change(action)),
        deposed: Vec::new(),
        steps: Steps::default(),
        health: None,
        is_unseen: false,
        waiting_for: Vec::new(),
        last_failure: None,
        previous: PublishedStatus::empty(),
    }
}

impl Case {
    fn at(mut self, operation: Operation, state: StepState) -> Self {
        self.steps.insert(step(operation), state);
        self
    }

    fn sum(&self, second: i64) -> Summary {
        summarize(&ObjectInput {
            instance: &self.instance,
            record: self.record.as_ref(),
            only_waits: self.only_waits,
            reading: None,
            change: self.change.as_ref(),
            deposed: &self.deposed,
            lifecycle: None,
            dependencies: &[],
            provider_is_rejected: false,
            steps: &self.steps,
            health: match &self.health {
                Some(health) => KnownHealth::NotReady(health),
                None if self.is_unseen => KnownHealth::Unseen,
                None => KnownHealth::Ready,
            },
            awaits_plan: false,
            waiting_for: &self.waiting_for,
            last_failure: self.last_failure,
            remarks: None,
            previous: &self.previous,
            namespace: "",
            now: Timestamp::from_second(second).unwrap(),
        })
    }

    /// The case after the status was written.
    fn then(mut self, summary: &Summary) -> Self {
        self.previous = PublishedStatus::of(&summary.status.clone().into(), &mut engine::load::Interner::default());
        self
    }
}

/// `Type=Status/Reason` of each condition.
fn conditions(summary: &Summary) -> Vec<String> {
    summary.status.conditions.iter().map(|c| format!("{}={}/{}", c.type_, c.status, c.reason)).collect()
}

#[test]
fn an_up_to_date_object_is_only_ready_and_synced() {
    let summary = case(Action::NoOp).sum(1);
    assert_eq!(conditions(&summary), ["Ready=True/Available", "Synced=True/Available"]);
    assert_eq!(summary.status.observed_generation, 3);
    assert_eq!(summary.status.id.as_deref(), Some("i-1"));
    assert!(summary.status.pending.is_none() && summary.notes.is_empty());
}

#[test]
fn summarizing_again_later_results_in_the_same_bytes() {
    let first = case(Action::NoOp).sum(1);
    let second = case(Action::NoOp).then(&first).sum(9);
    assert_eq!(serde_json::to_string(&first.status).unwrap(), serde_json::to_string(&second.status).unwrap());
}

#[test]
fn an_object_is_not_ready_while_its_update_runs_waits_or_is_rejected() {
    let refused = StepState::Failed { reason: Reason::OperationRejected, message: "no".into(), retryable: false };
    let failed = StepState::Failed { reason: Reason::OperationFailed, message: "no".into(), retryable: true };
    for (state, expected) in [
        (StepState::Running, "Reconciling=True/Progressing"),
        (StepState::Waiting, "Reconciling=True/Progressing"),
        (failed, "Reconciling=True/OperationFailed"),
        (refused, "Stalled=True/OperationRejected"),
        (StepState::Skipped(Some(step(Operation::Create))), "Reconciling=True/DependencyNotReady"),
    ] {
        let summary = case(Action::Update).at(Operation::Update, state).sum(1);
        let conditions = conditions(&summary);
        assert!(
            conditions[0].starts_with("Ready=False/") && conditions[1].starts_with("Synced=False/"),
            "{conditions:?}"
        );
        assert_eq!(conditions[2..], [expected]);
        assert_eq!(summary.status.pending.as_ref().map(|p| p.action.as_str()), Some("Update"));
    }
}

#[test]
fn an_object_is_not_ready_before_its_planned_change_is_carried_out() {
    for action in [Action::Create, Action::Update, Action::Replace] {
        assert_eq!(conditions(&case(action).sum(1))[0], "Ready=False/Progressing", "{action:?}");
    }
    let destroyed = case(Action::Replace).at(Operation::Destroy, StepState::Finished);
    assert_eq!(conditions(&destroyed.sum(1))[0], "Ready=False/Progressing", "the new object does not exist");
    let created = destroyed.at(Operation::Create, StepState::Finished);
    assert_eq!(conditions(&created.sum(1))[0], "Ready=True/Available");
}

#[test]
fn the_same_failure_is_reported_once() {
    let message = "timed out".to_owned();
    let state = StepState::Failed { reason: Reason::OperationFailed, message, retryable: true };
    let failed = case(Action::Update).at(Operation::Update, state);
    let first = failed.sum(1);
    assert_eq!(first.notes.len(), 1);
    assert_eq!(failed.then(&first).sum(2).notes, []);
}

#[test]
fn a_missing_dependency_is_progressing_and_an_invalid_configuration_is_stalled() {
    let mut case = case(Action::Blocked);
    case.change = Some(blocked(Reason::DependencyNotFound, "`db` does not exist"));
    assert_eq!(conditions(&case.sum(1))[2..], ["Reconciling=True/DependencyNotFound"]);
    case.change = Some(blocked(Reason::InvalidConfig, "spec.config.input: wrong"));
    assert_eq!(conditions(&case.sum(1))[2..], ["Stalled=True/InvalidConfig"]);
}

#[test]
fn a_suspended_object_is_neither_ready_nor_synced() {
    let before = case(Action::NoOp).sum(1);
    let mut case = case(Action::Blocked).then(&before);
    case.change = Some(blocked(Reason::Suspended, "suspended"));
    for generation in [3, 4] {
        case.instance.generation = generation;
        let summary = case.sum(2);
        assert_eq!(conditions(&summary), ["Ready=Unknown/Suspended", "Synced=Unknown/Suspended"]);
        assert_eq!(summary.status.observed_generation, generation, "that it is suspended was seen");
        assert_eq!(summary.state, ObjectState::Suspended);
    }
}

/// A case with this health, after another status.
fn with_health(health: Health, before: &Summary) -> Case {
    Case { health: Some(health), ..case(Action::NoOp).then(before) }
}

#[test]
fn an_object_that_is_no_longer_ready_is_degraded_and_reported_once() {
    let before = case(Action::NoOp).sum(1);
    let degraded = with_health(Health::InProgress("0 of 1 Pods are available".into()), &before).sum(2);
    let expected = ["Ready=False/Degraded", "Synced=True/Available", "Reconciling=True/Degraded"];
    assert_eq!(conditions(&degraded), expected);
    assert_eq!(degraded.status.conditions[0].message, "the object is not ready: 0 of 1 Pods are available");
    assert_eq!((degraded.notes.len(), degraded.notes[0].reason, degraded.notes[0].warning), (1, "Degraded", true));
    assert_eq!((degraded.state, degraded.reason), (ObjectState::Progressing, Reason::Degraded));
    let worse = with_health(Health::Failed("it has crashed".into()), &degraded).sum(3);
    assert_eq!(conditions(&worse)[2], "Stalled=True/Degraded");
    assert_eq!(worse.status.conditions[0].message, "the object has failed: it has crashed");
    assert_eq!(worse.notes, [], "another text is no new event");
    let recovered = case(Action::NoOp).then(&worse).sum(4);
    assert_eq!(conditions(&recovered), ["Ready=True/Available", "Synced=True/Available"]);
}

#[test]
fn an_object_that_another_client_deletes_is_terminating() {
    let before = case(Action::NoOp).sum(1);
    let summary = with_health(Health::Terminating(vec!["a/b".into()]), &before).sum(2);
    assert_eq!(conditions(&summary)[0], "Ready=False/Terminating");
    assert!(summary.status.conditions[0].message.contains("`a/b`"));
}

#[test]
fn an_object_is_ready_only_if_it_was_seen_since_the_start() {
    let unknown = conditions(&unseen().sum(5));
    assert_eq!(unknown[..2], ["Ready=False/Progressing", "Synced=False/Progressing"], "it may exist elsewhere only");
    let ready = case(Action::NoOp).sum(1);
    let degraded = with_health(Health::Failed("it has crashed".into()), &ready).sum(2);
    for previous in [&ready, &degraded] {
        assert_eq!(unseen().then(previous).sum(5).status, previous.status, "a restart changes no status");
    }
    let mut other = case(Action::NoOp);
    other.instance.generation = 2;
    let unknown = conditions(&unseen().then(&other.sum(1)).sum(5));
    assert_eq!(unknown[0], "Ready=False/Progressing", "of another generation");
}

fn unseen() -> Case {
    Case { is_unseen: true, ..case(Action::NoOp) }
}

#[test]
fn a_wait_for_an_object_that_has_failed_is_stalled_until_it_is_ready() {
    let delayed =
        |is_stalled| StepState::Delayed { reason: Reason::Degraded, message: "it has failed".into(), is_stalled };
    let failed = case(Action::Wait).at(Operation::Wait, delayed(true)).sum(1);
    let expected = ["Ready=False/Degraded", "Synced=False/Degraded", "Stalled=True/Degraded"];
    assert_eq!(conditions(&failed), expected);
    let late = case(Action::Wait).at(Operation::Wait, delayed(false)).then(&failed).sum(2);
    assert_eq!(conditions(&late)[2], "Reconciling=True/Degraded");
    let ready = case(Action::Wait).at(Operation::Wait, StepState::Finished).then(&late).sum(3);
    assert_eq!(conditions(&ready), ["Ready=True/Available", "Synced=True/Available"]);
}

#[test]
fn a_held_deletion_has_a_reason_and_a_hint() {
    let mut case = case(Action::Blocked);
    case.instance.deleting = true;
    case.change = Some(blocked(Reason::InUse, "in use by web"));
    let summary = case.sum(1);
    let expected = ["Ready=False/InUse", "Synced=False/InUse", "Reconciling=True/InUse"];
    assert_eq!(conditions(&summary)[..3], expected);
    assert_eq!(conditions(&summary)[3], "DeletionBlocked=True/InUse");
    assert!(summary.status.conditions[3].message.contains("(hint: delete the objects that depend on it"));
    assert_eq!(summary.notes[0].reason, "DeletionBlocked");
    assert_eq!(summary.state, ObjectState::Deleting);
}

#[test]
fn a_running_deletion_is_not_blocked() {
    let mut case = case(Action::Destroy).at(Operation::Destroy, StepState::Waiting);
    case.instance.deleting = true;
    case.waiting_for = vec![Step { address: Address::single("web"), ..step(Operation::Destroy) }];
    let summary = case.sum(1);
    assert_eq!(conditions(&summary)[2..], ["Reconciling=True/Deleting"]);
    assert_eq!(summary.status.pending.map(|p| p.waiting_for), Some(vec!["web destroy".to_owned()]));
}

#[test]
fn a_create_first_replacement_is_ready_before_the_old_object_is_destroyed() {
    let failed = StepState::Failed { reason: Reason::OperationFailed, message: "busy".into(), retryable: true };
    let mut case = case(Action::Replace).at(Operation::Create, StepState::Finished).at(Operation::Destroy, failed);
    case.change.as_mut().unwrap().order = Some(ReplaceOrder::CreateFirst);
    let expected = ["Ready=True/Available", "Synced=False/OperationFailed", "Reconciling=True/OperationFailed"];
    assert_eq!(conditions(&case.sum(1)), expected);
    case.change.as_mut().unwrap().order = Some(ReplaceOrder::DestroyFirst);
    assert_eq!(conditions(&case.sum(1))[0], "Ready=False/OperationFailed");
}

#[test]
fn pending_names_the_attributes() {
    let mut case = case(Action::Replace).at(Operation::Destroy, StepState::Waiting);
    case.change.as_mut().unwrap().replace_paths = vec![Path::default().name("subject")];
    assert_eq!(case.sum(1).status.pending.unwrap().paths, ["subject"]);
}

#[test]
fn pending_names_no_key_of_a_sensitive_value() {
    let mut case = case(Action::Update).at(Operation::Update, StepState::Waiting);
    let value = |key: &str| Value::map([("input", Value::map([(key, Value::from(1))]).into_sensitive())]);
    let change = case.change.as_mut().unwrap();
    (change.before, change.after) = (Some(value("old-key")), Some(value("new-key")));
    assert_eq!(case.sum(1).status.pending.unwrap().paths, ["input"]);
}

#[test]
fn a_status_never_grows_beyond_its_limit() {
    let mut case = case(Action::NoOp);
    let mut record = record();
    let mut object = record.current.as_deref().unwrap().clone();
    object.value = Value::map((0..500).map(|n| (format!("a{n}"), Value::from("\"x".repeat(100 + n).as_str()))));
    record.current = Some(Arc::new(object));
    case.record = Some(record);
    let summary = case.sum(1);
    assert!(serde_json::to_vec(&summary.status).unwrap().len() <= STATUS_LIMIT);
}

#[test]
fn only_relevant_finished_steps_are_reported() {
    let created = step_note(&step(Operation::Create), false, Some("i-1"), None).unwrap();
    assert_eq!((created.reason, created.note.as_str()), ("Created", "created (id: i-1)"));
    assert_eq!(step_note(&step(Operation::Record), false, None, None), None);
    assert_eq!(step_note(&step(Operation::Record), true, None, None).unwrap().reason, "Adopted");
    let forgotten = step_note(&step(Operation::Forget), false, None, Some(&ChangeCause::Missing)).unwrap();
    assert_eq!(forgotten.note, "forgotten: it no longer exists");
    assert_eq!(step_note(&Step { replaces: true, ..step(Operation::Destroy) }, false, None, None), None);
}

#[test]
fn a_long_message_is_written_once() {
    let waiting = case(Action::Create).at(Operation::Create, StepState::Running).sum(1);
    let messages: Vec<(&str, &str)> =
        waiting.status.conditions.iter().map(|one| (one.type_.as_str(), one.message.as_str())).collect();
    let refers = "see the condition Ready";
    assert_eq!(messages, [("Ready", "creating the object"), ("Synced", refers), ("Reconciling", refers)]);
    let message = "no such region".to_owned();
    let failed = StepState::Failed { reason: Reason::OperationRejected, message: message.clone(), retryable: false };
    let mut stalled = case(Action::Create).at(Operation::Create, failed);
    let summary = stalled.sum(1);
    assert_eq!(summary.notes.len(), 1);
    let messages: Vec<&str> = summary.status.conditions.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(messages, [message.as_str(), refers, message.as_str()], "a failure is shown by other tools");
    stalled.previous = PublishedStatus::of(&summary.status.clone().into(), &mut engine::load::Interner::default());
    assert!(stalled.sum(2).notes.is_empty(), "the same failure is no news");
}

/// The plan of the next process knows only what is recorded.
#[test]
fn a_running_step_shows_what_the_next_process_would_find() {
    let action = |case: &Case| case.sum(1).status.pending.map(|pending| pending.action);
    let mut waits = case(Action::Create).at(Operation::Create, StepState::Running);
    waits.only_waits = true;
    assert_eq!(action(&waits).as_deref(), Some("Wait"));
    let intent = model::Intent {
        operation: Operation::Record,
        operation_id: "o1".into(),
        holder: model::Holder { pod: "".into(), process: "".into() },
        epoch: 1,
        started: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH,
        deposed: None,
        planned: None,
        import: None,
        cause: model::Cause::default(),
    };
    waits.record.as_mut().unwrap().intent = Some(Box::new(intent));
    assert_eq!(action(&waits).as_deref(), Some("Record"), "its hooks run");

    let said = |case: &Case| {
        let messages = case.sum(1).status.conditions.into_iter().map(|condition| condition.message);
        (action(case), messages.collect::<Vec<_>>())
    };
    let mut before = case(Action::Replace).at(Operation::Create, StepState::Finished);
    before.change.as_mut().unwrap().order = Some(model::ReplaceOrder::CreateFirst);
    before.steps.insert(Step { replaces: true, ..step(Operation::Destroy) }, StepState::Running);
    let mut after = case(Action::NoOp);
    let deposed = Some(model::DeposedKey(1));
    after.steps.insert(Step { deposed, ..step(Operation::Destroy) }, StepState::Running);
    assert_eq!(said(&before), said(&after));
    assert!(said(&after).1.contains(&"destroying the replaced object".to_owned()), "{:?}", said(&after));
}

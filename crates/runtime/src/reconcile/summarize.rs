//! Computes the status, the events and the state of an object from its planned change, the progress of its steps, its
//! record and its previous status. Pure: the caller passes the time.
//!
//! Every status satisfies these rules:
//! - kstatus interprets it correctly: `observedGeneration` is a generation that was planned, `Reconciling` and
//!   `Stalled` exist only while they are true, and `Ready` is never `True` while a change is rejected or pending, or while
//!   Purlin looks away because the Resource is suspended;
//! - it is stable: the same input results in the same bytes, so an unchanged status is not written again;
//! - it contains no sensitive value and is at most 16 KiB.

mod attributes;
mod family;
mod verdict;

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sha2::{Digest as _, Sha256};

use super::index::PublishedStatus;
use api::conditions::{self, ConditionType, condition, merge};
use api::{Deposed, EffectiveLifecycle, ModuleDetails, Pending, ResourceStatus};
use engine::load::Instance;
use engine::plan;
use model::{
    Action, Address, Change, ChangeCause, Health, Operation, ReadResult, Reason, Record, Step, display_id, visible,
    with_namespace,
};

use self::verdict::{Class, Judged, Verdict};

pub use family::{FamilyInput, InstanceCount, Member, summarize_family};
pub use verdict::waits_for_others;

/// The size limit of a status: etcd keeps every version, and every watcher receives it.
pub const STATUS_LIMIT: usize = 16 * 1024;
/// The length limit of a message. The log has the full message.
const MESSAGE_LIMIT: usize = 1024;
/// How many bytes of the digest a revision shows.
const REVISION_BYTES: usize = 5;
/// How many attributes and steps a list in `pending` contains.
const LIST_LIMIT: usize = 20;

/// The state of a Resource, for the `objects` gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectState {
    /// Up to date and ready.
    Ready,
    /// A change is running or will start without user action.
    Progressing,
    /// Stalled until the Resource or something else changes.
    Stalled,
    Suspended,
    Deleting,
}

impl ObjectState {
    pub const ALL: [Self; 5] = [Self::Ready, Self::Progressing, Self::Stalled, Self::Suspended, Self::Deleting];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Progressing => "progressing",
            Self::Stalled => "stalled",
            Self::Suspended => "suspended",
            Self::Deleting => "deleting",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepState {
    Waiting,
    Running,
    /// Running longer than usual, for this reason.
    Delayed {
        reason: Reason,
        message: String,
        /// Whether it ends only when a user or another client changes something.
        is_stalled: bool,
    },
    Finished,
    Failed {
        reason: Reason,
        message: String,
        retryable: bool,
    },
    /// Never started, because this step failed.
    Skipped(Option<Step>),
}

impl Note {
    /// Whether it reports the end of a step.
    pub fn is_about_step(&self) -> bool {
        matches!(self.action, "Create" | "Replace" | "Update" | "Destroy" | "Forget" | "Adopt")
    }
}

impl StepState {
    /// Whether the step has not ended yet.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Running | Self::Delayed { .. })
    }
}

/// A map from the steps of an object to values, sorted by step. An object has one or two steps, and there are many
/// objects: a short list takes a tenth of the memory of a tree, and an empty one allocates nothing.
#[derive(Clone, Debug)]
pub struct Steps<T>(Vec<(Step, T)>);

impl<T> Steps<T> {
    pub fn get(&self, step: &Step) -> Option<&T> {
        self.place(step).ok().map(|at| &self.0[at].1)
    }

    pub fn insert(&mut self, step: Step, value: T) {
        match self.place(&step) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (step, value));
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Step, &T)> {
        self.0.iter().map(|(step, value)| (step, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    fn place(&self, step: &Step) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(step))
    }
}

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What is known of the health of an object.
#[derive(Clone, Copy, Debug)]
pub enum KnownHealth<'a> {
    /// It was ready when it was last seen, or its type has no readiness.
    Ready,
    NotReady(&'a Health),
    /// This replica has not seen it yet: it may exist in another cluster.
    Unseen,
}

/// The state of one object.
#[derive(Clone, Copy)]
pub struct ObjectInput<'a> {
    pub instance: &'a Instance,
    /// The record as last written, also by a step that is still running.
    pub record: Option<&'a Record>,
    /// Whether the running step has recorded the result of its call, and only waits until the object is ready.
    pub only_waits: bool,
    /// The last result of a data source.
    pub reading: Option<&'a ReadResult>,
    /// The planned change of the current object. `None`: not planned yet.
    pub change: Option<&'a Change>,
    /// The planned changes of the deposed objects.
    pub deposed: &'a [Change],
    pub lifecycle: Option<&'a plan::EffectiveLifecycle>,
    /// The direct dependencies.
    pub dependencies: &'a [Address],
    /// The steps of the plan that is being executed.
    pub steps: &'a Steps<StepState>,
    pub health: KnownHealth<'a>,
    /// A step of the current object was running when the plan was computed, and no plan covers its outcome yet.
    pub awaits_plan: bool,
    pub waiting_for: &'a [Step],
    /// The message of the last failed step, while it is tried again.
    pub last_failure: Option<&'a str>,
    /// Whether the status of its `ProviderConfig` says why the provider cannot be used.
    pub provider_is_rejected: bool,
    /// Where the object deviates from its manifest, although Purlin has nothing to do.
    pub remarks: Option<&'a BTreeSet<String>>,
    pub previous: &'a PublishedStatus,
    /// The namespace that commands in hints name. Empty on files.
    pub namespace: &'a str,
    pub now: Timestamp,
}

/// A Kubernetes event to report. `reason` and `action` are CamelCase, `note` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub warning: bool,
    pub reason: &'static str,
    pub action: &'static str,
    pub note: String,
}

#[derive(Clone, Debug)]
pub struct Summary {
    pub status: ResourceStatus,
    /// What the status of a Module says besides.
    pub module: Option<ModuleDetails>,
    /// Events about problems. [`step_note`] returns those about ended steps.
    pub notes: Vec<Note>,
    pub state: ObjectState,
    /// The reason of the state.
    pub reason: Reason,
}

pub fn summarize(input: &ObjectInput<'_>) -> Summary {
    let judged = verdict::judge(input);
    let suspended = judged.object.class == Class::Suspended;
    let resource = Resource { instance: input.instance, previous: input.previous, namespace: input.namespace };
    let considered = input.instance.generation;
    let new = conditions(resource, &judged, drifted(input, considered));
    let notes = notes(resource, &judged, judged.worst(), &new);
    let conditions = merge(&input.previous.conditions(), new, input.now);
    let current = input.record.and_then(|record| record.current.as_deref());
    let mut status = ResourceStatus {
        observed_generation: considered,
        conditions,
        id: current.and_then(|object| object.visible_id()).map(cut),
        display_id: current.and_then(|object| display_id(&object.value)).map(|id| cut(&id)),
        revision: revision(input.record),
        attributes: serde_json::Map::new(),
        lifecycle: lifecycle(input),
        dependencies: names(input.dependencies.iter()),
        instances: None,
        deposed: deposed(input),
        pending: pending(input),
        last_handled_reconcile_at: handled(resource, suspended),
    };
    let value = current.map(|object| &object.value).or(input.reading.map(|reading| &reading.value));
    if let Some(value) = value {
        let used = serde_json::to_vec(&status).map_or(STATUS_LIMIT, |bytes| bytes.len());
        status.attributes = attributes::visible(value, STATUS_LIMIT.saturating_sub(used));
    }
    Summary { status, module: None, notes, state: state(resource, &judged), reason: judged.worst().reason }
}

/// A Resource with its current status.
#[derive(Clone, Copy)]
struct Resource<'a> {
    instance: &'a Instance,
    previous: &'a PublishedStatus,
    namespace: &'a str,
}

impl Resource<'_> {
    /// A message for its status and its events.
    fn text(self, message: &str) -> String {
        cut(&with_namespace(message, self.namespace))
    }

    fn previous(self, kind: ConditionType) -> Option<Condition> {
        self.previous.condition(kind)
    }

    fn condition(self, kind: ConditionType, status: &str, verdict: &Verdict) -> Condition {
        condition(kind, status, verdict.reason, self.text(&verdict.message), self.instance.generation)
    }

    /// The status of a condition that is true if the object is ready.
    fn readiness(self, verdict: &Verdict) -> &'static str {
        match verdict.class {
            Class::Ready => "True",
            // Purlin does not look at the object.
            Class::Suspended if !self.instance.deleting => "Unknown",
            _ => "False",
        }
    }
}

fn conditions(resource: Resource<'_>, judged: &Judged, drifted: Option<Condition>) -> Vec<Condition> {
    let (ready, overall, worst) = (&judged.ready, judged.overall(), judged.worst());
    let mut conditions = vec![
        resource.condition(ConditionType::Ready, resource.readiness(ready), ready),
        resource.condition(ConditionType::Synced, resource.readiness(overall), overall),
    ];
    match worst.class {
        Class::Progressing => conditions.push(resource.condition(ConditionType::Reconciling, "True", worst)),
        Class::Stalled => conditions.push(resource.condition(ConditionType::Stalled, "True", worst)),
        Class::Ready | Class::Suspended => {}
    }
    conditions.extend(drifted);
    if overall.reason == Reason::ApprovalRequired {
        conditions.push(resource.condition(ConditionType::ApprovalRequired, "True", overall));
    }
    if resource.instance.deleting && overall.blocks_deletion {
        conditions.push(resource.condition(ConditionType::DeletionBlocked, "True", overall));
    }
    if worst.class != Class::Ready {
        refer_to_first(&mut conditions);
    }
    conditions
}

/// A long message is written once: `Synced` and `Reconciling` refer to the condition before them that has it. The conditions
/// that need a user keep it, because other tools show their message.
fn refer_to_first(conditions: &mut [Condition]) {
    for at in 1..conditions.len() {
        let (before, rest) = conditions.split_at_mut(at);
        let refers = [ConditionType::Synced, ConditionType::Reconciling].map(ConditionType::as_str);
        let first = before.iter().find(|earlier| earlier.message == rest[0].message);
        if let Some(first) = first.filter(|_| refers.contains(&rest[0].type_.as_str())) {
            rest[0].message = format!("see the condition {}", first.type_);
        }
    }
}

/// The `Drifted` condition, until the drift is corrected.
fn drifted(input: &ObjectInput<'_>, generation: i64) -> Option<Condition> {
    let change = input.change?;
    let drift = change.drift.as_ref()?;
    let is_reported = change.reported_drift().is_some();
    let open = input.steps.values().any(|state| *state != StepState::Finished);
    let what = if is_reported { verdict::REPORTED } else { "Purlin corrects it" };
    let message = cut(&format!("{drift}; {what}"));
    (is_reported || (open && !input.only_waits))
        .then(|| condition(ConditionType::Drifted, "True", drift.reason(), message, generation))
}

/// A problem is reported once, when it starts: the same failure of the next attempt is no new event, and neither is
/// another text about an object that is still not ready. `cause` provides the text. For a family it is the verdict on the
/// leading instance, without the counts of the others.
fn notes(resource: Resource<'_>, judged: &Judged, cause: &Verdict, new: &[Condition]) -> Vec<Note> {
    let action = if resource.instance.deleting { "Delete" } else { "Reconcile" };
    if let Some(blocked) = conditions::find(new, ConditionType::DeletionBlocked) {
        let before = resource.previous(ConditionType::DeletionBlocked);
        let is_new = before.is_none_or(|before| before.reason != blocked.reason);
        let note = format!("{}: {}", blocked.reason, resource.text(&cause.message));
        return is_new.then_some(Note { warning: true, reason: "DeletionBlocked", action, note }).into_iter().collect();
    }
    let worst = judged.worst();
    let is_health = matches!(worst.reason, Reason::Degraded | Reason::Terminating);
    let same = [ConditionType::Ready, ConditionType::Synced].into_iter().any(|kind| {
        resource.previous(kind).is_some_and(|before| {
            before.reason == worst.reason.as_str() && (is_health || before.message == resource.text(&worst.message))
        })
    });
    if !worst.is_error || same {
        return Vec::new();
    }
    vec![Note { warning: true, reason: cause.reason.as_str(), action, note: resource.text(&cause.message) }]
}

/// The event for a finished step. `None` for steps that are not reported.
pub fn step_note(step: &Step, adopted: bool, id: Option<&str>, because: Option<&ChangeCause>) -> Option<Note> {
    let (reason, action, text) = match (step.operation, step.replaces) {
        (Operation::Create, false) => ("Created", "Create", "created"),
        // The create is reported as the replacement; destroying the old object is part of it.
        (Operation::Create, true) => ("Replaced", "Replace", "replaced by a new object"),
        (Operation::Destroy, true) | (Operation::Read, _) => return None,
        (Operation::Record | Operation::Wait, _) if !adopted => return None,
        (Operation::Update, _) => ("Updated", "Update", "updated in place"),
        (Operation::Destroy, false) => ("Destroyed", "Destroy", "destroyed"),
        (Operation::Forget, _) => ("Forgotten", "Forget", "forgotten"),
        (Operation::Record | Operation::Wait, _) => ("Adopted", "Adopt", "record adopted"),
    };
    let mut note = text.to_owned();
    if let Some(key) = step.deposed {
        note = format!("deposed object {key} {text}");
    }
    // The cause says whether the object remains, is missing, or never existed.
    if let Some(because) = because.filter(|_| step.operation == Operation::Forget) {
        note.push_str(&format!(": {}", cut(&because.to_string())));
    }
    if let Some(id) = id {
        note.push_str(&format!(" (id: {})", cut(id)));
    }
    Some(Note { warning: false, reason, action, note })
}

/// A digest of the operations that last changed the current objects of these records.
fn revision<'a, R: IntoIterator<Item = &'a Record>>(records: R) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut is_empty = true;
    for record in records {
        let Some(current) = record.current.as_deref() else { continue };
        is_empty = false;
        hasher.update(record.address.to_string());
        hasher.update(current.revision.epoch.to_le_bytes());
        hasher.update(current.revision.operation.to_le_bytes());
    }
    let digest = hasher.finalize();
    (!is_empty).then(|| digest.iter().take(REVISION_BYTES).map(|byte| format!("{byte:02x}")).collect())
}

fn state(resource: Resource<'_>, judged: &Judged) -> ObjectState {
    match (resource.instance.deleting, judged.object.class, judged.worst().class) {
        (true, ..) => ObjectState::Deleting,
        (_, Class::Suspended, _) => ObjectState::Suspended,
        (_, _, Class::Ready) => ObjectState::Ready,
        (_, _, Class::Stalled) => ObjectState::Stalled,
        _ => ObjectState::Progressing,
    }
}

fn lifecycle(input: &ObjectInput<'_>) -> Option<EffectiveLifecycle> {
    let effective = input.lifecycle?;
    let configured = input.instance.create_before_destroy;
    if !effective.create_before_destroy {
        // Off is the default and is shown only if the Resource sets it.
        return configured.map(|_| EffectiveLifecycle { create_before_destroy: false, because: set_here() });
    }
    let because = match (effective.forced_by.first(), effective.forced_by.last()) {
        (Some(first), Some(last)) if first != last => format!("required by {first}, because of {last}"),
        (Some(first), _) => format!("required by {first}"),
        _ if configured == Some(true) => set_here(),
        _ => String::new(),
    };
    Some(EffectiveLifecycle { create_before_destroy: true, because })
}

fn set_here() -> String {
    "set on the Resource".to_owned()
}

fn deposed(input: &ObjectInput<'_>) -> Vec<Deposed> {
    let Some(record) = input.record else { return Vec::new() };
    record
        .deposed
        .iter()
        .take(LIST_LIMIT)
        .map(|(key, object)| {
            let planned = input.deposed.iter().find(|change| change.deposed == Some(*key));
            Deposed {
                instance: record.address.key.to_string(),
                key: key.to_string(),
                id: object.visible_id().map(cut).unwrap_or_default(),
                waiting_for: planned.map(|change| names(change.waiting_for.iter())).unwrap_or_default(),
            }
        })
        .collect()
}

/// What is left to do with the current object. Once a step has recorded its result, that is what a plan would find: the
/// object is not ready yet, or its hooks run under an intent.
fn left_to_do(input: &ObjectInput<'_>) -> Option<Action> {
    let change = input.change?;
    let open = input.steps.values().any(|state| *state != StepState::Finished);
    let is_step = open && !matches!(change.action, Action::NoOp | Action::Blocked) && !verdict::is_replaced(input);
    let runs_hooks = input.record.is_some_and(|record| record.intent.is_some());
    is_step.then_some(match input.only_waits {
        true if runs_hooks => Action::Record,
        true => Action::Wait,
        false => change.action,
    })
}

fn pending(input: &ObjectInput<'_>) -> Option<Pending> {
    let (change, action) = (input.change?, left_to_do(input)?);
    let paths = match (change.replace_paths.is_empty(), action) {
        (_, Action::Wait) => Vec::new(),
        (true, _) => changed(change),
        (false, _) => change.replace_paths.clone(),
    };
    Some(Pending {
        action: action_word(action).to_owned(),
        paths: paths.iter().take(LIST_LIMIT).map(|path| cut(&path.to_string())).collect(),
        waiting_for: input.waiting_for.iter().take(LIST_LIMIT).map(Step::id).collect(),
    })
}

fn changed(change: &Change) -> Vec<model::Path> {
    match (&change.before, &change.after, change.action) {
        (Some(before), Some(after), Action::Update) => visible::differences(before, after),
        _ => Vec::new(),
    }
}

fn action_word(action: Action) -> &'static str {
    match action {
        Action::NoOp => "NoOp",
        Action::Record => "Record",
        Action::Wait => "Wait",
        Action::Create => "Create",
        Action::Update => "Update",
        Action::Replace => "Replace",
        Action::Destroy => "Destroy",
        Action::Forget => "Forget",
        Action::Read => "Read",
        Action::Blocked => "Blocked",
    }
}

fn handled(resource: Resource<'_>, suspended: bool) -> Option<String> {
    let requested = &resource.instance.reconcile_requested;
    let done = if suspended || requested.is_empty() { &resource.previous.handled_reconcile } else { requested };
    Some(done.to_string()).filter(|text| !text.is_empty())
}

/// The names, sorted and without duplicates.
fn names<'a>(addresses: impl Iterator<Item = &'a Address> + 'a) -> Vec<String> {
    let mut names: Vec<String> = addresses.map(|address| address.name().to_string()).collect();
    names.sort();
    names.dedup();
    names
}

fn cut(text: &str) -> String {
    cut_to(text, MESSAGE_LIMIT)
}

fn cut_to(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit - 4).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests;

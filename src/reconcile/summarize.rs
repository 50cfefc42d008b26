//! Plan change + progress + record + previous status -> status, events, state. Pure: the time comes in.
//!
//! What holds for every status written:
//! - kstatus judges it rightly: `observedGeneration` is a generation that was really considered, `Reconciling` and
//!   `Stalled` are there only while true, and `Ready` is never `True` while a change is refused or pending;
//! - it is stable: the same situation gives the same bytes, so an unchanged one is never written again;
//! - it holds no sensitive value and at most 16 KiB.

mod attributes;
mod family;
mod steps;
mod verdict;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sha2::{Digest as _, Sha256};

use super::index::Published;
use crate::api::conditions::{ConditionType, condition, merge};
use crate::api::{Deposed, EffectiveLifecycle, Pending, ResourceStatus};
use crate::load::Instance;
use crate::model::{Action, Address, Change, Operation, Reading, Reason, Record, Step};
use crate::plan;

use self::verdict::{Class, Verdict};

pub use family::{Extent, FamilySituation, Member, summarize_family};
pub use steps::Steps;
pub use verdict::waits_by_itself;

/// No status is larger: etcd keeps every version, and every watcher gets it.
pub const STATUS_LIMIT: usize = 16 * 1024;
/// A message longer than this helps nobody; the whole text is in the log.
const MESSAGE_LIMIT: usize = 1024;
/// How much of a digest tells one revision from the next.
const REVISION_BYTES: usize = 5;
/// How many attributes and steps a list in `pending` names.
const LIST_LIMIT: usize = 20;

/// The state of an object, for the gauge that counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectState {
    /// As its Resource describes it.
    Ready,
    /// A change is under way or will start by itself.
    Progressing,
    /// It needs a change of its Resource or of something else.
    Stalled,
    /// Suspended.
    Suspended,
    /// Being destroyed.
    Deleting,
}

impl ObjectState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Ready, Self::Progressing, Self::Stalled, Self::Suspended, Self::Deleting];

    /// As a label.
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

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It has not started.
    Waiting,
    /// It runs.
    Running,
    /// It runs, and this is why it lasts.
    Delayed {
        /// The condition reason.
        reason: Reason,
        /// One line.
        message: String,
    },
    /// It did what it was to do.
    Finished,
    /// It did not.
    Failed {
        /// The condition reason.
        reason: Reason,
        /// One line.
        message: String,
        /// Whether it is tried again.
        retryable: bool,
    },
    /// It never started, because of the failed step named.
    Skipped(Option<Step>),
}

impl StepState {
    /// Whether something more is to be heard of it.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Running | Self::Delayed { .. })
    }
}

/// All that is known about one object.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The Resource, as it was planned.
    pub instance: &'a Instance,
    /// Its record.
    pub record: Option<&'a Record>,
    /// What was read last, of a data source.
    pub reading: Option<&'a Reading>,
    /// The planned change of its current object; `None`: it was not planned yet.
    pub change: Option<&'a Change>,
    /// The planned changes of its leftovers.
    pub leftovers: &'a [Change],
    /// Its effective lifecycle.
    pub lifecycle: Option<&'a plan::EffectiveLifecycle>,
    /// What it depends on directly.
    pub wants: &'a [Address],
    /// Its steps in the plan that is being carried out.
    pub steps: &'a Steps<StepState>,
    /// The plan was made around a step that was under way, and what that has come to is not planned yet.
    pub awaits_plan: bool,
    /// What its next waiting step waits for.
    pub waiting_for: &'a [Step],
    /// What its status says now.
    pub previous: &'a Published,
    /// The time.
    pub now: Timestamp,
}

/// Something to tell as a Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Something is wrong.
    pub warning: bool,
    /// What happened, CamelCase.
    pub reason: &'static str,
    /// What was being done, CamelCase.
    pub action: &'static str,
    /// One line.
    pub note: String,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The whole status.
    pub status: ResourceStatus,
    /// What changed its state for the worse; what steps did is told by [`finished`].
    pub notes: Vec<Note>,
    /// For the gauge.
    pub state: ObjectState,
}

/// Sums up one object.
pub fn summarize(situation: &Situation<'_>) -> Summary {
    let (object, rest) = verdict::judge(situation);
    // What is wrong with the object itself is told first; then what is left to do about its leftovers.
    let overall = if object.class == Class::Ready { &rest } else { &object };
    let suspended = object.class == Class::Suspended;
    let revision = revision(situation.record);
    let resource =
        Resource { instance: situation.instance, previous: situation.previous, revision: revision.as_deref() };
    let considered = resource.considered(&object);
    let new = conditions(resource, &object, overall, drifted(situation, considered));
    let notes = notes(resource, overall, overall, &new);
    let conditions = merge(&situation.previous.conditions(), new, situation.now);
    let current = situation.record.and_then(|record| record.current.as_deref());
    let mut status = ResourceStatus {
        observed_generation: considered,
        conditions,
        id: current.and_then(|object| object.visible_id()).map(cut),
        revision: revision.clone(),
        attributes: serde_json::Map::new(),
        lifecycle: lifecycle(situation),
        dependencies: names(situation.wants.iter()),
        instances: None,
        deposed: deposed(situation),
        pending: pending(situation),
        last_handled_reconcile_at: handled(resource, suspended),
    };
    let value = current.map(|object| &object.value).or(situation.reading.map(|reading| &reading.value));
    if let Some(value) = value {
        let used = serde_json::to_vec(&status).map_or(STATUS_LIMIT, |bytes| bytes.len());
        status.attributes = attributes::visible(value, STATUS_LIMIT.saturating_sub(used));
    }
    Summary { status, notes, state: state(resource, &object, overall) }
}

/// The Resource, and what its status says now.
#[derive(Clone, Copy)]
struct Resource<'a> {
    instance: &'a Instance,
    previous: &'a Published,
    /// What its objects are now.
    revision: Option<&'a str>,
}

impl Resource<'_> {
    /// The generation that the new status is about. Nobody looks at what is suspended.
    fn considered(self, object: &Verdict) -> i64 {
        if object.class == Class::Suspended && !self.instance.deleting {
            self.previous.observed_generation
        } else {
            self.instance.generation
        }
    }

    fn previous(self, kind: ConditionType) -> Option<Condition> {
        self.previous.condition(kind)
    }

    /// What stands of `Ready` while the Resource is suspended and its objects are not looked at: what was known of them,
    /// unless a step that had begun before has changed them meanwhile.
    fn kept_ready(self) -> Option<Condition> {
        let ready = self.previous(ConditionType::Ready)?;
        let is_changed = self.previous.revision.as_deref().is_some_and(|before| self.revision != Some(before));
        if ready.status != "True" || !is_changed {
            return Some(ready);
        }
        let message = "a step that began before the Resource was suspended has changed the object";
        let generation = self.previous.observed_generation;
        Some(condition(ConditionType::Ready, "Unknown", Reason::Suspended, message, generation))
    }
}

fn conditions(
    resource: Resource<'_>,
    object: &Verdict,
    overall: &Verdict,
    drifted: Option<Condition>,
) -> Vec<Condition> {
    let generation = resource.considered(object);
    let with =
        |kind, status, verdict: &Verdict| condition(kind, status, verdict.reason, cut(&verdict.message), generation);
    let truth = |yes| if yes { "True" } else { "False" };
    let deleting = resource.instance.deleting;
    let mut all = Vec::new();
    let kept = (object.class == Class::Suspended && !deleting).then(|| resource.kept_ready()).flatten();
    all.push(kept.unwrap_or_else(|| with(ConditionType::Ready, truth(object.class == Class::Ready), object)));
    all.push(with(ConditionType::Synced, truth(overall.class == Class::Ready), overall));
    match overall.class {
        Class::Progressing => all.push(with(ConditionType::Reconciling, "True", overall)),
        Class::Stalled => all.push(with(ConditionType::Stalled, "True", overall)),
        Class::Ready | Class::Suspended => {}
    }
    all.extend(drifted);
    if deleting && overall.blocks_deletion {
        all.push(with(ConditionType::DeletionBlocked, "True", overall));
    }
    all
}

/// What somebody else has done to the object, until it is set right.
fn drifted(situation: &Situation<'_>, generation: i64) -> Option<Condition> {
    let change = situation.change?;
    let drift = change.drift.as_ref()?;
    let stays = change.action == Action::NoOp;
    let open = situation.steps.values().any(|state| *state != StepState::Finished);
    let what = if stays { verdict::REPORTED } else { "it is set right" };
    let message = cut(&format!("{drift}; {what}"));
    (stays || open).then(|| condition(ConditionType::Drifted, "True", drift.reason(), message, generation))
}

/// Told once, when it begins: the same failure on the next attempt is no event. `cause` is what is told: of a family
/// the verdict on the instance that leads, without the numbers of all the others.
fn notes(resource: Resource<'_>, overall: &Verdict, cause: &Verdict, new: &[Condition]) -> Vec<Note> {
    let action = if resource.instance.deleting { "Delete" } else { "Reconcile" };
    let blocked = new.iter().find(|condition| condition.type_ == ConditionType::DeletionBlocked.as_str());
    if let Some(blocked) = blocked {
        let before = resource.previous(ConditionType::DeletionBlocked);
        let news = before.is_none_or(|before| before.reason != blocked.reason);
        let note = format!("{}: {}", blocked.reason, cut(&cause.message));
        return news.then_some(Note { warning: true, reason: "DeletionBlocked", action, note }).into_iter().collect();
    }
    let before = resource.previous(ConditionType::Synced);
    let same = before.is_some_and(|b| b.reason == overall.reason.as_str() && b.message == cut(&overall.message));
    if !overall.is_error || same {
        return Vec::new();
    }
    vec![Note { warning: true, reason: cause.reason.as_str(), action, note: cut(&cause.message) }]
}

/// What a finished step is told as; `None` for steps that are nobody's news.
pub fn finished(step: &Step, adopted: bool, id: Option<&str>, because: Option<&str>) -> Option<Note> {
    let (reason, action, text) = match (step.operation, step.replaces) {
        (Operation::Create, false) => ("Created", "Create", "created"),
        // The create is the news of a replacement; the old object's end belongs to it.
        (Operation::Create, true) => ("Replaced", "Replace", "replaced by a new object"),
        (Operation::Destroy, true) | (Operation::Read, _) => return None,
        (Operation::Record | Operation::Wait, _) if !adopted => return None,
        (Operation::Update, _) => ("Updated", "Update", "updated in place"),
        (Operation::Destroy, false) => ("Destroyed", "Destroy", "destroyed"),
        (Operation::Forget, _) => ("Forgotten", "Forget", "forgotten"),
        (Operation::Record | Operation::Wait, _) => ("Adopted", "Adopt", "its record was adopted"),
    };
    let mut note = text.to_owned();
    if let Some(key) = step.deposed {
        note = format!("old object {key} {text}");
    }
    // Whether the object stays, is gone, or never was.
    if let Some(because) = because.filter(|_| step.operation == Operation::Forget) {
        note.push_str(&format!(": {}", cut(because)));
    }
    if let Some(id) = id {
        note.push_str(&format!(" (id: {})", cut(id)));
    }
    Some(Note { warning: false, reason, action, note })
}

/// A digest of which steps have made the current objects of these records what they are.
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

fn state(resource: Resource<'_>, object: &Verdict, overall: &Verdict) -> ObjectState {
    match (resource.instance.deleting, object.class, overall.class) {
        (true, ..) => ObjectState::Deleting,
        (_, Class::Suspended, _) => ObjectState::Suspended,
        (_, _, Class::Ready) => ObjectState::Ready,
        (_, _, Class::Stalled) => ObjectState::Stalled,
        _ => ObjectState::Progressing,
    }
}

fn lifecycle(situation: &Situation<'_>) -> Option<EffectiveLifecycle> {
    let effective = situation.lifecycle?;
    let asked = situation.instance.create_before_destroy;
    if !effective.create_before_destroy {
        // Off is the default and nothing to tell, unless somebody wrote it down.
        return asked.map(|_| EffectiveLifecycle { create_before_destroy: false, because: set_here() });
    }
    let because = match (effective.forced_by.first(), effective.forced_by.last()) {
        (Some(first), Some(last)) if first != last => format!("required by {first}, because of {last}"),
        (Some(first), _) => format!("required by {first}"),
        _ if asked == Some(true) => set_here(),
        _ => String::new(),
    };
    Some(EffectiveLifecycle { create_before_destroy: true, because })
}

fn set_here() -> String {
    "set on the Resource".to_owned()
}

fn deposed(situation: &Situation<'_>) -> Vec<Deposed> {
    let Some(record) = situation.record else { return Vec::new() };
    let leftover = |key| situation.leftovers.iter().find(move |change| change.deposed == Some(key));
    record
        .deposed
        .iter()
        .take(LIST_LIMIT)
        .map(|(key, object)| Deposed {
            instance: record.address.key.to_string(),
            key: key.to_string(),
            id: object.visible_id().map(cut).unwrap_or_default(),
            waiting_for: leftover(*key).map(|change| names(change.waiting_for.iter())).unwrap_or_default(),
        })
        .collect()
}

fn pending(situation: &Situation<'_>) -> Option<Pending> {
    let change = situation.change?;
    let open = situation.steps.values().any(|state| *state != StepState::Finished);
    if !open || matches!(change.action, Action::NoOp | Action::Blocked) {
        return None;
    }
    let paths = if change.replace_paths.is_empty() { changed(change) } else { change.replace_paths.clone() };
    let step = |step: &Step| format!("{}: {}", step.address, step.operation.as_str());
    Some(Pending {
        action: action_word(change).to_owned(),
        paths: paths.iter().take(LIST_LIMIT).map(|path| cut(&path.to_string())).collect(),
        waiting_for: situation.waiting_for.iter().take(LIST_LIMIT).map(step).collect(),
    })
}

fn changed(change: &Change) -> Vec<crate::model::Path> {
    match (&change.before, &change.after, change.action) {
        (Some(before), Some(after), Action::Update) => before.differences(after),
        _ => Vec::new(),
    }
}

fn action_word(change: &Change) -> &'static str {
    match change.action {
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
    let asked = &resource.instance.reconcile_requested;
    let done = if suspended || asked.is_empty() { &resource.previous.handled_reconcile } else { asked };
    Some(done.to_string()).filter(|text| !text.is_empty())
}

/// The names, each once, in order.
fn names<'a>(addresses: impl Iterator<Item = &'a Address> + 'a) -> Vec<String> {
    let mut names: Vec<String> = addresses.map(|address| address.name.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// A text of bearable length.
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

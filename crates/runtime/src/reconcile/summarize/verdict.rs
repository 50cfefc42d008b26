//! Judges an object: ready, progressing, stalled or suspended, with the reason that explains it.

use super::{KnownHealth, ObjectInput, StepState, Steps};
use api::conditions::ConditionType;
use engine::load::Instance;
use model::text::split_hint;
use model::{Action, Change, Drift, Health, Operation, Reason, ReplaceOrder, Step};

/// How the conditions describe drift that is only reported.
pub const REPORTED: &str =
    "not corrected (`drift.action: Report`; hint: set `spec.drift.action: Correct`, or change the spec)";

/// The four states that the conditions distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Ready,
    /// A change is running, or will start without user action.
    Progressing,
    /// Purlin does nothing until something changes.
    Stalled,
    /// Purlin does nothing because the user suspended it.
    Suspended,
}

#[derive(Clone, Debug)]
pub struct Verdict {
    pub class: Class,
    pub reason: Reason,
    pub message: String,
    pub is_error: bool,
    /// For an object that is being deleted: the deletion waits for user action.
    pub blocks_deletion: bool,
}

impl Verdict {
    pub fn progressing(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Progressing, reason, message: message.into(), is_error: false, blocks_deletion: false }
    }

    pub fn ready(instance: &Instance) -> Self {
        let message = match instance.address.is_data() {
            false => "the object matches its Resource".to_owned(),
            true => "the data source was read".to_owned(),
        };
        Self { class: Class::Ready, reason: Reason::Available, message, is_error: false, blocks_deletion: false }
    }

    fn error(class: Class, reason: Reason, message: &str) -> Self {
        let message = with_hint(reason, message);
        let blocks_deletion = class != Class::Progressing || reason == Reason::Forbidden;
        Self { class, reason, message, is_error: true, blocks_deletion }
    }
}

/// The verdicts on an object.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Whether the object matches its Resource.
    pub object: Verdict,
    /// Whether it also works.
    pub ready: Verdict,
    /// Whether nothing is left to do with its deposed objects.
    pub rest: Verdict,
}

impl Judged {
    /// Problems of the object itself take precedence over work on its deposed objects.
    pub fn overall(&self) -> &Verdict {
        if self.object.class == Class::Ready { &self.rest } else { &self.object }
    }

    pub fn worst(&self) -> &Verdict {
        let overall = self.overall();
        if overall.class == Class::Ready { &self.ready } else { overall }
    }
}

pub fn judge(input: &ObjectInput<'_>) -> Judged {
    let (steps, other_steps) = split_steps(input);
    let object = of_steps(input, &steps).unwrap_or_else(|| of_change(input));
    let rest = of_steps(input, &other_steps)
        .or_else(|| input.deposed.iter().find_map(|change| blocked(change, input.instance.deleting)))
        .or_else(|| held_destroy(input))
        .unwrap_or_else(|| Verdict::ready(input.instance));
    let ready = if object.class == Class::Ready { of_health(input, &object) } else { object.clone() };
    // Whether an object that was not seen matches its Resource is not known either.
    let is_unknown = matches!(input.health, KnownHealth::Unseen) && ready.reason == Reason::Progressing;
    let object = if is_unknown { ready.clone() } else { object };
    Judged { object, ready, rest }
}

/// The steps of the object itself, and those of its deposed objects.
fn split_steps(input: &ObjectInput<'_>) -> (Steps<StepState>, Steps<StepState>) {
    let is_replaced = is_replaced(input);
    let (mut steps, mut other_steps) = (Steps::default(), Steps::default());
    for (step, state) in input.steps.iter() {
        let is_other = step.deposed.is_some() || (is_replaced && step.operation.removes());
        let part = if is_other { &mut other_steps } else { &mut steps };
        part.insert(step.clone(), state.clone());
    }
    (steps, other_steps)
}

/// The verdict on a replacement that cannot destroy the old object.
fn held_destroy(input: &ObjectInput<'_>) -> Option<Verdict> {
    let change = input.change?;
    Some(held_verdict(change.hold_destroy?, change, input.instance.deleting))
}

/// Whether a create-first replacement has created the new object: destroying the old one, which is deposed, no longer
/// affects the object.
pub fn is_replaced(input: &ObjectInput<'_>) -> bool {
    input.change.is_some_and(|change| change.order == Some(ReplaceOrder::CreateFirst))
        && input.steps.iter().any(|(step, state)| step.operation == Operation::Create && *state == StepState::Finished)
}

/// The verdict on an object that matches its Resource.
fn of_health(input: &ObjectInput<'_>, object: &Verdict) -> Verdict {
    match input.health {
        KnownHealth::Ready => object.clone(),
        KnownHealth::NotReady(health) => {
            let (class, reason) = match health {
                Health::Failed(_) => (Class::Stalled, Reason::Degraded),
                Health::Terminating(_) => (Class::Progressing, Reason::Terminating),
                Health::Current | Health::InProgress(_) => (Class::Progressing, Reason::Degraded),
            };
            let what = if class == Class::Stalled { "the object has failed" } else { "the object is not ready" };
            Verdict::error(class, reason, &format!("{what}: {health}"))
        }
        KnownHealth::Unseen => unseen(input, object),
    }
}

/// Until the object is seen, the previous status of the same generation remains: a restart changes no status.
fn unseen(input: &ObjectInput<'_>, object: &Verdict) -> Verdict {
    let is_same = input.previous.observed_generation == input.instance.generation;
    let before = input.previous.condition(ConditionType::Ready).filter(|_| is_same);
    match before {
        Some(before) if before.status == "True" => object.clone(),
        Some(before) if before.reason == Reason::Degraded.as_str() => {
            let is_stalled = input.previous.is_true(ConditionType::Stalled);
            let class = if is_stalled { Class::Stalled } else { Class::Progressing };
            Verdict::error(class, Reason::Degraded, &before.message)
        }
        _ => Verdict::progressing(Reason::Progressing, "the object was not seen yet since the controller started"),
    }
}

fn of_steps(input: &ObjectInput<'_>, steps: &Steps<StepState>) -> Option<Verdict> {
    let reason = if input.instance.deleting { Reason::Deleting } else { Reason::Progressing };
    steps
        .values()
        .find_map(failed)
        .or_else(|| steps.values().find_map(|state| delayed(state, reason)))
        .or_else(|| steps.values().find_map(|state| skipped(state, reason)))
        .or_else(|| Some(Verdict::progressing(reason, again(input, open_step(input, steps)?))))
}

fn failed(state: &StepState) -> Option<Verdict> {
    match state {
        StepState::Failed { reason, message, .. } if waits_for_others(*reason) => {
            Some(Verdict::progressing(*reason, message.clone()))
        }
        StepState::Failed { reason, message, retryable } => {
            let class = if *retryable { Class::Progressing } else { Class::Stalled };
            Some(Verdict::error(class, *reason, message))
        }
        _ => None,
    }
}

/// The verdict on a step that continues. One that only takes long is no error, and has the reason of the object.
fn delayed(state: &StepState, of_object: Reason) -> Option<Verdict> {
    let StepState::Delayed { reason, message, is_stalled } = state else { return None };
    let reason = if *reason == Reason::Progressing { of_object } else { *reason };
    let class = if *is_stalled { Class::Stalled } else { Class::Progressing };
    let is_error = !matches!(reason, Reason::Progressing | Reason::Deleting);
    Some(Verdict { class, is_error, ..Verdict::progressing(reason, message) })
}

fn skipped(state: &StepState, of_object: Reason) -> Option<Verdict> {
    match state {
        StepState::Skipped(Some(cause)) => Some(Verdict::progressing(
            Reason::DependencyNotReady,
            format!("waiting for {} ({} failed)", cause.address, cause.operation.as_str()),
        )),
        StepState::Skipped(None) => Some(Verdict::progressing(of_object, "waiting for the controller to resume")),
        _ => None,
    }
}

/// What the running step does, or what the next one waits for.
fn open_step(input: &ObjectInput<'_>, steps: &Steps<StepState>) -> Option<String> {
    if let Some((step, _)) = steps.iter().find(|(_, state)| **state == StepState::Running) {
        let operation = if input.only_waits { Operation::Wait } else { step.operation };
        return Some(doing(operation, step.replaces || step.deposed.is_some()).to_owned());
    }
    let (step, _) = steps.iter().find(|(_, state)| **state == StepState::Waiting)?;
    Some(waits(step, input.waiting_for))
}

/// Adds the last failure of a step that is tried again.
fn again(input: &ObjectInput<'_>, text: String) -> String {
    match input.last_failure {
        Some(failure) => format!("{text}; the last attempt failed: {failure}"),
        None => text,
    }
}

fn of_change(input: &ObjectInput<'_>) -> Verdict {
    let deleting = input.instance.deleting;
    let Some(change) = input.change else {
        return if deleting {
            removed(input.instance)
        } else {
            Verdict::progressing(Reason::Progressing, "not planned yet")
        };
    };
    if let Some(verdict) = blocked(change, deleting) {
        return if input.provider_is_rejected { behind_provider(input, verdict) } else { verdict };
    }
    if deleting {
        return removed(input.instance);
    }
    match change.reported_drift() {
        // The plan already reports an event for this.
        Some(drift @ Drift::Missing) => {
            let message = format!("{drift}; {REPORTED}");
            Verdict { is_error: false, ..Verdict::error(Class::Stalled, drift.reason(), &message) }
        }
        _ if input.awaits_plan => Verdict::progressing(
            Reason::Progressing,
            "waiting for a new plan: the Resource or its object has changed while a step was running",
        ),
        _ if is_carried_out(change, input.steps) => {
            let remarks = input.remarks.into_iter().flatten().map(|remark| format!("; {remark}"));
            let ready = Verdict::ready(input.instance);
            Verdict { message: ready.message + &remarks.collect::<String>(), ..ready }
        }
        _ => {
            let message = format!("waiting to start: {} is planned", super::action_word(change.action));
            Verdict::progressing(Reason::Progressing, message)
        }
    }
}

/// Whether the change needs no step, or its step has succeeded.
fn is_carried_out(change: &Change, steps: &Steps<StepState>) -> bool {
    let removes = matches!(change.action, Action::Destroy | Action::Forget);
    matches!(change.action, Action::NoOp | Action::Record)
        || steps.iter().any(|(step, state)| {
            step.deposed.is_none() && step.operation.removes() == removes && *state == StepState::Finished
        })
}

/// No object remains. The Resource exists until others remove their finalizers.
fn removed(instance: &Instance) -> Verdict {
    let message = match instance.address.is_data() {
        false => "no object remains; the Resource is being removed",
        true => "the DataSource is being removed; no object is destroyed",
    };
    Verdict::progressing(Reason::Deleting, message)
}

pub fn blocked(change: &Change, deleting: bool) -> Option<Verdict> {
    if change.action != Action::Blocked {
        return None;
    }
    Some(held_verdict(change.blocked.unwrap_or(Reason::Waiting), change, deleting))
}

/// The verdict on an object whose provider cannot be used: the `ProviderConfig` has the error, once for all its users.
fn behind_provider(input: &ObjectInput<'_>, verdict: Verdict) -> Verdict {
    let name = input.instance.provider.as_ref().map(|provider| provider.name());
    match name.filter(|_| verdict.reason == Reason::ProviderNotReady) {
        Some(name) => {
            let message = format!("waits for the ProviderConfig `{name}`, whose status says why it is not ready");
            Verdict { message, is_error: false, ..verdict }
        }
        None => verdict,
    }
}

pub fn suspended(message: &str, blocks_deletion: bool) -> Verdict {
    let message = with_hint(Reason::Suspended, message);
    Verdict { class: Class::Suspended, reason: Reason::Suspended, message, is_error: false, blocks_deletion }
}

fn held_verdict(reason: Reason, change: &Change, deleting: bool) -> Verdict {
    match reason {
        Reason::Suspended => suspended(&change.message, deleting),
        // Nothing is wrong: the change waits for a user.
        Reason::ApprovalRequired => {
            Verdict { blocks_deletion: deleting, ..Verdict::progressing(reason, change.message.clone()) }
        }
        // Nothing is wrong, and nothing happens until a user acts.
        Reason::Rejected => {
            let message = change.message.clone();
            Verdict { class: Class::Stalled, reason, message, is_error: false, blocks_deletion: deleting }
        }
        _ if waits_for_others(reason) => Verdict::progressing(reason, change.message.clone()),
        // A deletion that waits for user action is blocked, not stalled: the object has no error.
        Reason::InUse
        | Reason::PreventDestroy
        | Reason::CustomResourceDefinitionTerminating
        | Reason::CustomResourceDefinitionUnknown
            if deleting =>
        {
            Verdict { blocks_deletion: true, ..Verdict::error(Class::Progressing, reason, &change.message) }
        }
        // These resolve as soon as the cause does, without a change of this Resource.
        Reason::OperationFailed
        | Reason::RecordNotWritten
        | Reason::RecordUnavailable
        | Reason::CustomResourceDefinitionUnknown
        | Reason::Forbidden
        | Reason::TooManyDeposedObjects
        | Reason::Terminating
        | Reason::PreconditionFailed
        | Reason::PostconditionFailed => Verdict::error(Class::Progressing, reason, &change.message),
        _ => Verdict::error(Class::Stalled, reason, &change.message),
    }
}

/// Whether a blocked change waits only for other objects or processes, without user action.
pub fn waits_for_others(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::DependencyNotFound
            | Reason::InputNotFound
            | Reason::DependencyNotReady
            | Reason::Waiting
            | Reason::OperationInProgress
            | Reason::Progressing
            | Reason::Deleting
    )
}

fn doing(operation: Operation, replaces: bool) -> &'static str {
    match (operation, replaces) {
        (Operation::Create, false) => "creating the object",
        (Operation::Create, true) => "creating the replacement object",
        (Operation::Update, _) => "updating the object",
        (Operation::Record, _) => "updating the record",
        (Operation::Wait, _) => "waiting until the object is ready",
        (Operation::Destroy, false) => "destroying the object",
        (Operation::Destroy, true) => "destroying the replaced object",
        (Operation::Forget, _) => "forgetting the object",
        (Operation::Read, _) => "reading the data source",
    }
}

fn waits(step: &Step, waiting_for: &[Step]) -> String {
    // How many steps the message names; `pending.waitingFor` has the rest.
    const NAMED: usize = 3;
    let named: Vec<String> = waiting_for.iter().take(NAMED).map(Step::id).collect();
    let more = waiting_for.len().saturating_sub(NAMED);
    let verb = step.operation.as_str();
    match (named.is_empty(), more) {
        (true, _) => format!("waiting to {verb}"),
        (false, 0) => format!("waiting to {verb} until these steps finish: {}", named.join(", ")),
        (false, _) => format!("waiting to {verb} until these steps finish: {} and {more} more", named.join(", ")),
    }
}

/// Adds a hint to the message if it has none.
fn with_hint(reason: Reason, message: &str) -> String {
    let way_out = match reason {
        Reason::InUse => "delete the objects that depend on it too, or remove their references to it",
        Reason::PreventDestroy => {
            "set `spec.lifecycle.preventDestroy` to false; you can do this while it is being deleted"
        }
        Reason::Suspended => "set `spec.suspend` to false, or run `purlin resume`",
        Reason::CustomResourceDefinitionTerminating => {
            "restore the CRD, or release the objects with `purlin state release --all`"
        }
        Reason::Forbidden => "grant the permission to the service account",
        _ => return message.to_owned(),
    };
    let (what, hint) = split_hint(message);
    let again = if reason == Reason::Forbidden { "; Purlin retries within a minute" } else { "" };
    match hint {
        None if what.contains("(hint: ") => format!("{what}{again}"),
        hint => format!("{what}{again} (hint: {})", hint.unwrap_or(way_out)),
    }
}

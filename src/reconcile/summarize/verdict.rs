//! What to think of an object: ready, on its way, stuck, or suspended, and the one reason that explains it.

use super::{Situation, StepState, Steps};
use crate::load::Instance;
use crate::model::{Action, Change, Drift, Operation, Reason, ReplaceOrder, Step};

/// What becomes of drift that is only reported.
pub(super) const REPORTED: &str =
    "it stays so (`drift.action: Report`; hint: set `Correct` to have it set right, or change what is wanted)";

/// The four states that conditions can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// As it should be.
    Ready,
    /// A change is under way, or will start without anybody's doing.
    Progressing,
    /// Nothing happens until somebody changes something.
    Stalled,
    /// Nothing happens because somebody said so.
    Suspended,
}

#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) class: Class,
    pub(super) reason: Reason,
    pub(super) message: String,
    /// Worth an event.
    pub(super) is_error: bool,
    /// For an object being deleted: it stays until somebody does something.
    pub(super) blocks_deletion: bool,
}

impl Verdict {
    pub(super) fn progressing(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Progressing, reason, message: message.into(), is_error: false, blocks_deletion: false }
    }

    pub(super) fn ready(instance: &Instance) -> Self {
        let message = match instance.address.is_data() {
            false => "the object is as its Resource describes it".to_owned(),
            true => "it was read as its DataSource describes it".to_owned(),
        };
        Self { class: Class::Ready, reason: Reason::Available, message, is_error: false, blocks_deletion: false }
    }

    fn error(class: Class, reason: Reason, message: &str) -> Self {
        let message = with_way_out(reason, message);
        let blocks_deletion = class != Class::Progressing || reason == Reason::Forbidden;
        Self { class, reason, message, is_error: true, blocks_deletion }
    }
}

/// The verdict on the object itself, and on what is left to do about its old objects.
pub(super) fn judge(situation: &Situation<'_>) -> (Verdict, Verdict) {
    let made =
        |(step, state): (&Step, &StepState)| step.operation == Operation::Create && *state == StepState::Finished;
    let create_first = situation.change.is_some_and(|change| change.order == Some(ReplaceOrder::CreateFirst));
    let replaced = create_first && situation.steps.iter().any(made);
    // Once the new object of a create-first replacement is there, destroying the old one is no longer its business.
    let own = |step: &Step| step.deposed.is_none() && !(replaced && step.operation.removes());
    let known = || situation.steps.iter().map(|(step, state)| (step.clone(), state.clone()));
    let object: Steps<StepState> = known().filter(|(step, _)| own(step)).collect();
    let rest: Steps<StepState> = known().filter(|(step, _)| !own(step)).collect();
    let object = of_steps(situation, &object).unwrap_or_else(|| of_change(situation));
    let leftover = || situation.leftovers.iter().find_map(|change| blocked(change, situation.instance.deleting));
    let held_back = || {
        let change = situation.change?;
        Some(held(change.hold_destroy?, change, situation.instance.deleting))
    };
    let rest = of_steps(situation, &rest)
        .or_else(leftover)
        .or_else(held_back)
        .unwrap_or_else(|| Verdict::ready(situation.instance));
    (object, rest)
}

fn of_steps(situation: &Situation<'_>, steps: &Steps<StepState>) -> Option<Verdict> {
    let deleting = situation.instance.deleting;
    let reason = if deleting { Reason::Deleting } else { Reason::Progressing };
    let failed = steps.values().find_map(|state| match state {
        StepState::Failed { reason, message, retryable } => {
            let class = if *retryable { Class::Progressing } else { Class::Stalled };
            Some(Verdict::error(class, *reason, message))
        }
        _ => None,
    });
    let skipped = || {
        steps.values().find_map(|state| match state {
            StepState::Skipped(Some(cause)) => Some(Verdict::progressing(
                Reason::DependencyFailed,
                format!("waits for {}, which failed to {}", cause.address, cause.operation.as_str()),
            )),
            StepState::Skipped(None) => Some(Verdict::progressing(reason, "waits for the controller to go on")),
            _ => None,
        })
    };
    let delayed = || {
        steps.values().find_map(|state| match state {
            StepState::Delayed { reason, message } => Some(delayed(*reason, message)),
            _ => None,
        })
    };
    let running = || {
        let step = steps.iter().find(|(_, state)| **state == StepState::Running)?.0;
        Some(Verdict::progressing(reason, doing(step)))
    };
    let waiting = || {
        let step = steps.iter().find(|(_, state)| **state == StepState::Waiting)?.0;
        Some(Verdict::progressing(reason, waits(step, situation.waiting_for)))
    };
    failed.or_else(delayed).or_else(skipped).or_else(running).or_else(waiting)
}

/// The step goes on. What only takes its time is no trouble.
fn delayed(reason: Reason, message: &str) -> Verdict {
    let is_error = reason != Reason::Progressing;
    Verdict { is_error, ..Verdict::progressing(reason, message) }
}

fn of_change(situation: &Situation<'_>) -> Verdict {
    let deleting = situation.instance.deleting;
    let Some(change) = situation.change else {
        return if deleting {
            gone(situation.instance)
        } else {
            Verdict::progressing(Reason::Progressing, "not planned yet")
        };
    };
    if let Some(verdict) = blocked(change, deleting) {
        return verdict;
    }
    if deleting {
        return gone(situation.instance);
    }
    match &change.drift {
        // The warning of the plan is the event.
        Some(drift @ Drift::Gone) if change.action == Action::NoOp => {
            let message = format!("{drift}; {REPORTED}");
            Verdict { is_error: false, ..Verdict::error(Class::Stalled, drift.reason(), &message) }
        }
        _ if situation.awaits_plan => {
            Verdict::progressing(Reason::Progressing, "a step has ended that began before the Resource changed")
        }
        _ if is_carried_out(change, situation.steps) => Verdict::ready(situation.instance),
        _ => {
            let message = format!("waits for its turn: {} is planned", super::action_word(change));
            Verdict::progressing(Reason::Progressing, message)
        }
    }
}

/// Whether a change needs no step, or the step that makes the object what it is to be has ended well.
fn is_carried_out(change: &Change, steps: &Steps<StepState>) -> bool {
    let removes = matches!(change.action, Action::Destroy | Action::Forget);
    let done = |(step, state): (&Step, &StepState)| {
        step.deposed.is_none() && step.operation.removes() == removes && *state == StepState::Finished
    };
    matches!(change.action, Action::NoOp | Action::Record) || steps.iter().any(done)
}

/// Nothing is left of what is being deleted; it stays as long as somebody else holds it.
fn gone(instance: &Instance) -> Verdict {
    let message = match instance.address.is_data() {
        false => "the object is gone; the Resource follows",
        true => "the DataSource goes, and nothing with it",
    };
    Verdict::progressing(Reason::Deleting, message)
}

/// The verdict on what cannot be planned.
pub(super) fn blocked(change: &Change, deleting: bool) -> Option<Verdict> {
    if change.action != Action::Blocked {
        return None;
    }
    Some(held(change.blocked.unwrap_or(Reason::Waiting), change, deleting))
}

fn held(reason: Reason, change: &Change, deleting: bool) -> Verdict {
    match reason {
        Reason::Suspended => {
            let message = with_way_out(reason, &change.message);
            Verdict { class: Class::Suspended, reason, message, is_error: false, blocks_deletion: deleting }
        }
        _ if waits_by_itself(reason) => Verdict::progressing(reason, change.message.clone()),
        // A deletion that waits for somebody is no fault of the object: it is blocked, not stalled.
        Reason::StillUsed
        | Reason::PreventDestroy
        | Reason::CustomResourceDefinitionDeleted
        | Reason::CustomResourceDefinitionUnknown
            if deleting =>
        {
            Verdict { blocks_deletion: true, ..Verdict::error(Class::Progressing, reason, &change.message) }
        }
        // These end by themselves as soon as the cause is gone, without a change of this object.
        Reason::OperationFailed
        | Reason::RecordNotWritten
        | Reason::RecordNotRead
        | Reason::CustomResourceDefinitionUnknown
        | Reason::Forbidden
        | Reason::TooManyLeftovers
        | Reason::PreconditionFailed
        | Reason::PostconditionFailed => Verdict::error(Class::Progressing, reason, &change.message),
        _ => Verdict::error(Class::Stalled, reason, &change.message),
    }
}

/// Whether a blocked change waits for other objects or processes only, which need nobody's help.
pub fn waits_by_itself(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::DependencyNotFound
            | Reason::InputNotFound
            | Reason::DependencyNotReady
            | Reason::DependencyFailed
            | Reason::Waiting
            | Reason::OperationInProgress
            | Reason::RunAgain
            | Reason::Progressing
            | Reason::Deleting
    )
}

fn doing(step: &Step) -> &'static str {
    match (step.operation, step.replaces) {
        (Operation::Create, false) => "creating the object",
        (Operation::Create, true) => "creating the new object of a replacement",
        (Operation::Update, _) => "updating the object",
        (Operation::Record, _) => "updating the record",
        (Operation::Wait, _) => "waits until the object is ready",
        (Operation::Destroy, false) => "destroying the object",
        (Operation::Destroy, true) => "destroying the old object of a replacement",
        (Operation::Forget, _) => "forgetting the object",
        (Operation::Read, _) => "reading the data source",
    }
}

fn waits(step: &Step, waiting_for: &[Step]) -> String {
    // How many are named: the rest is in `pending.waitingFor`.
    const NAMED: usize = 3;
    let named: Vec<String> = waiting_for.iter().take(NAMED).map(Step::id).collect();
    let more = waiting_for.len().saturating_sub(NAMED);
    let verb = step.operation.as_str();
    match (named.is_empty(), more) {
        (true, _) => format!("waits for its turn to {verb}"),
        (false, 0) => format!("waits to {verb} until these are done: {}", named.join(", ")),
        (false, _) => format!("waits to {verb} until these are done: {} and {more} more", named.join(", ")),
    }
}

/// The message with the ways out, when it has none yet.
fn with_way_out(reason: Reason, message: &str) -> String {
    let way_out = match reason {
        Reason::StillUsed => "delete what uses it as well, or remove the reference there",
        Reason::PreventDestroy => "set `spec.lifecycle.preventDestroy` to false, which works while it is being deleted",
        Reason::Suspended => "set `spec.suspend` to false, or remove the annotation `purlin.dev/paused`",
        Reason::CustomResourceDefinitionDeleted => {
            "restore the CRD, or give up control with `purlin state release --all`"
        }
        Reason::Forbidden => "grant the service account the permission",
        _ => return message.to_owned(),
    };
    if reason == Reason::Forbidden {
        let hinted =
            if message.contains("(hint: ") { message.to_owned() } else { format!("{message} (hint: {way_out})") };
        return format!("{hinted}; it is tried again within a minute");
    }
    if message.contains("(hint: ") { message.to_owned() } else { format!("{message} (hint: {way_out})") }
}

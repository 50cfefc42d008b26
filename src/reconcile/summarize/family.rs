//! The status of a Resource that stands for several objects, or for none: counters, the instances that need somebody,
//! and one message that is readable with a thousand of them. Never more than that of each instance.

use jiff::Timestamp;

use super::verdict::{self, Class, Verdict};
use super::{LIST_LIMIT, MESSAGE_LIMIT, Published, Resource, STATUS_LIMIT, Situation, StepState, Summary};
use crate::api::conditions::merge;
use crate::api::{Instances, Pending, ResourceStatus, TroubledInstance};
use crate::load::Instance;
use crate::model::{Action, Address, Change, Reason};

/// How many instances in trouble are told one by one.
const TROUBLED: usize = 20;

/// How much of each message is told in that list. The message of the first one is told whole.
const TROUBLE_LIMIT: usize = 256;

/// How many objects a Resource stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// That is not known yet, or cannot be told.
    Unknown,
    /// None, since it is disabled.
    Disabled,
    /// So many.
    Known(u64),
}

/// One instance, wanted or not any more.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Which one.
    pub address: &'a Address,
    /// Whether the Resource asks for it.
    pub wanted: bool,
    /// All that is known about it.
    pub situation: Situation<'a>,
}

/// All that is known about a Resource and its instances.
pub struct FamilySituation<'a> {
    /// What all its instances share.
    pub resource: &'a Instance,
    /// How many there are to be.
    pub extent: Extent,
    /// Why nobody knows that, or why nothing can be done about any of them.
    pub gate: Option<&'a Change>,
    /// In address order.
    pub members: &'a [Member<'a>],
    /// What its status says now.
    pub previous: &'a Published,
    /// The time.
    pub now: Timestamp,
}

/// Sums up a Resource with all its instances.
pub fn summarize_family(family: &FamilySituation<'_>) -> Summary {
    let judged = Judged::of(family);
    let (object, rest) = (judged.object(family), judged.rest(family));
    let overall = if object.class == Class::Ready { &rest } else { &object };
    let leading = if object.class == Class::Ready { judged.leading_rest() } else { judged.leading(family) };
    let cause = leading.unwrap_or_else(|| overall.clone());
    let members = || family.members.iter().map(|member| &member.situation);
    let revision = super::revision(members().filter_map(|member| member.record));
    let resource = Resource { instance: family.resource, previous: family.previous, revision: revision.as_deref() };
    let new = super::conditions(resource, &object, overall, drifted(family, resource.considered(&object)));
    let notes = super::notes(resource, overall, &cause, &new);
    let wants = members().flat_map(|member| member.wants).filter(|other| other.name != family.resource.address.name);
    let mut status = ResourceStatus {
        observed_generation: resource.considered(&object),
        conditions: merge(&family.previous.conditions(), new, family.now),
        revision: revision.clone(),
        lifecycle: lifecycle(family),
        dependencies: super::names(wants),
        instances: Some(judged.instances(family)),
        deposed: members().flat_map(super::deposed).take(LIST_LIMIT).collect(),
        pending: pending(family),
        last_handled_reconcile_at: super::handled(resource, object.class == Class::Suspended),
        ..ResourceStatus::default()
    };
    fit(&mut status);
    Summary { status, notes, state: super::state(resource, &object, overall) }
}

/// Leaves out from the end of the lists what does not fit: keys of instances may be long.
fn fit(status: &mut ResourceStatus) {
    let size = |status: &ResourceStatus| serde_json::to_vec(status).map_or(0, |bytes| bytes.len());
    while size(status) > STATUS_LIMIT {
        let cut = status.instances.as_mut().and_then(|instances| instances.troubled.pop()).is_some();
        if !cut && status.deposed.pop().is_none() {
            return;
        }
    }
}

/// The verdicts on all instances.
struct Judged<'a> {
    /// The wanted ones.
    wanted: Vec<(&'a Address, Verdict)>,
    /// Those that go, and what is left to do about old objects of the wanted ones.
    others: Vec<(&'a Address, Verdict)>,
    /// A step of one of them runs, or waits for others.
    is_active: bool,
}

impl<'a> Judged<'a> {
    fn of(family: &FamilySituation<'a>) -> Self {
        let mut judged = Self { wanted: Vec::new(), others: Vec::new(), is_active: false };
        for member in family.members {
            let (object, rest) = verdict::judge(&member.situation);
            judged.is_active |= member.situation.steps.values().any(StepState::is_open);
            // What is being deleted goes as a whole.
            let list = if member.wanted || family.resource.deleting { &mut judged.wanted } else { &mut judged.others };
            list.push((member.address, object));
            if rest.class != Class::Ready {
                judged.others.push((member.address, rest));
            }
        }
        judged
    }

    fn ready(&self) -> usize {
        self.wanted.iter().filter(|(_, verdict)| verdict.class == Class::Ready).count()
    }

    /// The verdict on the wanted objects.
    fn object(&self, family: &FamilySituation<'_>) -> Verdict {
        if let Some(gate) = family.gate.and_then(|gate| verdict::blocked(gate, family.resource.deleting)) {
            return gate;
        }
        if let Some((_, suspended)) = self.wanted.iter().find(|(_, verdict)| verdict.class == Class::Suspended) {
            return suspended.clone();
        }
        if family.resource.deleting {
            return self.deleting();
        }
        let ready = self.ready();
        let at_rest = |reason, message: String| Verdict { reason, message, ..Verdict::ready(family.resource) };
        let kind = family.resource.address.kind();
        let desired = match family.extent {
            Extent::Disabled => {
                return at_rest(Reason::Disabled, format!("the {kind} is disabled, so it stands for no object"));
            }
            Extent::Unknown => return Verdict::progressing(Reason::Progressing, "not planned yet"),
            Extent::Known(0) => {
                return at_rest(Reason::NoInstances, "there are to be no instances".to_owned());
            }
            Extent::Known(desired) => desired,
        };
        match lead(&self.wanted, self.is_active) {
            Some((address, verdict)) => {
                let more = more(self.wanted.len() - ready - 1);
                let message = format!("{ready} of {desired} ready; {address}: {}{more}", verdict.message);
                Verdict { message, ..verdict }
            }
            None if (ready as u64) < desired => {
                Verdict::progressing(Reason::Progressing, format!("{ready} of {desired} ready"))
            }
            None => at_rest(Reason::Available, format!("{ready} of {desired} ready, as the {kind} describes them")),
        }
    }

    fn deleting(&self) -> Verdict {
        let Some((address, verdict)) = lead(&self.wanted, self.is_active) else {
            return Verdict::progressing(Reason::Deleting, "the objects are gone; the Resource follows");
        };
        let left = self.wanted.len();
        Verdict { message: format!("{left} still there; {address}: {}{}", verdict.message, more(left - 1)), ..verdict }
    }

    /// The verdict on all that is left to do besides.
    fn rest(&self, family: &FamilySituation<'_>) -> Verdict {
        match lead(&self.others, self.is_active) {
            None => Verdict::ready(family.resource),
            Some((address, verdict)) => {
                let leaving = family.members.iter().filter(|member| !member.wanted).count();
                let leaves = if leaving == 0 { String::new() } else { format!("{leaving} no longer wanted; ") };
                let more = more(self.others.iter().filter(|(_, other)| other.class != Class::Ready).count() - 1);
                Verdict { message: format!("{leaves}{address}: {}{more}", verdict.message), ..verdict }
            }
        }
    }

    /// The instance that is told first, in its own words.
    fn leading(&self, family: &FamilySituation<'_>) -> Option<Verdict> {
        let gated = family.gate.is_some();
        lead(&self.wanted, self.is_active).filter(|_| !gated).map(named)
    }

    fn leading_rest(&self) -> Option<Verdict> {
        lead(&self.others, self.is_active).map(named)
    }

    fn instances(&self, family: &FamilySituation<'_>) -> Instances {
        let troubled = self.wanted.iter().chain(&self.others).filter(|(_, verdict)| is_trouble(verdict));
        let deposed = family.members.iter().filter_map(|member| member.situation.record);
        let ready = if family.resource.deleting { 0 } else { self.ready() };
        Instances {
            desired: match family.extent {
                Extent::Unknown => None,
                Extent::Disabled => Some(0),
                Extent::Known(desired) => Some(desired),
            },
            ready: ready as u64,
            deposed: deposed.map(|record| record.deposed.len() as u64).sum(),
            troubled: troubled.take(TROUBLED).map(told).collect(),
        }
    }
}

/// The instance whose state is told for all that are not ready: one in trouble before one on its way. Nothing but
/// `Stalled` may be said of the whole only when nothing of it goes on.
fn lead(judged: &[(&Address, Verdict)], is_active: bool) -> Option<(Address, Verdict)> {
    let open = || judged.iter().filter(|(_, verdict)| verdict.class != Class::Ready);
    let (address, first) = open().find(|(_, verdict)| verdict.is_error).or_else(|| open().next())?;
    let mut lead = first.clone();
    let stalled = open().any(|(_, verdict)| verdict.class == Class::Stalled);
    lead.class = match lead.class {
        Class::Suspended => Class::Suspended,
        _ if stalled && !is_active => Class::Stalled,
        _ => Class::Progressing,
    };
    lead.blocks_deletion = open().any(|(_, verdict)| verdict.blocks_deletion);
    Some(((*address).clone(), lead))
}

fn named((address, verdict): (Address, Verdict)) -> Verdict {
    Verdict { message: format!("{address}: {}", verdict.message), ..verdict }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} more)") }
}

/// Whether somebody may have to do something about an instance, or wonders why nothing happens.
fn is_trouble(verdict: &Verdict) -> bool {
    let on_its_way = matches!(verdict.reason, Reason::Progressing | Reason::Deleting);
    verdict.is_error || (verdict.class != Class::Ready && verdict.class != Class::Suspended && !on_its_way)
}

fn told((address, verdict): &(&Address, Verdict)) -> TroubledInstance {
    TroubledInstance {
        address: address.to_string(),
        reason: verdict.reason.to_string(),
        message: super::cut_to(&verdict.message, TROUBLE_LIMIT),
    }
}

fn drifted(
    family: &FamilySituation<'_>,
    generation: i64,
) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let mut all = family.members.iter().filter_map(|member| {
        let condition = super::drifted(&member.situation, generation)?;
        Some((member.address, condition))
    });
    let (address, mut condition) = all.next()?;
    let message = format!("{address}: {}{}", condition.message, more(all.count()));
    condition.message = super::cut_to(&message, MESSAGE_LIMIT);
    Some(condition)
}

/// That of the first instance that has one which is worth telling.
fn lifecycle(family: &FamilySituation<'_>) -> Option<crate::api::EffectiveLifecycle> {
    let all = || family.members.iter().filter_map(|member| super::lifecycle(&member.situation));
    all().find(|lifecycle| lifecycle.create_before_destroy).or_else(|| all().next())
}

/// The gravest thing that is to be done, and what the first instances wait for.
fn pending(family: &FamilySituation<'_>) -> Option<Pending> {
    let grave = |action: &Action| match action {
        Action::Replace => 0,
        Action::Destroy => 1,
        Action::Forget => 2,
        Action::Create => 3,
        Action::Update => 4,
        _ => 5,
    };
    let open = || family.members.iter().filter(|member| super::pending(&member.situation).is_some());
    let changes = open().filter_map(|member| member.situation.change);
    let change = changes.min_by_key(|change| grave(&change.action))?;
    let own = &family.resource.address.name;
    let mut waiting_for: Vec<String> = open()
        .flat_map(|member| member.situation.waiting_for)
        .filter(|step| step.address.name != *own)
        .map(|step| format!("{}: {}", step.address, step.operation.as_str()))
        .collect();
    waiting_for.sort();
    waiting_for.dedup();
    waiting_for.truncate(LIST_LIMIT);
    Some(Pending { action: super::action_word(change).to_owned(), paths: Vec::new(), waiting_for })
}

#[cfg(test)]
mod tests;

//! The status of a Resource with `count`, `forEach` or `enabled`: counters, the instances that need attention, and one
//! message that stays readable with a thousand instances.

use jiff::Timestamp;

use super::verdict::{self, Class, Judged, Verdict};
use super::{LIST_LIMIT, MESSAGE_LIMIT, ObjectInput, PublishedStatus, Resource, STATUS_LIMIT, StepState, Summary};
use api::conditions::merge;
use api::{Instances, ModuleDetails, ModulePending, ModuleRevision, Pending, ResourceStatus, TroubledInstance};
use engine::load::Instance;
use engine::plan::Loss;
use model::{Action, Address, Change, Reason, Step, with_namespace};

/// How many troubled instances the status lists.
const TROUBLED: usize = 20;

/// The length limit of each message in that list. The conditions have the full first message.
const TROUBLE_LIMIT: usize = 256;

/// How many objects a Resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceCount {
    /// Not known yet, or cannot be evaluated.
    Unknown,
    /// None: the Resource is disabled.
    Disabled,
    Known(u64),
}

/// One instance, desired or to be destroyed.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    pub address: &'a Address,
    /// Whether the Resource still has this instance.
    pub desired: bool,
    pub object: ObjectInput<'a>,
}

/// The state of a Resource and of its instances, which are in address order.
pub struct FamilyInput<'a> {
    pub resource: &'a Instance,
    pub extent: InstanceCount,
    /// The blocked change of the Resource as a whole: its instances are unknown, or none of them can be changed.
    pub gate: Option<&'a Change>,
    pub members: &'a [Member<'a>],
    /// What it has lost besides its desired instances, with the address that the user passes to `purlin state rm`.
    pub lost: Option<(Loss, Address)>,
    pub previous: &'a PublishedStatus,
    /// As for [`ObjectInput`].
    pub namespace: &'a str,
    pub now: Timestamp,
}

impl<'a> FamilyInput<'a> {
    fn objects(&self) -> impl Iterator<Item = &'a ObjectInput<'a>> + Clone + use<'a> {
        self.members.iter().map(|member| &member.object)
    }
}

/// Summarizes a Resource with all its instances.
pub fn summarize_family(family: &FamilyInput<'_>) -> Summary {
    let verdicts = Verdicts::of(family);
    let object = verdicts.object(family, &verdicts.synced);
    let judged = Judged { object, ready: verdicts.object(family, &verdicts.desired), rest: verdicts.rest(family) };
    let is_rest = judged.object.class == Class::Ready && judged.rest.class != Class::Ready;
    let leading = if is_rest { verdicts.leading_rest() } else { verdicts.leading(family) };
    let cause = leading.unwrap_or_else(|| judged.worst().clone());
    let resource = Resource { instance: family.resource, previous: family.previous, namespace: family.namespace };
    let new = super::conditions(resource, &judged, drifted(family, family.resource.generation));
    let notes = super::notes(resource, &judged, &cause, &new);
    let dependencies = family
        .objects()
        .flat_map(|object| object.dependencies)
        .filter(|dependency| dependency.name() != family.resource.address.name());
    let mut status = ResourceStatus {
        observed_generation: family.resource.generation,
        conditions: merge(&family.previous.conditions(), new, family.now),
        revision: super::revision(family.objects().filter_map(|object| object.record)),
        lifecycle: lifecycle(family),
        dependencies: super::names(dependencies),
        instances: Some(verdicts.instances(family)),
        deposed: family.objects().flat_map(super::deposed).take(LIST_LIMIT).collect(),
        pending: pending(family),
        last_handled_reconcile_at: super::handled(resource, judged.object.class == Class::Suspended),
        ..ResourceStatus::default()
    };
    fit(&mut status);
    let module = family.resource.address.is_module().then(|| details(family));
    Summary { status, module, notes, state: super::state(resource, &judged), reason: judged.worst().reason }
}

/// Drops entries from the end of the lists until the status fits: keys of instances may be long.
fn fit(status: &mut ResourceStatus) {
    while serde_json::to_vec(&*status).map_or(0, |bytes| bytes.len()) > STATUS_LIMIT {
        let cut = status.instances.as_mut().and_then(|instances| instances.troubled.pop()).is_some();
        if !cut && status.deposed.pop().is_none() {
            return;
        }
    }
}

struct Verdicts<'a> {
    /// The desired instances.
    desired: Vec<(&'a Address, Verdict)>,
    /// The same, regardless of their health.
    synced: Vec<(&'a Address, Verdict)>,
    /// Instances that are being destroyed, and deposed objects of the desired ones.
    others: Vec<(&'a Address, Verdict)>,
    /// Whether a step of any instance is running or waiting.
    is_active: bool,
}

impl<'a> Verdicts<'a> {
    fn of(family: &FamilyInput<'a>) -> Self {
        let mut verdicts = Self { desired: Vec::new(), synced: Vec::new(), others: Vec::new(), is_active: false };
        for member in family.members {
            let Judged { object, ready, rest } = verdict::judge(&member.object);
            verdicts.is_active |= member.object.steps.values().any(StepState::is_open);
            // A Resource that is being deleted counts all of its instances.
            if member.desired || family.resource.deleting {
                verdicts.desired.push((member.address, ready));
                verdicts.synced.push((member.address, object));
            } else {
                verdicts.others.push((member.address, object));
            }
            if rest.class != Class::Ready {
                verdicts.others.push((member.address, rest));
            }
        }
        verdicts
    }

    fn ready(&self) -> usize {
        self.desired.iter().filter(|(_, verdict)| verdict.class == Class::Ready).count()
    }

    /// The verdict on all desired instances, from one of the lists.
    fn object(&self, family: &FamilyInput<'_>, list: &[(&Address, Verdict)]) -> Verdict {
        if let Some(gate) = family.gate.and_then(|gate| verdict::blocked(gate, family.resource.deleting)) {
            return gate;
        }
        if let Some((_, suspended)) = list.iter().find(|(_, verdict)| verdict.class == Class::Suspended) {
            return suspended.clone();
        }
        if family.resource.deleting {
            return self.deleting();
        }
        if family.resource.suspended && list.is_empty() {
            return verdict::suspended("suspended", false);
        }
        let ready = list.iter().filter(|(_, verdict)| verdict.class == Class::Ready).count();
        let kind = family.resource.address.kind();
        let desired = match family.extent {
            InstanceCount::Disabled => {
                return at_rest(family, Reason::Disabled, &format!("the {kind} is disabled and has no objects"));
            }
            InstanceCount::Unknown => return self.unknown(family, list),
            InstanceCount::Known(0) => {
                return at_rest(family, Reason::NoInstances, "the desired number of instances is 0");
            }
            InstanceCount::Known(desired) => desired,
        };
        match lead(list, self.is_active) {
            Some((address, verdict)) => {
                let more = more(list.len() - ready - 1);
                let message = format!("{ready} of {desired} ready; {address}: {}{more}", verdict.message);
                Verdict { message, ..verdict }
            }
            None if (ready as u64) < desired => {
                Verdict::progressing(Reason::Progressing, format!("{ready} of {desired} ready"))
            }
            None => at_rest(family, Reason::Available, &format!("{ready} of {desired} ready")),
        }
    }

    /// The verdict while it is not known how many objects there are. Those of a Module that are known may be in trouble.
    fn unknown(&self, family: &FamilyInput<'_>, list: &[(&Address, Verdict)]) -> Verdict {
        match lead(list, self.is_active).filter(|_| family.resource.address.is_module()) {
            Some((address, verdict)) => {
                let open = list.iter().filter(|(_, verdict)| verdict.class != Class::Ready).count();
                Verdict { message: format!("{address}: {}{}", verdict.message, more(open - 1)), ..verdict }
            }
            None => Verdict::progressing(Reason::Progressing, "not planned yet"),
        }
    }

    fn deleting(&self) -> Verdict {
        let Some((address, verdict)) = lead(&self.desired, self.is_active) else {
            return Verdict::progressing(Reason::Deleting, "no objects remain; the Resource is being removed");
        };
        let left = self.desired.len();
        Verdict { message: format!("{left} remaining; {address}: {}{}", verdict.message, more(left - 1)), ..verdict }
    }

    /// The verdict on the remaining instances and on the deposed objects.
    fn rest(&self, family: &FamilyInput<'_>) -> Verdict {
        match lead(&self.others, self.is_active) {
            None => Verdict::ready(family.resource),
            Some((address, verdict)) => {
                let removed = family.members.iter().filter(|member| !member.desired).count();
                let leaves = if removed == 0 { String::new() } else { format!("{removed} no longer desired; ") };
                let more = more(self.others.iter().filter(|(_, verdict)| verdict.class != Class::Ready).count() - 1);
                Verdict { message: format!("{leaves}{address}: {}{more}", verdict.message), ..verdict }
            }
        }
    }

    /// The verdict on the leading instance, prefixed with its address.
    fn leading(&self, family: &FamilyInput<'_>) -> Option<Verdict> {
        let gated = family.gate.is_some();
        lead(&self.desired, self.is_active).filter(|_| !gated).map(with_address)
    }

    fn leading_rest(&self) -> Option<Verdict> {
        lead(&self.others, self.is_active).map(with_address)
    }

    fn instances(&self, family: &FamilyInput<'_>) -> Instances {
        let troubled = self.desired.iter().chain(&self.others).filter(|(_, verdict)| is_trouble(verdict));
        let records = family.objects().filter_map(|object| object.record);
        let ready = if family.resource.deleting { 0 } else { self.ready() };
        Instances {
            desired: match family.extent {
                InstanceCount::Unknown => None,
                InstanceCount::Disabled => Some(0),
                InstanceCount::Known(desired) => Some(desired),
            },
            ready: ready as u64,
            deposed: records.map(|record| record.deposed.len() as u64).sum(),
            troubled: troubled.take(TROUBLED).map(|instance| troubled_instance(family.namespace, instance)).collect(),
        }
    }
}

/// The instance that represents all that are not ready: one with an error before one that is progressing. The whole is
/// `Stalled` only when no step of it is running or waiting.
fn lead(verdicts: &[(&Address, Verdict)], is_active: bool) -> Option<(Address, Verdict)> {
    let mut open = verdicts.iter().filter(|(_, verdict)| verdict.class != Class::Ready);
    let (address, first) = open.clone().find(|(_, verdict)| verdict.is_error).or_else(|| open.clone().next())?;
    let mut lead = first.clone();
    let stalled = open.clone().any(|(_, verdict)| verdict.class == Class::Stalled);
    lead.class = match lead.class {
        Class::Suspended => Class::Suspended,
        _ if stalled && !is_active => Class::Stalled,
        _ => Class::Progressing,
    };
    lead.blocks_deletion = open.any(|(_, verdict)| verdict.blocks_deletion);
    Some(((*address).clone(), lead))
}

/// The verdict on a family that is ready, which also says what it has lost.
fn at_rest(family: &FamilyInput<'_>, reason: Reason, message: &str) -> Verdict {
    let lost = family.lost.as_ref().map(|(loss, address)| remark(*loss, address)).unwrap_or_default();
    Verdict { reason, message: format!("{message}{lost}"), ..Verdict::ready(family.resource) }
}

/// What a family that is ready says about what it has lost: nothing that it desires.
fn remark(loss: Loss, address: &Address) -> String {
    let message = loss.diagnostic(address, true).message();
    match loss {
        Loss::Record => format!("; {address}: {message}"),
        Loss::Index | Loss::Everything => format!("; {message}"),
    }
}

fn with_address((address, verdict): (Address, Verdict)) -> Verdict {
    Verdict { message: format!("{address}: {}", verdict.message), ..verdict }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} more)") }
}

/// Whether the status lists an instance: it has an error, or it waits for something else.
fn is_trouble(verdict: &Verdict) -> bool {
    let on_its_way = matches!(verdict.reason, Reason::Progressing | Reason::Deleting);
    verdict.is_error || (verdict.class != Class::Ready && verdict.class != Class::Suspended && !on_its_way)
}

fn troubled_instance(namespace: &str, (address, verdict): &(&Address, Verdict)) -> TroubledInstance {
    TroubledInstance {
        address: address.to_string(),
        reason: verdict.reason.to_string(),
        message: super::cut_to(&with_namespace(&verdict.message, namespace), TROUBLE_LIMIT),
    }
}

fn drifted(
    family: &FamilyInput<'_>,
    generation: i64,
) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let mut conditions = family.members.iter().filter_map(|member| {
        let condition = super::drifted(&member.object, generation)?;
        Some((member.address, condition))
    });
    let (address, mut condition) = conditions.next()?;
    let message = format!("{address}: {}{}", condition.message, more(conditions.count()));
    condition.message = super::cut_to(&message, MESSAGE_LIMIT);
    Some(condition)
}

/// The lifecycle of the first create-before-destroy instance, or of the first one that sets it.
fn lifecycle(family: &FamilyInput<'_>) -> Option<api::EffectiveLifecycle> {
    let mut lifecycles = family.objects().filter_map(super::lifecycle);
    lifecycles.clone().find(|lifecycle| lifecycle.create_before_destroy).or_else(|| lifecycles.next())
}

/// The most severe pending action of all instances, and the steps that they wait for.
fn pending(family: &FamilyInput<'_>) -> Option<Pending> {
    let open = family.objects().filter_map(|object| Some((object, super::left_to_do(object)?)));
    let action = open.clone().map(|(_, action)| action).min_by_key(|action| rank(*action))?;
    let mut waiting_for: Vec<String> = open
        .flat_map(|(object, _)| object.waiting_for)
        .filter(|step| step.address.name() != family.resource.address.name())
        .map(Step::id)
        .collect();
    waiting_for.sort();
    waiting_for.dedup();
    waiting_for.truncate(LIST_LIMIT);
    Some(Pending { action: super::action_word(action).to_owned(), paths: Vec::new(), waiting_for })
}

/// What the status of a Module says besides that of a family.
fn details(family: &FamilyInput<'_>) -> ModuleDetails {
    let revision = family.resource.program.as_ref().and_then(|program| program.revision());
    let source = revision
        .map(|revision| ModuleRevision { revision: revision.name.to_string(), digest: revision.digest.to_string() });
    ModuleDetails { source, outputs: serde_json::Map::new(), pending: pending_of_module(family) }
}

/// How many objects have which pending action.
fn pending_of_module(family: &FamilyInput<'_>) -> Option<ModulePending> {
    let waiting_for = pending(family)?.waiting_for;
    let mut pending = ModulePending { waiting_for, ..ModulePending::default() };
    for action in family.objects().filter_map(super::left_to_do) {
        match action {
            Action::Create => pending.create += 1,
            Action::Update => pending.update += 1,
            Action::Replace => pending.replace += 1,
            Action::Destroy | Action::Forget => pending.destroy += 1,
            _ => {}
        }
    }
    let counts = [
        (pending.create, "create"),
        (pending.update, "update"),
        (pending.replace, "replace"),
        (pending.destroy, "destroy"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, action)| format!("{count} {action}"));
    pending.summary = counts.collect::<Vec<_>>().join(", ");
    Some(pending)
}

/// The most severe action has the lowest rank.
fn rank(action: Action) -> u8 {
    match action {
        Action::Replace => 0,
        Action::Destroy => 1,
        Action::Forget => 2,
        Action::Create => 3,
        Action::Update => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests;

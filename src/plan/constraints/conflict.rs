//! Detects objects that more than one address claims, and blocks all claims except the best one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use indexmap::IndexMap;

use crate::load::Instance;
use crate::model::{Action, Address, Diagnostic, ImportRequest, Reason, RecordedObject, Value};
use crate::plan::PendingImport;
use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};

/// How strong a claim on an identity is, strongest first. Recorded objects precede imported and planned ones, so that a
/// successor under another name waits until the old object is destroyed. Desired objects precede others, so that the
/// object of one Resource is not destroyed with another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Desired,
    Undesired,
    Deposed,
    Imported,
    Planned,
}

/// Identifies an object: entries with equal type, provider configuration and name are the same object.
#[derive(PartialEq, Eq, Hash)]
enum Name<'a> {
    Id(&'a str),
    Identity(String),
    /// The provider's id, or the id to import by. It may not be unique: all `random_password` objects have the id
    /// `none`.
    ProviderId(&'a str),
    /// The whole value.
    Value(String),
}

/// The address with the stronger claim.
#[derive(Clone, Copy)]
enum Owner<'a> {
    /// In this plan.
    Here(Id),
    /// In a component that this plan does not cover.
    OtherComponent(&'a Address),
}

type Owners<'a> = IndexMap<(&'a str, &'a str, Name<'a>), (Claim, Id)>;

/// The blocks of all objects with a weaker claim.
pub(super) fn conflicts(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut owners: Owners<'_> = IndexMap::with_capacity(decisions.len());
    let mut losers: Vec<(Id, Owner<'_>)> = Vec::new();
    let imports = |id: Id| decisions[id].as_ref().is_some_and(|decision| decision.imports(input.nodes[id]));
    let importing = (0..decisions.len()).any(imports);
    for (id, decision) in decisions.iter().enumerate() {
        let node = input.nodes[id];
        let type_name = node.record.map(|record| &record.type_name).or(node.instance.map(|i| &i.type_name));
        let (Some(decision), Some(type_name)) = (decision, type_name) else { continue };
        let object = node.current().or(decision.prior.as_ref());
        let claim = match node.current() {
            None => Claim::Imported,
            Some(_) if node.desired => Claim::Desired,
            Some(_) => Claim::Undesired,
        };
        let mut recorded: Vec<Name<'_>> = object.iter().flat_map(|object| names(object, importing)).collect();
        if imports(id) {
            recorded.retain(|name| !matches!(name, Name::ProviderId(_)));
            recorded.extend(node.instance.and_then(|instance| requested(instance)));
        }
        let recorded = recorded.into_iter().map(|name| (claim, name));
        let planned = planned_name(decision).map(|name| (Claim::Planned, name));
        let config = object.map_or("", |object| &object.provider_config);
        // An import must not adopt an object that another Resource is about to destroy.
        let deposed = decision.deposed.iter().filter(|_| importing);
        let deposed = deposed.flat_map(|deposed| names(&deposed.object, importing));
        let deposed = deposed.map(|name| (Claim::Deposed, name));
        for (claim, name) in recorded.chain(deposed).chain(planned) {
            let is_loose = name.is_loose();
            let entry = owners.entry((type_name, config, name)).or_insert((claim, id));
            if entry.1 != id && (!is_loose || imports(id) || imports(entry.1)) {
                let (better, worse) = if (claim, id) < *entry { ((claim, id), *entry) } else { (*entry, (claim, id)) };
                *entry = better;
                losers.push((worse.1, Owner::Here(better.1)));
            }
        }
    }
    losers.extend(taken_by_other_components(input, &owners, importing, imports));
    losers.extend(taken_over(input, imports));
    let steps = |id: Id| {
        decisions[id].as_ref().is_some_and(|decision| !decision.is_blocked()) && !input.running.contains_key(&id)
    };
    losers.into_iter().filter(|(loser, _)| steps(*loser)).map(|(loser, owner)| refuse(input, loser, owner)).collect()
}

/// The objects of this plan on which an address in another component has the stronger claim.
fn taken_by_other_components<'a>(
    input: &PlanInput<'a>,
    owners: &Owners<'a>,
    importing: bool,
    imports: impl Fn(Id) -> bool,
) -> Vec<(Id, Owner<'a>)> {
    let mut losers = Vec::new();
    for (stored, is_wanted) in &input.options.other_components.records {
        let record = &stored.record;
        let claim = if *is_wanted { Claim::Desired } else { Claim::Undesired };
        let current = record.current.iter().map(|object| (claim, object));
        let deposed = record.deposed.values().filter(|_| importing).map(|object| (Claim::Deposed, object));
        for (claim, object) in current.chain(deposed) {
            for name in names(object, importing) {
                let is_loose = name.is_loose();
                let own = owners.get(&(&*record.type_name, &*object.provider_config, name));
                let Some((own, id)) = own.filter(|(_, id)| !is_loose || imports(*id)) else { continue };
                if (claim, &record.address) < (*own, input.address(*id)) {
                    losers.push((*id, Owner::OtherComponent(&record.address)));
                }
            }
        }
    }
    losers
}

/// The imports of an object that another address is importing now: its record names the object only after its step has
/// ended. If another component plans the same import at the same time, the first address imports it.
fn taken_over<'a>(input: &PlanInput<'a>, imports: impl Fn(Id) -> bool) -> Vec<(Id, Owner<'a>)> {
    let takes = |id: Id| {
        let instance = input.nodes[id].instance?;
        Some((&instance.type_name, instance.import.as_ref()?))
    };
    let runs = |id: &Id| input.nodes[*id].current().is_none();
    let running: Vec<Id> = input.running.keys().copied().filter(runs).collect();
    let here = |id: Id| running.iter().copied().find(|other| *other != id && takes(*other) == takes(id));
    let elsewhere = |id: Id| {
        let same = |other: &&PendingImport| {
            takes(id) == Some((&other.type_name, &other.request))
                && (other.started || other.address < *input.address(id))
        };
        input.options.other_components.imports.iter().find(same)
    };
    let owner = |id: Id| here(id).map(Owner::Here).or_else(|| Some(Owner::OtherComponent(&elsewhere(id)?.address)));
    (0..input.objects)
        .filter(|id| imports(*id) && takes(*id).is_some())
        .filter_map(|id| Some((id, owner(id)?)))
        .collect()
}

impl Name<'_> {
    /// Whether different recorded objects may have the same name. An imported object must not share it.
    fn is_loose(&self) -> bool {
        matches!(self, Self::ProviderId(_) | Self::Value(_))
    }
}

fn names(object: &RecordedObject, importing: bool) -> Vec<Name<'_>> {
    let id = object.id().filter(|id| !id.is_empty());
    match (&object.identity, &object.provider) {
        (Some(identity), _) => vec![Name::Identity(text(identity))],
        (None, Some(_)) if !importing => Vec::new(),
        (None, Some(_)) => id.map(Name::ProviderId).into_iter().chain([Name::Value(text(&object.value))]).collect(),
        (None, None) => id.map(Name::Id).into_iter().collect(),
    }
}

/// A hash of what identifies an object among all of its namespace: two records with the same hash may have the same
/// object. `None`: only the provider knows.
pub fn identity_hash(type_name: &str, object: &RecordedObject) -> Option<u64> {
    let name = names(object, false).pop()?;
    let mut hasher = DefaultHasher::new();
    (type_name, &*object.provider_config, name).hash(&mut hasher);
    Some(hasher.finish())
}

/// The id to import by. The value that the provider returned for the import may differ from the record in another
/// component.
fn requested(instance: &Instance) -> Option<Name<'_>> {
    match instance.import.as_ref()? {
        ImportRequest::Id(id) => Some(Name::ProviderId(id)),
        ImportRequest::Identity(_) => None,
    }
}

fn planned_name(decision: &Decision) -> Option<Name<'_>> {
    let makes = matches!(decision.action, Action::Create | Action::Update | Action::Replace);
    let planned = decision.planned.as_ref().filter(|_| makes)?;
    planned.identity.as_ref().map(|identity| Name::Identity(text(identity)))
}

fn text(identity: &Value) -> String {
    identity.to_json().to_string()
}

fn refuse(input: &PlanInput<'_>, loser: Id, owner: Owner<'_>) -> (Id, Block) {
    let (address, here) = match owner {
        Owner::Here(id) => (input.address(id), Some(id)),
        Owner::OtherComponent(address) => (address, None),
    };
    let what = format!("the object is already managed by `{address}`");
    let hint =
        "manage the object with one Resource only: change the name in one, or delete one with `deletionPolicy: Orphan`";
    let diagnostic = Diagnostic::error(input.address(loser), Reason::IdentityConflict, what).hint(hint);
    (loser, Block::held(diagnostic).waiting_for(here))
}

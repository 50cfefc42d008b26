//! One object in the world belongs to one address: who comes second is refused.

use indexmap::IndexMap;

use crate::load::Instance;
use crate::model::{Action, Address, Diagnostic, ImportRequest, Reason, RecordedObject, Value};
use crate::plan::PendingImport;
use crate::plan::draft::{Block, Draft};
use crate::plan::scene::{Id, Scene};

/// How good a claim on an identity is; the best keeps it. What is recorded comes before what is to be imported or is only
/// planned, so that a successor under another name waits until the old object is gone; what is wanted comes before what
/// goes, so that nobody's object is destroyed as somebody else's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Wanted,
    Leaving,
    LeftOver,
    Imported,
    Planned,
}

/// What an object is known by: two objects are one when type, provider configuration and this are equal.
#[derive(PartialEq, Eq, Hash)]
enum Name<'a> {
    Id(&'a str),
    Identity(String),
    /// The id that its provider gives it, or that it is imported by. Some give many objects one id: `random_password` says
    /// `none` of each.
    ProviderId(&'a str),
    /// The whole value.
    Value(String),
}

/// Who has the better claim on an object.
#[derive(Clone, Copy)]
enum Owner<'a> {
    /// One of this plan.
    Here(Id),
    /// One that the plan does not cover.
    Elsewhere(&'a Address),
}

type Owners<'a> = IndexMap<(&'a str, &'a str, Name<'a>), (Claim, Id)>;

/// The objects that another one has the better claim on.
pub(super) fn conflicts(scene: &Scene<'_>, drafts: &[Option<Draft>]) -> Vec<(Id, Block)> {
    let mut owners: Owners<'_> = IndexMap::with_capacity(drafts.len());
    let mut losers: Vec<(Id, Owner<'_>)> = Vec::new();
    let imports = |id: Id| {
        let imported = drafts[id].as_ref().is_some_and(|draft| draft.prior.is_some());
        imported && scene.subjects[id].current().is_none()
    };
    let importing = (0..drafts.len()).any(imports);
    for (id, draft) in drafts.iter().enumerate() {
        let subject = scene.subjects[id];
        let type_name = subject.record.map(|record| &record.type_name).or(subject.instance.map(|i| &i.type_name));
        let (Some(draft), Some(type_name)) = (draft, type_name) else { continue };
        // The object as it is recorded, or else the one that is imported.
        let object = subject.current().or(draft.prior.as_ref());
        let claim = match subject.current() {
            None => Claim::Imported,
            Some(_) if subject.wanted => Claim::Wanted,
            Some(_) => Claim::Leaving,
        };
        let mut recorded: Vec<Name<'_>> = object.iter().flat_map(|object| names_of(object, importing)).collect();
        if imports(id) {
            recorded.retain(|name| !matches!(name, Name::ProviderId(_)));
            recorded.extend(subject.instance.and_then(|instance| requested(instance)));
        }
        let recorded = recorded.into_iter().map(|name| (claim, name));
        let planned = planned_name(draft).map(|name| (Claim::Planned, name));
        let config = object.map_or("", |object| &object.provider_config);
        // To take over what somebody else is about to destroy would be to lose it.
        let left_over = draft.leftovers.iter().filter(|_| importing);
        let left_over = left_over.flat_map(|leftover| names_of(&leftover.object, importing));
        let left_over = left_over.map(|name| (Claim::LeftOver, name));
        for (claim, name) in recorded.chain(left_over).chain(planned) {
            let is_loose = name.is_loose();
            let entry = owners.entry((type_name, config, name)).or_insert((claim, id));
            if entry.1 != id && (!is_loose || imports(id) || imports(entry.1)) {
                let (better, worse) = if (claim, id) < *entry { ((claim, id), *entry) } else { (*entry, (claim, id)) };
                *entry = better;
                losers.push((worse.1, Owner::Here(better.1)));
            }
        }
    }
    losers.extend(taken_elsewhere(scene, &owners, importing, imports));
    losers.extend(taken_over(scene, imports));
    let steps =
        |id: Id| drafts[id].as_ref().is_some_and(|draft| !draft.is_blocked()) && !scene.running.contains_key(&id);
    losers.into_iter().filter(|(loser, _)| steps(*loser)).map(|(loser, owner)| refuse(scene, loser, owner)).collect()
}

/// The objects of this plan on which one that it does not cover has the better claim.
fn taken_elsewhere<'a>(
    scene: &Scene<'a>,
    owners: &Owners<'a>,
    importing: bool,
    imports: impl Fn(Id) -> bool,
) -> Vec<(Id, Owner<'a>)> {
    let mut losers = Vec::new();
    for (stored, is_wanted) in &scene.options.elsewhere.records {
        let record = &stored.record;
        let claim = if *is_wanted { Claim::Wanted } else { Claim::Leaving };
        let current = record.current.iter().map(|object| (claim, object));
        let left_over = record.deposed.values().filter(|_| importing).map(|object| (Claim::LeftOver, object));
        for (claim, object) in current.chain(left_over) {
            for name in names_of(object, importing) {
                let is_loose = name.is_loose();
                let own = owners.get(&(&*record.type_name, &*object.provider_config, name));
                let Some((own, id)) = own.filter(|(_, id)| !is_loose || imports(*id)) else { continue };
                if (claim, &record.address) < (*own, scene.address(*id)) {
                    losers.push((*id, Owner::Elsewhere(&record.address)));
                }
            }
        }
    }
    losers
}

/// What is to be imported and is just being taken over by another object, after that one: its record tells of it
/// only once its step has ended. Elsewhere it may be planned at the same time, and the first by name gets it.
fn taken_over<'a>(scene: &Scene<'a>, imports: impl Fn(Id) -> bool) -> Vec<(Id, Owner<'a>)> {
    let takes = |id: Id| {
        let instance = scene.subjects[id].instance?;
        Some((&instance.type_name, instance.import.as_ref()?))
    };
    let runs = |id: &Id| scene.subjects[*id].current().is_none();
    let running: Vec<Id> = scene.running.keys().copied().filter(runs).collect();
    let here = |id: Id| running.iter().copied().find(|other| *other != id && takes(*other) == takes(id));
    let elsewhere = |id: Id| {
        let same = |other: &&PendingImport| {
            takes(id) == Some((&other.type_name, &other.request)) && (other.begun || other.address < *scene.address(id))
        };
        scene.options.elsewhere.imports.iter().find(same)
    };
    let owner = |id: Id| here(id).map(Owner::Here).or_else(|| Some(Owner::Elsewhere(&elsewhere(id)?.address)));
    (0..scene.objects)
        .filter(|id| imports(*id) && takes(*id).is_some())
        .filter_map(|id| Some((id, owner(id)?)))
        .collect()
}

impl Name<'_> {
    /// Whether two recorded objects may have it and be two all the same. One that is imported may not.
    fn is_loose(&self) -> bool {
        matches!(self, Self::ProviderId(_) | Self::Value(_))
    }
}

fn names_of(object: &RecordedObject, importing: bool) -> Vec<Name<'_>> {
    let id = object.id().filter(|id| !id.is_empty());
    match (&object.identity, &object.provider) {
        (Some(identity), _) => vec![Name::Identity(text(identity))],
        (None, Some(_)) if !importing => Vec::new(),
        (None, Some(_)) => id.map(Name::ProviderId).into_iter().chain([Name::Value(text(&object.value))]).collect(),
        (None, None) => id.map(Name::Id).into_iter().collect(),
    }
}

/// What an object is to be imported by: mostly its id. What the provider has told of it by then may be less than what is
/// recorded of it elsewhere, or another thing.
fn requested(instance: &Instance) -> Option<Name<'_>> {
    match instance.import.as_ref()? {
        ImportRequest::Id(id) => Some(Name::ProviderId(id)),
        ImportRequest::Identity(_) => None,
    }
}

fn planned_name(draft: &Draft) -> Option<Name<'_>> {
    let makes = matches!(draft.action, Action::Create | Action::Update | Action::Replace);
    let planned = draft.planned.as_ref().filter(|_| makes)?;
    planned.identity.as_ref().map(|identity| Name::Identity(text(identity)))
}

fn text(identity: &Value) -> String {
    identity.to_json().to_string()
}

fn refuse(scene: &Scene<'_>, loser: Id, owner: Owner<'_>) -> (Id, Block) {
    let (address, here) = match owner {
        Owner::Here(id) => (scene.address(id), Some(id)),
        Owner::Elsewhere(address) => (address, None),
    };
    let what = format!("the object already belongs to `{address}`");
    let hint = "let only one Resource describe it: change the name of one, or delete one with `deletionPolicy: Orphan`";
    let diagnostic = Diagnostic::error(scene.address(loser), Reason::IdentityConflict, what).hint(hint);
    (loser, Block::held(diagnostic).waiting_for(here))
}

//! Detects objects that more than one address claims, and blocks all claims except the best one.
//!
//! An object that is no longer configured is not destroyed while another address claims it: probably its Resource was
//! renamed without a move.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::load::expression::Scope;
use crate::load::{Instance, InstanceScope};
use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use crate::plan::{Mode, PendingImport};
use model::{Action, Address, Diagnostic, ImportRequest, Reason, RecordedObject, Value};

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

/// An address without the strongest claim on an object.
struct Loser<'a> {
    id: Id,
    claim: Claim,
    owner: Owner<'a>,
}

type Owners<'a> = IndexMap<(&'a str, &'a str, Name<'a>), (Claim, Id)>;

/// The blocks of all objects with a weaker claim.
pub(super) fn conflicts(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut owners: Owners<'_> = IndexMap::with_capacity(decisions.len());
    let mut losers: Vec<Loser<'_>> = Vec::new();
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
        let config = object.map_or("", |object| &object.provider_config);
        let recorded = recorded.into_iter().map(|name| (claim, config, name));
        let planned = planned_name(decision).map(|(config, name)| (Claim::Planned, config, name));
        // An import must not adopt an object that another Resource is about to destroy.
        let deposed = decision.deposed.iter().filter(|_| importing);
        let deposed = deposed.flat_map(|deposed| names(&deposed.object, importing));
        let deposed = deposed.map(|name| (Claim::Deposed, config, name));
        for (claim, config, name) in recorded.chain(deposed).chain(planned) {
            let is_loose = name.is_loose();
            let entry = owners.entry((type_name, config, name)).or_insert((claim, id));
            if entry.1 != id && (!is_loose || imports(id) || imports(entry.1)) {
                let (better, worse) = if (claim, id) < *entry { ((claim, id), *entry) } else { (*entry, (claim, id)) };
                *entry = better;
                losers.push(Loser { id: worse.1, claim: worse.0, owner: Owner::Here(better.1) });
            }
        }
    }
    losers.extend(taken_by_other_components(input, &owners, importing, imports));
    losers.extend(taken_over(input, imports));
    let steps = |id: &Id| {
        decisions[*id].as_ref().is_some_and(|decision| !decision.is_blocked()) && !input.running.contains_key(id)
    };
    losers.retain(|loser| steps(&loser.id));
    let abandoned = abandoned(input, decisions, &losers);
    // Whether a step of this plan frees the name of a new object is decided with its refusal.
    let is_refused = |id: Id| decisions[id].as_ref().is_some_and(Decision::is_refused);
    let waits = |loser: &Loser<'_>| {
        let renamed = matches!(loser.owner, Owner::Here(owner) if abandoned.contains_key(&owner));
        loser.claim == Claim::Planned && is_refused(loser.id) && !renamed
    };
    let waits_itself = |id: Id| losers.iter().any(|other| other.id == id);
    let is_freed = |loser: &Loser<'_>| {
        let Owner::Here(owner) = loser.owner else { return false };
        !waits_itself(owner) && decisions[owner].as_ref().is_some_and(gives_up)
    };
    let refused = losers.iter().filter(|loser| !waits(loser)).map(|loser| refuse(input, loser, is_freed(loser)));
    let kept = abandoned.iter().map(|(owner, claimant)| (*owner, keep(input, *owner, claimant)));
    let outside = (0..input.objects).filter(|id| steps(id) && is_destroyed(input, decisions, *id));
    let outside = outside.filter_map(|id| Some((id, keep(input, id, claimed_outside(input, id)?))));
    refused.chain(kept).chain(outside).collect()
}

/// The objects that would be destroyed although another address of this plan imports or creates the same object, each
/// with that address.
fn abandoned<'a>(
    input: &PlanInput<'a>,
    decisions: &[Option<Decision>],
    losers: &[Loser<'a>],
) -> BTreeMap<Id, &'a Address> {
    let is_new = |id: Id| decisions[id].as_ref().is_some_and(|decision| decision.action == Action::Create);
    let claims = losers.iter().filter(|loser| match loser.claim {
        Claim::Imported => true,
        Claim::Planned => is_new(loser.id),
        _ => false,
    });
    let owned = claims.filter_map(|loser| match loser.owner {
        Owner::Here(owner) if is_destroyed(input, decisions, owner) => Some((owner, input.address(loser.id))),
        _ => None,
    });
    // If there are several, the first one is named.
    let mut found = BTreeMap::new();
    owned.for_each(|(owner, claimant)| _ = found.entry(owner).or_insert(claimant));
    found
}

/// Whether an object is destroyed because it is no longer configured.
fn is_destroyed(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    let destroys = decisions[id].as_ref().is_some_and(|decision| decision.action == Action::Destroy);
    destroys && !input.running.contains_key(&id) && input.options.mode == Mode::Normal
}

/// The address in another component that imports or creates the object of a record.
fn claimed_outside<'a>(input: &'a PlanInput<'_>, id: Id) -> Option<&'a Address> {
    let (record, object) = (input.nodes[id].record?, input.nodes[id].current()?);
    let others = &input.options.other_components;
    let is_same = |type_name: &Arc<str>| *type_name == record.type_name;
    let imports = others.imports.iter().filter(|import| is_same(&import.type_name));
    let imported = |request: &ImportRequest| match (request, object.id()) {
        (ImportRequest::Id(text), Some(own)) if **text == *own => true,
        (ImportRequest::Identity(identity), _) => is_identity(object, identity),
        (ImportRequest::Id(_), _) => {
            let named = input.types.import_identities(&record.type_name, &record.namespace, request);
            named.iter().any(|named| is_identity(object, named))
        }
    };
    let created = |instance: &&Arc<Instance>| {
        let scope = InstanceScope { instance: instance.as_ref(), others: &Unknown(&input.options.namespace_value) };
        let config = instance.config.evaluate(&scope).ok();
        let named = config.map(|config| input.types.config_identities(&record.type_name, &record.namespace, &config));
        named.is_some_and(|named| named.iter().any(|named| is_identity(object, named)))
    };
    let import = imports.into_iter().find(|import| imported(&import.request)).map(|import| &import.address);
    import.or_else(|| {
        let new = others.creates.iter().filter(|instance| is_same(&instance.type_name));
        new.into_iter().find(created).map(|instance| &instance.address)
    })
}

fn is_identity(object: &RecordedObject, identity: &Value) -> bool {
    object.identity.as_ref().is_some_and(|own| own.equals_unmarked(identity))
}

/// The values of objects that are not planned here.
struct Unknown<'a>(&'a Value);

impl Scope for Unknown<'_> {
    fn object(&self, _: &Address) -> Option<Value> {
        Some(Value::Unknown)
    }

    fn namespace(&self) -> Value {
        self.0.clone()
    }
}

/// The objects of this plan on which an address in another component has the stronger claim.
fn taken_by_other_components<'a>(
    input: &PlanInput<'a>,
    owners: &Owners<'a>,
    importing: bool,
    imports: impl Fn(Id) -> bool,
) -> Vec<Loser<'a>> {
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
                    losers.push(Loser { id: *id, claim: *own, owner: Owner::OtherComponent(&record.address) });
                }
            }
        }
    }
    losers
}

/// The imports of an object that another address is importing now: its record names the object only after its step has
/// ended. If another component plans the same import at the same time, the first address imports it.
fn taken_over<'a>(input: &PlanInput<'a>, imports: impl Fn(Id) -> bool) -> Vec<Loser<'a>> {
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
        .filter_map(|id| Some(Loser { id, claim: Claim::Imported, owner: owner(id)? }))
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

/// The provider configuration and the identity of a planned object.
fn planned_name(decision: &Decision) -> Option<(&str, Name<'_>)> {
    let makes = matches!(decision.action, Action::Create | Action::Update | Action::Replace);
    let planned = decision.planned.as_ref().filter(|_| makes)?;
    planned.identity.as_ref().map(|identity| (&*planned.configuration, Name::Identity(text(identity))))
}

fn text(identity: &Value) -> String {
    identity.to_json().to_string()
}

/// `is_freed`: this plan makes the object or its name free.
fn refuse(input: &PlanInput<'_>, loser: &Loser<'_>, is_freed: bool) -> (Id, Block) {
    let own = input.address(loser.id);
    let (address, here) = match loser.owner {
        Owner::Here(id) => (input.address(id), Some(id)),
        Owner::OtherComponent(address) => (address, None),
    };
    if is_freed {
        // No error: a later plan makes the change.
        let what = format!("waits until `{address}` gives the object or its name up");
        let waits = Diagnostic::warning(own, Reason::IdentityConflict, what);
        return (loser.id, Block::held(waits).waiting_for(here));
    }
    let what = format!("the object is already managed by `{address}`");
    let is_removed = here.is_some_and(|owner| !input.nodes[owner].desired);
    let hint = match is_removed {
        true => format!("to keep the object, {}", moving(address, own)),
        false => "manage the object with one Resource only: change the name in one, or delete one with \
                  `deletionPolicy: Orphan`"
            .to_owned(),
    };
    let diagnostic = Diagnostic::error(own, Reason::IdentityConflict, what).hint(hint);
    (loser.id, Block::held(diagnostic).waiting_for(here))
}

/// Whether this plan makes an object free for another address: it is forgotten, or replaced by one with another
/// identity.
fn gives_up(decision: &Decision) -> bool {
    let old = decision.prior.as_ref().and_then(|prior| prior.identity.as_ref());
    match decision.action {
        Action::Forget => true,
        Action::Replace => {
            let new = decision.planned.as_ref().and_then(|planned| planned.identity.as_ref());
            old.zip(new).is_some_and(|(old, new)| !old.equals_unmarked(new))
        }
        _ => false,
    }
}

/// The block of an object that is not destroyed because another address claims it.
fn keep(input: &PlanInput<'_>, id: Id, claimant: &Address) -> Block {
    let address = input.address(id);
    let what = format!("not destroyed, because `{claimant}` claims the same object");
    let hint = format!("to keep the object, {}; to destroy it, remove `{claimant}` first", moving(address, claimant));
    let diagnostic = Diagnostic::error(address, Reason::IdentityConflict, what).hint(hint);
    Block::frozen(diagnostic).waiting_for(input.find(claimant))
}

/// How to move an object to another address, as part of a hint.
fn moving(from: &Address, to: &Address) -> String {
    let annotation = api::MOVED_FROM;
    match from.key == to.key {
        true => format!("add the annotation `{annotation}: {}` to `{}`", from.name, to.name),
        false => format!("move `{from}` to `{to}` instead of renaming it"),
    }
}

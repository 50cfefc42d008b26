//! Detects objects that more than one address claims, and blocks all claims except the best one.
//!
//! An object that is no longer configured is not destroyed while another address claims it: probably its Resource was
//! renamed without a move.
//!
//! Objects of which each takes the name of another one, in a circle, are blocked too: no name can become free first.
//! Terraform has no step that exchanges names, and Purlin invents no third name.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use indexmap::IndexMap;

use crate::load::expression::Scope;
use crate::load::{Instance, InstanceScope};
use crate::plan::Mode;
use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use model::{Action, Address, Diagnostic, ImportRequest, Reason, Record, RecordedObject, TypeName, Value, Words};

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
pub fn conflicts(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut losers = losers(input, decisions);
    losers.retain(|loser| has_step(input, decisions, loser.id));
    let circles: BTreeMap<Id, Block> = circles(input, &taken_names(decisions, &losers)).into_iter().collect();
    losers.retain(|loser| !circles.contains_key(&loser.id));
    let abandoned = abandoned(input, decisions, &losers);
    let mut blocks: Vec<(Id, Block)> = Vec::new();
    for loser in &losers {
        // Whether a step of this plan frees the name of a new object is decided with its refusal.
        let is_renamed = matches!(loser.owner, Owner::Here(owner) if abandoned.contains_key(&owner));
        let is_refused = decisions[loser.id].as_ref().is_some_and(|decision| decision.refusal().is_some());
        if loser.claim == Claim::Planned && is_refused && !is_renamed {
            continue;
        }
        let is_freed = match loser.owner {
            Owner::Here(owner) => {
                let waits_itself = circles.contains_key(&owner) || losers.iter().any(|loser| loser.id == owner);
                !waits_itself && decisions[owner].as_ref().is_some_and(gives_up)
            }
            Owner::OtherComponent(_) => false,
        };
        blocks.push(refuse(input, loser, is_freed));
    }
    blocks.extend(abandoned.iter().map(|(owner, claimant)| (*owner, keep(input, *owner, claimant))));
    for id in (0..input.objects).filter(|id| has_step(input, decisions, *id) && is_destroyed(input, decisions, *id)) {
        if let Some(claimant) = claimed_outside(input, id) {
            blocks.push((id, keep(input, id, claimant)));
        }
    }
    blocks.extend(circles);
    blocks
}

fn has_step(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    decisions[id].as_ref().is_some_and(|decision| !decision.is_blocked()) && !input.running.contains_key(&id)
}

fn imports(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    decisions[id].as_ref().is_some_and(|decision| decision.imports(input.nodes[id]))
}

/// All weaker claims.
fn losers<'a>(input: &PlanInput<'a>, decisions: &'a [Option<Decision>]) -> Vec<Loser<'a>> {
    let mut owners: Owners<'_> = IndexMap::with_capacity(decisions.len());
    let mut losers: Vec<Loser<'_>> = Vec::new();
    let importing = (0..decisions.len()).any(|id| imports(input, decisions, id));
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
        if imports(input, decisions, id) {
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
            if entry.1 != id && (!is_loose || imports(input, decisions, id) || imports(input, decisions, entry.1)) {
                let (better, worse) = if (claim, id) < *entry { ((claim, id), *entry) } else { (*entry, (claim, id)) };
                *entry = better;
                losers.push(Loser { id: worse.1, claim: worse.0, owner: Owner::Here(better.1) });
            }
        }
    }
    losers.extend(taken_by_other_components(input, decisions, &owners, importing));
    losers.extend(taken_over(input, decisions));
    losers
}

/// The objects that change their name, each with the object of this plan that has its new name.
fn taken_names(decisions: &[Option<Decision>], losers: &[Loser<'_>]) -> BTreeMap<Id, Id> {
    losers
        .iter()
        .filter(|loser| loser.claim == Claim::Planned && decisions[loser.id].as_ref().is_some_and(renames))
        .filter_map(|loser| match loser.owner {
            Owner::Here(owner) => Some((loser.id, owner)),
            Owner::OtherComponent(_) => None,
        })
        .collect()
}

/// The objects that would be destroyed although another address of this plan imports or creates the same object, each
/// with that address.
fn abandoned<'a>(
    input: &PlanInput<'a>,
    decisions: &[Option<Decision>],
    losers: &[Loser<'a>],
) -> BTreeMap<Id, &'a Address> {
    let mut abandoned = BTreeMap::new();
    for loser in losers {
        let is_new = match loser.claim {
            Claim::Imported => true,
            Claim::Planned => decisions[loser.id].as_ref().is_some_and(|decision| decision.action == Action::Create),
            _ => false,
        };
        match loser.owner {
            // If there are several, the first one is named.
            Owner::Here(owner) if is_new && is_destroyed(input, decisions, owner) => {
                abandoned.entry(owner).or_insert(input.address(loser.id));
            }
            _ => {}
        }
    }
    abandoned
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
    let imports = others.imports.iter().filter(|import| import.type_name == record.type_name);
    for import in imports {
        if is_imported(input, record, object, &import.request) {
            return Some(&import.address);
        }
    }
    let creates = others.creates.iter().filter(|instance| instance.type_name == record.type_name);
    for instance in creates {
        if is_created(input, record, object, instance) {
            return Some(&instance.address);
        }
    }
    None
}

fn is_imported(input: &PlanInput<'_>, record: &Record, object: &RecordedObject, request: &ImportRequest) -> bool {
    match (request, object.id()) {
        (ImportRequest::Id(text), Some(id)) if **text == *id => true,
        (ImportRequest::Identity(identity), _) => is_identity(object, identity),
        (ImportRequest::Id(_), _) => {
            let identities = input.types.import_identities(&record.type_name, &record.namespace, request);
            identities.iter().any(|identity| is_identity(object, identity))
        }
    }
}

fn is_created(input: &PlanInput<'_>, record: &Record, object: &RecordedObject, instance: &Instance) -> bool {
    let scope = InstanceScope { instance, others: &Unknown(&input.options.namespace_value) };
    let Ok(config) = instance.config.evaluate(&scope) else { return false };
    let identities = input.types.config_identities(&record.type_name, &record.namespace, &config);
    identities.iter().any(|identity| is_identity(object, identity))
}

fn is_identity(object: &RecordedObject, identity: &Value) -> bool {
    object.identity.as_ref().is_some_and(|known| known.equals_unmarked(identity))
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
    decisions: &[Option<Decision>],
    owners: &Owners<'a>,
    importing: bool,
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
                let owner = owners.get(&(&*record.type_name, &*object.provider_config, name));
                let owner = owner.filter(|(_, id)| !is_loose || imports(input, decisions, *id));
                let Some((weaker, id)) = owner else { continue };
                if (claim, &record.address) < (*weaker, input.address(*id)) {
                    losers.push(Loser { id: *id, claim: *weaker, owner: Owner::OtherComponent(&record.address) });
                }
            }
        }
    }
    losers
}

/// The imports of an object that another address is importing now: its record names the object only after its step has
/// ended. If another component plans the same import at the same time, the first address imports it.
fn taken_over<'a>(input: &PlanInput<'a>, decisions: &[Option<Decision>]) -> Vec<Loser<'a>> {
    let running: Vec<Id> = input.running.keys().copied().filter(|id| input.nodes[*id].current().is_none()).collect();
    let mut losers = Vec::new();
    for id in (0..input.objects).filter(|id| imports(input, decisions, *id)) {
        let Some(taken) = import_of(input, id) else { continue };
        let here = running.iter().find(|other| **other != id && import_of(input, **other) == Some(taken));
        let owner = here.map(|owner| Owner::Here(*owner)).or_else(|| {
            let import = input.options.other_components.imports.iter().find(|import| {
                let precedes = import.started || import.address < *input.address(id);
                taken == (&import.type_name, &import.request) && precedes
            })?;
            Some(Owner::OtherComponent(&import.address))
        });
        losers.extend(owner.map(|owner| Loser { id, claim: Claim::Imported, owner }));
    }
    losers
}

/// The type and the object of an import.
fn import_of<'a>(input: &PlanInput<'a>, id: Id) -> Option<(&'a TypeName, &'a ImportRequest)> {
    let instance = input.nodes[id].instance?;
    Some((&instance.type_name, instance.import.as_ref()?))
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
    let refused = input.address(loser.id);
    let (address, here) = match loser.owner {
        Owner::Here(id) => (input.address(id), Some(id)),
        Owner::OtherComponent(address) => (address, None),
    };
    if is_freed {
        // No error: a later plan makes the change.
        let what = format!("waits until `{address}` gives the object or its name up");
        let waits = Diagnostic::warning(refused, Reason::IdentityConflict, what);
        return (loser.id, Block::held(waits).waiting_for(here));
    }
    let what = format!("the object is already managed by `{address}`");
    let is_removed = here.is_some_and(|owner| !input.nodes[owner].desired);
    let hint = match is_removed {
        true => format!("to keep the object, {}", moving(address, refused)),
        false => {
            let words = Words::of(refused);
            let (owner, keeps) = (words.owner(), words.keeps());
            format!("manage the object with one {owner} only: change the name in one, or delete one with {keeps}")
        }
    };
    let diagnostic = Diagnostic::error(refused, Reason::IdentityConflict, what).hint(hint);
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
    match Words::of(to) {
        Words::Terraform => format!("add {}", Words::moved(from, to)),
        Words::Manifest if from.key == to.key => {
            format!("add the annotation `{}: {}` to `{}`", api::MOVED_FROM, from.stem, to.stem)
        }
        Words::Manifest => format!("move `{from}` to `{to}` instead of renaming it"),
    }
}

/// The blocks of all members of circles. `takes`: for each object that gives up its name, the one whose name it takes.
fn circles(input: &PlanInput<'_>, takes: &BTreeMap<Id, Id>) -> Vec<(Id, Block)> {
    let mut seen = BTreeSet::new();
    let mut blocks = Vec::new();
    for start in takes.keys() {
        let mut path = Vec::new();
        let mut next = Some(*start);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            path.push(id);
            next = takes.get(&id).copied();
        }
        // Otherwise, the path ends at an object that stays, or joins an earlier one.
        if let Some(first) = path.iter().position(|id| Some(*id) == next) {
            let circle = &path[first..];
            blocks.extend((0..circle.len()).map(|position| (circle[position], block_member(input, circle, position))));
        }
    }
    blocks
}

/// Whether the change gives an object another name.
fn renames(decision: &Decision) -> bool {
    let old = decision.prior.as_ref().and_then(|prior| prior.identity.as_ref());
    let new = decision.planned.as_ref().and_then(|planned| planned.identity.as_ref());
    let makes = matches!(decision.action, Action::Update | Action::Replace);
    makes && old.zip(new).is_some_and(|(old, new)| !old.equals_unmarked(new))
}

/// The block of one member of a circle.
fn block_member(input: &PlanInput<'_>, circle: &[Id], position: usize) -> Block {
    let members: Vec<Id> = circle[position..].iter().chain(&circle[..position]).copied().collect();
    let last = members.len() - 1;
    let links = (0..=last).map(|offset| {
        let joined = if offset == last { "and " } else { "" };
        let what = if offset == 0 { "takes the name" } else { "that" };
        let next = members[(offset + 1) % members.len()];
        format!("{joined}`{}` {what} of `{}`", input.address(members[offset]), input.address(next))
    });
    let what = format!("{}, so none of these names becomes free", links.collect::<Vec<_>>().join(", "));
    let first = input.address(members[0]);
    let hint = format!("give `{first}` a third name first, and its new name when the others have theirs");
    let diagnostic = Diagnostic::error(first, Reason::NameCycle, what).hint(hint);
    Block::held(diagnostic).waiting_for([members[1 % members.len()]])
}

//! Random moves over random recorded families: no address that a Resource names is destroyed or replaced without a word.

use proptest::prelude::*;

use super::*;
use crate::load::source::read_strings;

const NAMES: [&str; 3] = ["r", "s", "t"];

/// The keys of a Resource: none for one object, or those of a family.
#[derive(Clone, Debug)]
enum Keys {
    Absent,
    Single,
    Count(usize),
    ForEach(Vec<&'static str>),
}

impl Keys {
    fn addresses(&self, name: &str) -> Vec<String> {
        match self {
            Self::Absent => Vec::new(),
            Self::Single => vec![name.to_owned()],
            Self::Count(count) => (0..*count).map(|index| format!("{name}[{index}]")).collect(),
            Self::ForEach(keys) => keys.iter().map(|key| format!("{name}[\"{key}\"]")).collect(),
        }
    }

    fn field(&self) -> String {
        match self {
            Self::Absent | Self::Single => String::new(),
            Self::Count(count) => format!(", count: {count}"),
            Self::ForEach(keys) => format!(", forEach: [{}]", keys.join(", ")),
        }
    }
}

fn keys() -> impl Strategy<Value = Keys> {
    prop_oneof![
        Just(Keys::Absent),
        Just(Keys::Single),
        (0..3_usize).prop_map(Keys::Count),
        prop::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_map(Keys::ForEach),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", "[0]", "[1]", "[\"a\"]", "[\"b\"]", "[\"c\"]", "[\"aa\"]"])
}

fn address() -> impl Strategy<Value = String> {
    (prop::sample::select(NAMES.to_vec()), key()).prop_map(|(name, key)| format!("{name}{key}"))
}

/// What a Resource says about the former addresses of its objects: entries of `spec.moved`, and the annotation.
type Claims = (Vec<(String, &'static str)>, Vec<String>);

fn claims() -> impl Strategy<Value = Claims> {
    let entry = (address(), key());
    (prop::collection::vec(entry, 0..3), prop::collection::vec(address(), 0..2))
}

fn manifest(name: &str, keys: &Keys, (entries, annotation): &Claims) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(from, to)| match *to {
            "" => format!("{{from: '{from}'}}"),
            to => format!("{{from: '{from}', to: '{to}'}}"),
        })
        .collect();
    let moved = match entries.as_slice() {
        [] => String::new(),
        entries => format!(", moved: [{}]", entries.join(", ")),
    };
    let annotation = match annotation.as_slice() {
        [] => String::new(),
        all => format!(", annotations: {{purlin.dev/moved-from: '{}'}}", all.join(", ")),
    };
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: {name}{annotation}}}\nspec: {{type: \
         thing{}{moved}}}\n---\n",
        keys.field()
    )
}

/// The objection to what happens to the recorded objects.
fn objection(config: &Config, records: &Recorded, found: &Moves) -> Option<String> {
    let sources: BTreeSet<&Address> = found.moves.iter().map(|one| &one.from).collect();
    let targets: BTreeSet<&Address> = found.moves.iter().map(|one| &one.to).collect();
    if sources.len() < found.moves.len() || targets.len() < found.moves.len() {
        return Some("two moves have the same end".to_owned());
    }
    if let Some(taken) = targets.iter().find(|to| records.contains_key(*to) || !is_desired(config, to)) {
        return Some(format!("an object is moved to `{taken}`, which has one or is not desired"));
    }
    for resource in config.resources() {
        for entry in resource.moved_from.iter() {
            for (address, _) in records.iter().filter(|(address, _)| address.stem == entry.from.stem) {
                let is_kept = match is_desired(config, address) {
                    // A move of an object to its own address means another type.
                    true => found.claimed.contains_key(address) || address.stem == resource.address.stem,
                    false => found.blocked.contains_key(address),
                };
                let is_whole = entry.is_whole() && address.is_instance();
                let others_came = || {
                    let name = &resource.address.stem;
                    is_whole
                        && found
                            .moves
                            .iter()
                            .any(|change| change.from.stem == entry.from.stem && change.to.stem == *name)
                        && config.instance_addresses(name).all(|address| {
                            records.contains_key(address)
                                || targets.contains(address)
                                || found.blocked.contains_key(address)
                        })
                };
                let is_named = *address == entry.from || is_whole;
                let is_own = is_whole && entry.from.stem == resource.address.stem;
                if is_named && !is_own && !is_kept && !sources.contains(address) && !others_came() {
                    // A configured instance of a whole name has no claimant if no instance has its key.
                    if is_whole && is_desired(config, address) {
                        continue;
                    }
                    return Some(format!("`{address}`, which `{}` names, is neither moved nor kept", resource.address));
                }
            }
        }
    }
    None
}

/// The objects that a Resource has at the beginning.
fn recorded_objects(keys: &[Keys; 3]) -> Recorded {
    let addresses: Vec<String> = NAMES.iter().zip(keys).flat_map(|(name, keys)| keys.addresses(name)).collect();
    let all: Vec<(&str, &[&str])> = addresses.iter().map(|address| (address.as_str(), &[] as &[&str])).collect();
    let mut records = recorded(&all);
    for (number, stored) in records.values_mut().enumerate() {
        give_object(stored, number);
    }
    records
}

fn give_object(stored: &mut model::Stored, number: usize) {
    Arc::make_mut(&mut stored.record).current = Some(Arc::new(object(&number.to_string(), &[])));
}

fn manifests(keys: &[Keys; 3], said: &[Claims; 3]) -> String {
    let wanted = NAMES.iter().zip(keys).zip(said).filter(|((_, keys), _)| !matches!(keys, Keys::Absent));
    wanted.map(|((name, keys), said)| manifest(name, keys, said)).collect()
}

fn config(manifests: &str) -> Config {
    read_strings(&[("f.yaml", manifests)]).config
}

/// The objection to the plan of the manifests.
fn judge(records: &Recorded, manifests: &str) -> Option<String> {
    let config = config(manifests);
    let options = PlanOptions::default();
    let found = find(&config, records, &options, &Takeovers::new());
    let mut problem = objection(&config, records, &found);
    let moved = apply_moves(records, &found.moves);
    if moved.len() != records.len() {
        problem = problem.or(Some("an object is lost".to_owned()));
    }
    // The next plan, which sees the moved objects, moves none and keeps the same for the same reasons.
    let next = find(&config, &moved, &options, &Takeovers::new());
    if !next.moves.is_empty() || next.blocked != found.blocked || next.claimed != found.claimed {
        problem = problem.or(Some("the next plan differs".to_owned()));
    }
    problem
}

/// The records after an apply that leaves out what is blocked.
fn applied(records: &Recorded, manifests: &str) -> Recorded {
    let config = config(manifests);
    let found = find(&config, records, &PlanOptions::default(), &Takeovers::new());
    let mut after = apply_moves(records, &found.moves);
    after.retain(|address, _| is_desired(&config, address) || found.blocked.contains_key(address));
    let new: Vec<String> = config
        .instances
        .keys()
        .filter(|address| !after.contains_key(*address) && !found.blocked.contains_key(*address))
        .map(ToString::to_string)
        .collect();
    let mut created = recorded(&new.iter().map(|address| (address.as_str(), &[] as &[&str])).collect::<Vec<_>>());
    for (number, stored) in created.values_mut().enumerate() {
        give_object(stored, records.len() + number + 100);
    }
    after.append(&mut created);
    after
}

/// An object that an entry names exactly, that is no longer configured and has never been moved to the Resource, but is
/// neither moved nor kept.
fn forgotten(records: &Recorded, manifests: &str) -> Option<String> {
    let config = config(manifests);
    let found = find(&config, records, &PlanOptions::default(), &Takeovers::new());
    for resource in
        config.resources().filter(|resource| config.instance_addresses(&resource.address.stem).next().is_some())
    {
        let own = records.iter().filter(|(address, _)| address.stem == resource.address.stem);
        let came: BTreeSet<&Address> = own.flat_map(|(_, stored)| &stored.record.moved_from).collect();
        for entry in resource.moved_from.iter().filter(|entry| !came.contains(&entry.from)) {
            let is_named = records.contains_key(&entry.from) && !is_desired(&config, &entry.from);
            // Objects of a family without a corresponding instance are destroyed.
            let moves = found.moves.iter().any(|change| {
                let is_part =
                    entry.is_whole() && change.from.stem == entry.from.stem && change.to.stem == resource.address.stem;
                is_part || change.from == entry.from
            });
            // An object of the family came, so the name can be used again.
            let is_used_again = entry.is_whole() && came.iter().any(|old| old.stem == entry.from.stem);
            if is_named && !moves && !is_used_again && !found.blocked.contains_key(&entry.from) {
                return Some(format!("`{}`, which `{}` names, is destroyed", entry.from, resource.address));
            }
        }
    }
    None
}

fn shown(records: &Recorded) -> String {
    records.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_a_move_names_is_moved_or_kept(
        before in prop::array::uniform3(keys()),
        after in prop::array::uniform3(keys()),
        said in prop::array::uniform3(claims()),
    ) {
        let (records, manifests) = (recorded_objects(&before), manifests(&after, &said));
        prop_assert_eq!(judge(&records, &manifests), None, "{}\n{}", shown(&records), manifests);
    }

    /// Entries stay in the manifests when their objects have come, and others are added.
    #[test]
    fn what_an_added_entry_names_is_moved_or_kept(
        keys in prop::array::uniform4(prop::array::uniform3(keys())),
        said in prop::array::uniform3(prop::array::uniform3(claims())),
    ) {
        let mut records = recorded_objects(&keys[0]);
        let mut history = shown(&records);
        let mut claims: [Claims; 3] = Default::default();
        for (keys, added) in keys[1..].iter().zip(said) {
            for (all, added) in claims.iter_mut().zip(added) {
                all.0.extend(added.0);
                all.1.extend(added.1);
            }
            let manifests = manifests(keys, &claims);
            history.push_str(&format!("\n{manifests}"));
            prop_assert_eq!(forgotten(&records, &manifests), None, "{}", history);
            records = applied(&records, &manifests);
            history.push_str(&shown(&records));
        }
    }
}

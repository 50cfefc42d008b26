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
    let entry = |(from, to): &(String, &str)| match *to {
        "" => format!("{{from: '{from}'}}"),
        to => format!("{{from: '{from}', to: '{to}'}}"),
    };
    let moved = match entries.as_slice() {
        [] => String::new(),
        entries => format!(", moved: [{}]", entries.iter().map(entry).collect::<Vec<_>>().join(", ")),
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
            for (address, _) in records.iter().filter(|(address, _)| address.name == entry.from.name) {
                let is_kept = match is_desired(config, address) {
                    // A move of an object to its own address means another type.
                    true => found.claimed.contains_key(address) || *address.name == *resource.address.name,
                    false => found.blocked.contains_key(address),
                };
                let is_whole = entry.is_whole() && address.is_instance();
                let others_came = || {
                    let name = &resource.address.name;
                    let goes_there = |one: &Move| one.from.name == entry.from.name && one.to.name == *name;
                    let is_new = |own: &Address| !records.contains_key(own) && !targets.contains(own);
                    is_whole
                        && found.moves.iter().any(goes_there)
                        && !config.instance_addresses(name).any(|own| is_new(own) && !found.blocked.contains_key(own))
                };
                let is_named = *address == entry.from || is_whole;
                let is_own = is_whole && entry.from.name == resource.address.name;
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

/// The recorded addresses, the manifests, and the objection to the plan.
fn judge(before: &[Keys; 3], after: &[Keys; 3], said: &[Claims; 3]) -> (String, String, Option<String>) {
    let addresses: Vec<String> = NAMES.iter().zip(before).flat_map(|(name, keys)| keys.addresses(name)).collect();
    let all: Vec<(&str, &[&str])> = addresses.iter().map(|address| (address.as_str(), &[] as &[&str])).collect();
    let mut records = recorded(&all);
    for (number, stored) in records.values_mut().enumerate() {
        let value = format!("{number}");
        Arc::make_mut(&mut stored.record).current = Some(Arc::new(object(&value, &[])));
    }
    let wanted = NAMES.iter().zip(after).zip(said).filter(|((_, keys), _)| !matches!(keys, Keys::Absent));
    let manifests: String = wanted.map(|((name, keys), said)| manifest(name, keys, said)).collect();
    let config = read_strings(&[("f.yaml", &manifests)]).config;
    let options = PlanOptions::default();
    let found = find(&config, &records, &options, &Takeovers::new());
    let mut problem = objection(&config, &records, &found);
    let moved = apply_moves(&records, &found.moves);
    if moved.len() != records.len() {
        problem = problem.or(Some("an object is lost".to_owned()));
    }
    // What was kept is also kept by the next plan, which sees the moved objects.
    let next = find(&config, &moved, &options, &Takeovers::new());
    let leaves = next.moves.iter().map(|one| &one.from).collect::<BTreeSet<_>>();
    for address in found.blocked.keys().filter(|address| moved.contains_key(*address)) {
        let is_kept = next.blocked.contains_key(address) || leaves.contains(address) || is_desired(&config, address);
        if !is_kept {
            problem = problem.or(Some(format!("`{address}` is kept, and then not")));
        }
    }
    (addresses.join(" "), manifests, problem)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_a_move_names_is_moved_or_kept(
        before in prop::array::uniform3(keys()),
        after in prop::array::uniform3(keys()),
        said in prop::array::uniform3(claims()),
    ) {
        let (records, manifests, objection) = judge(&before, &after, &said);
        prop_assert_eq!(objection, None, "{}\n{}", records, manifests);
    }
}

//! The checks of `spec.moved`.

use std::collections::BTreeMap;

use super::{invalid, spec_path};
use crate::load::{MovedFrom, MovedPlace};
use model::{Address, Diagnostics, InstanceKey, Path};

/// An entry of `spec.moved`.
struct Entry {
    at: Path,
    index: usize,
    from: Address,
    /// `None`: the field is absent.
    to: Option<InstanceKey>,
}

/// Returns the former addresses of the objects of a Resource: those in `spec.moved`, the nearest first, and then those
/// in the annotation. An entry with an error still names an object, so that this object is kept.
pub fn moved(name: &str, written: &[api::Moved], annotation: &[Address], problems: &mut Diagnostics) -> Vec<MovedFrom> {
    let mut entries: Vec<Entry> = Vec::with_capacity(written.len());
    for (index, entry) in written.iter().enumerate() {
        let at = spec_path(&["moved"]).index(index);
        let to = entry.to.as_deref().and_then(|text| key(text, name, &at, problems));
        let Some(from) = address(&entry.from, &at, problems) else { continue };
        if from.is_data() {
            let what = format!("`{from}` is a DataSource, which has no object to move");
            problems.push(invalid(at.name("from"), what, "remove the entry"));
            continue;
        }
        entries.push(Entry { at, index, from, to });
    }
    let ends = ends_of_chains(name, &entries, problems);
    let mut found: Vec<(usize, MovedFrom)> = Vec::with_capacity(entries.len());
    for Entry { index, from, to, .. } in entries {
        let is_whole = to.is_none() && from.key == InstanceKey::None;
        let end = ends.get(&to.clone().unwrap_or_default());
        if is_whole {
            found.push((0, MovedFrom { from: from.clone(), to: None, place: MovedPlace::Entry(index) }));
        }
        match end {
            // A Resource of this name with an object without a key, which was moved again.
            Some((key, hops)) if !is_whole || *from.stem.name != *name => {
                let to = Some(key.clone()).filter(|key| *key != InstanceKey::None);
                found.push((*hops, MovedFrom { from, to, place: MovedPlace::Entry(index) }));
            }
            None if !is_whole => found.push((0, MovedFrom { from, to, place: MovedPlace::Entry(index) })),
            _ => {}
        }
    }
    found.sort_by_key(|(hops, _)| *hops);
    let annotation = annotation.iter().cloned().map(MovedFrom::annotation);
    found.into_iter().map(|(_, moved)| moved).chain(annotation).collect()
}

fn address(text: &str, at: &Path, problems: &mut Diagnostics) -> Option<Address> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let what = match text {
        "" => "required field is missing".to_owned(),
        text => format!("`{text}` is not a valid address"),
    };
    problems.push(invalid(at.name("from"), what, "write `name`, `name[0]` or `name[\"key\"]`"));
    super::annotations::name_of(text)
}

/// The key of an instance: `[0]` or `["key"]`.
fn key(text: &str, name: &str, at: &Path, problems: &mut Diagnostics) -> Option<InstanceKey> {
    if let Some(key) = parse_key(text).filter(|_| text.starts_with('[')) {
        return Some(key);
    }
    let hint = match text.strip_prefix(name).and_then(parse_key) {
        Some(key) => format!("write only the key: `{key}`"),
        None if text == name => "omit `to`".to_owned(),
        None => "write the key of an instance of this Resource as `[0]` or `[\"key\"]`".to_owned(),
    };
    problems.push(invalid(at.name("to"), format!("`{text}` is not a key"), &hint));
    None
}

fn parse_key(text: &str) -> Option<InstanceKey> {
    let address = format!("a{text}").parse::<Address>().ok()?;
    address.is_instance().then_some(address.key)
}

/// The end of each chain of entries by its keys: the last key, and the number of entries to it. Reports cycles, and
/// entries that move the same object to several places.
fn ends_of_chains(
    name: &str,
    entries: &[Entry],
    problems: &mut Diagnostics,
) -> BTreeMap<InstanceKey, (InstanceKey, usize)> {
    let mut next: BTreeMap<&InstanceKey, (InstanceKey, &Path)> = BTreeMap::new();
    let mut known: BTreeMap<&Address, usize> = BTreeMap::new();
    for entry in entries {
        if let Some(first) = known.insert(&entry.from, entry.index) {
            let what = format!("`{}` is already moved by `spec.moved[{first}]`", entry.from);
            problems.push(invalid(entry.at.name("from"), what, "an object has one place: keep one of the entries"));
            continue;
        }
        let to = entry.to.clone().unwrap_or_default();
        if *entry.from.stem.name == *name && entry.from.key != to {
            next.insert(&entry.from.key, (to, &entry.at));
        }
    }
    let mut ends: BTreeMap<InstanceKey, (InstanceKey, usize)> = BTreeMap::new();
    for start in next.keys() {
        let mut chain: Vec<&InstanceKey> = vec![start];
        while let Some((to, at)) = chain.last().and_then(|last| next.get(*last)) {
            if ends.contains_key(*chain.last().expect("a chain has a start")) {
                break;
            }
            if let Some(first) = chain.iter().position(|key| *key == to) {
                let shown: Vec<String> = chain[first..].iter().map(|key| format!("`{name}{key}`")).collect();
                let what = format!("the moves {} and back are a cycle", shown.join(" to "));
                let hint = "Purlin does not swap objects: move one of them to a third key first; if a move is \
                            completed, remove its entry";
                problems.push(invalid((*at).clone(), what, hint));
                // The objects are kept because of the error.
                ends.extend(chain[first..].iter().map(|key| ((*key).clone(), ((*key).clone(), 0))));
                break;
            }
            chain.push(to);
        }
        let last = chain.pop().expect("a chain has a start");
        let (end, mut hops) = ends.get(last).cloned().unwrap_or_else(|| (last.clone(), 0));
        for key in chain.into_iter().rev() {
            hops += 1;
            ends.entry(key.clone()).or_insert((end.clone(), hops));
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(written: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let written: Vec<api::Moved> = written
            .iter()
            .map(|(from, to)| api::Moved {
                from: (*from).to_owned(),
                to: Some((*to).to_owned()).filter(|to| !to.is_empty()),
            })
            .collect();
        let mut problems = Vec::new();
        let found = moved("r", &written, &[], &mut problems);
        let moves = found.into_iter().map(|moved| format!("{} -> {}", moved.from, moved.to.unwrap_or_default()));
        (moves.collect(), problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_chain_ends_at_its_last_key_and_the_nearest_address_comes_first() {
        let (found, problems) =
            moves(&[(r#"r["a"]"#, r#"["b"]"#), (r#"r["b"]"#, r#"["c"]"#), ("web[0]", r#"["a"]"#), ("old", "")]);
        assert_eq!(problems, [] as [&str; 0]);
        assert_eq!(found, [r#"r["b"] -> ["c"]"#, "old -> ", r#"r["a"] -> ["c"]"#, r#"web[0] -> ["c"]"#]);
        assert_eq!(moves(&[("old", ""), ("r", "[0]")]).0, ["old -> ", "r -> [0]", "old -> [0]"]);
        assert_eq!(moves(&[("r[1]", ""), ("r[0]", "[1]")]).0, ["r[1] -> ", "r[0] -> "]);
    }

    #[test]
    fn mistakes_are_reported_at_their_field_and_still_name_the_object() {
        let (found, problems) = moves(&[
            ("web[a]", "[0]"),
            ("web[1]", "a"),
            ("web[2]", "r[2]"),
            ("web[2]", "[3]"),
            ("web[4]", "r"),
            ("data.x", "[5]"),
        ]);
        assert_eq!(found, ["web -> [0]", "web[1] -> ", "web[2] -> ", "web[2] -> [3]", "web[4] -> "]);
        let expected = [
            r#"spec.moved[0].from: `web[a]` is not a valid address (hint: write `name`, `name[0]` or `name["key"]`)"#,
            "spec.moved[1].to: `a` is not a key (hint: write the key of an instance of this Resource as `[0]` or \
             `[\"key\"]`)",
            "spec.moved[2].to: `r[2]` is not a key (hint: write only the key: `[2]`)",
            "spec.moved[4].to: `r` is not a key (hint: omit `to`)",
            "spec.moved[5].from: `data.x` is a DataSource, which has no object to move (hint: remove the entry)",
            "spec.moved[3].from: `web[2]` is already moved by `spec.moved[2]` (hint: an object has one place: keep one \
             of the entries)",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_cycle_is_refused_once() {
        let (found, problems) =
            moves(&[(r#"r["a"]"#, r#"["b"]"#), (r#"r["b"]"#, r#"["a"]"#), (r#"r["z"]"#, r#"["a"]"#)]);
        assert_eq!(found.len(), 3);
        let expected = "spec.moved[1]: the moves `r[\"a\"]` to `r[\"b\"]` and back are a cycle (hint: Purlin does not \
                        swap objects: move one of them to a third key first; if a move is completed, remove its entry)";
        assert_eq!(problems, [expected]);
    }
}

//! Names the resources of a state. Names are DNS labels, and Purlin has no modules.
//!
//! A name consists of the modules with their keys and of the name in the module. If several resources would get the
//! same name, their type precedes the last part. The user must name the remaining duplicates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Problem;
use super::address::{Key, ModuleStep, ResourceAddress};
use model::Address;
use model::kube_names::is_label;

/// Returns the names of resources and data sources in the order of their addresses, or all problems. Both kinds have
/// separate namespaces.
pub fn names(addresses: &[&ResourceAddress], chosen: &BTreeMap<String, String>) -> Result<Vec<Arc<str>>, Vec<Problem>> {
    let mut problems = Vec::new();
    for address in chosen.keys().filter(|address| !addresses.iter().any(|known| known.to_string() == **address)) {
        let hint = "write the address as `terraform state list` prints it, without instance keys";
        problems.push(Problem::hinted(format!("--name: the state has no `{address}`"), hint));
    }
    let plain: Vec<String> = addresses.iter().map(|address| label(address, false)).collect();
    let mut names: Vec<String> = Vec::new();
    for (address, name) in addresses.iter().zip(&plain) {
        let alike = addresses.iter().zip(&plain).filter(|(other, _)| other.is_data == address.is_data);
        let shared = alike.filter(|(_, other)| *other == name).count() > 1;
        let own = chosen.get(&address.to_string()).cloned();
        names.push(own.unwrap_or_else(|| if shared { label(address, true) } else { name.clone() }));
    }
    let hint = |address: &ResourceAddress| format!("choose a name: `--name '{address}=NAME'`");
    for (position, (address, name)) in addresses.iter().zip(&names).enumerate() {
        if !is_label(name) {
            let what =
                format!("`{address}` cannot be named `{name}`: a name must be a DNS label of at most 63 characters");
            problems.push(Problem::hinted(what, hint(address)));
        } else if let Some(first) =
            (0..position).find(|first| names[*first] == *name && addresses[*first].is_data == address.is_data)
        {
            let what = format!("`{address}` and `{}` would both be named `{name}`", addresses[first]);
            problems.push(Problem::hinted(what, hint(address)));
        }
    }
    let of_kind = |(address, name): (&&ResourceAddress, String)| match address.is_data {
        false => Arc::from(name),
        true => Address::data(&name).name,
    };
    if problems.is_empty() { Ok(addresses.iter().zip(names).map(of_kind).collect()) } else { Err(problems) }
}

/// Returns the names of modules, each followed by its key.
pub fn module_words(path: &[ModuleStep]) -> Vec<String> {
    let key = |key: &Option<Key>| match key {
        None => String::new(),
        Some(Key::Index(index)) => index.to_string(),
        Some(Key::Key(key)) => key.clone(),
    };
    path.iter().flat_map(|(name, one)| [name.clone(), key(one)]).collect()
}

fn label(address: &ResourceAddress, with_type: bool) -> String {
    let mut words = module_words(&address.module);
    words.extend(with_type.then(|| address.type_name.clone()));
    words.push(address.name.clone());
    label_of(&words)
}

/// Joins words to a DNS label, as far as possible.
pub fn label_of(words: &[impl AsRef<str>]) -> String {
    let joined = words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("-").to_lowercase();
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let dashed: String = joined.chars().map(plain).collect();
    let words: Vec<&str> = dashed.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address;

    fn address(text: &str) -> ResourceAddress {
        let (module, rest) = match text.rfind("module.") {
            Some(_) => {
                let at = text.rmatch_indices('.').nth(1).unwrap().0;
                (&text[..at], &text[at + 1..])
            }
            None => ("", text),
        };
        let (is_data, rest) = rest.strip_prefix("data:").map_or((false, rest), |rest| (true, rest));
        let (type_name, name) = rest.split_once('.').unwrap();
        let module = address::module(module).unwrap();
        ResourceAddress { module, is_data, type_name: type_name.into(), name: name.into() }
    }

    fn named(all: &[&str], chosen: &[(&str, &str)]) -> Result<Vec<String>, Vec<String>> {
        let all: Vec<ResourceAddress> = all.iter().map(|text| address(text)).collect();
        let chosen = chosen.iter().map(|(a, n)| ((*a).to_owned(), (*n).to_owned())).collect();
        let made = names(&all.iter().collect::<Vec<_>>(), &chosen);
        made.map(|names| names.iter().map(ToString::to_string).collect())
            .map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn types_are_added_only_to_duplicate_names() {
        let made =
            named(&["random_pet.My_Pet", r#"module.app["eu.west"].random_id.this"#, "module.app[0].random_id.id"], &[]);
        assert_eq!(made.unwrap(), ["my-pet", "app-eu-west-this", "app-0-id"]);
        let made = named(&["random_pet.this", "random_id.this", "random_id.other"], &[]);
        assert_eq!(made.unwrap(), ["random-pet-this", "random-id-this", "other"]);
        let made = named(&["random_pet.this", "data:random_pet.this", "data:a_b.x", "data:c_d.x"], &[]);
        assert_eq!(made.unwrap(), ["this", "data.this", "data.a-b-x", "data.c-d-x"]);
    }

    #[test]
    fn the_user_names_remaining_duplicates() {
        let clash = ["random_pet.a_b", "random_pet.a-b"];
        let problems = named(&clash, &[]).unwrap_err();
        assert_eq!(problems, ["`random_pet.a-b` and `random_pet.a_b` would both be named `random-pet-a-b`"]);
        assert_eq!(named(&clash, &[("random_pet.a-b", "other")]).unwrap(), ["random-pet-a-b", "other"]);
        assert_eq!(named(&["random_pet.Ü"], &[]).unwrap_err().len(), 1);
        assert_eq!(named(&["a.b"], &[("a.c", "x")]).unwrap_err(), ["--name: the state has no `a.c`"]);
    }
}

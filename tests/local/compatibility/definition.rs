//! Compares two versions of CRDs: which of them exist, how clients address them, and the schema of each served version.

use serde_json::Value as Json;

use super::schema;

/// Returns every incompatible change from the released CRDs to the current ones: the CRD with its version, the path
/// of the field, and what changed. Printer columns and descriptions may change.
pub(super) fn incompatible_changes(released: &[Json], current: &[Json]) -> Vec<String> {
    let mut found = Vec::new();
    for old in released {
        let name = text(&old["metadata"]["name"]);
        match current.iter().find(|new| new["metadata"]["name"] == old["metadata"]["name"]) {
            Some(new) => definition(name, &old["spec"], &new["spec"], &mut found),
            None => found.push(format!("{name}: the CRD was removed")),
        }
    }
    found
}

fn definition(name: &str, old: &Json, new: &Json, found: &mut Vec<String>) {
    for path in
        ["/group", "/scope", "/names/kind", "/names/listKind", "/names/plural", "/names/singular", "/conversion"]
    {
        unchanged(name, path, old.pointer(path), new.pointer(path), found);
    }
    for list in ["shortNames", "categories"] {
        for gone in missing(&old["names"][list], &new["names"][list]) {
            found.push(format!("{name}: {gone} was removed from {list}"));
        }
    }
    for old in entries(&old["versions"]) {
        let at = format!("{name}/{}", text(&old["name"]));
        match entries(&new["versions"]).find(|new| new["name"] == old["name"]) {
            Some(new) => version(&at, old, new, found),
            None => found.push(format!("{at}: the version was removed")),
        }
    }
}

fn version(at: &str, old: &Json, new: &Json, found: &mut Vec<String>) {
    if old["served"] == true && new["served"] != true {
        found.push(format!("{at}: the version is not served any more"));
    }
    // An older controller, after a rollback, reads only the version that it knows.
    unchanged(at, "/storage", old.get("storage"), new.get("storage"), found);
    let status = |version: &Json| version.pointer("/subresources/status").is_some();
    if status(old) != status(new) {
        let change = if status(new) { "added" } else { "removed" };
        found.push(format!("{at}: the status subresource was {change}"));
    }
    if let Some(scale) = old.pointer("/subresources/scale") {
        unchanged(at, "/subresources/scale", Some(scale), new.pointer("/subresources/scale"), found);
    }
    for gone in missing(&old["selectableFields"], &new["selectableFields"]) {
        found.push(format!("{at}: {} is not selectable any more", text(&gone["jsonPath"])));
    }
    schema::compare(&format!("{at} "), root(old), root(new), found);
}

fn root(version: &Json) -> &Json {
    &version["schema"]["openAPIV3Schema"]
}

fn unchanged(at: &str, path: &str, old: Option<&Json>, new: Option<&Json>, found: &mut Vec<String>) {
    if old != new {
        let show = |value: Option<&Json>| value.map_or_else(|| "absent".to_owned(), Json::to_string);
        found.push(format!("{at}: {} was {} and is {}", &path[1..], show(old), show(new)));
    }
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn entries(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

fn missing<'a>(old: &'a Json, new: &'a Json) -> impl Iterator<Item = &'a Json> {
    entries(old).filter(|entry| entries(new).all(|kept| kept != *entry))
}

//! What an expression should read instead of an object that does not exist.

use super::names::path_expression;
use super::terraform;
use model::{Address, Segment};

/// What to write instead of the path `target` + `rest`, whose target does not exist, if it is written as in Terraform.
/// `exists`: whether there is an object with this name; `is_type`: whether this is a resource type.
pub(crate) fn instead_of_missing(
    target: &Address,
    rest: &[Segment],
    exists: impl Fn(&str) -> bool,
    is_type: impl Fn(&str) -> bool,
) -> Option<String> {
    if !target.is_data()
        && let Some(instead) = terraform::reserved(&target.name, rest)
    {
        return Some(instead);
    }
    let type_name = target.object_name().replace('-', "_");
    let [Segment::Name(name), attributes @ ..] = rest else { return None };
    let name = name.replace('_', "-");
    let object = if target.is_data() { Address::data(&name).name.to_string() } else { name };
    let written = format!("`${{{}}}`", path_expression(&object, attributes));
    let kind = target.kind();
    if exists(&object) && (type_name.contains('_') || is_type(&type_name)) {
        return Some(format!("write the name of the {kind} without its type: {written}"));
    }
    if is_type(&type_name) {
        return Some(format!("write the name of a {kind} without its type, such as {written}"));
    }
    let is_like_a_type = type_name.contains('_') && !attributes.is_empty();
    is_like_a_type.then(|| format!("if `{type_name}` is a type, write only the name of the {kind}: {written}"))
}

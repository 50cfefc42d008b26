//! Objects of the built-in type `terraform_data`.

use super::Problem;
use super::state::{Object, Resource};
use cty::{Type, json};
use drivers::provider::ForeignObject;
use drivers::provider::values::to_unmarked_model;
use drivers::terraform_data;
use model::{RecordedObject, Value};

/// Returns an object that needs no provider. `None`: its provider must be called.
///
/// # Errors
/// The built-in type is unknown, or the attributes are invalid.
pub fn without_provider(resource: &Resource, object: &Object) -> Option<Result<RecordedObject, Problem>> {
    if !object.provider.source.is_built_in() {
        return None;
    }
    let type_name = &resource.address.resource.kind;
    let address = resource.instance(object);
    if **type_name != *terraform_data::TYPE_NAME {
        let message = format!("`{address}`: the type `{type_name}` is not supported");
        return Some(Err(Problem::hinted(message, "remove it from a copy of the state: `terraform state rm`")));
    }
    let value = value(&object.content).map_err(|what| Problem::plain(format!("`{address}`: {what}")));
    Some(value.map(|value| RecordedObject { value, ..RecordedObject::default() }))
}

/// Parses the value of a `terraform_data` object.
pub fn value(object: &ForeignObject) -> Result<Value, String> {
    let ty = Type::object([
        ("id", Type::String),
        ("input", Type::Dynamic),
        ("output", Type::Dynamic),
        ("triggers_replace", Type::Dynamic),
    ]);
    let value = json::decode(object.attributes.as_bytes(), &ty, json::UnsupportedAttributes::Ignore);
    Ok(to_unmarked_model(&value.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terraform_data_has_values_of_any_type() {
        let attributes =
            r#"{"id": "1", "input": {"value": ["a", 1], "type": ["tuple", ["string", "number"]]}, "output": null}"#;
        let value = value(&ForeignObject { attributes: attributes.into(), ..ForeignObject::default() }).unwrap();
        assert_eq!(value.get("input"), Some(&Value::from_json(serde_json::json!(["a", 1]))));
        assert_eq!(value.get("triggers_replace"), Some(&Value::Null));
    }
}

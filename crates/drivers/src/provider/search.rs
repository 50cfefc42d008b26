//! Searches for the object of an interrupted create by what its configuration fixes: its identity or its name.
//!
//! The protocol cannot ask which object a call created. A found object therefore counts only if no planned value
//! contradicts the one that was read.

use cty::{Type, msgpack};

use super::object_client::ObjectClient;
use super::private::PlanPrivate;
use super::values;
use crate::{ApplyRequest, SearchResult};
use model::{DriverError, ImportRequest, ObjectState, Path, Value, visible};

impl ObjectClient<'_> {
    /// Imports and reads the object that the user named, or each object that the create may have created.
    pub async fn search_created(
        &self,
        (request, import): (&ApplyRequest, Option<&ImportRequest>),
    ) -> Result<SearchResult, DriverError> {
        let planned = request.planned.clone().unwrap_or_default();
        if let Some(import) = import {
            let object = self.import(import).await?;
            return Ok(object.map_or(SearchResult::Missing, |object| found(&planned, object)));
        }
        let mut result = SearchResult::Unknown(None);
        for candidate in self.import_requests(&planned, &request.private) {
            match self.import(&candidate).await {
                Ok(Some(object)) => match first_difference(&planned, &object.value) {
                    None => return Ok(found(&planned, object)),
                    Some(path) => result = SearchResult::Differs(candidate, path),
                },
                // An ID may only have another form than expected.
                Ok(None) if matches!(candidate, ImportRequest::Identity(_)) => return Ok(SearchResult::Missing),
                Ok(None) => {}
                Err(error) if !self.client.is_alive() => return Err(error),
                // Providers report an ID that does not exist, or one of another form, as an error.
                Err(error) => {
                    if matches!(result, SearchResult::Unknown(_)) {
                        result = SearchResult::Unknown(Some(error));
                    }
                }
            }
        }
        Ok(result)
    }

    /// The identity if it is known, or else the import IDs of most types: `id`, or namespace and name.
    fn import_requests(&self, planned: &Value, private: &[u8]) -> Vec<ImportRequest> {
        if let Some(identity) = self.planned_identity(private).or_else(|| self.configured_identity(planned)) {
            return vec![ImportRequest::Identity(identity)];
        }
        if let Some(id) = known_text(planned, "id") {
            return vec![ImportRequest::Id(id.into())];
        }
        let metadata = planned.at(&Path::default().name("metadata").index(0));
        let named = metadata.as_ref().filter(|metadata| known_text(metadata, "name").is_some()).unwrap_or(planned);
        let Some(name) = known_text(named, "name") else { return Vec::new() };
        let with_namespace = known_text(named, "namespace").map(|namespace| format!("{namespace}/{name}"));
        with_namespace.into_iter().chain([name]).map(|id| ImportRequest::Id(id.into())).collect()
    }

    /// The identity that the provider planned, if it is wholly known.
    fn planned_identity(&self, private: &[u8]) -> Option<Value> {
        let identity = PlanPrivate::decode(private).ok()?.identity?;
        let value = msgpack::decode(&identity, &self.kind.identity.as_ref()?.ty).ok()?;
        let value = values::to_unmarked_model(&value);
        (!value.has_unknown() && !matches!(value, Value::Null)).then_some(value)
    }

    /// The identity if the planned object has all attributes that an import requires.
    fn configured_identity(&self, planned: &Value) -> Option<Value> {
        let identity = self.kind.identity.as_ref().filter(|identity| !identity.required.is_empty())?;
        if !identity.required.iter().all(|name| known_value(planned, name).is_some()) {
            return None;
        }
        let Type::Object(object) = &identity.ty else { return None };
        Some(Value::map(object.attributes.keys().filter_map(|name| Some((name.clone(), known_value(planned, name)?)))))
    }
}

fn found(planned: &Value, object: ObjectState) -> SearchResult {
    let value = with_planned(planned, object.value);
    SearchResult::Found(ObjectState { value, ..object })
}

fn known_text(value: &Value, name: &str) -> Option<String> {
    Some(value.get(name)?.unmarked().as_str()?.to_owned())
}

fn known_value(planned: &Value, name: &str) -> Option<Value> {
    let value = planned.get(name)?.without_marks();
    (!value.has_unknown() && !matches!(value, Value::Null)).then_some(value)
}

/// The first planned value that contradicts the object. Values that only the provider knows do not, and neither do
/// arguments that an import does not read, which are null or empty.
fn first_difference(planned: &Value, actual: &Value) -> Option<Path> {
    let first = planned.differences(actual).into_iter().find(|path| {
        let planned = planned.at(path).unwrap_or_default();
        let is_read = !actual.at(path).is_none_or(|value| is_empty(&value));
        is_read && !planned.has_unknown() && !matches!(planned.unmarked(), Value::Null)
    });
    first.map(|path| visible::path(path, &[planned, actual]))
}

/// The object with the planned values of the arguments that an import does not read. Without them, the next plan would
/// update or even replace the object that was just created.
fn with_planned(planned: &Value, actual: Value) -> Value {
    match (planned, &actual) {
        (Value::Unknown, _) => actual,
        (Value::Map(planned), Value::Map(read)) => {
            Value::map(read.iter().map(|(name, value)| match planned.get(name) {
                Some(planned) => (name.clone(), with_planned(planned, value.clone())),
                None => (name.clone(), value.clone()),
            }))
        }
        (Value::List(planned), Value::List(read)) if planned.len() == read.len() => {
            Value::list(planned.iter().zip(read.iter()).map(|(planned, value)| with_planned(planned, value.clone())))
        }
        _ if is_empty(&actual) && !planned.has_unknown() => planned.clone(),
        _ => actual,
    }
}

fn is_empty(value: &Value) -> bool {
    match value.unmarked() {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.to_string() == "0",
        Value::String(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Unknown | Value::Sensitive(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_planned_values_are_compared() {
        let planned = Value::from_json(json!({"name": "a", "size": null, "tags": {}, "rules": [{"port": 1}]}));
        let planned = planned.with("id", Value::Unknown);
        let differs = |found: serde_json::Value| {
            first_difference(&planned, &Value::from_json(found)).map(|path| path.to_string())
        };
        assert_eq!(differs(json!({"name": "a", "size": 5, "tags": null, "rules": [{"port": 1}], "id": "i"})), None);
        assert_eq!(differs(json!({"name": "b", "tags": {}, "rules": [{"port": 1}]})).as_deref(), Some("name"));
        assert_eq!(differs(json!({"name": "a", "rules": [{"port": 2}]})).as_deref(), Some("rules[0].port"));
        assert_eq!(differs(json!({"name": "a", "rules": [{}, {}]})).as_deref(), Some("rules"));
        assert_eq!(differs(json!({"rules": []})), None, "an import does not read every argument");
    }

    #[test]
    fn arguments_that_an_import_does_not_read_have_their_planned_values() {
        let planned = Value::from_json(json!({"name": "a", "wait": true, "rules": [{"port": 1}], "tags": {"x": "y"}}));
        let planned = planned.with("id", Value::Unknown);
        let found = json!({"name": null, "wait": false, "rules": [], "tags": {"x": "z"}, "id": "i", "size": 2});
        let merged =
            json!({"name": "a", "wait": true, "rules": [{"port": 1}], "tags": {"x": "z"}, "id": "i", "size": 2});
        assert_eq!(with_planned(&planned, Value::from_json(found)), Value::from_json(merged));
    }
}

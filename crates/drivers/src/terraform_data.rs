//! `terraform_data`: Terraform's built-in resource, which stores a value and has no side effects.
//!
//! The ID is generated with the plan of a new object and passed to `apply` in the private data. It is unknown until the
//! object exists, and the same if recovery repeats the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use model::{
    Address, AttributeType, Diagnostics, DriverError, ErrorKind, ImportRequest, Namespace, ObjectState, Path,
    PlanRequest, PlanResponse, Provider, RecordedObject, Schema, Value,
};

use super::{
    ApplyRequest, ApplyResponse, CallContext, CreateRecovery, Driver, FindCreated, ObjectWatcher, TakeOver,
    WatchedInstance, arguments,
};

/// The provider address of the type in Terraform and OpenTofu.
pub const PROVIDER: &str = "terraform.io/builtin/terraform";

pub const TYPE_NAME: &str = "terraform_data";

/// The driver of `terraform_data`. It is stateless.
pub struct TerraformData {
    schema: Arc<Schema>,
}

impl TerraformData {
    pub fn new() -> Self {
        let attributes = BTreeMap::from([
            (Arc::from("id"), arguments::computed(AttributeType::String, "A UUID, generated for each new object.")),
            (Arc::from("input"), arguments::argument(AttributeType::Any, false, "Any value; returned as `output`.")),
            (Arc::from("output"), arguments::computed(AttributeType::Any, "The `input` after it is applied.")),
            (
                Arc::from("triggers_replace"),
                arguments::argument(AttributeType::Any, false, "Any value; a change replaces the object."),
            ),
        ]);
        Self { schema: Arc::new(Schema { attributes, ..Schema::default() }) }
    }
}

impl Default for TerraformData {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Driver for TerraformData {
    fn schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        (type_name == TYPE_NAME).then(|| Arc::clone(&self.schema))
    }

    async fn validate(&self, context: &CallContext, config: &Value) -> Result<Diagnostics, DriverError> {
        Ok(arguments::check(context, &self.schema, config))
    }

    async fn read(&self, _context: &CallContext, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        // The record is the object, so it cannot drift.
        Ok(Some(object.into()))
    }

    async fn plan(&self, _context: &CallContext, request: PlanRequest) -> Result<PlanResponse, DriverError> {
        Ok(plan(&request))
    }

    async fn apply(&self, _context: &CallContext, request: ApplyRequest) -> ApplyResponse {
        apply(&request)
    }

    async fn import(&self, context: &CallContext, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        // As in Terraform, any ID is valid: the object exists when it is recorded.
        let id = arguments::import_id(context, request)?;
        Ok(Some(state(object(Value::Null, Value::Null, Value::Null, id.into()))))
    }

    fn recovery(&self) -> CreateRecovery<'_> {
        CreateRecovery::Repeat(self)
    }

    fn takeover(&self) -> Option<&dyn TakeOver> {
        Some(self)
    }

    fn watcher(&self) -> Option<&dyn ObjectWatcher> {
        Some(self)
    }
}

/// Only Purlin can change an object that exists only in its record, so it need not be read.
impl ObjectWatcher for TerraformData {
    fn reports_health(&self) -> bool {
        false
    }

    fn watch(&self, _instance: &WatchedInstance<'_>, _object: &RecordedObject) {}

    fn unwatch(&self, _namespace: &Namespace, _address: &Address) {}

    fn is_watching(&self, _namespace: &Namespace, _address: &Address) -> bool {
        true
    }
}

#[async_trait]
impl FindCreated for TerraformData {
    /// The object exists only in its record, so there is none to find.
    async fn find_created(&self, _context: &CallContext, _planned: &Value) -> Result<Option<ObjectState>, DriverError> {
        Ok(None)
    }
}

#[async_trait]
impl TakeOver for TerraformData {
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError> {
        of_null_resource(type_name, object).ok_or_else(|| arguments::unsupported_move(context, type_name))
    }
}

/// Converts a `null_resource`, as Terraform does: keeps the ID, and moves `triggers` to `triggers_replace`.
fn of_null_resource(type_name: &str, object: &RecordedObject) -> Option<ObjectState> {
    let source = &object.provider.as_ref()?.provider.source;
    if type_name != "null_resource" || !source.ends_with("/hashicorp/null") {
        return None;
    }
    let triggers = attribute(&object.value, "triggers");
    Some(state(self::object(Value::Null, Value::Null, triggers, object.id()?.into())))
}

fn plan(request: &PlanRequest) -> PlanResponse {
    let input = attribute(&request.config, "input");
    let triggers = attribute(&request.config, "triggers_replace");
    let Some(prior) = &request.prior else {
        let output = if input == Value::Null { Value::Null } else { Value::Unknown };
        return PlanResponse {
            planned: object(input, output, triggers, Value::Unknown),
            private: generated_id(request.entropy),
            ..PlanResponse::default()
        };
    };
    let output = match &input {
        Value::Null => Value::Null,
        // The marks come from the configuration: a newly sensitive input makes the output sensitive.
        known if !known.has_unknown() && known.equals_unmarked(&attribute(&prior.value, "input")) => known.clone(),
        _ => Value::Unknown,
    };
    let replaced = triggers.has_unknown() || !triggers.equals_unmarked(&attribute(&prior.value, "triggers_replace"));
    let id = if replaced { Value::Unknown } else { attribute(&prior.value, "id") };
    PlanResponse {
        planned: object(input, output, triggers, id),
        requires_replace: if replaced { vec![Path::default().name("triggers_replace")] } else { Vec::new() },
        private: if replaced { generated_id(request.entropy) } else { Arc::default() },
        ..PlanResponse::default()
    }
}

fn apply(request: &ApplyRequest) -> ApplyResponse {
    let Some(planned) = &request.planned else { return ApplyResponse::default() };
    let id = match (attribute(planned, "id"), std::str::from_utf8(&request.private)) {
        (Value::Unknown, Ok(drawn)) if !drawn.is_empty() => Value::from(drawn),
        (Value::Unknown, _) => {
            let error = DriverError {
                kind: ErrorKind::Terminal,
                message: "the plan of the object contains no ID".to_owned(),
                path: None,
                hint: Some("plan it again".to_owned()),
            };
            return ApplyResponse { object: None, error: Some(error), ..ApplyResponse::default() };
        }
        (known, _) => known,
    };
    let input = attribute(&request.config, "input");
    let value = object(input.clone(), input, attribute(&request.config, "triggers_replace"), id);
    ApplyResponse { object: Some(state(value)), error: None, ..ApplyResponse::default() }
}

fn generated_id(entropy: [u8; 16]) -> Arc<[u8]> {
    uuid::Builder::from_random_bytes(entropy).into_uuid().to_string().into_bytes().into()
}

fn attribute(value: &Value, name: &str) -> Value {
    match value.unmarked() {
        // All arguments of an unknown configuration are unknown.
        Value::Unknown => Value::Unknown,
        _ => value.get(name).cloned().unwrap_or_default(),
    }
}

fn object(input: Value, output: Value, triggers: Value, id: Value) -> Value {
    Value::map([("id", id), ("input", input), ("output", output), ("triggers_replace", triggers)])
}

fn state(value: Value) -> ObjectState {
    ObjectState { value, private: Arc::default(), identity: None, health: None }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{context, recorded};
    use super::*;

    fn request(prior: Option<&Value>, config: Value) -> PlanRequest {
        let prior = prior.map(|value| Arc::new(recorded(value.clone())));
        PlanRequest { prior, config, entropy: [7; 16], previous_plan: None, ignored: None, replaces: None }
    }

    fn stored(input: &str) -> Value {
        object(input.into(), input.into(), Value::Null, "an-id".into())
    }

    #[test]
    fn the_id_and_output_of_a_new_object_are_known_after_apply() {
        let config = Value::map([("input", Value::from("x").into_sensitive())]);
        let response = plan(&request(None, config.clone()));
        assert_eq!(response.planned.get("id"), Some(&Value::Unknown));
        assert_eq!(response.planned.get("output"), Some(&Value::Unknown));
        let call = ApplyRequest { prior: None, config, planned: Some(response.planned), private: response.private };
        let (first, again) = (apply(&call).object.unwrap(), apply(&call).object.unwrap());
        assert_eq!(first, again, "recovery creates the same object");
        assert_eq!(first.value.get("id").and_then(Value::as_str).map(str::len), Some(36));
        assert_eq!(first.value.get("output"), Some(&Value::from("x").into_sensitive()));
    }

    #[test]
    fn output_is_null_without_input() {
        let response = plan(&request(None, Value::map::<&str>([])));
        assert_eq!(response.planned.get("output"), Some(&Value::Null));
    }

    #[test]
    fn an_unchanged_configuration_plans_no_change() {
        let response = plan(&request(Some(&stored("x")), Value::map([("input", Value::from("x"))])));
        assert_eq!(response.planned, stored("x"));
        assert!(response.requires_replace.is_empty());
    }

    #[test]
    fn a_changed_or_partly_unknown_input_makes_the_output_unknown() {
        let partly = Value::map([("a", Value::Unknown), ("b", Value::from("x"))]);
        for input in [Value::from("y"), Value::Unknown, partly] {
            let response = plan(&request(Some(&stored("x")), Value::map([("input", input)])));
            assert_eq!(response.planned.get("output"), Some(&Value::Unknown));
            assert_eq!(response.planned.get("id"), Some(&Value::from("an-id")));
        }
    }

    #[test]
    fn a_changed_or_unknown_trigger_replaces() {
        for trigger in [Value::from("y"), Value::Unknown] {
            let config = Value::map([("input", Value::from("x")), ("triggers_replace", trigger)]);
            let response = plan(&request(Some(&stored("x")), config));
            assert_eq!(response.requires_replace, [Path::default().name("triggers_replace")]);
            assert_eq!(response.planned.get("id"), Some(&Value::Unknown));
        }
    }

    #[tokio::test]
    async fn only_a_null_resource_can_be_moved_and_keeps_its_id() {
        let source = |source: &str| {
            let text = serde_json::json!({"name": "null", "source": source, "package": {"path": "x"}});
            let provider = Arc::new(serde_json::from_value(text).unwrap());
            Some(Arc::new(model::ProviderUse::new("null".into(), provider, Value::Null)))
        };
        let triggers = Value::map([("a", Value::from("x"))]);
        let value = Value::map([("id", Value::from("1234")), ("triggers", triggers.clone())]);
        let take = async |type_name: &str, provider: &str| {
            let object = RecordedObject { provider: source(provider), ..recorded(value.clone()) };
            TerraformData::new().take_over(&context(TYPE_NAME), type_name, &object).await
        };
        let own = "registry.opentofu.org/hashicorp/null";
        let taken = take("null_resource", own).await.unwrap();
        assert_eq!(taken.value, object(Value::Null, Value::Null, triggers.clone(), "1234".into()));
        let config = Value::map([("triggers_replace", triggers)]);
        assert_eq!(plan(&request(Some(&taken.value), config)).planned, taken.value, "the plan has no changes");
        assert!(take("null_other", own).await.is_err() && take("null_resource", "example.com/x/null").await.is_err());
    }

    #[tokio::test]
    async fn invalid_arguments_are_reported_with_their_path() {
        let config = Value::map([("inptu", Value::from("x")), ("id", Value::from("y")), ("input", Value::Unknown)]);
        let found = TerraformData::new().validate(&context(TYPE_NAME), &config).await.unwrap();
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "web: id: `id` is set by Purlin and cannot be configured \
                 (hint: remove it; other Resources can reference it)",
                "web: inptu: `terraform_data` has no argument `inptu` \
                 (hint: its arguments are `input`, `triggers_replace`)",
            ]
        );
    }
}

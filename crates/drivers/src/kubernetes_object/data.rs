//! `kubernetes_object` as a data source: reads an existing object by apiVersion, kind and name. A namespaced object is
//! read only from the namespace of the `DataSource`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{CallContext, DataPlan, DataSources, arguments};
use model::{AttributeType, Diagnostics, DriverError, ErrorKind, Path, Provider, Schema, Value, kube_names};

use super::target::Target;
use super::{KubernetesObject, TYPE_NAME, no_such_kind, object};

const ARGUMENTS: [(&str, &str); 3] = [
    ("apiVersion", "The group and version of the object, such as `v1` or `apps/v1`."),
    ("kind", "The kind of the object, such as `ConfigMap`."),
    ("name", "The name of the object. A namespaced object is read from the namespace of the DataSource."),
];

pub fn schema() -> Schema {
    let texts = ARGUMENTS.map(|(name, about)| (name, arguments::argument(AttributeType::String, true, about)));
    let object = AttributeType::Map(Box::new(AttributeType::Any));
    let computed = [
        ("id", arguments::computed(AttributeType::String, "The UID of the object.")),
        ("object", arguments::computed(object, "The object as returned by the API server, without `managedFields`.")),
    ];
    let attributes: BTreeMap<Arc<str>, _> =
        texts.into_iter().chain(computed).map(|(name, attribute)| (Arc::from(name), attribute)).collect();
    Schema { attributes, ..Schema::default() }
}

/// Rejects strings that cannot name an object.
fn check(context: &CallContext, config: &Value) -> Diagnostics {
    let rules: [fn(&str) -> bool; 3] = [kube_names::is_api_version, kube_names::is_kind, kube_names::is_name];
    let texts =
        ARGUMENTS.iter().map(|(name, _)| (*name, config.get(name).map(Value::unmarked).and_then(Value::as_str)));
    let invalid = texts.zip(rules).filter(|((_, text), is_valid)| text.is_some_and(|text| !is_valid(text)));
    let errors = invalid.map(|((name, _), _)| {
        let what = if config.get(name).and_then(Value::as_str) == Some("") { "empty" } else { "not valid" };
        arguments::error(context, Path::default().name(name), format!("`{name}` is {what}"))
    });
    errors.collect()
}

fn value(config: &Value, id: Value, object: Value) -> Value {
    let given = ARGUMENTS.map(|(name, _)| (name, config.get(name).cloned().unwrap_or_default()));
    Value::map(given.into_iter().chain([("id", id), ("object", object)]))
}

#[async_trait]
impl DataSources for KubernetesObject {
    fn data_schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        (type_name == TYPE_NAME).then(|| Arc::clone(&self.data_schema))
    }

    async fn plan_data(&self, context: &CallContext, config: &Value) -> Result<DataPlan, DriverError> {
        let mut diagnostics = arguments::check(context, &self.data_schema, config);
        diagnostics.extend(check(context, config));
        Ok((diagnostics, value(config, Value::Unknown, Value::Unknown)))
    }

    async fn read_data(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        self.read_existing(context, config).await
    }
}

impl KubernetesObject {
    /// Reads the object; a missing object is an error.
    async fn read_existing(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        let [api_version, kind_name, name] = ["apiVersion", "kind", "name"]
            .map(|name| config.get(name).and_then(|value| value.unmarked().as_str()).unwrap_or_default());
        let kind = self.kind(context, api_version, kind_name).await?;
        let kind = kind.ok_or_else(|| {
            let error = no_such_kind(api_version, kind_name);
            DriverError { path: Some(Path::default().name("kind")), ..error }
        })?;
        let target = Target {
            api_version: api_version.to_owned(),
            kind: kind_name.to_owned(),
            namespace: if kind.namespaced { context.namespace.to_string() } else { String::new() },
            name: name.to_owned(),
        };
        let live = self.live(context, &target).await?.ok_or_else(|| DriverError {
            kind: ErrorKind::Transient,
            message: format!("{target} does not exist"),
            path: Some(Path::default().name("name")),
            hint: Some("if a Resource creates it, reference that Resource or add it to `dependsOn`".to_owned()),
        })?;
        let state = object::state(&live, &Value::Null).value;
        let [id, object] = ["id", "object"].map(|name| state.get(name).cloned().unwrap_or_default());
        Ok(value(config, id, object))
    }
}

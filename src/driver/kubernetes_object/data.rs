//! `kubernetes_object` as a data source: an object that exists, by apiVersion, kind and name. An object of a namespace is
//! looked for in the namespace of the `DataSource` only.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::driver::{CallContext, DataSources, Expected, arguments};
use crate::model::{AttributeType, Diagnostics, DriverError, ErrorKind, Path, Provider, Schema, Value};

use super::target::Target;
use super::{KubernetesObject, TYPE_NAME, no_such_kind, object};

const ARGUMENTS: [(&str, &str); 3] = [
    ("apiVersion", "The group and version of the object, such as `v1` or `apps/v1`."),
    ("kind", "The kind of the object, such as `ConfigMap`."),
    ("name", "Its name. An object of a namespace is looked for in that of the DataSource."),
];

/// What may be said, and what is read.
pub(super) fn schema() -> Schema {
    let texts = ARGUMENTS.map(|(name, about)| (name, arguments::argument(AttributeType::String, true, about)));
    let object = AttributeType::Map(Box::new(AttributeType::Any));
    let computed = [
        ("id", arguments::computed(AttributeType::String, "The UID of the object.")),
        ("object", arguments::computed(object, "The object as the server has it, without `managedFields`.")),
    ];
    let attributes: BTreeMap<Arc<str>, _> =
        texts.into_iter().chain(computed).map(|(name, attribute)| (Arc::from(name), attribute)).collect();
    Schema { version: 0, attributes }
}

/// What is wrong with a configuration, beyond its names.
fn check(context: &CallContext, config: &Value) -> Diagnostics {
    let is_empty = |name: &str| config.get(name).and_then(Value::as_str).is_some_and(str::is_empty);
    let empty = ARGUMENTS.iter().filter(|(name, _)| is_empty(name));
    empty
        .map(|(name, _)| arguments::error(context, Path::default().name(*name), format!("`{name}` is empty")))
        .collect()
}

/// The value of a data source.
fn value(config: &Value, id: Value, object: Value) -> Value {
    let given = ARGUMENTS.map(|(name, _)| (name, config.get(name).cloned().unwrap_or_default()));
    Value::map(given.into_iter().chain([("id", id), ("object", object)]))
}

impl DataSources for KubernetesObject {
    fn data_schema(&self, type_name: &str, _: Option<&Provider>) -> Option<Arc<Schema>> {
        (type_name == TYPE_NAME).then(|| Arc::clone(&self.data_schema))
    }

    fn expect_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Expected, DriverError>> {
        Box::pin(async {
            let mut found = arguments::check(context, &self.data_schema, config);
            found.extend(check(context, config));
            Ok((found, value(config, Value::Unknown, Value::Unknown)))
        })
    }

    fn read_data<'a>(
        &'a self,
        context: &'a CallContext,
        config: &'a Value,
    ) -> BoxFuture<'a, Result<Value, DriverError>> {
        Box::pin(self.read_existing(context, config))
    }
}

impl KubernetesObject {
    /// Reads the object that is named. It is an error when there is none.
    async fn read_existing(&self, context: &CallContext, config: &Value) -> Result<Value, DriverError> {
        let text = |name: &str| config.get(name).and_then(|value| value.unmarked().as_str()).unwrap_or_default();
        let (api_version, kind_name) = (text("apiVersion"), text("kind"));
        let kind = self.kind(context, api_version, kind_name).await?;
        let kind = kind.ok_or_else(|| {
            let error = no_such_kind(api_version, kind_name);
            DriverError { path: Some(Path::default().name("kind")), ..error }
        })?;
        let target = Target {
            api_version: api_version.to_owned(),
            kind: kind_name.to_owned(),
            namespace: if kind.namespaced { context.namespace.to_string() } else { String::new() },
            name: text("name").to_owned(),
        };
        let live = self.live(context, &target).await?.ok_or_else(|| DriverError {
            kind: ErrorKind::Transient,
            message: format!("there is no {target}"),
            path: Some(Path::default().name("name")),
            hint: Some(
                "it is read once it exists; if a Resource makes it, refer to that one or name it in `dependsOn`"
                    .to_owned(),
            ),
        })?;
        let found = object::state(&live, &Value::Null).value;
        let part = |name: &str| found.get(name).cloned().unwrap_or_default();
        Ok(value(config, part("id"), part("object")))
    }
}

//! The provider `corner` with its directory, and helpers that call it for one object.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use purlin::cty::json::{self, UnsupportedAttributes};
use purlin::cty::{Type, Value};
use purlin::plugin::{
    ApplyResourceChange, ApplyResourceChangeResponse, Client, DynamicValue, Identity, Launch, PlanResourceChange,
    PlanResourceChangeResponse, PluginError, ReadResource, ReadResourceResponse,
};
use serde_json::json;

use super::launch;

pub(super) struct Corner {
    pub(super) client: Client,
    types: BTreeMap<String, Type>,
    directory: tempfile::TempDir,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) state: Value,
    pub(super) private: Vec<u8>,
    pub(super) identity: Option<Identity>,
}

impl Corner {
    pub(super) async fn start() -> Self {
        Self::with(launch("corner"), json!({})).await
    }

    /// Starts a provider with a configuration, to which the directory is added for `corner` and `legacy`.
    pub(super) async fn with(launch: Launch, mut settings: serde_json::Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        if ["corner", "legacy"].contains(&launch.name.as_str()) {
            settings["folder"] = json!(directory.path());
        }
        let client = Client::start(&launch).await.unwrap();
        let (schema, said) = client.schema().await.unwrap();
        assert!(said.is_empty(), "{said:?}");
        let names: Vec<String> = schema.resource_types().map(str::to_owned).collect();
        let resource = |name: &str| schema.resource(name).unwrap().unwrap().ty().clone();
        let mut types: BTreeMap<_, _> = names.iter().map(|name| (name.clone(), resource(name))).collect();
        if let Some(lookup) = schema.data_source("corner_lookup").unwrap() {
            types.insert("corner_lookup".into(), lookup.ty().clone());
        }
        let provider = schema.provider().unwrap().ty().clone();
        client.validate_and_configure(encoded(&filled(settings, &provider), &provider)).await.unwrap();
        Self { client, types, directory }
    }

    pub(super) fn directory_path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the number of existing objects.
    pub(super) fn objects(&self) -> usize {
        let markers = ["started", "release"];
        let files = fs::read_dir(self.directory_path()).unwrap().map(|entry| entry.unwrap().file_name());
        files.filter(|name| !markers.iter().any(|marker| name == marker)).count()
    }

    pub(super) fn type_of(&self, name: &str) -> &Type {
        &self.types[name]
    }

    pub(super) fn value(&self, name: &str, config: serde_json::Value) -> Value {
        filled(config, self.type_of(name))
    }

    pub(super) fn encoded(&self, name: &str, value: &Value) -> DynamicValue {
        encoded(value, self.type_of(name))
    }

    pub(super) fn decoded(&self, name: &str, value: &DynamicValue) -> Value {
        value.value(self.type_of(name)).unwrap()
    }

    /// Plans a create or an update. The proposed value has the prior computed attributes and the configured others.
    pub(super) async fn plan(
        &self,
        name: &str,
        prior: Option<&Object>,
        config: &Value,
    ) -> Result<PlanResourceChangeResponse, PluginError> {
        let state = prior.map_or(Value::NULL, |prior| prior.state.clone());
        let kept = |attribute: &str| state.get(attribute).filter(|_| ["id", "token"].contains(&attribute)).cloned();
        let proposed = config.as_entries().unwrap().iter().map(|(attribute, value)| {
            let kept = kept(attribute).filter(|_| value.is_null());
            (attribute.clone(), kept.unwrap_or_else(|| value.clone()))
        });
        let request = PlanResourceChange {
            type_name: name.into(),
            prior: self.encoded(name, &state),
            proposed: self.encoded(name, &Value::of_entries(self.type_of(name), proposed.collect())),
            config: self.encoded(name, config),
            prior_private: prior.map(|prior| prior.private.clone()).unwrap_or_default(),
            ..PlanResourceChange::default()
        };
        self.client.plan_resource_change(request).await
    }

    pub(super) fn application(
        &self,
        name: &str,
        prior: Option<&Object>,
        config: &Value,
        planned: &PlanResourceChangeResponse,
    ) -> ApplyResourceChange {
        let state = prior.map_or(Value::NULL, |prior| prior.state.clone());
        ApplyResourceChange {
            type_name: name.into(),
            prior: self.encoded(name, &state),
            planned: self.encoded(name, &self.decoded(name, &planned.state)),
            config: self.encoded(name, config),
            planned_private: planned.private.clone(),
            ..ApplyResourceChange::default()
        }
    }

    pub(super) async fn change(
        &self,
        name: &str,
        prior: Option<&Object>,
        config: serde_json::Value,
    ) -> Result<ApplyResourceChangeResponse, PluginError> {
        let config = self.value(name, config);
        let planned = self.plan(name, prior, &config).await?;
        assert!(planned.diagnostics.is_empty(), "{:?}", planned.diagnostics);
        self.client.apply_resource_change(self.application(name, prior, &config, &planned)).await
    }

    /// Creates an object, and requires success.
    pub(super) async fn create(&self, name: &str, config: serde_json::Value) -> Object {
        let applied = self.change(name, None, config).await.unwrap();
        assert!(applied.diagnostics.is_empty(), "{:?}", applied.diagnostics);
        self.object(name, applied)
    }

    pub(super) fn object(&self, name: &str, applied: ApplyResourceChangeResponse) -> Object {
        Object { state: self.decoded(name, &applied.state), private: applied.private, identity: applied.identity }
    }

    pub(super) async fn read(&self, name: &str, object: &Object) -> Result<ReadResourceResponse, PluginError> {
        let request = ReadResource {
            type_name: name.into(),
            state: self.encoded(name, &object.state),
            private: object.private.clone(),
            ..ReadResource::default()
        };
        self.client.read_resource(request).await
    }

    pub(super) async fn destroy(
        &self,
        name: &str,
        object: &Object,
    ) -> Result<ApplyResourceChangeResponse, PluginError> {
        let request = ApplyResourceChange {
            type_name: name.into(),
            prior: self.encoded(name, &object.state),
            planned: DynamicValue::null(),
            config: DynamicValue::null(),
            planned_private: object.private.clone(),
            ..ApplyResourceChange::default()
        };
        self.client.apply_resource_change(request).await
    }

    /// Waits until a call runs its slow part.
    pub(super) async fn at_work(&self) {
        while !self.directory_path().join("started").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn encoded(value: &Value, ty: &Type) -> DynamicValue {
    DynamicValue::of(value, ty).unwrap()
}

/// Adds null for the missing attributes of an object type.
fn filled(mut given: serde_json::Value, ty: &Type) -> Value {
    let Type::Object(object) = ty else { panic!("an object's type") };
    for name in object.attributes.keys() {
        given.as_object_mut().unwrap().entry(name.as_ref()).or_insert(serde_json::Value::Null);
    }
    json::decode(given.to_string().as_bytes(), ty, UnsupportedAttributes::Reject).unwrap()
}

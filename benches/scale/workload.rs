//! Many objects of one kind: how they are written and changed.

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::audit::CONTROLLER;

pub(crate) struct Workload {
    /// The program and the kind of object, for the table.
    pub(crate) program: &'static str,
    pub(crate) objects: &'static str,
    pub(crate) api: ApiResource,
    /// The user of the controller, whose writes are counted.
    pub(crate) user: &'static str,
    /// The manifest of an object.
    pub(crate) manifest: fn(name: &str) -> Value,
    /// The merge patch that gives an object another value.
    pub(crate) change: fn(value: &str) -> Value,
}

impl Workload {
    /// Resources of a type.
    pub(crate) fn of_type(name: &str) -> Result<Self, String> {
        let workload = |objects, manifest, change| Self {
            program: "Purlin",
            objects,
            api: resources(),
            user: CONTROLLER,
            manifest,
            change,
        };
        match name {
            "kubernetes_object" => Ok(workload("ConfigMaps", config_map, change_config_map)),
            "terraform_data" => Ok(workload("`terraform_data`", data, change_data)),
            _ => Err(format!("types={name}: only kubernetes_object and terraform_data are measured")),
        }
    }
}

/// The kind Resource.
pub(crate) fn resources() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("purlin.dev", "v1alpha1", "Resource"))
}

/// A Resource.
pub(crate) fn resource(name: &str, type_name: &str, config: &Value) -> Value {
    json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": name},
           "spec": {"type": type_name, "config": config}})
}

fn data(name: &str) -> Value {
    resource(name, "terraform_data", &json!({"input": format!("the input of {name}")}))
}

fn change_data(value: &str) -> Value {
    json!({"spec": {"config": {"input": value}}})
}

fn config_map(name: &str) -> Value {
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "first"}});
    resource(name, "kubernetes_object", &json!({ "manifest": manifest }))
}

fn change_config_map(value: &str) -> Value {
    json!({"spec": {"config": {"manifest": {"data": {"value": value}}}}})
}

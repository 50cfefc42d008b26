//! The state that records were migrated from: its addresses, and what it has in addition to objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::address::{ResourceAddress, instance_key};
use super::super::configuration::Configuration;
use super::super::gather::built_in;
use super::super::{Problem, moved, names, state};
use cty::json;
use drivers::terraform_data;
use model::{InstanceKey, Value};

#[derive(Debug)]
pub struct Base {
    pub lineage: String,
    pub serial: u64,
    pub written_by: String,
    /// The JSON of its outputs.
    pub outputs: String,
    pub check_results: String,
    /// The JSON of each data source.
    pub data: Vec<String>,
    /// By type and name of the Resource.
    resources: BTreeMap<(String, Arc<str>), KnownResource>,
}

/// A resource of the state.
#[derive(Debug)]
pub struct KnownResource {
    pub address: ResourceAddress,
    pub provider: String,
    /// The paths of sensitive values. Values of the configuration can be sensitive although the schema does not say so.
    pub sensitive: BTreeMap<InstanceKey, Vec<Json>>,
    /// The attributes of `terraform_data`, whose types the records do not have.
    built_in: BTreeMap<InstanceKey, (Value, String)>,
}

impl Base {
    /// Reads a state. `chosen` are the names that the migration was given; `configuration` has the `moved` blocks that
    /// it applied.
    ///
    /// # Errors
    /// It is not a state, or its resources have no names.
    pub fn parse(
        text: &str,
        configuration: Option<&Configuration>,
        chosen: &BTreeMap<String, String>,
    ) -> Result<Self, Problem> {
        let mut parsed = state::parse(text)?;
        if let Some(configuration) = configuration {
            moved::apply(&mut parsed, configuration);
        }
        let addresses: Vec<&ResourceAddress> = parsed.resources.iter().map(|resource| &resource.address).collect();
        let first = |problems: Vec<Problem>| problems.into_iter().next().unwrap_or_else(|| Problem::plain("no names"));
        let names = names::names(&addresses, chosen).map_err(first)?;
        let unreadable = |error: cty::Error| Problem::plain(format!("the state cannot be read: {error}"));
        let members: BTreeMap<String, &str> = json::members(text).map_err(unreadable)?.into_iter().collect();
        let texts = json::elements(members.get("resources").copied().unwrap_or("[]")).map_err(unreadable)?;
        let mut resources = BTreeMap::new();
        for (resource, name) in parsed.resources.iter().zip(names) {
            let address = resource.address.clone();
            let current = || resource.objects.iter().filter(|object| object.deposed.is_none());
            let key = |object: &state::Object| instance_key(object.key.as_ref());
            let known = KnownResource {
                provider: resource.provider.to_string(),
                sensitive: current().map(|object| (key(object), object.sensitive_steps.clone())).collect(),
                built_in: built_in_values(resource),
                address,
            };
            resources.insert((resource.address.type_name.clone(), name), known);
        }
        let is_data = |text: &&&str| serde_json::from_str::<Json>(text).is_ok_and(|one| one["mode"] == "data");
        let data = texts.iter().filter(is_data).map(|text| (*text).to_owned()).collect();
        let member = |name: &str, default: &str| members.get(name).copied().unwrap_or(default).to_owned();
        let text = |name: &str| serde_json::from_str::<String>(&member(name, "\"\"")).unwrap_or_default();
        Ok(Self {
            lineage: text("lineage"),
            serial: member("serial", "0").parse().unwrap_or_default(),
            written_by: text("terraform_version"),
            outputs: member("outputs", "{}"),
            check_results: member("check_results", "null"),
            data,
            resources,
        })
    }

    pub fn resource(&self, type_name: &str, name: &str) -> Option<&KnownResource> {
        self.resources.get(&(type_name.to_owned(), Arc::from(name)))
    }
}

fn built_in_values(resource: &state::Resource) -> BTreeMap<InstanceKey, (Value, String)> {
    if resource.provider.source != terraform_data::PROVIDER {
        return BTreeMap::new();
    }
    let current = resource.objects.iter().filter(|object| object.deposed.is_none());
    let value = |object: &state::Object| {
        let value = built_in(&object.content).ok()?;
        Some((instance_key(object.key.as_ref()), (value, object.content.attributes.clone())))
    };
    current.filter_map(value).collect()
}

impl KnownResource {
    /// The path of its module.
    pub fn module(&self) -> String {
        let own = format!("{}.{}", self.address.type_name, self.address.name);
        self.address.to_string().strip_suffix(&own).unwrap_or_default().trim_end_matches('.').to_owned()
    }

    /// The attributes of an instance of `terraform_data`, if it has this value.
    pub fn built_in(&self, key: &InstanceKey, value: &Value) -> Option<&str> {
        let (known, text) = self.built_in.get(key)?;
        known.equals_unmarked(value).then_some(text.as_str())
    }
}

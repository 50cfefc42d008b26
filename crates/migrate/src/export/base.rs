//! The state that records were taken over from: what it has in addition to objects.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::{Problem, built_in, state};
use configuration::{ProviderSource, ResourceAddress};
use cty::json;
use model::{DeposedKey, InstanceKey, Name, Value};

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
    /// The addresses of providers as they are written.
    pub sources: BTreeMap<ProviderSource, String>,
    pub objects: BTreeMap<(ResourceAddress, InstanceKey, Option<DeposedKey>), KnownObject>,
}

/// An object of the state.
#[derive(Debug)]
pub struct KnownObject {
    /// The paths of sensitive values. Values of the configuration can be sensitive although the schema does not say so.
    pub sensitive: Vec<Json>,
    /// The value and the attributes of `terraform_data`, whose types the records do not have.
    built_in: Option<(Value, String)>,
}

impl Base {
    /// Reads a state.
    ///
    /// # Errors
    /// It is not a state.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let parsed = state::parse(text)?;
        let members = json::members(text).map_err(|error| unreadable(&error))?;
        let members: BTreeMap<String, &str> = members.into_iter().collect();
        let texts = json::elements(members.get("resources").copied().unwrap_or("[]"));
        let texts = texts.map_err(|error| unreadable(&error))?;
        let resources: Vec<(Json, &str)> =
            texts.into_iter().filter_map(|text| Some((serde_json::from_str(text).ok()?, text))).collect();
        let data = resources.iter().filter(|(resource, _)| resource["mode"] == "data");
        let data = data.map(|(_, text)| (*text).to_owned()).collect();
        let sources = resources.iter().flat_map(|(resource, _)| sources(resource)).collect();
        let mut objects = BTreeMap::new();
        for resource in parsed.resources {
            for object in &resource.objects {
                let key = terraform::address(&Name::default(), &resource.instance(object)).key;
                let value = built_in::value(&object.content).ok().filter(|_| object.provider.source.is_built_in());
                let known = KnownObject {
                    sensitive: object.sensitive_steps.clone(),
                    built_in: value.map(|value| (value, object.content.attributes.clone())),
                };
                objects.insert((resource.address.clone(), key, object.deposed), known);
            }
        }
        let written_by = members.get("terraform_version").and_then(|text| serde_json::from_str(text).ok());
        Ok(Self {
            lineage: parsed.lineage,
            serial: parsed.serial,
            written_by: written_by.unwrap_or_default(),
            outputs: parsed.outputs,
            check_results: members.get("check_results").copied().unwrap_or("null").to_owned(),
            data,
            sources,
            objects,
        })
    }
}

/// The addresses of providers that a resource and its instances name.
fn sources(resource: &Json) -> Vec<(ProviderSource, String)> {
    let of_instances = resource["instances"].as_array().into_iter().flatten().map(|instance| &instance["provider"]);
    let texts = std::iter::once(&resource["provider"]).chain(of_instances).filter_map(Json::as_str);
    let written = texts.filter_map(|text| Some(text.split_once("provider[\"")?.1.split_once("\"]")?.0));
    written.filter_map(|text| Some((ProviderSource::parse(text)?, text.to_owned()))).collect()
}

impl KnownObject {
    /// The attributes of an object of `terraform_data`, if it has this value.
    pub fn attributes_of(&self, value: &Value) -> Option<&str> {
        let (known, text) = self.built_in.as_ref()?;
        known.equals_unmarked(value).then_some(text.as_str())
    }
}

fn unreadable(error: &cty::Error) -> Problem {
    Problem::plain(format!("the state cannot be read: {error}"))
}

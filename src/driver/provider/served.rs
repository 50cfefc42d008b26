//! What a provider serves, as it tells once when it is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::schema::{self, ResourceType};
use super::told;
use crate::cty::schema::Block;
use crate::driver::ProviderFacts;
use crate::model::DriverError;
use crate::plugin::schema::{IdentitySchema, ProviderSchema};
use crate::process::lock;

/// The schemas of a provider. One of a type is worked out when it is first needed: large providers have a thousand.
#[derive(Debug)]
pub(super) struct Served {
    told: ProviderSchema,
    identities: BTreeMap<String, IdentitySchema>,
    settings: Block,
    facts: ProviderFacts,
    types: Mutex<BTreeMap<Arc<str>, Option<Arc<ResourceType>>>>,
    data: Mutex<BTreeMap<Arc<str>, Option<Arc<ResourceType>>>>,
}

impl Served {
    /// From what a provider tells.
    pub fn new(
        told: ProviderSchema,
        identities: BTreeMap<String, IdentitySchema>,
        facts: ProviderFacts,
    ) -> Result<Self, DriverError> {
        let settings = told.provider().map_err(|error| told::fault(error.to_string()))?;
        let settings = schema::block(&settings.block).map_err(|error| told::fault(error.to_string()))?;
        Ok(Self { told, identities, settings, facts, types: Mutex::default(), data: Mutex::default() })
    }

    /// What is known of the program.
    pub fn facts(&self) -> &ProviderFacts {
        &self.facts
    }

    /// The schema of its settings.
    pub fn settings(&self) -> &Block {
        &self.settings
    }

    /// Whether it takes part in planning a destroy.
    pub fn plans_destroys(&self) -> bool {
        self.told.capabilities.plan_destroy
    }

    /// Whether it makes configurations of states.
    pub fn generates_config(&self) -> bool {
        self.told.capabilities.generate_config
    }

    /// Whether each of its processes must be asked for its schema before anything else.
    pub fn wants_to_be_asked(&self) -> bool {
        !self.told.capabilities.schema_is_optional
    }

    /// The names of its resource types, or of its data sources.
    pub fn types(&self, is_data: bool) -> Vec<String> {
        match is_data {
            true => self.told.data_source_types().map(str::to_owned).collect(),
            false => self.told.resource_types().map(str::to_owned).collect(),
        }
    }

    /// A resource type; `None` when it has none of that name.
    pub fn resource(&self, type_name: &str) -> Result<Option<Arc<ResourceType>>, DriverError> {
        if let Some(known) = lock(&self.types).get(type_name) {
            return Ok(known.clone());
        }
        let told = self.told.resource(type_name).map_err(|error| told::fault(error.to_string()))?;
        let made = told.map(|told| ResourceType::new(&told, self.identities.get(type_name)).map(Arc::new));
        let made = made.transpose().map_err(|error| told::fault(format!("the type `{type_name}`: {error}")))?;
        lock(&self.types).insert(type_name.into(), made.clone());
        Ok(made)
    }

    /// A type of data sources; `None` when it has none of that name.
    pub fn data(&self, type_name: &str) -> Result<Option<Arc<ResourceType>>, DriverError> {
        if let Some(known) = lock(&self.data).get(type_name) {
            return Ok(known.clone());
        }
        let told = self.told.data_source(type_name).map_err(|error| told::fault(error.to_string()))?;
        let made = told.map(|told| ResourceType::new(&told, None).map(Arc::new)).transpose();
        let made = made.map_err(|error| told::fault(format!("the data source `{type_name}`: {error}")))?;
        lock(&self.data).insert(type_name.into(), made.clone());
        Ok(made)
    }
}

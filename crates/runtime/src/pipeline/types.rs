//! The types that the planner can use: those of the drivers.

use std::sync::Arc;

use drivers::Registry;
use engine::plan::Types;
use model::suggest::closest;
use model::{DriverError, ImportRequest, Provider, Schema, Value};

/// What the planner asks about the types of drivers.
pub struct DriverTypes<'a>(pub &'a Registry);

impl Types for DriverTypes<'_> {
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.get(type_name)?.schema(type_name, provider)
    }

    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        self.0.get(type_name)?.data()?.data_schema(type_name, provider)
    }

    fn closest(&self, type_name: &str, provider: Option<&Provider>, is_data: bool) -> Option<String> {
        let served = |name: &&Arc<str>| match is_data {
            true => self.data_schema(name, None).is_some(),
            false => self.schema(name, None).is_some(),
        };
        let own = self.0.types().filter(|_| provider.is_none()).filter(served).map(ToString::to_string);
        let of_providers = self.0.providers().map(|providers| providers.types(provider, is_data)).unwrap_or_default();
        let all: Vec<String> = own.chain(of_providers).collect();
        // All types of a provider share a prefix, which is ignored in the comparison.
        let begins = provider.and_then(|_| type_name.find('_')).map_or("", |end| &type_name[..=end]);
        let rest = |name: &'_ String| name.strip_prefix(begins).map(str::to_owned);
        let rests: Vec<String> = all.iter().filter_map(rest).collect();
        let meant = closest(&type_name[begins.len()..], rests.iter().map(String::as_str))?;
        Some(format!("{begins}{meant}"))
    }

    fn import_identities(&self, type_name: &str, namespace: &str, request: &ImportRequest) -> Vec<Value> {
        self.0.get(type_name).map(|driver| driver.import_identities(namespace, request)).unwrap_or_default()
    }

    fn config_identities(&self, type_name: &str, namespace: &str, config: &Value) -> Vec<Value> {
        self.0.get(type_name).map(|driver| driver.config_identities(namespace, config)).unwrap_or_default()
    }

    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        self.0.providers()?.preparation_error(provider)
    }
}

//! Parses a state of version 4 from Terraform or OpenTofu.
//!
//! Attributes stay JSON strings, because only the provider's schema defines their types, and numbers keep all digits.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::Problem;
use super::address::{self, Key, ModuleStep, ResourceAddress, instance_key};
use cty::json;
use drivers::provider::ForeignObject;
use model::{DeposedKey, Path, Segment};

/// The supported version of states.
pub const VERSION: u64 = 4;

#[derive(Debug, Default)]
pub struct ParsedState {
    /// The managed resources, in the order of the state.
    pub resources: Vec<Resource>,
    /// The data sources that can be parsed.
    pub data: Vec<Resource>,
    pub outputs: Vec<String>,
}

/// One resource with all its instances.
#[derive(Debug)]
pub struct Resource {
    pub address: ResourceAddress,
    /// The provider configuration.
    pub provider: ProviderAddress,
    pub objects: Vec<Object>,
}

/// The address of a provider configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderAddress {
    /// `HOST/NAMESPACE/TYPE`.
    pub source: String,
    /// The module that contains the configuration.
    pub module: Vec<ModuleStep>,
    pub alias: Option<String>,
}

impl fmt::Display for ProviderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, key) in &self.module {
            write!(f, "module.{name}{}.", instance_key(key.as_ref()))?;
        }
        write!(f, "provider[{}]", serde_json::Value::from(self.source.as_str()))?;
        self.alias.as_ref().map_or(Ok(()), |alias| write!(f, ".{alias}"))
    }
}

#[derive(Debug)]
pub struct Object {
    /// The key of the instance.
    pub key: Option<Key>,
    /// The object was replaced and must still be destroyed.
    pub deposed: Option<DeposedKey>,
    /// Its creation failed partially.
    pub tainted: bool,
    /// The data of its provider.
    pub content: ForeignObject,
    /// The paths of sensitive values.
    pub sensitive: Vec<Path>,
    /// The same as in the state, where steps into maps and objects differ.
    pub sensitive_steps: Vec<serde_json::Value>,
    /// The dependencies, as addresses in the configuration.
    pub dependencies: Vec<String>,
    /// A replacement creates the new object before it destroys the old one.
    pub create_before_destroy: bool,
    /// The configuration has `lifecycle { destroy = false }`: the object is forgotten instead of destroyed.
    pub skip_destroy: bool,
}

impl Resource {
    /// Returns the address of the instance of an object.
    pub fn instance(&self, object: &Object) -> String {
        format!("{}{}", self.address, instance_key(object.key.as_ref()))
    }
}

#[derive(Deserialize)]
struct StateHeader {
    version: Option<u64>,
    #[serde(default)]
    encrypted_data: Option<serde_json::Value>,
    #[serde(default)]
    outputs: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StepValue {
    Name(String),
    Typed { value: serde_json::Value },
}

#[derive(Deserialize)]
struct Step {
    value: StepValue,
}

fn unreadable(what: impl std::fmt::Display) -> Problem {
    let hint = "pass a state file, or the output of `terraform state pull`";
    Problem::hinted(format!("the state cannot be read: {what}"), hint)
}

/// Reads a state.
///
/// # Errors
/// When it is encrypted, of another version, or no state.
pub fn parse(text: &str) -> Result<ParsedState, Problem> {
    let head: StateHeader = serde_json::from_str(text).map_err(unreadable)?;
    if head.encrypted_data.is_some() {
        let hint = "decrypt it in the directory of its configuration: `tofu state pull > FILE`";
        return Err(Problem::hinted("the state is encrypted", hint));
    }
    match head.version {
        Some(VERSION) => {}
        Some(version) => {
            let hint = "`terraform state pull` or `tofu state pull` writes a state of version 4";
            return Err(Problem::hinted(format!("the state has version {version}, not 4"), hint));
        }
        None => return Err(unreadable("it has no `version`")),
    }
    let mut state =
        ParsedState { outputs: head.outputs.into_iter().map(|(name, _)| name).collect(), ..ParsedState::default() };
    let members = json::members(text).map_err(|error| unreadable(error.to_string()))?;
    let Some(resources) = member(&members, "resources") else { return Ok(state) };
    for (position, text) in json::elements(resources).map_err(|error| unreadable(error.to_string()))?.iter().enumerate()
    {
        resource(text, &mut state).map_err(|what| unreadable(format!("resources[{position}]: {what}")))?;
    }
    Ok(state)
}

fn member<'t>(members: &[(String, &'t str)], name: &str) -> Option<&'t str> {
    members.iter().rev().find(|(key, _)| key == name).map(|(_, text)| *text).filter(|text| *text != "null")
}

/// Parses a member with serde. A missing member has its default.
fn read<T: serde::de::DeserializeOwned + Default>(members: &[(String, &str)], name: &str) -> Result<T, String> {
    let Some(text) = member(members, name) else { return Ok(T::default()) };
    serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))
}

fn resource(text: &str, state: &mut ParsedState) -> Result<(), String> {
    let members = json::members(text).map_err(|error| error.to_string())?;
    let module: String = read(&members, "module")?;
    let is_data = match read::<String>(&members, "mode")?.as_str() {
        "managed" => false,
        "data" => true,
        other => return Err(format!("unknown mode `{other}`")),
    };
    let address = ResourceAddress {
        module: address::module(&module).ok_or_else(|| format!("`{module}` is not a valid module path"))?,
        is_data,
        type_name: read(&members, "type")?,
        name: read(&members, "name")?,
    };
    let provider: String = read(&members, "provider")?;
    let (provider, key) =
        provider_address(&provider).ok_or_else(|| format!("`{provider}` is not a valid provider address"))?;
    if let Some(key) = key {
        let what = "an instance of a provider configuration (`for_each`), which cannot be migrated";
        return Err(format!("{address}: `{provider}{key}` is {what}"));
    }
    let instances = member(&members, "instances").unwrap_or("[]");
    let instances = json::elements(instances).map_err(|error| error.to_string())?;
    let objects = instances
        .into_iter()
        .enumerate()
        .map(|(position, text)| object(text).map_err(|what| format!("{address}: instances[{position}]: {what}")));
    match (objects.collect::<Result<Vec<_>, String>>(), is_data) {
        (Ok(objects), false) => state.resources.push(Resource { address, provider, objects }),
        // Data sources can be read again.
        (objects, true) => state.data.push(Resource { address, provider, objects: objects.unwrap_or_default() }),
        (Err(what), false) => return Err(what),
    }
    Ok(())
}

fn object(text: &str) -> Result<Object, String> {
    let members = json::members(text).map_err(|error| error.to_string())?;
    if member(&members, "attributes_flat").is_some_and(|flat| flat != "{}") {
        return Err(
            "its attributes are in the format of Terraform 0.11; run `terraform apply -refresh-only` first".into()
        );
    }
    let key = match read::<Option<serde_json::Value>>(&members, "index_key")? {
        None => None,
        Some(serde_json::Value::String(key)) => Some(Key::Key(key)),
        Some(other) => {
            Some(Key::Index(other.as_u64().ok_or_else(|| format!("index_key: `{other}` is not a valid key"))?))
        }
    };
    let private: String = read(&members, "private")?;
    let private = BASE64_STANDARD.decode(private).map_err(|error| format!("private: {error}"))?;
    let identity_version = read(&members, "identity_schema_version")?;
    let content = ForeignObject {
        schema_version: read(&members, "schema_version")?,
        attributes: member(&members, "attributes").ok_or("it has no attributes")?.to_owned(),
        private,
        identity: member(&members, "identity").map(|identity| (identity.to_owned(), identity_version)),
    };
    let sensitive = read::<Vec<Vec<Step>>>(&members, "sensitive_attributes")?;
    Ok(Object {
        key,
        deposed: read(&members, "deposed")?,
        tainted: match read::<String>(&members, "status")?.as_str() {
            "" => false,
            "tainted" => true,
            other => return Err(format!("status: unknown status `{other}`")),
        },
        content,
        sensitive: sensitive.into_iter().map(path).collect(),
        sensitive_steps: read(&members, "sensitive_attributes")?,
        dependencies: read(&members, "dependencies")?,
        create_before_destroy: read(&members, "create_before_destroy")?,
        skip_destroy: read(&members, "skip_destroy")?,
    })
}

fn path(steps: Vec<Step>) -> Path {
    let segment = |step: Step| match step.value {
        StepValue::Name(name) => Segment::Name(name.into()),
        StepValue::Typed { value } => match (value.as_u64(), value) {
            (Some(place), _) => Segment::Index(usize::try_from(place).unwrap_or(usize::MAX)),
            (None, serde_json::Value::String(key)) => Segment::Name(key.into()),
            (None, other) => Segment::Name(other.to_string().into()),
        },
    };
    Path(steps.into_iter().map(segment).collect())
}

/// Parses `provider["HOST/NAMESPACE/TYPE"]`, with modules before and an alias after it. The alias can have a key. Before
/// Terraform 0.13, it was `provider.TYPE`.
fn provider_address(text: &str) -> Option<(ProviderAddress, Option<Key>)> {
    let mut parts = address::parts(text)?.into_iter().peekable();
    let mut module = Vec::new();
    while parts.next_if(|(word, key)| word == "module" && key.is_none()).is_some() {
        module.push(parts.next()?);
    }
    let source = match parts.next()? {
        (word, Some(Key::Key(source))) if word == "provider" => source,
        (word, None) if word == "provider" => format!("registry.opentofu.org/hashicorp/{}", parts.next()?.0),
        _ => return None,
    };
    let (alias, key) = parts.next().map_or((None, None), |(alias, key)| (Some(alias), key));
    parts.next().is_none().then_some((ProviderAddress { source, module, alias }, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_of_an_instance_are_parsed() {
        let text = r#"{"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {"o": {}},
            "resources": [
                {"mode": "data", "module": "module.m", "type": "http", "name": "d", "provider": "provider[\"a/b/http\"]", "instances": []},
                {"mode": "managed", "type": "cloud_disk", "name": "a", "provider": "provider[\"example.com/b/cloud\"].east",
                 "instances": [{"index_key": "k", "status": "tainted", "deposed": "8e7cdf03", "schema_version": 2,
                    "attributes": {"size": 12345678901234567890.5}, "private": "AQI=", "identity_schema_version": 1,
                    "identity": {"id": "x"}, "dependencies": ["module.m.cloud_disk.b"], "create_before_destroy": true,
                    "sensitive_attributes": [[{"type": "get_attr", "value": "list"},
                        {"type": "index", "value": {"value": 1, "type": "number"}}]]}]}]}"#;
        let state = parse(text).unwrap();
        assert_eq!(state.data[0].address.to_string(), "module.m.data.http.d");
        assert_eq!(state.outputs, ["o"]);
        let resource = &state.resources[0];
        assert_eq!(resource.address.to_string(), "cloud_disk.a");
        assert_eq!(
            (resource.provider.source.as_str(), resource.provider.alias.as_deref()),
            ("example.com/b/cloud", Some("east"))
        );
        let object = &resource.objects[0];
        assert_eq!((&object.key, object.deposed), (&Some(Key::Key("k".into())), Some(DeposedKey(0x8e7c_df03))));
        assert!(object.tainted && object.create_before_destroy);
        assert_eq!(object.content.attributes, r#"{"size": 12345678901234567890.5}"#);
        assert_eq!((&object.content.private[..], object.content.schema_version), (&[1, 2][..], 2));
        assert_eq!(object.content.identity, Some((r#"{"id": "x"}"#.into(), 1)));
        assert_eq!(object.sensitive, [Path::default().name("list").index(1)]);
    }

    #[test]
    fn an_invalid_state_is_an_error() {
        let problem = |text: &str| parse(text).unwrap_err().message;
        assert_eq!(problem(r#"{"version": 3}"#), "the state has version 3, not 4");
        assert_eq!(problem(r#"{"serial": 1, "encrypted_data": "x"}"#), "the state is encrypted");
        assert!(problem("{}").contains("no `version`") && problem("<?xml").contains("cannot be read"));
        let odd = r#"{"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "n", "provider": "?"}]}"#;
        assert!(problem(odd).contains("resources[0]: `?` is not a valid provider address"), "{}", problem(odd));
    }

    #[test]
    fn addresses_of_providers_have_modules_and_aliases() {
        let read = |text| provider_address(text).map(|(p, _)| (p.module.len(), p.source, p.alias));
        let aws = || "registry.terraform.io/hashicorp/aws".to_owned();
        assert_eq!(
            read(r#"module.a["x"].provider["registry.terraform.io/hashicorp/aws"].eu"#),
            Some((1, aws(), Some("eu".into())))
        );
        assert_eq!(read("provider.aws"), Some((0, "registry.opentofu.org/hashicorp/aws".into(), None)));
        assert_eq!(read("aws"), None);
    }
}

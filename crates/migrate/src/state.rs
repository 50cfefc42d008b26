//! Parses a state of version 4 from Terraform or OpenTofu.
//!
//! Attributes stay JSON strings, because only the provider's schema defines their types, and numbers keep all digits.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::Problem;
use configuration::{
    InstanceAddress, Key, Mode, ModulePath, ModuleStep, ProviderSource, ResourceAddress, ResourceName, Target,
};
use cty::json;
use drivers::provider::ForeignObject;
use model::{DeposedKey, Path, Segment};
use terraform::NamedProvider;

/// The supported version of states.
pub const VERSION: u64 = 4;

/// A state of Terraform or OpenTofu.
#[derive(Debug, Default)]
pub struct State {
    /// The managed resources, in the order of the state.
    pub resources: Vec<Resource>,
    /// How many data sources there are. They are read again, and not taken over.
    pub data_sources: usize,
    /// The outputs of the root module, as JSON.
    pub outputs: String,
    /// The history that the state belongs to.
    pub lineage: String,
    /// The position in this history.
    pub serial: u64,
}

/// One resource with all its instances.
#[derive(Debug)]
pub struct Resource {
    pub address: ResourceAddress,
    pub objects: Vec<Object>,
}

#[derive(Debug)]
pub struct Object {
    /// The key of the instance.
    pub key: Option<Key>,
    /// The provider configuration of its last change.
    pub provider: Arc<NamedProvider>,
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
    /// The direct and indirect dependencies, as addresses in the configuration.
    pub dependencies: Vec<String>,
    /// A replacement creates the new object before it destroys the old one.
    pub create_before_destroy: bool,
    /// The configuration has `lifecycle { destroy = false }`: the object is forgotten instead of destroyed.
    pub skip_destroy: bool,
}

impl Resource {
    /// Returns the address of the instance of an object.
    pub fn instance(&self, object: &Object) -> InstanceAddress {
        InstanceAddress { resource: self.address.clone(), key: object.key.clone() }
    }
}

/// The address of a resource in the configuration: without the keys of modules.
pub fn in_configuration(address: &ResourceAddress) -> String {
    let steps = address.module.0.iter().map(|step| ModuleStep { name: step.name.clone(), key: None });
    ModulePath(steps.collect()).join(&address.resource)
}

#[derive(Deserialize)]
struct StateHeader {
    version: Option<u64>,
    #[serde(default)]
    encrypted_data: Option<serde_json::Value>,
    #[serde(default)]
    lineage: String,
    #[serde(default)]
    serial: u64,
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
pub fn parse(text: &str) -> Result<State, Problem> {
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
    let members = json::members(text).map_err(|error| unreadable(error.to_string()))?;
    let outputs = member(&members, "outputs").unwrap_or("{}").to_owned();
    let mut state = State { outputs, lineage: head.lineage, serial: head.serial, ..State::default() };
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

fn resource(text: &str, state: &mut State) -> Result<(), String> {
    let members = json::members(text).map_err(|error| error.to_string())?;
    match read::<String>(&members, "mode")?.as_str() {
        "managed" => {}
        "data" => {
            state.data_sources += 1;
            return Ok(());
        }
        other => return Err(format!("unknown mode `{other}`")),
    }
    let module: String = read(&members, "module")?;
    let module = module_path(&module).ok_or_else(|| format!("`{module}` is not a valid module path"))?;
    let (kind, name) = (read::<String>(&members, "type")?.into(), read::<String>(&members, "name")?.into());
    let resource = ResourceName { mode: Mode::Managed, kind, name };
    let address = ResourceAddress { module, resource };
    // Objects of a provider configuration with `for_each` name their own instance of it.
    let provider = provider(&members)?;
    let instances = json::elements(member(&members, "instances").unwrap_or("[]")).map_err(|error| error.to_string())?;
    let objects = instances.into_iter().enumerate().map(|(position, text)| {
        object(text, provider.as_ref()).map_err(|what| format!("{address}: instances[{position}]: {what}"))
    });
    let objects = objects.collect::<Result<_, String>>()?;
    state.resources.push(Resource { address, objects });
    Ok(())
}

/// The provider configuration that a resource or an instance names.
fn provider(members: &[(String, &str)]) -> Result<Option<Arc<NamedProvider>>, String> {
    let text: String = read(members, "provider")?;
    if text.is_empty() {
        return Ok(None);
    }
    let provider = provider_address(&text).ok_or_else(|| format!("`{text}` is not a valid provider address"))?;
    Ok(Some(Arc::new(provider)))
}

fn object(text: &str, of_resource: Option<&Arc<NamedProvider>>) -> Result<Object, String> {
    let members = json::members(text).map_err(|error| error.to_string())?;
    let provider = provider(&members)?.or_else(|| of_resource.cloned()).ok_or("it has no provider")?;
    if member(&members, "attributes_flat").is_some_and(|flat| flat != "{}") {
        return Err(
            "its attributes are in the format of Terraform 0.11; run `terraform apply -refresh-only` first".into()
        );
    }
    let key = match read::<Option<serde_json::Value>>(&members, "index_key")? {
        None => None,
        Some(serde_json::Value::String(key)) => Some(Key::Text(key.into())),
        Some(other) => {
            Some(Key::Int(other.as_u64().ok_or_else(|| format!("index_key: `{other}` is not a valid key"))?))
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
        provider,
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
    let segments = steps.into_iter().map(|step| match step.value {
        StepValue::Name(name) => Segment::Name(name.into()),
        StepValue::Typed { value } => match (value.as_u64(), value) {
            (Some(place), _) => Segment::Index(usize::try_from(place).unwrap_or(usize::MAX)),
            (None, serde_json::Value::String(key)) => Segment::Name(key.into()),
            (None, other) => Segment::Name(other.to_string().into()),
        },
    });
    Path(segments.collect())
}

fn traversal(text: &str) -> Option<hcl::Traversal> {
    hcl::parse_traversal(hcl::Source::new(hcl::FileId(u32::MAX), "", text)).value
}

/// Parses a module path: `module.a["k"].module.b`. `None`: the syntax is invalid.
fn module_path(text: &str) -> Option<ModulePath> {
    if text.is_empty() {
        return Some(ModulePath::default());
    }
    match Target::parse(&traversal(text)?)? {
        Target { module, resource: None } => Some(module),
        Target { .. } => None,
    }
}

/// Parses `provider["HOST/NAMESPACE/TYPE"]`, with modules before and an alias after it. The alias can have a key. Before
/// Terraform 0.13, it was `provider.TYPE`.
fn provider_address(text: &str) -> Option<NamedProvider> {
    let parsed = traversal(text)?;
    let mut module = Vec::new();
    let mut word = parsed.root.text.as_str();
    let mut rest = parsed.steps.as_slice();
    while word == "module" {
        let [hcl::Step::Attribute(name), hcl::Step::Attribute(next), after @ ..] = rest else { return None };
        module.push(ModuleStep { name: name.text.as_str().into(), key: None });
        (word, rest) = (next.text.as_str(), after);
    }
    let (source, after) = match (word, rest) {
        ("provider", [hcl::Step::Index { key: hcl::Literal::String(source), .. }, after @ ..]) => {
            (ProviderSource::parse(source)?, after)
        }
        ("provider", [hcl::Step::Attribute(name), after @ ..]) => (ProviderSource::implied(&name.text), after),
        _ => return None,
    };
    let (alias, key) = alias(after)?;
    Some(NamedProvider { source, module: ModulePath(module.into()), alias, key })
}

/// The alias of a provider configuration, and the key of its instance.
fn alias(steps: &[hcl::Step]) -> Option<(Option<Arc<str>>, Option<Key>)> {
    match steps {
        [] => Some((None, None)),
        [hcl::Step::Attribute(alias)] => Some((Some(alias.text.as_str().into()), None)),
        [hcl::Step::Attribute(alias), hcl::Step::Index { key, .. }] => {
            Some((Some(alias.text.as_str().into()), Some(instance_key(key)?)))
        }
        _ => None,
    }
}

fn instance_key(literal: &hcl::Literal) -> Option<Key> {
    match literal {
        hcl::Literal::String(text) => Some(Key::Text(text.as_str().into())),
        hcl::Literal::Number(digits) => digits.parse().ok().map(Key::Int),
        _ => None,
    }
}

/// The configuration of a provider by the name that records have for it: `module.a.aws.west["k"]`. `None`: it is no such name.
pub fn named_provider(name: &str, source: ProviderSource) -> Option<NamedProvider> {
    let parsed = traversal(name)?;
    let mut module = Vec::new();
    let mut word = parsed.root.text.as_str();
    let mut rest = parsed.steps.as_slice();
    while word == "module" {
        let (hcl::Step::Attribute(name), after) = rest.split_first()? else { return None };
        module.push(ModuleStep { name: name.text.as_str().into(), key: None });
        let after = if let [hcl::Step::Index { .. }, after @ ..] = after { after } else { after };
        let (hcl::Step::Attribute(next), after) = after.split_first()? else { return None };
        (word, rest) = (next.text.as_str(), after);
    }
    let (alias, key) = alias(rest)?;
    Some(NamedProvider { source, module: ModulePath(module.into()), alias, key })
}

/// The address of a provider configuration in a state. `source` is the address of its provider as it is to be written.
pub fn provider_text(provider: &NamedProvider, source: &str) -> String {
    let mut text = provider.module.join(format!("provider[{}]", serde_json::Value::from(source)));
    text.extend(provider.alias.iter().map(|alias| format!(".{alias}")));
    text.extend(provider.key.iter().map(ToString::to_string));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_of_an_instance_are_parsed() {
        let text = r#"{"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {"o": {}},
            "resources": [
                {"mode": "data", "module": "module.m", "type": "http", "name": "d", "provider": "provider[\"a/b/http\"]", "instances": []},
                {"mode": "managed", "module": "module.m[\"a.b\"]", "type": "cloud_disk", "name": "a", "provider": "provider[\"example.com/b/cloud\"].east",
                 "instances": [{"index_key": "k", "status": "tainted", "deposed": "8e7cdf03", "schema_version": 2,
                    "attributes": {"size": 12345678901234567890.5}, "private": "AQI=", "identity_schema_version": 1,
                    "identity": {"id": "x"}, "dependencies": ["module.m.cloud_disk.b"], "create_before_destroy": true,
                    "sensitive_attributes": [[{"type": "get_attr", "value": "list"},
                        {"type": "index", "value": {"value": 1, "type": "number"}}]]}]}]}"#;
        let state = parse(text).unwrap();
        assert_eq!((state.data_sources, state.outputs.as_str()), (1, r#"{"o": {}}"#));
        assert_eq!((state.lineage.as_str(), state.serial), ("x", 3));
        let resource = &state.resources[0];
        assert_eq!(in_configuration(&resource.address), "module.m.cloud_disk.a");
        let object = &resource.objects[0];
        assert_eq!(resource.instance(object).to_string(), r#"module.m["a.b"].cloud_disk.a["k"]"#);
        assert_eq!(provider_text(&object.provider, "example.com/b/cloud"), r#"provider["example.com/b/cloud"].east"#);
        assert_eq!(object.deposed, Some(DeposedKey(0x8e7c_df03)));
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
    fn addresses_of_providers_have_modules_aliases_and_keys() {
        let text = |one: NamedProvider| provider_text(&one, &one.source.full());
        let read = |address: &str| provider_address(address).map(text);
        for address in [
            r#"module.a.module.b.provider["registry.opentofu.org/hashicorp/aws"].eu"#,
            r#"provider["example.com/acme/cloud"].each["a.b"]"#,
            r#"provider["terraform.io/builtin/terraform"]"#,
        ] {
            assert_eq!(read(address).as_deref(), Some(address));
        }
        assert_eq!(read("provider.aws").as_deref(), Some(r#"provider["registry.opentofu.org/hashicorp/aws"]"#));
        let named = |name: &str| named_provider(name, ProviderSource::implied("aws")).map(text);
        let expected = r#"module.a.module.b.provider["registry.opentofu.org/hashicorp/aws"].eu["k"]"#;
        assert_eq!(named(r#"module.a[0].module.b.aws.eu["k"]"#).as_deref(), Some(expected));
        assert_eq!((named("module.a"), named("aws.a.b")), (None, None));
        assert_eq!((read("aws"), read("module.a"), read(r#"provider["x"].a.b"#)), (None, None, None));
    }
}

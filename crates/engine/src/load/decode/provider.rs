//! `Provider` and `ProviderConfig`: the checks and defaults that hold for files and cluster objects alike.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::account::ServiceAccounts;
use super::resource::read;
use super::{LABEL, config, inputs, invalid, name_segment, runner, spec_path, unusable_annotations};
use crate::load::expression::Variable;
use crate::load::intern::Interner;
use crate::load::tree::Tree;
use crate::load::{Lines, ProviderConfig, ProviderSpec};
use api::RawObject;
use model::kube_names::is_label;
use model::{Diagnostics, Files, Package, Path, Provider};
use version::VersionConstraint;

/// The registry of a source that names none, as OpenTofu has it.
const DEFAULT_HOST: &str = "registry.opentofu.org";

/// The namespace of a source that names none, as Terraform has it.
const DEFAULT_NAMESPACE: &str = "hashicorp";

/// Returns a `Provider` as the API server has it. One that cannot be decoded has errors.
pub fn provider_from_raw(raw: &RawObject<api::Provider>, interner: &mut Interner) -> ProviderSpec {
    let name = raw.metadata.name.as_deref().unwrap_or_default();
    let (_, spec, findings) = read(raw, api::PROVIDER_KIND, interner);
    let mut provider = provider(name, &spec);
    provider.problems.extend(unusable_annotations(&annotations(&raw.metadata), api::PROVIDER_KIND));
    provider.problems = findings.with(provider.problems);
    provider
}

/// Returns a `ProviderConfig` as the API server has it. One that cannot be decoded has errors.
pub fn provider_config_from_raw(
    raw: &RawObject<api::ProviderConfig>,
    accounts: &ServiceAccounts,
    interner: &mut Interner,
) -> ProviderConfig {
    let name = raw.metadata.name.as_deref().unwrap_or_default();
    let (tree, spec, findings) = read::<_, api::ProviderConfigSpec>(raw, api::PROVIDER_CONFIG_KIND, interner);
    let arguments = tree.get("spec").and_then(|spec| spec.get("config"));
    let mut config = provider_config(name, &spec, arguments, interner);
    config.problems.extend(unusable_annotations(&annotations(&raw.metadata), api::PROVIDER_CONFIG_KIND));
    config.problems = findings.with(config.problems);
    let (account, refused) =
        accounts.choose(raw.metadata.namespace.as_deref(), spec.service_account_name.as_deref(), interner);
    config.service_account = account;
    config.problems.extend(refused);
    config
}

fn annotations(metadata: &ObjectMeta) -> Vec<(&str, &str)> {
    metadata.annotations.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn package(written: &api::ProviderPackage, problems: &mut Diagnostics) -> Package {
    type Location = fn(Arc<str>) -> Package;
    let locations: [(&Option<String>, Location); 4] = [
        (&written.path, Package::Path),
        (&written.filesystem_mirror, Package::FilesystemMirror),
        (&written.network_mirror, Package::NetworkMirror),
        (&written.oci_mirror, Package::OciMirror),
    ];
    let mut given = locations.into_iter().filter_map(|(text, location)| Some(location(text.as_deref()?.into())));
    let package = given.next().unwrap_or_default();
    if given.next().is_some() {
        let what = "the package has more than one location";
        problems.push(invalid(spec_path(&["package"]), what, "keep one of them"));
    }
    if let Package::NetworkMirror(address) = &package
        && !address.starts_with("https://")
    {
        let what = format!("`{address}` is not a valid mirror URL");
        let hint = "a mirror must use https; write https://HOST/PATH/";
        problems.push(invalid(spec_path(&["package", "networkMirror"]), what, hint));
    }
    package
}

fn files(written: &api::ProviderFiles, problems: &mut Diagnostics) -> Files {
    for (kind, paths) in [("read", &written.read), ("write", &written.write)] {
        for (index, path) in paths.iter().enumerate().filter(|(_, path)| !path.starts_with('/')) {
            let what = format!("`{path}` is not an absolute path");
            let hint = "write an absolute path, such as /data";
            problems.push(invalid(spec_path(&["files", kind]).index(index), what, hint));
        }
    }
    let [read, write] =
        [&written.read, &written.write].map(|paths| paths.iter().map(|path| path.as_str().into()).collect());
    Files { read, write }
}

/// The limits of calls and memory.
fn limits(written: &api::ProviderLimits, problems: &mut Diagnostics) -> (u32, Option<u64>) {
    if written.calls == Some(0) {
        let hint = "omit it for the default of 10";
        problems.push(invalid(spec_path(&["limits", "calls"]), "the limit must be at least 1", hint));
    }
    let memory = written.memory.as_deref().and_then(|text| {
        let bytes = Provider::memory(text);
        if bytes.is_none() {
            let hint = "write 64Mi or more, with one of the units k, M, G, Ki, Mi or Gi";
            let what = format!("`{text}` is not a valid memory limit");
            problems.push(invalid(spec_path(&["limits", "memory"]), what, hint));
        }
        bytes
    });
    (written.calls.unwrap_or(Provider::DEFAULT_CALLS), memory)
}

pub fn provider(name: &str, spec: &api::ProviderSpec) -> ProviderSpec {
    let mut problems = Diagnostics::new();
    if !is_label(name) {
        let what = format!("`{name}` is not a valid DNS label");
        problems.push(invalid(Path::of(&["metadata", "name"]), what, LABEL));
    }
    // A name is the same as a source of one part.
    let written = spec.source.as_deref().filter(|source| !source.is_empty()).unwrap_or(name);
    let source = address(written).unwrap_or_else(|| {
        let what = format!("`{written}` is not a valid provider source address");
        let hint = "write `HOST/NAMESPACE/TYPE`, `NAMESPACE/TYPE` or `TYPE`, such as `hashicorp/random`";
        problems.push(invalid(spec_path(&["source"]), what, hint));
        written.into()
    });
    let version = spec.version.as_deref().unwrap_or_default();
    if let Err(error) = version.parse::<VersionConstraint>() {
        problems.push(invalid(spec_path(&["version"]), error.to_string(), VersionConstraint::HINT));
    }
    let package = spec.package.as_ref().map(|written| package(written, &mut problems)).unwrap_or_default();
    for (index, checksum) in spec.checksums.iter().enumerate() {
        if !(checksum.starts_with("zh:") || checksum.starts_with("h1:")) {
            let what = format!("`{checksum}` is not a valid checksum");
            let hint = "use the format of Terraform's lock file: `zh:` for the zip archive, `h1:` for its contents";
            problems.push(invalid(spec_path(&["checksums"]).index(index), what, hint));
        }
    }
    for (index, api::ProviderVariable { name, .. }) in spec.environment.iter().enumerate() {
        if name.is_empty() || name.contains('=') {
            let at = spec_path(&["environment"]).index(index).name("name");
            problems.push(invalid(at, "the name of an environment variable is missing or invalid", ""));
        }
    }
    let environment = spec
        .environment
        .iter()
        .map(|variable| (variable.name.as_str().into(), variable.value.as_deref().map(Arc::from)))
        .collect();
    let files = spec.files.as_ref().map(|written| files(written, &mut problems)).unwrap_or_default();
    let (max_calls, max_memory) = limits(&spec.limits.clone().unwrap_or_default(), &mut problems);
    let provider = Provider {
        name: name.into(),
        source,
        version: version.into(),
        package,
        checksums: spec.checksums.iter().map(|checksum| checksum.as_str().into()).collect(),
        environment,
        files,
        max_calls,
        max_memory,
    };
    let runner = spec.runner.as_ref().map(|written| runner::decode(written, &mut problems));
    ProviderSpec { provider: Arc::new(provider), runner, problems, source: None }
}

impl ProviderSpec {
    /// Returns what a document with only a name would define.
    pub fn named(name: &str) -> Self {
        provider(name, &api::ProviderSpec::default())
    }
}

/// Checks a `ProviderConfig`. `arguments`: its `spec.config`.
pub fn provider_config(
    name: &str,
    spec: &api::ProviderConfigSpec,
    arguments: Option<&Tree>,
    interner: &mut Interner,
) -> ProviderConfig {
    let mut problems = Diagnostics::new();
    if !is_label(name) {
        let what = format!("`{name}` is not a valid DNS label");
        problems.push(invalid(Path::of(&["metadata", "name"]), what, LABEL));
    }
    let at = spec_path(&["config"]);
    let (config, references, faults) = config(arguments, &at, &[Variable::Inputs], interner);
    problems.extend(faults);
    let inputs = inputs::decode(&spec.inputs, &mut problems);
    inputs::refuse_undeclared(&inputs, &config, &at, &mut problems);
    let runner = spec.runner.as_ref().map(|written| runner::decode(written, &mut problems));
    let references = references.into_iter().map(|reference| {
        let mut at = Path(vec![name_segment("providerConfig", interner), name_segment(name, interner)]);
        at.0.extend(reference.at.0.iter().cloned());
        crate::load::Reference { at, ..reference }
    });
    ProviderConfig {
        references: references.collect(),
        name: name.into(),
        provider: spec.provider.as_ref().map_or(name, |reference| &reference.name).into(),
        config,
        ephemeral: Arc::default(),
        inputs,
        service_account: "".into(),
        runner,
        problems,
        source: None,
        lines: Lines::default(),
    }
}

/// The full address of a provider, as Terraform reads sources.
pub fn address(source: &str) -> Option<Arc<str>> {
    let parts: Vec<&str> = source.split('/').collect();
    let (host, namespace, name) = match parts[..] {
        [name] => (DEFAULT_HOST, DEFAULT_NAMESPACE, name),
        [namespace, name] => (DEFAULT_HOST, namespace, name),
        [host, namespace, name] => (host, namespace, name),
        _ => return None,
    };
    (is_host(host) && is_word(namespace) && is_word(name)).then(|| {
        // Addresses are compared without regard to case, as Terraform does.
        format!("{host}/{namespace}/{name}").to_ascii_lowercase().into()
    })
}

fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "443"));
    name.split('.').all(is_word) && port.parse::<u16>().is_ok()
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_is_a_quantity_with_which_a_provider_can_run() {
        let read = |text: &str| {
            let limits = api::ProviderLimits { memory: Some(text.into()), ..api::ProviderLimits::default() };
            let spec = provider("x", &api::ProviderSpec { limits: Some(limits), ..api::ProviderSpec::default() });
            spec.problems.is_empty().then_some(spec.provider.max_memory).flatten()
        };
        assert_eq!(["64Mi", "1G", "70000000"].map(read), [Some(64 << 20), Some(1_000_000_000), Some(70_000_000)]);
        assert_eq!(["63Mi", "1", "1Ti", "Mi", "-1Gi", "99999999999Gi"].map(read), [None; 6]);
    }

    #[test]
    fn a_source_is_completed() {
        let whole = |source| address(source).map(|address| address.to_string()).unwrap_or_default();
        assert_eq!(whole("random"), "registry.opentofu.org/hashicorp/random");
        assert_eq!(whole("Acme/thing"), "registry.opentofu.org/acme/thing");
        assert_eq!(whole("registry.example.com:8443/acme/thing"), "registry.example.com:8443/acme/thing");
        for wrong in ["", "a/b/c/d", "a b", "../x", "host/-x/y"] {
            assert_eq!(whole(wrong), "", "{wrong}");
        }
    }
}

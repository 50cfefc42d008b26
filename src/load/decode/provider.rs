//! From `Provider` and `ProviderConfig` to what they mean: the checks and defaults that hold wherever they were read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Draft, DraftInput, LABEL, spec};
use crate::api;
use crate::load::expression::{self, Variable};
use crate::load::intern::Interner;
use crate::load::tree::{Node, Tree};
use crate::load::{ProviderConfig, ProviderSpec, Template};
use crate::model::{Diagnostic, Diagnostics, Files, Package, Path, Provider, Reason, Value, VersionConstraint};

/// The registry of a source that names none, as OpenTofu has it.
const DEFAULT_HOST: &str = "registry.opentofu.org";

/// The namespace of a source that names none, as Terraform has it.
const DEFAULT_NAMESPACE: &str = "hashicorp";

/// A `Provider` in the form that both ways of reading share.
#[derive(Debug, Default)]
pub(in crate::load) struct DraftProvider {
    pub(in crate::load) name: Arc<str>,
    pub(in crate::load) source: Arc<str>,
    pub(in crate::load) version: Arc<str>,
    pub(in crate::load) package: Package,
    pub(in crate::load) checksums: Vec<Arc<str>>,
    pub(in crate::load) environment: BTreeMap<Arc<str>, Option<Arc<str>>>,
    pub(in crate::load) files: Files,
    pub(in crate::load) max_calls: Option<u32>,
    /// As it is written.
    pub(in crate::load) max_memory: Option<Arc<str>>,
    pub(in crate::load) problems: Diagnostics,
}

/// A `ProviderConfig` in the form that both ways of reading share.
#[derive(Debug, Default)]
pub(in crate::load) struct DraftProviderConfig {
    pub(in crate::load) name: Arc<str>,
    /// Without it: the provider of its own name.
    pub(in crate::load) provider: Option<Arc<str>>,
    pub(in crate::load) inputs: Vec<DraftInput>,
    pub(in crate::load) problems: Diagnostics,
}

/// A `Provider` as the API server has it.
pub fn provider_from_api(provider: &api::Provider) -> ProviderSpec {
    let spec = &provider.spec;
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let path = |path: &Option<String>| path.as_deref().map(Arc::from);
    let package = spec.package.clone().unwrap_or_default();
    let package = path(&package.path)
        .map(Package::Path)
        .or_else(|| path(&package.filesystem_mirror).map(Package::FilesystemMirror))
        .or_else(|| path(&package.network_mirror).map(Package::NetworkMirror))
        .or_else(|| path(&package.oci_mirror).map(Package::OciMirror));
    let variable = |one: &api::ProviderVariable| (one.name.as_str().into(), one.value.as_deref().map(Arc::from));
    let draft = DraftProvider {
        name: provider.metadata.name.as_deref().unwrap_or_default().into(),
        source: text(&spec.source),
        version: text(&spec.version),
        package: package.unwrap_or_default(),
        checksums: spec.checksums.iter().map(|checksum| checksum.as_str().into()).collect(),
        environment: spec.environment.iter().map(variable).collect(),
        files: spec.files.as_ref().map(files).unwrap_or_default(),
        max_calls: spec.limits.as_ref().and_then(|limits| limits.calls),
        max_memory: spec.limits.as_ref().and_then(|limits| limits.memory.as_deref().map(Arc::from)),
        problems: Vec::new(),
    };
    draft.finish()
}

/// A `ProviderConfig` as the API server has it.
pub fn provider_config_from_api(
    config: &api::ProviderConfig,
    default_service_account: &Arc<str>,
    interner: &mut Interner,
) -> ProviderConfig {
    let spec = &config.spec;
    let draft = DraftProviderConfig {
        name: config.metadata.name.as_deref().unwrap_or_default().into(),
        provider: spec.provider.as_ref().map(|named| named.name.as_str().into()),
        inputs: spec.inputs.iter().map(DraftInput::from).collect(),
        problems: Vec::new(),
    };
    let settings = Tree::from_json_map(&spec.config, interner);
    let service_account =
        spec.service_account_name.as_deref().map_or_else(|| default_service_account.clone(), Arc::from);
    ProviderConfig { service_account, ..draft.finish(Some(&settings), interner) }
}

fn files(given: &api::ProviderFiles) -> Files {
    let paths = |paths: &[String]| paths.iter().map(|path| path.as_str().into()).collect();
    Files { read: paths(&given.read), write: paths(&given.write) }
}

/// A quantity of memory as Kubernetes writes it.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

impl DraftProvider {
    /// Checks what was read.
    pub(in crate::load) fn finish(self) -> ProviderSpec {
        let mut problems = self.problems;
        let mut problem = |at: Path, what: String, hint: &str| {
            problems.push(Diagnostic::general(Reason::InvalidManifest, what).at(at).hint(hint));
        };
        if !expression::is_label(&self.name) {
            problem(Path::of(&["metadata", "name"]), format!("`{}` is not a valid DNS label", self.name), LABEL);
        }
        // A name says as much as a source of one part does.
        let written = if self.source.is_empty() { &self.name } else { &self.source };
        let source = address(written).unwrap_or_else(|| {
            let hint = "write `HOST/NAMESPACE/TYPE`, `NAMESPACE/TYPE` or `TYPE`, such as `hashicorp/random`";
            problem(spec(&["source"]), format!("`{written}` is not a valid provider source address"), hint);
            written.clone()
        });
        if let Err(error) = self.version.parse::<VersionConstraint>() {
            problem(spec(&["version"]), error.to_string(), VersionConstraint::HINT);
        }
        if let Package::NetworkMirror(address) = &self.package
            && !address.starts_with("https://")
        {
            let hint = "a mirror must use https; write https://HOST/PATH/";
            problem(spec(&["package", "networkMirror"]), format!("`{address}` is not a valid mirror URL"), hint);
        }
        for (index, checksum) in self.checksums.iter().enumerate() {
            if !(checksum.starts_with("zh:") || checksum.starts_with("h1:")) {
                let hint = "use the format of Terraform's lock file: `zh:` for the zip archive, `h1:` for its contents";
                problem(spec(&["checksums"]).index(index), format!("`{checksum}` is not a valid checksum"), hint);
            }
        }
        for (kind, paths) in [("read", &self.files.read), ("write", &self.files.write)] {
            for (index, path) in paths.iter().enumerate().filter(|(_, path)| !path.starts_with('/')) {
                let at = spec(&["files", kind]).index(index);
                problem(at, format!("`{path}` is not an absolute path"), "write an absolute path, such as /data");
            }
        }
        if self.max_calls == Some(0) {
            problem(
                spec(&["limits", "calls"]),
                "the limit must be at least 1".to_owned(),
                "omit it for the default of 10",
            );
        }
        let max_memory = self.max_memory.as_deref().and_then(|text| {
            let bytes = bytes(text).filter(|bytes| *bytes >= Provider::LEAST_MEMORY);
            if bytes.is_none() {
                let hint = "write 64Mi or more, with one of the units k, M, G, Ki, Mi or Gi";
                problem(spec(&["limits", "memory"]), format!("`{text}` is not a valid memory limit"), hint);
            }
            bytes
        });
        let provider = Provider {
            name: self.name,
            source,
            version: self.version,
            package: self.package,
            checksums: self.checksums,
            environment: self.environment,
            files: self.files,
            max_calls: self.max_calls.unwrap_or(Provider::DEFAULT_CALLS),
            max_memory,
        };
        ProviderSpec { provider: Arc::new(provider), problems, source: None }
    }
}

impl ProviderSpec {
    /// What a document of that name says when it says nothing else.
    pub fn named(name: &str) -> Self {
        DraftProvider { name: name.into(), ..DraftProvider::default() }.finish()
    }
}

impl DraftProviderConfig {
    /// Checks what was read, and parses the settings.
    pub(in crate::load) fn finish(self, config: Option<&Tree>, interner: &mut Interner) -> ProviderConfig {
        let mut draft = Draft { name: self.name, inputs: self.inputs, problems: self.problems, ..Draft::default() };
        if !expression::is_label(&draft.name) {
            let what = format!("`{}` is not a valid DNS label", draft.name);
            draft.problem(Reason::InvalidManifest, Path::of(&["metadata", "name"]), what, LABEL);
        }
        let at = spec(&["config"]);
        let (config, references, faults) = match config {
            Some(tree) if matches!(tree.node, Node::Map(_)) => {
                Template::parse(tree, &at, &[Variable::Inputs], interner)
            }
            _ => (Template::literal(Value::map::<Arc<str>>([])), Vec::new(), Vec::new()),
        };
        draft.problems.extend(faults);
        let inputs = draft.inputs();
        draft.refuse_undeclared(&inputs, &config, &at);
        let provider = self.provider.unwrap_or_else(|| draft.name.clone());
        let references = references.into_iter().map(|reference| {
            let mut at = Path::of(&["providerConfig", &draft.name]);
            at.0.extend(reference.at.0.iter().cloned());
            crate::load::Reference { at, ..reference }
        });
        ProviderConfig {
            references: references.collect(),
            name: draft.name,
            provider,
            config,
            inputs,
            service_account: "".into(),
            problems: draft.problems,
            source: None,
        }
    }
}

/// The full address of a provider, as Terraform reads sources.
fn address(source: &str) -> Option<Arc<str>> {
    let parts: Vec<&str> = source.split('/').collect();
    let (host, namespace, name) = match parts[..] {
        [name] => (DEFAULT_HOST, DEFAULT_NAMESPACE, name),
        [namespace, name] => (DEFAULT_HOST, namespace, name),
        [host, namespace, name] => (host, namespace, name),
        _ => return None,
    };
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let is_host = |text: &str| {
        let (name, port) = text.split_once(':').unwrap_or((text, "443"));
        name.split('.').all(is_word) && port.parse::<u16>().is_ok()
    };
    (is_host(host) && is_word(namespace) && is_word(name)).then(|| {
        // Addresses are compared without regard to case, as Terraform does.
        format!("{host}/{namespace}/{name}").to_ascii_lowercase().into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_is_a_quantity_with_which_a_provider_can_run() {
        let read = |text: &str| {
            let draft = DraftProvider { name: "x".into(), max_memory: Some(text.into()), ..DraftProvider::default() };
            let spec = draft.finish();
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

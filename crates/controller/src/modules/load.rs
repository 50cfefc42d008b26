//! Makes the program of a Module: fetches its files, reads them, and prepares the providers that it requires.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use configuration::{Input, ProviderSource, Settings, Tree};
use engine::load::{Instance, Program, ProviderSpec, Revision, Template};
use language::Budget;
use model::{Diagnostic, Diagnostics, Reason, has_errors};
use modules::{Installer, Options};
use programs::{AtApply, InModules, rfc3339};
use terraform::{Origin, Terraform};
use version::VersionConstraint;

use super::source::{self, Fetched, Silent};
use super::{ModuleKey, Services};

/// What the evaluation of a plan may cost.
const STEPS: u64 = 50_000_000;
const BYTES: u64 = 512 << 20;
/// The greatest number of objects of a Module.
const MAX_OBJECTS: usize = 20_000;
/// How many digits of the digest stand for a version.
const SHOWN: usize = 12;

/// The Providers of the cluster by name.
pub type Installed = BTreeMap<Arc<str>, Arc<ProviderSpec>>;

/// The program of a Module.
///
/// # Errors
/// Why there is none.
pub async fn program(
    services: &Services,
    key: &ModuleKey,
    module: &Arc<Instance>,
    spec: &api::ModuleSpec,
    installed: &Installed,
) -> Result<Arc<dyn Program>, Diagnostics> {
    // The program that is in force reads the files of an earlier one.
    let attempt = format!("{}-{:x}", module.generation, services.random.number());
    let directory = services.directory.join(&*module.uid).join(attempt);
    let loaded = load(services, key, module, spec, installed, &directory).await;
    if loaded.is_ok() {
        forget_others(&directory);
    } else if let Err(error) = std::fs::remove_dir_all(&directory) {
        tracing::debug!(directory = %directory.display(), %error, "the files of a module that was not loaded stay");
    }
    loaded
}

async fn load(
    services: &Services,
    key: &ModuleKey,
    module: &Arc<Instance>,
    spec: &api::ModuleSpec,
    installed: &Installed,
    directory: &Path,
) -> Result<Arc<dyn Program>, Diagnostics> {
    let fetched = source::fetch(&spec.source, directory).await?;
    let tree = tree(&fetched, module).await?;
    let digest = source::digest(&fetched.package)?;
    let required = required(&tree, installed)?;
    let providers = services.providers.as_ref().ok_or_else(|| failed("no provider can be used here"))?;
    let schemas = programs::schemas(providers, &required).await?;
    check_versions(&tree, &required, &|spec| providers.info(&spec.provider)?.version)?;
    let files = InModules::new(&fetched.root, &tree, Arc::default());
    let settings = Settings {
        workspace: spec.workspace.clone().unwrap_or_else(|| "default".to_owned()),
        plan_time: Some(rfc3339(services.clock.now())),
        effects: Some(Arc::new(AtApply::default())),
        budget: Budget::new(STEPS, BYTES),
        max_instances: MAX_OBJECTS,
        ..Settings::new(Arc::new(files))
    };
    let given = spec.providers.iter();
    let given = given.map(|given| (given.name.clone(), given.provider_config_ref.name.as_str().into()));
    let name = fetched.name.unwrap_or_else(|| digest[..SHOWN].to_owned());
    let revision = Revision { name: name.into(), digest: format!("sha256:{digest}").into() };
    let origin = Origin {
        name: key.name.clone(),
        source: "".into(),
        generation: generation(module, &digest, &required),
        directory: String::new(),
        provider_configs: Some(given.collect()),
        revision: Some(revision),
    };
    let program = Terraform::of_module(module, Arc::new(tree), required, schemas, settings, origin);
    Ok(Arc::new(program))
}

/// Changes with everything that the values of expressions come from besides objects.
fn generation(module: &Instance, digest: &str, required: &BTreeMap<ProviderSource, Arc<ProviderSpec>>) -> i64 {
    let mut hasher = DefaultHasher::new();
    (module.generation, digest).hash(&mut hasher);
    required.values().for_each(|spec| format!("{:?}", spec.provider).hash(&mut hasher));
    hasher.finish().cast_signed()
}

/// The modules of a configuration, whose modules of other sources are installed first.
async fn tree(fetched: &Fetched, module: &Instance) -> Result<Tree, Diagnostics> {
    let given: BTreeMap<Arc<str>, Template> = module.config.entries().into_iter().collect();
    let options = Options {
        root: fetched.root.clone(),
        within: Some(fetched.package.clone()),
        inputs: literals(&given),
        ..Options::default()
    };
    let installation = Installer::new(options).install(&Silent).await.map_err(source::of_module)?;
    let (tree, mut found) = (installation.tree, installation.diagnostics);
    found.extend(tree.undeclared());
    found.extend(terraform::unsupported(&tree));
    let mut problems = of_source(terraform::diagnostics(&found, &tree.sources, ""));
    problems.extend(provisioners(&tree));
    let declared = &tree.root().variables;
    let unknown = given.keys().filter(|name| !declared.contains_key(*name));
    problems.extend(unknown.map(|name| {
        let at = model::Path::of(&["spec", "variables", name]);
        let known: Vec<&str> = declared.keys().map(AsRef::as_ref).collect();
        let what = format!("the module has no variable `{name}`");
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(at);
        match model::suggest::closest(name, known.iter().copied()) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem.hint("remove it"),
        }
    }));
    let unassigned = declared.iter().filter(|(_, variable)| variable.default.is_none()).map(|(name, _)| name);
    problems.extend(unassigned.filter(|name| !given.contains_key(*name)).map(|name| {
        let what = format!("the variable `{name}` of the module has no default and no value");
        let problem = Diagnostic::general(Reason::InvalidManifest, what).at(model::Path::of(&["spec", "variables"]));
        problem.hint(format!("set `spec.variables.{name}`"))
    }));
    if has_errors(&problems) { Err(problems) } else { Ok(tree) }
}

/// The values of variables that are known without other objects.
fn literals(given: &BTreeMap<Arc<str>, Template>) -> BTreeMap<String, Input> {
    let values = given.iter().filter_map(|(name, value)| {
        let value = terraform::from_model(value.as_literal()?, &cty::Type::Dynamic);
        Some((name.to_string(), Input::Value(value)))
    });
    values.collect()
}

/// Problems with the files of a module are those of its source.
fn of_source(problems: Diagnostics) -> Diagnostics {
    problems.into_iter().map(|problem| Diagnostic { reason: Reason::SourceFailed, ..problem }).collect()
}

/// The provisioners, which would run in the Pod of the controller.
fn provisioners(tree: &Tree) -> Option<Diagnostic> {
    let resources = tree.nodes.iter().flat_map(|node| node.module.resources.values());
    let first = resources.flat_map(|resource| &resource.provisioners).next()?;
    let what = "a provisioner would run in the Pod of the controller";
    let mut found = configuration::Diagnostics::default();
    found.errors.push(hcl::Diagnostic::new("Unsupported provisioner", format!("{what}."), first.range));
    let problem = terraform::diagnostics(&found, &tree.sources, "").into_iter().next()?;
    let hint = "use a Resource with a hook of the kind `job` beside the module";
    Some(Diagnostic { reason: Reason::SourceFailed, ..problem.hint(hint) })
}

/// The Providers that the modules require.
fn required(tree: &Tree, installed: &Installed) -> Result<BTreeMap<ProviderSource, Arc<ProviderSpec>>, Diagnostics> {
    let wanted = terraform::required(tree, "");
    let (mut found, mut missing) = (BTreeMap::new(), Diagnostics::new());
    for (source, wanted) in wanted {
        let mut all = installed.values();
        match all.find(|spec| spec.provider.source == wanted.provider.source) {
            Some(spec) if has_errors(&spec.problems) => {
                let what = format!("the Provider `{}` has an error, which its status shows", spec.provider.name);
                missing.push(Diagnostic::general(Reason::ProviderNotReady, what));
            }
            Some(spec) => drop(found.insert(source, spec.clone())),
            None => {
                let what = format!("the module requires the provider `{source}`, and no Provider has this source");
                let problem = Diagnostic::general(Reason::ProviderNotFound, what).from_source(wanted.source.clone());
                let hint = format!(
                    "an administrator creates a Provider `{}` with `spec.source: {source}`; Purlin retries automatically",
                    source.name
                );
                missing.push(problem.hint(hint));
            }
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(missing) }
}

/// Checks the installed versions against the constraints of all modules.
fn check_versions(
    tree: &Tree,
    required: &BTreeMap<ProviderSource, Arc<ProviderSpec>>,
    version: &dyn Fn(&ProviderSpec) -> Option<String>,
) -> Result<(), Diagnostics> {
    let mut problems = Diagnostics::new();
    for (source, requirements) in tree.required_providers() {
        let Some(spec) = required.get(&source) else { continue };
        let Some(version) = version(spec).and_then(|text| text.parse().ok()) else { continue };
        let constraints = requirements.iter().filter_map(|requirement| requirement.version.as_deref());
        let refused = constraints
            .filter(|text| text.parse::<VersionConstraint>().is_ok_and(|constraint| !constraint.allows(&version)));
        problems.extend(refused.take(1).map(|constraint| {
            let name = &spec.provider.name;
            let what = format!("the module requires `{source}` {constraint}, and the Provider `{name}` has {version}");
            let hint = format!("change `spec.version` of the Provider `{name}`, or another version of the module");
            Diagnostic::general(Reason::ProviderNotReady, what).hint(hint)
        }));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn failed(what: &str) -> Diagnostics {
    vec![Diagnostic::general(Reason::SourceFailed, what)]
}

/// Removes the files of earlier versions of a Module.
fn forget_others(directory: &Path) {
    let Some(parent) = directory.parent() else { return };
    let others = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    for other in others.filter(|other| other != directory) {
        if let Err(error) = std::fs::remove_dir_all(&other) {
            tracing::warn!(directory = %other.display(), %error, "the files of an earlier version of a module stay");
        }
    }
}

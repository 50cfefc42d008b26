//! What the commands for configurations of Terraform have in common: the directory of the root module, and its tree.

pub mod providers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use configuration::module::Variable;
use configuration::{Input, Tree};
use drivers::Reattach;
use modules::{Installer, ModuleError, Progress};

use super::args::LockFileMode;
use super::failure::Failure;
use super::options::Files;
use super::output::Console;
use super::root_module::{self, Assignment, Loaded, Variables};
use super::terraform_settings;

/// The directory of the root module, by default the working directory.
///
/// # Errors
/// If it has no configuration.
pub fn root(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let root = given.unwrap_or_else(|| PathBuf::from("."));
    if root_module::is_in(&root) {
        return Ok(root);
    }
    let message = format!("{} has no configuration of Terraform: no `.tf` file", root.display());
    let hint = "manifests need no `purlin init`: `purlin provider install -f DIR` installs their providers in advance";
    Err(Failure::hinted(message, hint))
}

/// Reads a configuration with its installed modules. The problems are those that need no schema of a provider.
pub fn read(root: &Path, given: &Variables) -> (Tree, model::Diagnostics) {
    let Loaded { tree, mut problems, .. } = root_module::load(root, given);
    problems.extend(terraform::diagnostics(&tree.undeclared(), &tree.sources, &root_module::prefix(root)));
    (tree, problems)
}

/// Installs the modules and providers of a configuration, and records them. Returns whether there were no problems, which are
/// printed. `inputs`: the values of variables, of which sources of modules can be made.
///
/// # Errors
/// If a file of the directory cannot be read or written.
pub async fn install(
    inputs: BTreeMap<String, Input>,
    options: providers::Options<'_>,
    console: Console,
) -> anyhow::Result<bool> {
    let settings = terraform_settings::of_user()?;
    settings.ignored.iter().for_each(|setting| console.notice(&format!("Warning: {setting}")));
    console.lines("Initializing modules...\n")?;
    let modules = modules::Options {
        root: options.root.to_owned(),
        upgrade: options.upgrade,
        inputs,
        credentials: settings.credentials(),
        launcher: std::env::current_exe().ok(),
        ..modules::Options::default()
    };
    let installation = Installer::new(modules).install(&Lines(console)).await.map_err(failure)?;
    let sources = &installation.tree.sources;
    console.diagnostics(&terraform::diagnostics(
        &installation.diagnostics,
        sources,
        &root_module::prefix(options.root),
    ));
    Ok(installation.diagnostics.errors.is_empty()
        && providers::install(&installation.tree, options, &settings, console).await?)
}

/// Installs what the Terraform configuration of the files lacks, so that a plan or an apply needs no other command before it,
/// and asks for the values of its variables that have none. Returns whether the command can go on; problems are printed.
///
/// # Errors
/// As [`install`], and if the terminal cannot be read.
pub async fn prepare(files: &mut Files, console: Console) -> anyhow::Result<bool> {
    let Some(root) = files.root_module() else { return Ok(true) };
    let loaded = root_module::load(root, &files.variables);
    let questions = match files.asks_for_values && console.can_ask && !model::has_errors(&loaded.problems) {
        true => questions(&loaded),
        false => Vec::new(),
    };
    let is_installed = install_missing(root, files, loaded, console).await?;
    if is_installed {
        ask(questions, &mut files.variables, console)?;
    }
    Ok(is_installed)
}

/// A variable of the root module without a value.
struct Question {
    name: String,
    prompt: String,
    sensitive: bool,
}

impl Question {
    fn about(name: &str, variable: &Variable) -> Self {
        let description = variable.description.as_deref().map(|text| format!("  {text}\n")).unwrap_or_default();
        let prompt = format!("var.{name}\n{description}  Enter a value: ");
        Self { name: name.to_owned(), prompt, sensitive: variable.sensitive }
    }
}

fn questions(loaded: &Loaded) -> Vec<Question> {
    let variables = loaded.tree.root().variables.iter();
    variables
        .filter(|(name, variable)| variable.default.is_none() && !loaded.variables.contains_key(&***name))
        .map(|(name, variable)| Question::about(name, variable))
        .collect()
}

/// Asks for values, until the input ends: a variable that still has none is an error then.
fn ask(questions: Vec<Question>, variables: &mut Variables, console: Console) -> anyhow::Result<()> {
    for Question { name, prompt, sensitive } in questions {
        let answer = if sensitive { console.read_secret(&prompt)? } else { console.read_line(&prompt)? };
        let Some(value) = answer else { break };
        variables.0.push(Assignment::Value(format!("{name}={value}")));
    }
    Ok(())
}

async fn install_missing(root: &Path, files: &Files, loaded: Loaded, console: Console) -> anyhow::Result<bool> {
    let Loaded { tree, variables, problems, lacks_modules } = loaded;
    let reattach = Reattach::from_environment()?;
    let is_refused = model::has_errors(&problems) || !terraform::unsupported(&tree).errors.is_empty();
    if !lacks_modules && (is_refused || !providers::are_missing(&tree, root, &|source| reattach.has(&source.full()))) {
        return Ok(true);
    }
    let options = providers::Options {
        root,
        plugin_dirs: files.plugin_dirs.clone(),
        upgrade: false,
        lockfile: LockFileMode::Write,
    };
    install(variables, options, console.aside()).await
}

fn failure(error: ModuleError) -> anyhow::Error {
    Failure { message: error.message, hint: error.hint }.into()
}

/// Prints a line for each module that is fetched or new.
struct Lines(Console);

impl Progress for Lines {
    fn fetching(&self, module: &str, source: &str, version: Option<&semver::Version>) {
        let version = version.map(|version| format!(" {version}")).unwrap_or_default();
        self.line(format_args!("Downloading {source}{version} for {module}...\n"));
    }

    fn installed(&self, module: &str, directory: &str) {
        self.line(format_args!("- {module} in {directory}\n"));
    }
}

impl Lines {
    fn line(&self, line: std::fmt::Arguments<'_>) {
        // The last line of the command reports that standard output cannot be written.
        let _ = self.0.lines(line);
    }
}

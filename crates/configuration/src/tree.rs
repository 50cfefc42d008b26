//! The tree of modules: which module each call means, and which provider configurations it gets.

mod declared;
mod manifest;
mod passing;
mod removed;
mod requirements;
mod statics;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::Range;

pub use manifest::{Installed, Manifest};
pub use requirements::ProviderRequirement;
use statics::Statics;
use version::VersionConstraint;

use crate::address::ModulePath;
use crate::diagnostics::{Diagnostics, Sources};
use crate::directory::File;
use crate::evaluation::Input;
use crate::module::{Module, ModuleCall};
use crate::read::read_module;
use crate::source::{InvalidSource, ModuleSource, join};

/// Gives the files of directories. Everything that a configuration reads comes through this.
pub trait Directories {
    /// The files of a directory, or why there are none. Names in it that are no configuration may be left out.
    fn files(&self, directory: &str) -> Result<Vec<File>, String>;
}

/// A module of the tree, by its position in [`Tree::nodes`].
pub type NodeId = usize;

/// A module at its place in the tree. Modules with the same directory share what was read.
#[derive(Debug)]
pub struct Node {
    /// The names of the calls from the root module.
    pub path: Vec<Arc<str>>,
    /// The module.
    pub module: Arc<Module>,
    /// Where it is. The root module has none.
    pub source: Option<ModuleSource>,
    /// The constraint on its version.
    pub version: VersionConstraint,
    /// The module that calls it.
    pub parent: Option<NodeId>,
    /// The modules that it calls. A call whose module could not be loaded has none.
    pub children: BTreeMap<Arc<str>, NodeId>,
}

/// All modules of a configuration, the root module first.
#[derive(Debug)]
pub struct Tree {
    /// The modules; each stands after the one that calls it.
    pub nodes: Vec<Node>,
    /// The files.
    pub sources: Sources,
    /// The modules that have to be installed first.
    pub missing: Vec<Missing>,
}

/// A module that is called and not installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// Its key in the list of installed modules.
    pub key: String,
    /// Where it is.
    pub source: ModuleSource,
    /// The constraint on its version.
    pub version: VersionConstraint,
    /// The place of the source.
    pub range: Range,
}

/// The texts of a call.
struct Wanted {
    source: ModuleSource,
    version: VersionConstraint,
    range: Range,
}

/// Modules inside modules deeper than this are a mistake.
const MAX_DEPTH: usize = 100;
/// More modules than any configuration has.
const MAX_MODULES: usize = 20_000;

/// Loads the module in a directory and all that it calls, directly or not.
///
/// `installed` names the directories of modules that are not local paths, and `inputs` are the values of the root module's
/// variables, of which sources of modules may be made. The tree has everything that could be read, also with errors.
pub fn load(
    root: &str,
    directories: &dyn Directories,
    installed: &Manifest,
    inputs: &BTreeMap<String, Input>,
) -> (Tree, Diagnostics) {
    let mut loader = Loader {
        directories,
        installed,
        inputs,
        read: BTreeMap::new(),
        tree: Tree { nodes: Vec::new(), sources: Sources::default(), missing: Vec::new() },
        diagnostics: Diagnostics::default(),
    };
    loader.root(root);
    let Loader { tree, mut diagnostics, .. } = loader;
    passing::check(&tree, &mut diagnostics);
    removed::check(&tree, &mut diagnostics);
    (tree, diagnostics)
}

struct Loader<'a> {
    directories: &'a dyn Directories,
    installed: &'a Manifest,
    inputs: &'a BTreeMap<String, Input>,
    /// The modules by directory.
    read: BTreeMap<String, Arc<Module>>,
    tree: Tree,
    diagnostics: Diagnostics,
}

impl Loader<'_> {
    fn root(&mut self, directory: &str) {
        let module = self.module(directory).unwrap_or_else(|why| {
            let detail = format!("The directory `{directory}` cannot be read: {why}.");
            self.diagnostics.error("Module directory does not exist or cannot be read", detail, Range::default());
            Arc::new(Module { directory: directory.to_owned(), ..Module::default() })
        });
        self.tree.nodes.push(Node::new(Vec::new(), module, None, None));
        // Each module is appended after its caller, so that this reaches all of them.
        let mut at = 0;
        while at < self.tree.nodes.len() {
            self.calls(at);
            at += 1;
        }
    }

    fn module(&mut self, directory: &str) -> Result<Arc<Module>, String> {
        if let Some(module) = self.read.get(directory) {
            return Ok(module.clone());
        }
        let files = self.directories.files(directory)?;
        let (module, diagnostics) = read_module(directory, files, &mut self.tree.sources);
        self.diagnostics.extend(diagnostics);
        let module = Arc::new(module);
        self.read.insert(directory.to_owned(), module.clone());
        Ok(module)
    }

    fn calls(&mut self, caller: NodeId) {
        let module = self.tree.nodes[caller].module.clone();
        for (name, call) in &module.calls {
            let mut path = self.tree.nodes[caller].path.clone();
            path.push(name.clone());
            let Some(wanted) = self.wanted(caller, call) else { continue };
            if let Some(child) = self.call(caller, &path, &wanted) {
                let id = self.tree.nodes.len();
                self.tree.nodes.push(Node::new(path, child, Some(caller), Some(wanted)));
                self.tree.nodes[caller].children.insert(name.clone(), id);
            }
        }
    }

    /// What a call asks for.
    fn wanted(&mut self, caller: NodeId, call: &ModuleCall) -> Option<Wanted> {
        let source = call.source.as_ref()?;
        let depth = Cell::new(0);
        let statics = Statics { tree: &self.tree, node: caller, inputs: self.inputs, depth: &depth };
        let texts = [Some(source), call.version.as_ref()].map(|expr| expr.map(|expr| statics.text(expr)).transpose());
        let mut found = Vec::new();
        for text in texts {
            match text {
                Ok(text) => found.push(text.flatten()),
                Err(problems) => self.diagnostics.errors.extend(problems),
            }
        }
        let [source_text, version] = <[_; 2]>::try_from(found).ok()?;
        let range = source.range;
        let Some(text) = source_text.filter(|text| !text.is_empty()) else {
            self.diagnostics.error("Invalid module source address", "The source of a module cannot be empty.", range);
            return None;
        };
        let source = match ModuleSource::parse(&text) {
            Ok(source) => source,
            Err(InvalidSource { detail, hint }) => {
                self.diagnostics.hinted("Invalid module source address", format!("{detail}."), hint, range);
                return None;
            }
        };
        let version = match (version, &call.version) {
            (Some(version), Some(expr)) => self.version(&source, &version, expr.range)?,
            _ => VersionConstraint::default(),
        };
        Some(Wanted { source, version, range })
    }

    /// The constraint on the version of a module.
    fn version(&mut self, source: &ModuleSource, text: &str, range: Range) -> Option<VersionConstraint> {
        if !matches!(source, ModuleSource::Registry(_)) {
            let detail = "Only a module of a registry has versions.";
            let hint = match source {
                ModuleSource::Local(_) => "remove `version`",
                _ => "remove `version`, and choose what is fetched in the address: `?ref=v1.2.0` for Git",
            };
            self.diagnostics.hinted("Invalid registry module source address", detail, hint, range);
            return Some(VersionConstraint::default());
        }
        match VersionConstraint::of_module(text) {
            Ok(version) => Some(version),
            Err(error) => {
                let detail = format!("{error}.");
                self.diagnostics.hinted("Invalid version constraint", detail, VersionConstraint::HINT, range);
                None
            }
        }
    }

    fn call(&mut self, caller: NodeId, path: &[Arc<str>], call: &Wanted) -> Option<Arc<Module>> {
        let directory = self.directory(caller, path, call)?;
        let around = self.tree.ancestors(caller).find(|node| node.module.directory == directory);
        if let Some(depth) = around.map(|node| node.path.len()) {
            self.calls_itself(&format!("`{directory}`"), depth, path, call.range);
            return None;
        }
        if path.len() > MAX_DEPTH || self.tree.nodes.len() >= MAX_MODULES {
            let detail = format!("There are more than {MAX_DEPTH} modules inside each other, or {MAX_MODULES} in all.");
            self.diagnostics.error("Too many modules", detail, call.range);
            return None;
        }
        match self.module(&directory) {
            Ok(module) => Some(module),
            Err(why) => {
                let detail =
                    format!("The directory `{directory}` of module.{} cannot be read: {why}.", path.join(".module."));
                self.diagnostics.error("Unreadable module directory", detail, call.range);
                None
            }
        }
    }

    /// The directory of a module that is called.
    fn directory(&mut self, caller: NodeId, path: &[Arc<str>], call: &Wanted) -> Option<String> {
        if let Some(path) = call.source.as_local() {
            return Some(join(&self.tree.nodes[caller].module.directory, path));
        }
        // Each call of a package has a copy of its own, so that the directories of such a circle all differ.
        let around = self
            .tree
            .ancestors(caller)
            .find(|node| node.source.as_ref() == Some(&call.source) && node.version == call.version);
        if let Some(depth) = around.map(|node| node.path.len()) {
            self.calls_itself(&format!("\"{}\"", call.source), depth, path, call.range);
            return None;
        }
        let key = path.join(".");
        let installed = self.installed.get(&key);
        let problem = match installed {
            None => {
                let detail =
                    format!("The module \"{}\" of module.{} is not installed.", call.source, path.join(".module."));
                Some(("Module not installed", detail))
            }
            Some(installed) if !manifest::is_same_source(&installed.source, &call.source) => {
                let detail =
                    format!("The source is \"{}\" now, but \"{}\" is installed.", call.source, installed.source);
                Some(("Module source has changed", detail))
            }
            Some(installed) => {
                installed.version.as_deref().filter(|version| !is_allowed(&call.version, version)).map(|version| {
                    let detail =
                        format!("The version has to match `{}` now, but {version} is installed.", call.version);
                    ("Module version requirements have changed", detail)
                })
            }
        };
        let Some((summary, detail)) = problem else { return installed.map(|installed| installed.directory.clone()) };
        self.missing(&key, call);
        self.diagnostics.hinted(summary, detail, "run `purlin init`", call.range);
        None
    }
}

impl Loader<'_> {
    fn calls_itself(&mut self, module: &str, depth: usize, path: &[Arc<str>], range: Range) {
        let way: Vec<&str> = path[depth..].iter().map(|name| &**name).collect();
        let detail = format!("The module in {module} calls itself, through module.{}.", way.join(".module."));
        self.diagnostics.error("Module calls itself", detail, range);
    }

    fn missing(&mut self, key: &str, call: &Wanted) {
        let (source, version) = (call.source.clone(), call.version.clone());
        self.tree.missing.push(Missing { key: key.to_owned(), source, version, range: call.range });
    }
}

impl Node {
    fn new(path: Vec<Arc<str>>, module: Arc<Module>, parent: Option<NodeId>, wanted: Option<Wanted>) -> Self {
        let (source, version) = wanted.map_or_else(Default::default, |wanted| (Some(wanted.source), wanted.version));
        Self { path, module, source, version, parent, children: BTreeMap::new() }
    }
}

/// Whether a module of this version need not be installed again.
fn is_allowed(constraint: &VersionConstraint, version: &str) -> bool {
    version.parse().is_ok_and(|version| constraint.allows(&version))
}

impl Tree {
    /// A module and those around it, the innermost first.
    fn ancestors(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.nodes.get(id), |node| node.parent.and_then(|parent| self.nodes.get(parent)))
    }

    /// The module at the names of calls from the root module.
    fn at(&self, names: &[&Arc<str>]) -> Option<&Node> {
        self.nodes.iter().find(|node| node.path.iter().eq(names.iter().copied()))
    }

    /// The module of an instance.
    pub fn module(&self, path: &ModulePath) -> Option<&Node> {
        self.at(&path.0.iter().map(|step| &step.name).collect::<Vec<_>>())
    }

    /// Whether an error is that a module has to be installed first.
    pub fn is_missing(&self, error: &hcl::Diagnostic) -> bool {
        self.missing.iter().any(|missing| missing.range == error.range)
    }

    /// The root module.
    pub fn root(&self) -> &Module {
        &self.nodes[0].module
    }
}

#[cfg(test)]
mod tests;

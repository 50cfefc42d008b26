//! The tree of modules: which module each call means, and which provider configurations it gets.

mod manifest;
mod passing;

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::Range;

pub use manifest::{Installed, Manifest};

use crate::diagnostics::{Diagnostics, Sources};
use crate::directory::File;
use crate::module::{Module, ModuleCall};
use crate::read::read_module;

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
}

/// Modules inside modules deeper than this are a mistake.
const MAX_DEPTH: usize = 100;
/// More modules than any configuration has.
const MAX_MODULES: usize = 20_000;

/// Loads the module in a directory and all that it calls, directly or not.
///
/// `installed` names the directories of modules that are not local paths. The tree has everything that could be read,
/// also with errors.
pub fn load(root: &str, directories: &dyn Directories, installed: &Manifest) -> (Tree, Diagnostics) {
    let mut loader = Loader {
        directories,
        installed,
        read: BTreeMap::new(),
        tree: Tree { nodes: Vec::new(), sources: Sources::default() },
        diagnostics: Diagnostics::default(),
    };
    loader.root(root);
    let Loader { tree, mut diagnostics, .. } = loader;
    passing::check(&tree, &mut diagnostics);
    (tree, diagnostics)
}

struct Loader<'a> {
    directories: &'a dyn Directories,
    installed: &'a Manifest,
    /// The modules by directory.
    read: BTreeMap<String, Arc<Module>>,
    tree: Tree,
    diagnostics: Diagnostics,
}

impl Loader<'_> {
    fn root(&mut self, directory: &str) {
        match self.module(directory) {
            Ok(module) => {
                self.tree.nodes.push(Node { path: Vec::new(), module, parent: None, children: BTreeMap::new() });
            }
            Err(why) => {
                let detail = format!("The directory `{directory}` cannot be read: {why}.");
                self.diagnostics.error("Module directory does not exist or cannot be read", detail, Range::default());
                let module = Arc::new(Module { directory: directory.to_owned(), ..Module::default() });
                self.tree.nodes.push(Node { path: Vec::new(), module, parent: None, children: BTreeMap::new() });
            }
        }
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
            if let Some(child) = self.call(caller, &path, call) {
                let id = self.tree.nodes.len();
                self.tree.nodes.push(Node { path, module: child, parent: Some(caller), children: BTreeMap::new() });
                self.tree.nodes[caller].children.insert(name.clone(), id);
            }
        }
    }

    fn call(&mut self, caller: NodeId, path: &[Arc<str>], call: &ModuleCall) -> Option<Arc<Module>> {
        if call.source.is_empty() {
            return None;
        }
        let directory = self.directory(caller, path, call)?;
        if let Some(around) = self.tree.ancestors(caller).find(|node| node.module.directory == directory) {
            let way: Vec<&str> = path[around.path.len()..].iter().map(|name| &**name).collect();
            let detail = format!("The module in `{directory}` calls itself, through module.{}.", way.join(".module."));
            self.diagnostics.error("Module calls itself", detail, call.source_range);
            return None;
        }
        if path.len() > MAX_DEPTH || self.tree.nodes.len() >= MAX_MODULES {
            let detail = format!("There are more than {MAX_DEPTH} modules inside each other, or {MAX_MODULES} in all.");
            self.diagnostics.error("Too many modules", detail, call.source_range);
            return None;
        }
        match self.module(&directory) {
            Ok(module) => Some(module),
            Err(why) => {
                let detail =
                    format!("The directory `{directory}` of module.{} cannot be read: {why}.", path.join(".module."));
                self.diagnostics.error("Unreadable module directory", detail, call.source_range);
                None
            }
        }
    }

    /// The directory of a module that is called.
    fn directory(&mut self, caller: NodeId, path: &[Arc<str>], call: &ModuleCall) -> Option<String> {
        if is_local(&call.source) {
            return Some(join(&self.tree.nodes[caller].module.directory, &call.source));
        }
        let key = path.join(".");
        match self.installed.get(&key) {
            None => {
                let detail =
                    format!("The module \"{}\" of module.{} is not installed.", call.source, path.join(".module."));
                self.diagnostics.hinted("Module not installed", detail, "run `purlin init`", call.source_range);
                None
            }
            Some(installed) if !manifest::is_same_source(&installed.source, &call.source) => {
                let detail =
                    format!("The source is \"{}\" now, but \"{}\" is installed.", call.source, installed.source);
                self.diagnostics.hinted("Module source has changed", detail, "run `purlin init`", call.source_range);
                None
            }
            Some(installed) => Some(installed.directory.clone()),
        }
    }
}

fn is_local(source: &str) -> bool {
    ["./", "../", ".\\", "..\\"].iter().any(|prefix| source.starts_with(prefix))
}

/// A relative path from a directory, as upstream shows it in `path.module`.
fn join(directory: &str, relative: &str) -> String {
    let is_absolute = directory.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    let relative = relative.replace('\\', "/");
    for part in directory.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

impl Tree {
    /// A module and those around it, the innermost first.
    fn ancestors(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.nodes.get(id), |node| node.parent.and_then(|parent| self.nodes.get(parent)))
    }

    /// The root module.
    pub fn root(&self) -> &Module {
        &self.nodes[0].module
    }
}

#[cfg(test)]
mod tests;

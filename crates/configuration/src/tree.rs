//! The tree of modules: which module each call means, and which provider configurations it gets.

mod manifest;
mod passing;
mod statics;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::Range;

pub use manifest::{Installed, Manifest};
use statics::Statics;

use crate::diagnostics::{Diagnostics, Sources};
use crate::directory::File;
use crate::evaluation::Input;
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
    /// Where it is, as its call has it. The root module has none.
    pub source: Option<String>,
    /// The constraint on its version.
    pub version: Option<String>,
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
    pub source: String,
    /// The constraint on its version.
    pub version: Option<String>,
    /// The place of the source.
    pub range: Range,
}

/// The texts of a call.
struct Wanted {
    source: String,
    version: Option<String>,
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
        let source = source_text.filter(|text| !text.is_empty());
        if source.is_none() {
            self.diagnostics.error("Invalid module source address", "The source of a module cannot be empty.", range);
        }
        let source = source?;
        if let Some(expr) = call.version.as_ref().filter(|_| version.is_some() && is_local(&source)) {
            let detail = "A module in a local path has no version.";
            self.diagnostics.hinted("Invalid registry module source address", detail, "remove `version`", expr.range);
        }
        Some(Wanted { source, version, range })
    }

    fn call(&mut self, caller: NodeId, path: &[Arc<str>], call: &Wanted) -> Option<Arc<Module>> {
        let directory = self.directory(caller, path, call)?;
        if let Some(around) = self.tree.ancestors(caller).find(|node| node.module.directory == directory) {
            let way: Vec<&str> = path[around.path.len()..].iter().map(|name| &**name).collect();
            let detail = format!("The module in `{directory}` calls itself, through module.{}.", way.join(".module."));
            self.diagnostics.error("Module calls itself", detail, call.range);
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
        if is_local(&call.source) {
            return Some(join(&self.tree.nodes[caller].module.directory, &call.source));
        }
        let key = path.join(".");
        match self.installed.get(&key) {
            None => {
                self.missing(&key, call);
                let detail =
                    format!("The module \"{}\" of module.{} is not installed.", call.source, path.join(".module."));
                self.diagnostics.hinted("Module not installed", detail, "run `purlin init`", call.range);
                None
            }
            Some(installed) if !manifest::is_same_source(&installed.source, &call.source) => {
                self.missing(&key, call);
                let detail =
                    format!("The source is \"{}\" now, but \"{}\" is installed.", call.source, installed.source);
                self.diagnostics.hinted("Module source has changed", detail, "run `purlin init`", call.range);
                None
            }
            Some(installed) => Some(installed.directory.clone()),
        }
    }
}

impl Loader<'_> {
    fn missing(&mut self, key: &str, call: &Wanted) {
        let (source, version) = (call.source.clone(), call.version.clone());
        self.tree.missing.push(Missing { key: key.to_owned(), source, version, range: call.range });
    }
}

impl Node {
    fn new(path: Vec<Arc<str>>, module: Arc<Module>, parent: Option<NodeId>, wanted: Option<Wanted>) -> Self {
        let (source, version) = wanted.map_or((None, None), |wanted| (Some(wanted.source), wanted.version));
        Self { path, module, source, version, parent, children: BTreeMap::new() }
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

//! Reads a configuration from the HCL files of a directory and of its modules.

mod blocks;
mod values;

use std::collections::BTreeMap;
use std::io;

use hcl_edit::structure::Body;
use serde_json::Value as Json;

use super::{Configuration, Module, ModuleCall};
use crate::Problem;

pub use values::{number_value, template};

/// The text files of a directory and its subdirectories, by path.
pub type Folder = BTreeMap<String, String>;

/// Reads a directory, whose path is relative to that of the root module.
pub type ReadFolder<'a> = dyn Fn(&str) -> io::Result<Folder> + 'a;

/// Modules that contain each other.
const MAX_DEPTH: usize = 32;

/// The directories of modules from registries and repositories, by the path of the call, as `terraform init` writes it.
const INSTALLED: &str = ".terraform/modules/modules.json";

impl Configuration {
    /// Reads the configuration of a directory. `variables` are the contents of further files with values of variables.
    ///
    /// # Errors
    /// A file cannot be read or parsed.
    pub fn read(read: &ReadFolder<'_>, variables: &[(String, String)]) -> Result<Self, Problem> {
        let mut reader = Reader { read, files: Folder::new(), installed: BTreeMap::new(), notes: Vec::new() };
        reader.add_folder("")?;
        reader.installed = installed_modules(&reader.files);
        let root = reader.module(".", "", 0)?;
        let values = values::values(&reader.files, variables)?;
        Ok(Self { root, values, notes: reader.notes, files: reader.files })
    }
}

struct Reader<'a> {
    read: &'a ReadFolder<'a>,
    files: Folder,
    installed: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Removes `.` and resolves `..` in a path.
pub fn normalized(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn installed_modules(files: &Folder) -> BTreeMap<String, String> {
    let manifest: Json = files.get(INSTALLED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let modules = manifest["Modules"].as_array().into_iter().flatten();
    let pair = |one: &Json| Some((one["Key"].as_str()?.to_owned(), one["Dir"].as_str()?.to_owned()));
    modules.filter_map(pair).collect()
}

impl Reader<'_> {
    fn add_folder(&mut self, folder: &str) -> Result<(), Problem> {
        let found = (self.read)(folder);
        let found = found.map_err(|error| Problem::plain(format!("`{folder}` cannot be read: {error}")))?;
        let path = |name: String| normalized(&format!("{folder}/{name}"));
        self.files.extend(found.into_iter().map(|(name, text)| (path(name), text)));
        Ok(())
    }

    /// `at` is the path of the calls, such as `a.b`.
    fn module(&mut self, folder: &str, at: &str, depth: usize) -> Result<Module, Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::plain(format!("the module in `{folder}` contains itself")));
        }
        let mut module = Module { folder: folder.to_owned(), ..Module::default() };
        let mut calls: Vec<(String, ModuleCall, String)> = Vec::new();
        for (path, body) in self.bodies(folder)? {
            for block in body.blocks() {
                let mut place = blocks::Place { module: &mut module, calls: &mut calls, notes: &mut self.notes };
                place.add(block).map_err(|what| Problem::plain(format!("{path}: {what}")))?;
            }
        }
        for (name, mut call, source) in calls {
            let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            let folder = match (source.starts_with('.'), self.installed.get(&at)) {
                (_, Some(installed)) => normalized(installed),
                (true, None) => normalized(&format!("{folder}/{source}")),
                (false, None) => {
                    let what = format!("the module `{at}` (`{source}`) is not installed");
                    return Err(Problem::hinted(what, "run `terraform init` or `tofu init` in the directory first"));
                }
            };
            call.module = self.module(&folder, &at, depth + 1)?;
            module.calls.insert(name, call);
        }
        Ok(module)
    }

    /// The parsed files of a module.
    fn bodies(&mut self, folder: &str) -> Result<Vec<(String, Body)>, Problem> {
        let prefix = normalized(folder);
        let is_known = |files: &Folder| files.keys().any(|path| parent(path) == prefix);
        if !is_known(&self.files) {
            self.add_folder(&prefix)?;
        }
        let mut found = Vec::new();
        for (path, text) in self.files.iter().filter(|(path, _)| parent(path) == prefix) {
            let stem = path.strip_suffix(".tf");
            let overrides = stem.is_some_and(|stem| stem.ends_with("override"));
            if path.strip_suffix(".tf.json").is_some() || overrides {
                let hint = "pass the output of `terraform show -json PLANFILE` instead of the directory";
                return Err(Problem::hinted(format!("`{path}`: JSON and override files are not supported"), hint));
            }
            // OpenTofu prefers `.tofu` to a `.tf` of the same name.
            let is_replaced = |stem: &str| self.files.contains_key(&format!("{stem}.tofu"));
            if path.strip_suffix(".tofu").is_some() || stem.is_some_and(|stem| !is_replaced(stem)) {
                found.push((path.clone(), parse(path, text)?));
            }
        }
        if found.is_empty() {
            let hint = "specify the directory with the root module, or a plan as JSON";
            return Err(Problem::hinted(format!("`{folder}` contains no `.tf` files"), hint));
        }
        Ok(found)
    }
}

fn parse(path: &str, text: &str) -> Result<Body, Problem> {
    text.parse::<Body>().map_err(|error| {
        let (line, column) = (error.location().line(), error.location().column());
        Problem::plain(format!("{path}:{line}:{column}: {}", error.message()))
    })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

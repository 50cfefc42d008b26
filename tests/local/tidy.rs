//! Checks the source layout: the direction of imports, pure modules, and the size of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// The modules in reading order, and the modules that each may use. `main.rs` and `bin/` may use all.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("api", &["model"]),
    ("load", &["model", "api"]),
    ("plan", &["model", "api", "load"]),
    ("graph", &["model", "api", "load", "plan"]),
    ("process", &["model"]),
    ("cty", &["model"]),
    ("plugin", &["model", "process", "cty"]),
    ("install", &["model", "process"]),
    ("driver", &["model", "process", "cty", "plugin", "install"]),
    ("execute", &["model", "api", "load", "plan", "graph", "process", "plugin", "driver"]),
    ("pipeline", &["model", "api", "load", "plan", "graph", "driver", "execute"]),
    ("store", &["model", "api", "process", "execute"]),
    ("reconcile", &["model", "api", "load", "plan", "graph", "execute", "pipeline", "store"]),
    ("ui", &["model", "api", "plan", "process", "store", "reconcile"]),
    (
        "controller",
        &[
            "model",
            "api",
            "load",
            "plan",
            "graph",
            "process",
            "plugin",
            "install",
            "driver",
            "execute",
            "pipeline",
            "store",
            "reconcile",
            "ui",
        ],
    ),
    ("migrate", &["model", "api", "load", "plan", "cty", "driver"]),
    (
        "cli",
        &[
            "model",
            "api",
            "load",
            "plan",
            "graph",
            "process",
            "cty",
            "plugin",
            "install",
            "driver",
            "execute",
            "pipeline",
            "store",
            "reconcile",
            "ui",
            "controller",
            "migrate",
        ],
    ),
];

/// Pure modules: no I/O, no clock, no random values, no Kubernetes client and no `await`, so that they cannot call a
/// driver. A row applies to all modules below it that have no separate row.
const PURITY: &[(&str, bool)] = &[
    ("model", true),
    ("api", true),
    ("load", true),
    ("load/source", false),
    ("plan", true),
    ("graph", true),
    ("cty", true),
    ("execute/schedule", true),
    ("reconcile", true),
    ("migrate", true),
    ("ui/observed", true),
    ("ui/snapshot", true),
];
/// Type descriptions without I/O.
const PURE_ITEMS: &[&[&str]] =
    &[&["kube", "CustomResource"], &["kube", "CustomResourceExt"], &["kube", "Resource"], &["kube", "core"]];
const IMPURE_CRATES: &[&str] = &["tokio", "kube", "axum", "rusqlite", "tonic", "hyper", "tower"];
const IMPURE_STD: &[&str] = &["fs", "net", "process", "env", "thread"];

const LONGEST_FILE: usize = 600;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    /// Whether the file contains an `await`.
    waits: bool,
}

impl Paths {
    fn use_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.found.push(with(&name.ident)),
            syn::UseTree::Rename(rename) => self.found.push(with(&rename.ident)),
            syn::UseTree::Glob(_) => self.found.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.use_tree(before, item)),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_expr_await(&mut self, expr: &'ast syn::ExprAwait) {
        self.waits = true;
        syn::visit::visit_expr_await(self, expr);
    }

    // Code that is compiled only for tests is not checked.
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

fn paths(source: &str) -> Paths {
    let mut paths = Paths::default();
    paths.visit_file(&syn::parse_file(source).unwrap());
    paths
}

/// Whether the closest row of `PURITY` declares a module (such as `load/source`) pure.
fn is_pure(module: &str) -> bool {
    let covers = |row: &str| module.strip_prefix(row).is_some_and(|below| below.is_empty() || below.starts_with('/'));
    let closest = PURITY.iter().filter(|(row, _)| covers(row)).max_by_key(|(row, _)| row.len());
    closest.is_some_and(|(_, pure)| *pure)
}

/// Returns the violations in one file of a module (such as `load/source`).
fn violations(module: &str, source: &str) -> Vec<String> {
    let layer = module.split('/').next().unwrap();
    let names: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    let allowed = LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, allowed)| *allowed).unwrap();
    let is_pure = is_pure(module);
    let Paths { found, waits } = paths(source);
    let mut wrong = Vec::new();
    if is_pure && waits {
        wrong.push(format!("{module} waits"));
    }
    for path in found {
        let segments: Vec<&str> = path.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["crate", other, ..] if names.contains(other) && *other != layer && !allowed.contains(other) => {
                wrong.push(format!("{layer} uses crate::{other}"));
            }
            ["super", "super", "super", ..] => wrong.push(format!("{layer} climbs out with super::super::super")),
            path if PURE_ITEMS.iter().any(|item| path.starts_with(item)) => {}
            [krate, _, ..] if is_pure && IMPURE_CRATES.contains(krate) => wrong.push(format!("{module} uses {krate}")),
            ["std", part, ..] if is_pure && IMPURE_STD.contains(part) => {
                wrong.push(format!("{module} uses std::{part}"));
            }
            _ => {}
        }
    }
    wrong
}

/// Returns the module of a file below `src`, with slashes.
pub(crate) fn module(file: &Path) -> String {
    let below = file.strip_prefix(root().join("src")).unwrap();
    below.with_extension("").to_str().unwrap().replace('\\', "/")
}

/// `foo/tests.rs` and the modules below it are compiled only for tests.
fn is_only_for_tests(file: &Path) -> bool {
    file.ends_with("tests.rs")
        || file.parent().is_some_and(|parent| parent.components().any(|part| part.as_os_str() == "tests"))
}

#[test]
fn imports_follow_the_layers() {
    let mut wrong = Vec::new();
    for (layer, _) in LAYERS {
        let mut files = vec![root().join(format!("src/{layer}.rs"))];
        let directory = root().join("src").join(layer);
        if directory.is_dir() {
            rust_files(&directory, &mut files);
        }
        for file in files.iter().filter(|file| !is_only_for_tests(file)) {
            let found = violations(&module(file), &fs::read_to_string(file).unwrap());
            wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_import_is_found() {
    assert_eq!(violations("graph", "use crate::{execute::Run, model::Step};"), ["graph uses crate::execute"]);
    assert_eq!(violations("plan", "fn f() { tokio::time::sleep(d); }"), ["plan uses tokio"]);
    assert_eq!(violations("plan", "use std::{fs, fmt};"), ["plan uses std::fs"]);
    assert_eq!(violations("model", "fn f(r: crate::plan::Plan) {}"), ["model uses crate::plan"]);
    assert_eq!(violations("load/yaml", "use std::fs;"), ["load/yaml uses std::fs"]);
    assert_eq!(violations("migrate/names", "fn f() { async { g().await }; }"), ["migrate/names waits"]);
    assert_eq!(violations("api", "use kube::{Client, CustomResource};"), ["api uses kube"]);
    assert!(violations("load/source", "use std::fs;").is_empty() && violations("store", "use std::fs;").is_empty());
    assert!(
        violations("plan", "use crate::model::Step; #[cfg(test)] mod tests { use crate::execute::Run; }").is_empty()
    );
}

#[test]
fn files_stay_small() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("tests"), &mut files);
    let long: Vec<String> = files
        .iter()
        .map(|file| (fs::read_to_string(file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > LONGEST_FILE)
        .map(|(lines, file)| format!("{} has {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn no_module_has_a_generic_name() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let drawers = ["utils", "util", "common", "helpers", "misc"];
    let found: Vec<_> =
        files.iter().filter(|file| drawers.contains(&file.file_stem().unwrap().to_str().unwrap())).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn every_layer_is_checked() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let declared: Vec<&str> = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let checked: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, checked, "lib.rs must declare the modules in the order of the layers");
}

//! Checks that pure crates and modules neither do I/O nor wait.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Pure crates and modules: no I/O, no clock, no random values, no Kubernetes client and no `await`, so that they cannot
/// call a driver. A row applies to all modules below it that have no separate row.
const PURITY: &[(&str, bool)] = &[
    ("model", true),
    ("api", true),
    ("engine", true),
    ("engine/load/source", false),
    ("tfprovider/schema", true),
    ("runtime/execute/schedule", true),
    ("runtime/reconcile", true),
    ("migrate", true),
    ("terraform", true),
    ("controller/ui/observed", true),
    ("controller/ui/snapshot", true),
];
/// Type descriptions without I/O.
const PURE_ITEMS: &[&[&str]] =
    &[&["kube", "CustomResource"], &["kube", "CustomResourceExt"], &["kube", "Resource"], &["kube", "core"]];
const IMPURE_CRATES: &[&str] = &["process", "tokio", "kube", "axum", "rusqlite", "tonic", "hyper", "tower"];
const IMPURE_STD: &[&str] = &["fs", "net", "process", "env", "thread"];

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

/// Whether the closest row of `PURITY` declares a module (such as `engine/load/source`) pure.
fn is_pure(module: &str) -> bool {
    let covers = |row: &str| module.strip_prefix(row).is_some_and(|below| below.is_empty() || below.starts_with('/'));
    let closest = PURITY.iter().filter(|(row, _)| covers(row)).max_by_key(|(row, _)| row.len());
    closest.is_some_and(|(_, pure)| *pure)
}

/// Returns what makes a module (such as `engine/load/source`) impure.
fn violations(module: &str, source: &str) -> Vec<String> {
    if !is_pure(module) {
        return Vec::new();
    }
    let Paths { found, waits } = paths(source);
    let mut wrong = Vec::new();
    if waits {
        wrong.push(format!("{module} waits"));
    }
    for path in found {
        let segments: Vec<&str> = path.iter().map(String::as_str).collect();
        match segments.as_slice() {
            path if PURE_ITEMS.iter().any(|item| path.starts_with(item)) => {}
            [krate, _, ..] if IMPURE_CRATES.contains(krate) => wrong.push(format!("{module} uses {krate}")),
            ["std", part, ..] if IMPURE_STD.contains(part) => wrong.push(format!("{module} uses std::{part}")),
            _ => {}
        }
    }
    wrong
}

/// Returns the module of a file below `crates`, with slashes: the crate, and the path in it.
fn module(file: &Path) -> String {
    let below = file.strip_prefix(root().join("crates")).unwrap().with_extension("");
    let names: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    names.into_iter().filter(|name| !["src", "lib"].contains(name)).collect::<Vec<_>>().join("/")
}

/// `foo/tests.rs` and the modules below it are compiled only for tests.
fn is_only_for_tests(file: &Path) -> bool {
    file.ends_with("tests.rs")
        || file.parent().is_some_and(|parent| parent.components().any(|part| part.as_os_str() == "tests"))
}

#[test]
fn pure_modules_do_no_io_and_never_wait() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    let mut wrong = Vec::new();
    let modules: Vec<String> = files.iter().map(|file| module(file)).collect();
    for (row, _) in PURITY {
        assert!(modules.iter().any(|module| module == row), "there is no {row}");
    }
    for (file, module) in files.iter().zip(&modules).filter(|(file, _)| !is_only_for_tests(file)) {
        let found = violations(module, &fs::read_to_string(file).unwrap());
        wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_violation_is_found() {
    assert_eq!(violations("engine/plan", "fn f() { tokio::time::sleep(d); }"), ["engine/plan uses tokio"]);
    assert_eq!(violations("engine/plan", "use std::{fs, fmt};"), ["engine/plan uses std::fs"]);
    assert_eq!(violations("engine/load/yaml", "use std::fs;"), ["engine/load/yaml uses std::fs"]);
    assert_eq!(violations("migrate/state", "fn f() { async { g().await }; }"), ["migrate/state waits"]);
    assert_eq!(violations("api", "use kube::{Client, CustomResource};"), ["api uses kube"]);
    assert!(violations("engine/load/source", "use std::fs;").is_empty());
    assert!(violations("runtime/store", "use std::fs;").is_empty());
    assert!(violations("model", "#[cfg(test)] mod tests { use std::fs; }").is_empty());
}

//! Checks that sibling files do not import each other in a cycle, directly or through other files.
//!
//! Files are siblings if their modules have the same parent; files below a sibling belong to it. The parent is not a
//! sibling: parent and child may use each other. A re-export (`pub use x::Y`) is also an import of the defining file.
//! Code that is compiled only for tests is ignored. A glob imports its module, but not the re-exports of that module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use petgraph::algo::tarjan_scc;
use petgraph::prelude::DiGraphMap;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Attribute, Expr, Ident, Item, Token, UseTree};

use super::tidy;

/// The segments of a module path (without `crate`), or of a path in the source.
type Names = Vec<String>;

/// The paths and modules that a file names.
#[derive(Default)]
struct File {
    /// The path of each imported name.
    imported: BTreeMap<String, Names>,
    /// All paths, including imports.
    paths: BTreeSet<Names>,
    /// Modules that are declared only for tests.
    for_tests: BTreeSet<String>,
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl File {
    fn parse(source: &str) -> Self {
        let mut file = Self::default();
        file.visit_file(&syn::parse_file(source).unwrap());
        file
    }

    fn import(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &Ident| before.iter().cloned().chain([name.to_string()]).collect::<Names>();
        let (name, path) = match tree {
            UseTree::Path(path) => return self.import(&with(&path.ident), &path.tree),
            UseTree::Group(group) => return group.items.iter().for_each(|item| self.import(before, item)),
            UseTree::Name(name) if name.ident == "self" => (before.last().cloned(), before.to_vec()),
            UseTree::Name(name) => (Some(name.ident.to_string()), with(&name.ident)),
            UseTree::Rename(rename) if rename.ident == "self" => (Some(rename.rename.to_string()), before.to_vec()),
            UseTree::Rename(rename) => (Some(rename.rename.to_string()), with(&rename.ident)),
            UseTree::Glob(_) => (None, before.to_vec()),
        };
        if let Some(name) = name {
            self.imported.insert(name, path.clone());
        }
        self.paths.insert(path);
    }

    /// Visits the arguments of a macro or an attribute, if they parse as expressions.
    fn arguments(&mut self, arguments: syn::Result<Punctuated<Expr, Token![,]>>) {
        arguments.iter().flatten().for_each(|argument| self.visit_expr(argument));
    }
}

impl<'ast> Visit<'ast> for File {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(module) if is_for_tests(&module.attrs) => {
                self.for_tests.insert(module.ident.to_string());
            }
            Item::Fn(function) if is_for_tests(&function.attrs) => {}
            Item::Impl(methods) if is_for_tests(&methods.attrs) => {}
            Item::Use(import) if is_for_tests(&import.attrs) => {}
            Item::Use(import) => self.import(&[], &import.tree),
            _ => syn::visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            syn::visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.arguments(call.parse_body_with(Punctuated::parse_terminated));
        syn::visit::visit_macro(self, call);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.arguments(attribute.parse_args_with(Punctuated::parse_terminated));
    }
}

/// The files of the crate that are not only for tests, by module.
struct Crate(BTreeMap<Names, File>);

impl Crate {
    /// `sources` contains the name (such as `load/source`) and the source of each module.
    fn of(sources: impl IntoIterator<Item = (String, String)>) -> Self {
        let names = |module: &str| module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let mut files: BTreeMap<Names, File> =
            sources.into_iter().map(|(module, source)| (names(&module), File::parse(&source))).collect();
        let for_tests: Vec<Names> = files
            .iter()
            .flat_map(|(module, file)| {
                file.for_tests.iter().map(|name| [module.as_slice(), std::slice::from_ref(name)].concat())
            })
            .collect();
        files.retain(|module, _| !for_tests.iter().any(|tests| module.starts_with(tests)));
        Self(files)
    }

    /// Resolves a path from the module `at`, and adds to `met` the modules that re-export its name and the one that
    /// defines it.
    fn follow(&self, at: &[String], path: &[String], met: &mut Vec<Names>) {
        let Some((first, rest)) = path.split_first() else { return met.push(at.to_vec()) };
        let child = [at, std::slice::from_ref(first)].concat();
        match first.as_str() {
            "crate" => self.follow(&[], rest, met),
            "self" => self.follow(at, rest, met),
            "super" => self.follow(&at[..at.len() - 1], rest, met),
            _ if self.0.contains_key(&child) => self.follow(&child, rest, met),
            name => {
                let visited = met.iter().any(|module| module == at);
                met.push(at.to_vec());
                if let Some(import) = self.0[at].imported.get(name).filter(|_| !visited) {
                    self.follow(at, &[import.as_slice(), rest].concat(), met);
                }
            }
        }
    }

    /// Returns for each directory which child uses which other child, and the paths of these uses.
    fn uses(&self) -> BTreeMap<Names, BTreeMap<(&str, String), BTreeSet<String>>> {
        let mut uses: BTreeMap<Names, BTreeMap<(&str, String), BTreeSet<String>>> = BTreeMap::new();
        for (from, file) in &self.0 {
            for path in &file.paths {
                let mut met = Vec::new();
                self.follow(from, path, &mut met);
                for to in met {
                    let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
                    if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
                        let directory = uses.entry(from[..common].to_vec()).or_default();
                        directory.entry((user, used.clone())).or_default().insert(path.join("::"));
                    }
                }
            }
        }
        uses
    }

    /// Returns a message for each group of files that use each other in a cycle, with the paths.
    fn find_cycles(&self) -> Vec<String> {
        let mut circles = Vec::new();
        for (directory, uses) in self.uses() {
            let graph: DiGraphMap<&str, ()> = uses.keys().map(|(user, used)| (*user, used.as_str())).collect();
            for mut knot in tarjan_scc(&graph).into_iter().filter(|knot| knot.len() > 1) {
                knot.sort_unstable();
                let mut circle =
                    format!("the files {} of src/{} use each other:", knot.join(", "), directory.join("/"));
                for ((user, used), paths) in &uses {
                    if knot.contains(user) && knot.contains(&used.as_str()) {
                        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                        circle += &format!("\n  {user} uses {used}: {}", paths.join(", "));
                    }
                }
                circles.push(circle);
            }
        }
        circles
    }
}

#[test]
fn sibling_files_do_not_use_each_other_in_a_cycle() {
    let mut files = Vec::new();
    tidy::rust_files(&tidy::root().join("src"), &mut files);
    let of_the_library = files.iter().map(|file| (tidy::module(file), file)).filter(|(module, _)| module != "main");
    let sources = of_the_library.map(|(module, file)| {
        let module = if module == "lib" { String::new() } else { module };
        (module, fs::read_to_string(file).unwrap())
    });
    let circles = Crate::of(sources).find_cycles();
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// Returns the cycles of a module `x` with the children `a` and `b`, from the sources of all three.
fn find_cycles(parent: &str, a: &str, b: &str) -> Vec<String> {
    let sources = [("", ""), ("x", parent), ("x/a", a), ("x/b", b), ("x/b/tests", "use crate::x::a::A;")];
    Crate::of(sources.map(|(module, source)| (module.to_owned(), source.to_owned()))).find_cycles()
}

#[test]
fn every_use_of_a_sibling_is_found() {
    for a in [
        "use super::b::B;",
        "use crate::x::{b::B};",
        "use super::Handed;",
        "use crate::x::Handed as Other;",
        "use super::b; fn f() { b::f() }",
        "fn f() { super::b::f() }",
        "use crate::x; fn f() { x::b::f() }",
        "fn f() { println!(\"{}\", super::b::f()) }",
        "#[arg(value_parser = super::b::f)] struct A;",
    ] {
        let found = find_cycles("pub use b::B as Handed;", a, "#[cfg(test)] mod tests; use super::a::A;");
        assert_eq!(found.len(), 1, "{a}: {found:?}");
    }
    let message = "the files a, b of src/x use each other:\n  a uses b: super::b::B\n  b uses a: super::a::A";
    assert_eq!(find_cycles("", "use super::b::B;", "#[cfg(test)] mod tests; use super::a::A;"), [message]);
}

#[test]
fn one_direction_the_parent_and_tests_are_allowed() {
    let passes = |parent, a, b| assert_eq!(find_cycles(parent, a, b), Vec::<String>::new());
    passes("", "use super::b::B; struct A;", "#[cfg(test)] mod tests; struct B;");
    passes("use a::A; struct Own;", "use super::Own; struct A;", "#[cfg(test)] mod tests; use super::{Own, a::A};");
    passes("", "use super::b::B;", "#[cfg(test)] mod tests; #[cfg(test)] use super::a::A;");
    passes("", "use super::b::B;", "#[cfg(test)] mod tests { use crate::x::a::A; } struct B;");
}

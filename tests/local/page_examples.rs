//! Runs the shell blocks of all pages that need no cluster. `PAGE=docs/moves.md` runs one page.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::pages::{Part, Shell, all_pages, check, pages, root};
use crate::providers;
use crate::reference::anchor;

/// The versions of the providers in the mirror, which the pages show.
const PROVIDERS: [(&str, &str); 4] = [("local", "2.9.0"), ("random", "3.9.0"), ("time", "0.14.2"), ("tls", "4.2.1")];

/// Takes the place of the registry.
fn mirror() -> TempDir {
    let mirror = tempfile::tempdir().unwrap();
    for (name, version) in PROVIDERS {
        let package =
            format!("registry.opentofu.org/hashicorp/{name}/{version}/{}", purlin::install::Platform::current());
        let directory = mirror.path().join(package);
        fs::create_dir_all(&directory).unwrap();
        fs::copy(providers::program(name), directory.join(format!("terraform-provider-{name}"))).unwrap();
    }
    mirror
}

fn run(page: &Path, mirror: &Path) -> Vec<String> {
    let mut shell = Shell::start(&[]);
    shell.export("PURLIN_PLUGIN_DIR", mirror);
    check(page, Part::Files, &mut shell, &mut |_| {})
}

#[test]
fn pages_for_files_do_what_they_show() {
    let mirror = mirror();
    let selected = std::env::var("PAGE").ok();
    let pages = pages(Part::Files);
    let waiting =
        Mutex::new(pages.into_iter().filter(|page| selected.as_deref().is_none_or(|one| page == Path::new(one))));
    let problems = Mutex::new(Vec::new());
    let next = || -> Option<PathBuf> { waiting.lock().unwrap().next() };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let found = run(&page, mirror.path());
                    problems.lock().unwrap().extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Blocks in another language than `sh` would not be run.
#[test]
fn all_shell_blocks_of_pages_are_run() {
    for page in pages(Part::Files).into_iter().chain(pages(Part::Cluster)) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for language in ["bash", "console", "shell", "zsh"] {
            let fence = format!("```{language}");
            assert!(!text.lines().any(|line| line.starts_with(&fence)), "{}: write {fence} as ```sh", page.display());
        }
    }
}

/// Pages and headings are renamed; links to them would stay.
#[test]
fn links_between_pages_lead_to_existing_pages_and_headings() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let code = regex::Regex::new(r"`[^`\n]*`").unwrap();
    let mut broken = Vec::new();
    for page in all_pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let text = code.replace_all(&text, "");
        for found in link.captures_iter(&text) {
            let target = &found[1];
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") {
                continue;
            }
            let own = root().join(&page);
            let file = if path.is_empty() { own } else { own.parent().unwrap().join(path) };
            let has_heading = || {
                let text = fs::read_to_string(&file).unwrap_or_default();
                let is_it =
                    |line: &str| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == heading;
                text.lines().any(is_it) || text.contains(&format!("<a id=\"{heading}\">"))
            };
            if !file.exists() || !heading.is_empty() && !has_heading() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A page that no index names is not found by readers.
#[test]
fn the_index_names_every_page() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let pages = all_pages().into_iter().filter_map(|page| Some(page.strip_prefix("docs").ok()?.to_owned()));
    let is_missing = |page: &PathBuf| {
        let name = page.to_str().unwrap();
        !["adr/", "types/", "README.md"].iter().any(|begin| name.starts_with(begin))
            && !index.contains(&format!("({name})"))
    };
    let missing: Vec<PathBuf> = pages.filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

//! Runs the shell blocks of Markdown pages, and compares the outputs that the pages show.
//!
//! A page consists of fenced blocks and text. Its blocks run in order, in one shell and one directory:
//!
//! - A block ` ```sh ` is run as it is, as if a reader pasted it. Every command in it must succeed.
//! - A block ` ```text ` directly after it is its complete output. A line `...` stands for any number of lines. IDs, times
//!   and the widths of columns may differ.
//! - A block ` ```yaml ` whose first line is a comment with a path (`# files/web.yaml`) is written to that file, and a
//!   block ` ```json NAME ` or ` ```hcl NAME ` to the file NAME.
//! - The block after `<!-- graph of DIRECTORY -->` is the output of `purlin graph`: the files of the directory are
//!   applied in order with `--prune`, except the last, which the graph shows. A file whose name ends in `-fails` must fail.
//!
//! A comment in the line before a block changes how it runs: `<!-- not run: REASON -->`, `<!-- fails -->`,
//! `<!-- runs until Ctrl-C -->` (runs while the rest of the page does), `<!-- lines in any order -->`.
//! `<!-- cluster -->` and `<!-- files -->` begin a part of the page that needs a cluster, or does not. The local tests
//! run one part of each page and the cluster tests the other. `UPDATE_EXPECT=1` rewrites the outputs.
//!
//! Include it with `#[path = "../support/pages.rs"] mod pages;`.
#![allow(dead_code, reason = "a test binary uses the part it needs")]

#[path = "pages/markdown.rs"]
mod markdown;
#[path = "pages/output.rs"]
mod output;
#[path = "pages/shell.rs"]
mod shell;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use markdown::Part;
use markdown::{Chunk, Fence};
pub(crate) use output::presentable;
pub(crate) use shell::Shell;

/// The only reasons for a block not to be run.
const NOT_RUN: [&str; 9] = [
    "builds Purlin, as .ci/run does",
    "needs an account of a cloud",
    "needs the internet",
    "needs a container engine",
    "needs a second cluster",
    "needs a provider in a debugger",
    "needs Terraform",
    "runs tests or benchmarks for minutes",
    "reads a terminal",
];

/// How long a block that reads a cluster may take until it prints what the page shows.
const LIMIT: Duration = Duration::from_secs(90);

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of the repository that have shell blocks in this part, as paths relative to its root.
pub(crate) fn pages(part: Part) -> Vec<PathBuf> {
    let mut found = all_pages();
    found.retain(|page| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        markdown::parse(&text).iter().any(|chunk| match chunk {
            Chunk::Fence(fence) => fence.part == part && (fence.info == "sh" || fence.directory().is_some()),
            Chunk::Text(_) => false,
        })
    });
    found
}

/// The pages that users and developers read.
pub(crate) fn all_pages() -> Vec<PathBuf> {
    let single = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "charts/purlin/README.md"];
    let mut found: Vec<PathBuf> = single.map(PathBuf::from).into();
    for directory in ["docs", "examples"] {
        find(&root().join(directory), &mut found);
    }
    found
}

fn find(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
}

/// Runs one part of a page in a shell. `after` is called with each block that has run. Returns what is wrong.
pub(crate) fn check(page: &Path, part: Part, shell: &mut Shell, after: &mut dyn FnMut(&str)) -> Vec<String> {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let mut run = PageRun { part, shell, after, problems: Vec::new() };
    let actual = run.play(&markdown::parse(&text));
    run.shell.end_background(&mut run.problems);
    let mut problems: Vec<String> =
        run.problems.into_iter().map(|problem| format!("{}: {problem}", page.display())).collect();
    if actual != text {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &actual).unwrap();
        } else {
            let diff = similar::TextDiff::from_lines(&text, &actual);
            let diff = diff.unified_diff().header("documented", "actual").to_string();
            problems.push(format!("{}:\n{diff}", page.display()));
        }
    }
    problems
}

struct PageRun<'a> {
    part: Part,
    shell: &'a mut Shell,
    after: &'a mut dyn FnMut(&str),
    problems: Vec<String>,
}

impl PageRun<'_> {
    /// Returns the page with the actual outputs.
    fn play(&mut self, chunks: &[Chunk]) -> String {
        let mut out = String::new();
        let mut at = 0;
        while let Some(chunk) = chunks.get(at) {
            at += 1;
            let fence = match chunk {
                Chunk::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Chunk::Fence(fence) => fence,
            };
            let shown = output_of(&chunks[at..]);
            let mut body = fence.body.clone();
            let mut actual = None;
            if fence.part == self.part {
                if let Some(directory) = fence.directory() {
                    body = graph(directory, &fence.info, &mut self.problems);
                } else if let Some((name, content)) = fence.file() {
                    self.shell.write(name, content);
                } else if fence.info == "sh" {
                    actual = self.block(fence, shown.map(|(_, shown)| shown.body.as_str()));
                }
            }
            out.push_str(&fence.with_body(&body));
            if let (Some(actual), Some((between, shown))) = (actual, shown) {
                out.push_str(between);
                out.push_str(&shown.with_body(&actual));
                at += 2;
            }
        }
        out
    }

    /// Runs one block, and returns its output as the page should show it.
    fn block(&mut self, fence: &Fence, shown: Option<&str>) -> Option<String> {
        let place = format!("line {}", fence.line);
        if let Some(reason) = fence.mark("not run: ") {
            if !NOT_RUN.contains(&reason) {
                self.problems.push(format!("{place}: `{reason}` is not one of the reasons for a block not to be run"));
            }
            return None;
        }
        if fence.mark("runs until Ctrl-C").is_some() {
            self.shell.start_background(&fence.body);
            return None;
        }
        let is_same = match fence.mark("lines in any order") {
            Some(_) => output::has_the_same_lines,
            None => output::is_same,
        };
        let mut ran = self.shell.run(&fence.body);
        if let Some(shown) = shown
            && self.shell.changes_by_itself()
            && reads(&fence.body)
        {
            let begin = std::time::Instant::now();
            while !is_same(shown, &ran.output) && begin.elapsed() < LIMIT {
                std::thread::sleep(Duration::from_millis(100));
                ran = self.shell.run(&fence.body);
            }
        }
        if ran.failed != fence.mark("fails").is_some() {
            let outcome = if ran.failed { "failed" } else { "did not fail" };
            self.problems.push(format!("{place}: a command {outcome}:\n{}{}", fence.body, ran.output));
        }
        (self.after)(&fence.body);
        shown.map(|shown| match is_same(shown, &ran.output) {
            true => shown.to_owned(),
            false => presentable(&ran.output),
        })
    }
}

/// Whether all commands of a block only read, so that they can be repeated until the expected state is reached.
fn reads(script: &str) -> bool {
    let readers = ["kubectl get ", "kubectl describe ", "purlin get ", "purlin tree ", "purlin state "];
    script.lines().all(|line| readers.iter().any(|reader| line.starts_with(reader)))
}

/// The block of output that follows directly.
fn output_of(rest: &[Chunk]) -> Option<(&str, &Fence)> {
    match rest {
        [Chunk::Text(between), Chunk::Fence(fence), ..] if between.trim().is_empty() && fence.info == "text" => {
            Some((between, fence))
        }
        _ => None,
    }
}

/// The graph of the last file of a directory, after the others were applied.
fn graph(directory: &str, language: &str, problems: &mut Vec<String>) -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let last = files.pop().unwrap();
    let mut shell = Shell::start(&[]);
    for file in files {
        let must_fail = file.file_stem().unwrap().to_str().unwrap().ends_with("-fails");
        let ran = shell.run(&format!("purlin apply --yes --prune -f {}", file.display()));
        if ran.failed != must_fail {
            problems.push(format!("{}: {}", file.display(), ran.output));
        }
    }
    let form = if language == "mermaid" { "mermaid" } else { "text" };
    let ran = shell.run(&format!("purlin graph --prune -o {form} -f {} 2>/dev/null", last.display()));
    presentable(&ran.output)
}

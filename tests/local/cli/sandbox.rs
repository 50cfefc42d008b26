//! A folder of its own for each test, and `purlin` run in it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

/// How long anything may take before a test calls it hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A working directory with a folder `files`.
pub(super) struct Sandbox {
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Sandbox {
    /// With no files.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        Self { folder }
    }

    /// With one of the folders of `examples/`.
    pub(super) fn of_example(name: &str) -> Self {
        let sandbox = Self::new();
        sandbox.copy_example(name);
        sandbox
    }

    /// Replaces all files by those of an example.
    pub(super) fn copy_example(&self, name: &str) {
        for entry in fs::read_dir(self.path("files")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
        let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.filter(|path| path.is_file()) {
            fs::copy(&path, self.path("files").join(path.file_name().unwrap())).unwrap();
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Writes `files/objects.yaml` with `terraform_data` objects: names, and what each refers to.
    pub(super) fn objects(&self, objects: &[(&str, &[&str])]) {
        let text: String = objects.iter().map(|(name, references)| manifest(name, references)).collect();
        self.write("files/objects.yaml", &text);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env_remove("XDG_CACHE_HOME")
            .env_remove("PURLIN_PLUGIN_CACHE")
            .env_remove("PURLIN_PLUGIN_DIR")
            // A provider that hangs need not be waited for by a test.
            .env("PURLIN_PROVIDER_KILL_AFTER", "4")
            .env("KUBECONFIG", self.path("no-such-kubeconfig"))
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs to the end with more variables in its environment.
    pub(super) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs to the end, and expects success.
    pub(super) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.stdout
    }

    /// Runs with text on standard input.
    pub(super) fn piped(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Starts, with output going to `out.txt` and `err.txt`.
    pub(super) fn start(&self, arguments: &[&str]) -> Started {
        let file = |name: &str| fs::File::create(self.path(name)).unwrap();
        let child = self.command(arguments).stdout(file("out.txt")).stderr(file("err.txt")).spawn().unwrap();
        Started { child, out: self.path("out.txt"), err: self.path("err.txt") }
    }

    /// The answer of a command with `-o json`, whatever its exit code.
    pub(super) fn json(&self, arguments: &[&str]) -> Json {
        let ran = self.run(arguments);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {ran:?}"))
    }

    /// The lines of a command that prints events.
    pub(super) fn events(&self, arguments: &[&str]) -> Vec<Json> {
        let ran = self.run(arguments);
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}: {ran:?}"));
        ran.stdout.lines().map(read).collect()
    }

    /// Addresses of recorded objects.
    pub(super) fn recorded(&self) -> Vec<String> {
        let list = self.json(&["state", "list", "--state", "purlin.db", "-o", "json"]);
        let objects = list["objects"].as_array().unwrap();
        objects.iter().map(|object| object["address"].as_str().unwrap().to_owned()).collect()
    }
}

/// One `terraform_data` object whose input holds the ids of others.
pub(super) fn manifest(name: &str, references: &[&str]) -> String {
    let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:";
    let mut text = format!("{head} {{ name: {name} }}\nspec:\n  type: terraform_data\n  config:\n    input:\n");
    text.push_str(&format!("      name: {name}\n"));
    for other in references {
        text.push_str(&format!("      {other}: ${{{}.id}}\n", other.replace('-', "_")));
    }
    text
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The lines on standard error that tell errors.
    pub(super) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("error:")).collect()
    }

    /// The one error that the command failed with.
    #[track_caller]
    pub(super) fn one_error(&self) -> &str {
        let errors = self.errors();
        assert_eq!((self.code, errors.len()), (Some(1), 1), "{self:?}");
        errors[0]
    }
}

/// A process that runs on.
pub(super) struct Started {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Started {
    /// Waits until a condition holds.
    pub(super) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() || holds(self), "ended before {what}: {}{}", self.out(), self.err());
            assert!(begin.elapsed() < PATIENCE, "{what} does not come: {}{}", self.out(), self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(super) fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Sends a signal by its name.
    pub(super) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end.
    pub(super) fn end(mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end: {}{}", self.out(), self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A test that failed must not leave a process behind; one that ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands in the fences of a language in a Markdown text, in order.
pub(super) fn fenced<'t>(markdown: &'t str, language: &str) -> Vec<&'t str> {
    let begin = format!("```{language}\n");
    let blocks = markdown.split(begin.as_str()).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

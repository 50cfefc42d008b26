//! Runs `purlin` in a temporary directory for each test.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use serde_json::Value as Json;
use tempfile::TempDir;

/// The timeout of all waits.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A working directory with a directory `files`.
pub(crate) struct Sandbox {
    directory: TempDir,
}

#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    /// Without files.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("files")).unwrap();
        Self { directory }
    }

    /// With the files of a directory of `examples/`.
    pub(crate) fn from_example(name: &str) -> Self {
        let sandbox = Self::new();
        sandbox.copy_example(name);
        sandbox
    }

    /// Replaces all files with those of an example.
    pub(crate) fn copy_example(&self, name: &str) {
        for entry in fs::read_dir(self.path("files")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
        let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.filter(|path| path.is_file()) {
            fs::copy(&path, self.path("files").join(path.file_name().unwrap())).unwrap();
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Copies the files of a directory and of those in it over those at `to`.
    pub(crate) fn copy(&self, from: &Path, to: &str) {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{to}/{}", path.file_name().unwrap().to_str().unwrap());
            match path.is_dir() {
                true => self.copy(&path, &name),
                false => self.write(&name, &fs::read_to_string(&path).unwrap()),
            }
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Writes `files/objects.yaml` with `terraform_data` objects: names and references.
    pub(crate) fn objects(&self, objects: &[(&str, &[&str])]) {
        let text: String = objects.iter().map(|(name, references)| manifest(name, references)).collect();
        self.write("files/objects.yaml", &text);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path())
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("TF_CLI_CONFIG_FILE")
            .env_remove("PURLIN_PLUGIN_CACHE")
            .env_remove("PURLIN_PLUGIN_DIR")
            // Tests do not wait for hanging providers.
            .env("PURLIN_PROVIDER_KILL_AFTER", "4")
            .env("KUBECONFIG", self.path("no-such-kubeconfig"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command and waits for its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandResult {
        CommandResult::of(self.command(arguments).output().unwrap())
    }

    /// Like `run`, in a directory of the sandbox.
    pub(crate) fn run_in(&self, directory: &str, arguments: &[&str]) -> CommandResult {
        CommandResult::of(self.command(arguments).current_dir(self.path(directory)).output().unwrap())
    }

    /// Like `run`, with additional environment variables.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> CommandResult {
        CommandResult::of(self.command(arguments).envs(variables.iter().copied()).output().unwrap())
    }

    /// Like `run`, but asserts success. Returns standard output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.stdout
    }

    /// Like `run`, with text on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> CommandResult {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that fails at once closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        CommandResult::of(child.wait_with_output().unwrap())
    }

    /// Like `run`, at a terminal: standard input and standard error. Each answer is typed when its prompt is there. What the
    /// terminal shows is the standard error of the result.
    pub(crate) fn run_at_terminal(&self, arguments: &[&str], answers: &[(&str, &str)]) -> CommandResult {
        let no_control = OpenptFlags::NOCTTY.bits().cast_signed();
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = || fs::File::options().read(true).write(true).custom_flags(no_control).open(&name).unwrap();
        let mut command = self.command(arguments);
        command.stdin(theirs()).stdout(Stdio::piped()).stderr(theirs()).env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        // The terminal ends when the last one of its users has ended.
        drop(command);
        let (mut terminal, mut shown) = (fs::File::from(ours), Vec::new());
        let mut answers = answers.iter().peekable();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = terminal.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..length]);
            let is_there = |prompt: &str| shown.ends_with(prompt.as_bytes());
            if let Some((_, answer)) = answers.next_if(|(prompt, _)| is_there(prompt)) {
                terminal.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        }
        let result = CommandResult::of(child.wait_with_output().unwrap());
        CommandResult { stderr: String::from_utf8(shown).unwrap().replace("\r\n", "\n"), ..result }
    }

    /// Starts a command whose output goes to `out.txt` and `err.txt`.
    pub(crate) fn start(&self, arguments: &[&str]) -> RunningCommand {
        self.start_as("", arguments)
    }

    /// As `start`, with a prefix for the names of the files, for a command beside another one.
    pub(crate) fn start_as(&self, prefix: &str, arguments: &[&str]) -> RunningCommand {
        let path = |name: &str| self.path(&format!("{prefix}{name}"));
        let file = |name: &str| fs::File::create(path(name)).unwrap();
        let child = self.command(arguments).stdout(file("out.txt")).stderr(file("err.txt")).spawn().unwrap();
        RunningCommand { child, out: path("out.txt"), err: path("err.txt") }
    }

    /// The JSON output of a command, whatever its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        let ran = self.run(arguments);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {ran:?}"))
    }

    /// The events that a command prints.
    pub(crate) fn events(&self, arguments: &[&str]) -> Vec<Json> {
        let ran = self.run(arguments);
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}: {ran:?}"));
        ran.stdout.lines().map(read).collect()
    }

    /// The addresses of the recorded objects; empty without a state file.
    pub(crate) fn recorded(&self) -> Vec<String> {
        let ran = self.run(&["state", "list", "--state", "purlin.db", "-o", "json"]);
        if ran.stderr.contains("error: there is no state file") {
            return Vec::new();
        }
        let list: Json = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let objects = list["objects"].as_array().unwrap();
        objects.iter().map(|object| object["address"].as_str().unwrap().to_owned()).collect()
    }
}

/// A `terraform_data` object whose input contains the IDs of others.
pub(crate) fn manifest(name: &str, references: &[&str]) -> String {
    let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:";
    let mut text = format!("{head} {{ name: {name} }}\nspec:\n  type: terraform_data\n  config:\n    input:\n");
    text.push_str(&format!("      name: {name}\n"));
    for other in references {
        text.push_str(&format!("      {other}: ${{{}.id}}\n", other.replace('-', "_")));
    }
    text
}

impl CommandResult {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The error lines of standard error.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("error:")).collect()
    }

    /// Asserts that the command failed with one error, and returns it.
    #[track_caller]
    pub(crate) fn one_error(&self) -> &str {
        let errors = self.errors();
        assert_eq!((self.code, errors.len()), (Some(1), 1), "{self:?}");
        errors[0]
    }
}

pub(crate) struct RunningCommand {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl RunningCommand {
    /// Waits until a condition holds.
    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() || holds(self), "ended before {what}: {}{}", self.out(), self.err());
            assert!(begin.elapsed() < TIMEOUT, "timeout waiting until {what}: {}{}", self.out(), self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn end(mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < TIMEOUT, "timeout waiting for the end: {}{}", self.out(), self.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // A failed test must not leave a process. Killing an ended process fails, which is ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The contents of the fenced blocks of a language in a Markdown text.
pub(crate) fn fenced_blocks<'t>(markdown: &'t str, language: &str) -> Vec<&'t str> {
    let begin = format!("```{language}\n");
    let blocks = markdown.split(begin.as_str()).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

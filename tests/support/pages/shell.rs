//! One bash process for a page, in a directory with the examples of the repository.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// What the page's reader finds in a clone of the repository.
const COPIED: [&str; 3] = ["charts", "crds", "examples"];

/// How long a block may take. Only a block that never ends takes this long.
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) struct Shell {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// The working directory of the page.
    directory: TempDir,
    /// The programs of the page, its blocks and their outputs.
    control: TempDir,
    blocks: usize,
    background: Vec<(String, PathBuf)>,
    changes_by_itself: bool,
}

pub(crate) struct BlockResult {
    /// Whether a command of the block failed.
    pub(crate) failed: bool,
    /// Standard output and standard error.
    pub(crate) output: String,
}

impl Shell {
    /// Starts a shell that finds `purlin`, and these programs.
    pub(crate) fn start(programs: &[(&str, &Path)]) -> Self {
        let (directory, control) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in COPIED {
            let copied =
                Command::new("cp").args(["-r", name]).arg(directory.path()).current_dir(super::root()).status();
            assert!(copied.unwrap().success(), "cp {name}");
        }
        let purlin = ("purlin", Path::new(env!("CARGO_BIN_EXE_purlin")));
        fs::create_dir(control.path().join("bin")).unwrap();
        for (name, path) in [purlin].iter().chain(programs) {
            symlink(path, control.path().join("bin").join(name)).unwrap();
        }
        let path = format!("{}:{}", control.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc"])
            .current_dir(directory.path())
            .env("PATH", path)
            .env("HOME", control.path())
            .env_remove("TF_CLI_CONFIG_FILE")
            .env("KUBECONFIG", control.path().join("no-such-kubeconfig"));
        for name in ["XDG_CACHE_HOME", "PURLIN_PLUGIN_CACHE", "PURLIN_PLUGIN_DIR"] {
            command.env_remove(name);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let (background, changes_by_itself) = (Vec::new(), false);
        let mut shell = Self { process, input, answers, directory, control, blocks: 0, background, changes_by_itself };
        // A page of commands is not a script: the shell continues after a failure, which the trap counts.
        shell.send("set -o pipefail\n");
        shell
    }

    /// Sets an environment variable.
    pub(crate) fn export(&mut self, name: &str, value: &Path) {
        self.send(&format!("export {name}='{}'\n", value.display()));
    }

    /// The objects change while no block runs, because a controller runs.
    pub(crate) fn with_controller(&mut self) {
        self.changes_by_itself = true;
    }

    pub(super) fn changes_by_itself(&self) -> bool {
        self.changes_by_itself || !self.background.is_empty()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs a block in the shell, so that variables and the working directory remain for the next one.
    pub(crate) fn run(&mut self, script: &str) -> BlockResult {
        let (block, output) = self.save(script);
        let (block, out) = (block.display(), output.display());
        self.send(&format!(
            "failed=0; trap failed=1 ERR; . {block} >{out} 2>&1 </dev/null; trap - ERR; echo $failed\n"
        ));
        let answer = self.answer();
        if answer.is_none() {
            // A block that hangs would make all later ones wait.
            drop(self.process.kill());
        }
        BlockResult { failed: answer.as_deref() != Some("0"), output: fs::read_to_string(&output).unwrap_or_default() }
    }

    /// Starts a block that runs until the end of the page.
    pub(super) fn start_background(&mut self, script: &str) {
        let (block, output) = self.save(script);
        // With job control, the processes of the block are a process group of their own.
        self.send(&format!("set -m; . {} >{} 2>&1 </dev/null & set +m; echo $!\n", block.display(), output.display()));
        let group = self.answer().expect("the process ID");
        self.background.push((group, output));
    }

    /// Ends these blocks as Ctrl-C does. A block that has ended before is a problem.
    pub(super) fn end_background(&mut self, problems: &mut Vec<String>) {
        for (group, output) in std::mem::take(&mut self.background) {
            // A signal between the start of a shell and that of its program is lost.
            self.send(&format!(
                "kill -INT -- -{group} && echo 0 || echo 1; while kill -0 -- -{group} 2>/dev/null; do sleep 1; kill -INT -- \
                 -{group} 2>/dev/null; done; wait {group} 2>/dev/null\n"
            ));
            if self.answer().as_deref() != Some("0") {
                let output = fs::read_to_string(output).unwrap_or_default();
                problems.push(format!("a command that runs until Ctrl-C ended before:\n{output}"));
            }
        }
    }

    fn save(&mut self, script: &str) -> (PathBuf, PathBuf) {
        self.blocks += 1;
        let block = self.control.path().join(format!("{}.sh", self.blocks));
        fs::write(&block, script).unwrap();
        let output = block.with_extension("out");
        (block, output)
    }

    fn send(&mut self, line: &str) {
        // It fails if the shell has exited. Then there is no answer either.
        drop(self.input.write_all(line.as_bytes()));
    }

    /// The next line of the shell itself, or `None` if it has exited or does not answer.
    fn answer(&mut self) -> Option<String> {
        self.answers.recv_timeout(LIMIT).ok()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end_background(&mut Vec::new());
        // Ends the shell. It fails if the shell has exited already.
        drop(self.input.write_all(b"exit\n"));
        drop(self.process.wait());
    }
}

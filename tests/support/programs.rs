//! Programs that the tests need in addition to Purlin. They are built from the Go modules in `tests` when the sources
//! change.
//!
//! Include it with `#[path = "../support/programs.rs"] mod programs;`.
#![allow(dead_code, reason = "a test binary uses the part it needs")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to build: the directory of its Go module under `tests`, its package, and the name of its file.
pub(crate) struct Program {
    pub(crate) module: &'static str,
    pub(crate) package: &'static str,
    pub(crate) name: &'static str,
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    // Cargo sets this variable for integration tests, to a directory inside the target directory.
    if let Some(dir) = option_env!("CARGO_TARGET_TMPDIR").and_then(|directory| Path::new(directory).parent()) {
        return dir.to_owned();
    }
    // TARGET/PROFILE/deps/PROGRAM
    let program = std::env::current_exe().expect("the path of this program");
    program.ancestors().nth(3).expect("a program in Cargo's target directory").to_owned()
}

/// Returns the path of a program, and builds it if it does not exist for the current sources.
///
/// # Panics
/// If Go is missing, or cannot build it.
pub(crate) fn ensure(program: &Program) -> PathBuf {
    built(program).unwrap_or_else(|why| panic!("{why}"))
}

/// As [`ensure`]. Returns why the program could not be built.
pub(crate) fn built(program: &Program) -> Result<PathBuf, String> {
    let all = target_dir().join("purlin-test-tools");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program.module);
    let dir = all.join(hash_of_sources(&module));
    let path = dir.join(program.name);
    // A file gets this name only when it is complete, so no lock is needed to check whether it exists.
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("creating {}: {error}", dir.display()));
    // Other processes wait, and then find the file. Concurrent builds would take twice as long.
    let _building = locked(&all.join("lock"));
    if !path.is_file() {
        let unfinished = path.with_extension("unfinished");
        build(&module, program, &unfinished)?;
        fs::rename(&unfinished, &path).unwrap_or_else(|error| panic!("naming {}: {error}", path.display()));
    }
    Ok(path)
}

fn build(module: &Path, program: &Program, to: &Path) -> Result<(), String> {
    // Not with a macro: the test framework would capture the line until the test ends.
    let notice = format!("building {} for the tests; this takes up to several minutes\n", program.name);
    let _ = std::io::stderr().write_all(notice.as_bytes());

    let mut flags = "-ldflags=-s -w".to_owned();
    if let Some(version) = kubernetes_version(module) {
        // The build of Kubernetes sets its version like this; otherwise every client reports v0.0.0.
        let parts: Vec<&str> = version.trim_start_matches('v').split('.').collect();
        let names = ["gitMajor", "gitMinor", "gitVersion"];
        for (name, value) in names.iter().zip([parts[0], parts[1], &version]) {
            flags.push_str(&format!(" -X k8s.io/component-base/version.{name}={value}"));
        }
    }
    let mut command = Command::new("go");
    command
        .args(["build", "-p", "2", "-trimpath", "-buildvcs=false", &flags, "-o"])
        .args([to.as_os_str(), OsStr::new(program.package)])
        .current_dir(module)
        // The result must not depend on a C compiler or on a Go workspace around the repository.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "the tests build a Kubernetes control plane and providers, and need Go 1.26 or newer: \
                                no program `go` was found in PATH"
            .to_owned(),
        _ => format!("running go: {error}"),
    })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let name = program.name;
    output.status.success().then_some(()).ok_or_else(|| format!("building {name} in {}:\n{stderr}", module.display()))
}

/// The version of Kubernetes in the `go.mod` of a module.
fn kubernetes_version(module: &Path) -> Option<String> {
    let text = fs::read_to_string(module.join("go.mod")).unwrap_or_default();
    let mut required = text.lines().filter_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    required.next().map(str::to_owned)
}

fn hash_of_sources(module: &Path) -> String {
    let entries = fs::read_dir(module).unwrap_or_else(|error| panic!("reading {}: {error}", module.display()));
    let mut sources: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_source(path)).collect();
    sources.sort();
    let mut hasher = DefaultHasher::new();
    for path in sources {
        hasher.write(path.file_name().unwrap_or_default().as_encoded_bytes());
        let content = fs::read(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        hasher.write_usize(content.len());
        hasher.write(&content);
    }
    format!("{:016x}", hasher.finish())
}

fn is_source(path: &Path) -> bool {
    let name = path.file_name();
    name == Some(OsStr::new("go.mod"))
        || name == Some(OsStr::new("go.sum"))
        || [OsStr::new("go"), OsStr::new("json")].map(Some).contains(&path.extension())
}

/// Opens a file and waits for its lock, which the system releases when the file is closed.
///
/// # Panics
/// If an I/O error occurs.
pub(crate) fn locked(path: &Path) -> File {
    let file = File::options().create(true).append(true).open(path);
    let file = file.unwrap_or_else(|error| panic!("opening {}: {error}", path.display()));
    file.lock().unwrap_or_else(|error| panic!("locking {}: {error}", path.display()));
    file
}

//! The programs that the tests need beside Purlin, built from the Go modules beside us.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::run_dir::locked;

/// Where the programs are.
pub(crate) struct Tools {
    /// `tests/controlplane`.
    pub(crate) controlplane: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) helm: PathBuf,
    /// The directory named by `KUBEBUILDER_ASSETS`, whose etcd, kube-apiserver, kubectl and (if it is there)
    /// kube-controller-manager are used instead of those linked in: the way to test with another Kubernetes.
    pub(crate) assets: Option<PathBuf>,
}

/// A program to build: the folder of its Go module under `tests`, its package, and the name of its file.
struct Program {
    module: &'static str,
    package: &'static str,
    name: &'static str,
}

const CONTROLPLANE: Program = Program { module: "controlplane", package: ".", name: "controlplane" };
const KUBECTL: Program = Program { module: "controlplane", package: "k8s.io/kubernetes/cmd/kubectl", name: "kubectl" };
const HELM: Program = Program { module: "helm", package: "helm.sh/helm/v4/cmd/helm", name: "helm" };

/// Builds the programs if they are not there yet, which takes several minutes the first time.
///
/// # Panics
/// If Go is missing, or cannot build them.
pub(crate) fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
        let provided = assets.as_ref().map(|assets| assets.join("kubectl")).filter(|kubectl| kubectl.is_file());
        let all = target_dir().join("purlin-test-tools");
        Tools {
            controlplane: ensure(&all, &CONTROLPLANE),
            kubectl: provided.unwrap_or_else(|| ensure(&all, &KUBECTL)),
            helm: ensure(&all, &HELM),
            assets,
        }
    })
}

/// Cargo's target directory.
pub(super) fn target_dir() -> PathBuf {
    // Cargo tells integration tests of a folder right inside it when they are compiled.
    if let Some(dir) = option_env!("CARGO_TARGET_TMPDIR").and_then(|folder| Path::new(folder).parent()) {
        return dir.to_owned();
    }
    // TARGET/PROFILE/deps/PROGRAM
    let program = std::env::current_exe().expect("the path of this program");
    program.ancestors().nth(3).expect("a program in Cargo's target directory").to_owned()
}

/// The path of a program for the present sources, inside `all`.
fn ensure(all: &Path, program: &Program) -> PathBuf {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program.module);
    let dir = all.join(hash_of_sources(&module));
    let path = dir.join(program.name);
    // Only complete files ever get this name, so no lock is needed to find one.
    if path.is_file() {
        return path;
    }
    fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("creating {}: {error}", dir.display()));
    // Whoever comes second waits, and then finds the file; two builds side by side would take twice as long.
    let _building = locked(&all.join("lock"));
    if !path.is_file() {
        let unfinished = path.with_extension("unfinished");
        build(&module, program, &unfinished);
        fs::rename(&unfinished, &path).unwrap_or_else(|error| panic!("naming {}: {error}", path.display()));
    }
    path
}

fn build(module: &Path, program: &Program, to: &Path) {
    // Not by a macro: the test framework would keep the line back until the test ends.
    let notice = format!("building {} for the cluster tests, once; this takes minutes\n", program.name);
    let _ = std::io::stderr().write_all(notice.as_bytes());

    let mut flags = "-ldflags=-s -w".to_owned();
    if let Some(version) = kubernetes_version(module) {
        // Kubernetes' own build tells its version like this; without it, every client takes it for v0.0.0.
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
        // So that a C compiler makes no difference, and neither does a Go workspace around the repository.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    let output = command.output().unwrap_or_else(|error| match error.kind() {
        ErrorKind::NotFound => panic!(
            "the cluster tests build a Kubernetes control plane and need Go 1.26 or newer: \
             no program `go` was found in PATH"
        ),
        _ => panic!("running go: {error}"),
    });
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "building {} in {}:\n{stderr}", program.name, module.display());
}

/// The version of Kubernetes that a module links in, by its `go.mod`.
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
        || path.extension() == Some(OsStr::new("go"))
}

//! What plugin to start, and how.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Mask;

/// The running program, even when its file was replaced by a newer version meanwhile.
pub const RUNNING: &str = "/proc/self/exe";

/// What to start, and how.
#[derive(Clone)]
pub struct Launch {
    /// What errors and logs call it: `random 3.9.0`.
    pub name: String,
    /// The provider's program.
    pub program: PathBuf,
    /// The program that becomes it, with the command [`super::launcher::COMMAND`]: this one.
    pub launcher: PathBuf,
    /// Where its private folder is made. Short: a socket is in it.
    pub runtime_folder: PathBuf,
    /// Where it runs, for providers that take relative paths; `None` is its private folder.
    pub working_folder: Option<PathBuf>,
    /// Variables that it gets beyond those that every plugin gets.
    pub environment: BTreeMap<String, String>,
    /// Mutual TLS. A few plugins cannot do it; the folder of their socket is private all the same.
    pub tls: bool,
    /// Tell the provider that it may put objects off.
    pub deferral_allowed: bool,
    /// What of the file system it can reach; `None` is whatever we can.
    pub confine: Option<Confine>,
    /// Bounds.
    pub limits: Limits,
    /// Takes sensitive values out of what it writes.
    pub mask: Mask,
}

/// What of the file system a plugin can reach beside its program and its private folder, each with everything below.
/// It needs a kernel with Landlock, Linux 5.13 or newer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confine {
    /// To read and execute.
    pub read: Vec<PathBuf>,
    /// To read and write.
    pub write: Vec<PathBuf>,
}

impl Confine {
    /// What programs need to run, resolve names and verify certificates. Home folders, mounted Secrets and the token of
    /// the service account are not in it.
    pub fn system() -> Self {
        // The last is where many systems keep what `/etc/resolv.conf` only points to.
        let read = [
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/etc",
            "/proc",
            "/sys",
            "/dev",
            "/run/systemd/resolve",
        ];
        let write = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
        Self { read: read.map(PathBuf::from).to_vec(), write: write.map(PathBuf::from).to_vec() }
    }
}

/// Bounds of one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take to tell its address. The first start on a cold disk takes up to a second; Terraform waits
    /// as long as this, too.
    pub start: Duration,
    /// How long it has for a call, unless the caller says otherwise ([`super::Client::within`]).
    pub call: Duration,
    /// How long it has for an apply, unless the caller says otherwise. Providers have limits of their own for it, some
    /// of many hours.
    pub apply: Duration,
    /// How long a provider that was asked to give up its calls is waited for before it is killed. Some undo what they have
    /// made so far, and a kill leaves it to a person to find out what there is.
    pub after_stop: Duration,
    /// How many calls may run at once; others wait.
    pub in_flight: usize,
    /// How many files it may have open.
    pub open_files: Option<u64>,
    /// The bytes of memory at which it shall begin to use less, and above which a pool replaces it. With twice as many
    /// it crashes.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            call: Duration::from_mins(5),
            apply: Duration::from_hours(24),
            after_stop: Duration::from_mins(10),
            // Terraform has ten at once over all providers; many services throttle clients that do much more.
            in_flight: 64,
            open_files: None,
            memory: None,
        }
    }
}

impl Launch {
    /// The usual way to start a provider.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            launcher: RUNNING.into(),
            runtime_folder: std::env::temp_dir(),
            working_folder: None,
            environment: BTreeMap::new(),
            tls: true,
            deferral_allowed: false,
            confine: None,
            limits: Limits::default(),
            mask: Arc::new(str::to_owned),
        }
    }
}

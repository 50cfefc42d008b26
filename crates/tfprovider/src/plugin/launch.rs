//! The options to launch a plugin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::transport::MAX_MESSAGE_SIZE;
use super::{Mask, Observer};

/// The running program, even if its file has been replaced.
pub const CURRENT_EXE: &str = "/proc/self/exe";

#[derive(Clone)]
pub struct Launch {
    /// The name in errors and logs, such as `random 3.9.0`.
    pub name: String,
    pub program: PathBuf,
    /// The program that runs [`super::launcher::COMMAND`], usually this one.
    pub launcher: PathBuf,
    /// The parent of the private directory. Must be short because the directory holds a Unix socket.
    pub runtime_dir: PathBuf,
    /// The working directory, for providers that accept relative paths; `None` means the private directory.
    pub working_dir: Option<PathBuf>,
    /// Environment variables in addition to those that every plugin receives.
    pub environment: BTreeMap<String, String>,
    /// Whether to use mutual TLS. A few plugins do not support it; the directory of their socket is private in any
    /// case.
    pub tls: bool,
    /// Whether the provider may defer objects.
    pub deferral_allowed: bool,
    /// The accessible paths of the file system; `None` means no restriction.
    pub sandbox: Option<Sandbox>,
    pub limits: Limits,
    /// Removes sensitive values from the output.
    pub mask: Mask,
    pub observer: Arc<dyn Observer>,
}

/// The file hierarchies that a plugin can access in addition to its program and its private directory. Requires a
/// kernel with Landlock, Linux 5.13 or newer.
///
/// A confined plugin can neither trace processes outside of its sandbox nor read their memory, environment and open
/// files in `/proc`. Since Linux 6.12, it can neither send them signals nor connect to their abstract sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Can be read and executed.
    pub read: Vec<PathBuf>,
    /// Can be read and written.
    pub write: Vec<PathBuf>,
}

impl Sandbox {
    /// The paths that programs need to run, resolve names and verify certificates. Home directories, mounted Secrets,
    /// the service account token and the other processes in `/proc` are not included.
    pub fn system() -> Self {
        let read = [
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/etc",
            // The launcher resolves it: its own process becomes the plugin.
            "/proc/self",
            "/proc/sys",
            "/proc/cpuinfo",
            "/proc/filesystems",
            "/proc/loadavg",
            "/proc/meminfo",
            "/proc/stat",
            "/proc/uptime",
            "/proc/version",
            "/sys",
            "/dev",
            // On many systems `/etc/resolv.conf` is a link into this one.
            "/run/systemd/resolve",
        ];
        let write = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
        Self { read: read.map(PathBuf::from).to_vec(), write: write.map(PathBuf::from).to_vec() }
    }
}

/// The time and resource limits of one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time until the handshake. The first start on a cold disk takes up to a second; the default is Terraform's.
    pub start: Duration,
    /// The time for a call, unless set by [`super::Client::with_limit`].
    pub call: Duration,
    /// The time for an apply, unless set by [`super::Client::with_limit`]. Providers have their own limits, some of
    /// many hours.
    pub apply: Duration,
    /// The time between the request to stop running calls and the kill. Some providers clean up incomplete objects in
    /// this time; after a kill, a user may have to find them.
    pub stop_grace_period: Duration,
    /// The maximum size of a response in bytes, except that of a schema call to a process of this machine.
    pub response: usize,
    /// The maximum number of concurrent calls; others wait.
    pub in_flight: usize,
    /// The soft memory limit in bytes: the plugin tries to stay below it, and a pool replaces a larger process. The
    /// hard limit is twice as large.
    pub memory: Option<u64>,
    /// How long a pool keeps the process without calls; `None`: [`super::PoolOptions::idle_timeout`].
    pub idle: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            call: Duration::from_mins(5),
            apply: Duration::from_hours(24),
            stop_grace_period: Duration::from_mins(10),
            response: MAX_MESSAGE_SIZE,
            // Terraform runs ten operations at a time over all providers; many services throttle clients that run many
            // more.
            in_flight: 64,
            memory: None,
            idle: None,
        }
    }
}

impl Launch {
    /// The default options for a provider.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            launcher: CURRENT_EXE.into(),
            runtime_dir: std::env::temp_dir(),
            working_dir: None,
            environment: BTreeMap::new(),
            tls: true,
            deferral_allowed: false,
            sandbox: None,
            limits: Limits::default(),
            mask: Arc::new(str::to_owned),
            observer: Arc::new(()),
        }
    }
}

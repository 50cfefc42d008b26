//! Providers in a runner, the real command, as a Pod would start it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use purlin::install::Hash;
use purlin::plugin::remote::{ControllerKeys, Package, RemoteStart, RunnerHost, RunnerKeys, generate_keys};
use purlin::plugin::{Client, Launch, PluginError};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{gone, launch, nothing, until};
use crate::providers;

/// A runner for the provider `corner`.
struct Runner {
    child: Arc<Mutex<Child>>,
    address: SocketAddr,
    package: Package,
    directory: TempDir,
    ended: Arc<Host>,
}

/// Waits until the runner has ended by itself, and counts how often.
struct Host {
    child: Arc<Mutex<Child>>,
    ends: AtomicUsize,
    is_replaceable: AtomicBool,
}

impl RunnerHost for Host {
    fn end(&self) -> BoxFuture<'_, Option<String>> {
        async {
            self.ends.fetch_add(1, Ordering::Relaxed);
            until(|| self.child.lock().unwrap().try_wait().unwrap().is_some()).await;
            Some("the test Pod was deleted".to_owned())
        }
        .boxed()
    }

    fn is_replaceable(&self) -> BoxFuture<'_, bool> {
        async { self.is_replaceable.load(Ordering::Relaxed) }.boxed()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Runner {
    fn start(keys: &RunnerKeys) -> Self {
        let program = providers::program("corner");
        let package = Package { root: program.clone(), program };
        let hash = Hash::of_files(&package.root).unwrap();
        Self::with_hash(keys, package, hash.as_str())
    }

    fn with_hash(keys: &RunnerKeys, package: Package, hash: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Free: no other process of the tests listens on fixed ports.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_purlin"))
            .args(["runner", "--address", "127.0.0.1", "--port", &address.port().to_string(), "--package", hash])
            .env_clear()
            .env("TMPDIR", directory.path())
            .env("REGION", "of the Pod")
            .env("PURLIN_RUNNER_CERTIFICATE", &keys.certificate)
            .env("PURLIN_RUNNER_KEY", &keys.key)
            .env("PURLIN_RUNNER_CLIENT", &keys.client)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let child = Arc::new(Mutex::new(child));
        let ended = Arc::new(Host {
            child: Arc::clone(&child),
            ends: AtomicUsize::new(0),
            is_replaceable: AtomicBool::new(true),
        });
        Self { child, address, package, directory, ended }
    }

    async fn connect(&self, keys: &ControllerKeys) -> Result<(Client, JoinHandle<()>), PluginError> {
        self.connect_with(keys, &launch("corner")).await
    }

    async fn connect_with(
        &self,
        keys: &ControllerKeys,
        launch: &Launch,
    ) -> Result<(Client, JoinHandle<()>), PluginError> {
        let environment = BTreeMap::from([("DECLARED".to_owned(), "by the Provider".to_owned())]);
        let remote = RemoteStart { address: self.address, keys, package: &self.package, environment, memory: None };
        let host = Arc::clone(&self.ended) as Arc<dyn RunnerHost>;
        let (client, follow) = Client::start_remote(launch, &remote, host).await?;
        let follow = tokio::runtime::Handle::current().spawn(follow);
        Ok((client, follow))
    }

    fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// The process of the provider: a child of the runner.
    fn plugin(&self) -> u32 {
        let runner = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{runner}/task/{runner}/children")).unwrap();
        let threads = std::fs::read_dir(format!("/proc/{runner}/task")).unwrap();
        let of_thread = |path: PathBuf| std::fs::read_to_string(path.join("children")).unwrap_or_default();
        let all: String = threads.map(|thread| of_thread(thread.unwrap().path())).chain([children]).collect();
        all.split_whitespace().next().expect("a child").parse().unwrap()
    }

    async fn exited(&self) -> std::process::ExitStatus {
        until(|| self.child.lock().unwrap().try_wait().unwrap().is_some()).await;
        self.child.lock().unwrap().wait().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_in_a_runner_works_and_ends_with_its_client() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    let (client, follow) = runner.connect(&keys).await.unwrap();
    assert!(client.is_alive() && client.is_remote());
    assert_eq!(client.process_id(), None);
    let plugin = runner.plugin();
    let environment = std::fs::read_to_string(format!("/proc/{plugin}/environ")).unwrap();
    assert!(environment.contains("REGION=of the Pod") && environment.contains("DECLARED=by the Provider"));
    assert!(!environment.contains("PURLIN_RUNNER"), "the provider has the keys of the runner");
    let (schema, _) = client.schema().await.unwrap();
    assert!(schema.resource_types().count() > 0);
    client.close().await;
    follow.await.unwrap();
    assert!(!client.is_alive());
    assert_eq!(runner.exited().await.code(), Some(0));
    assert_eq!(runner.ended.ends.load(Ordering::Relaxed), 1);
    assert_eq!(std::fs::read_dir(runner.directory.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_of_a_provider_in_a_runner_is_not_read() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    let mut limited = launch("corner");
    limited.limits.response = 1024;
    let (client, _follow) = runner.connect_with(&keys, &limited).await.unwrap();
    let refused = client.schema().await.unwrap_err();
    assert!(matches!(refused, PluginError::LargeResponse { .. }), "{refused}");
    // Over the connection of the refused response, which still works.
    client.initialize().await.unwrap();
    assert!(client.is_alive());
    client.close().await;
    assert_eq!(runner.exited().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_controller_of_a_runner_can_use_it() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    // The controller of another runner expects another certificate.
    let (_, others) = generate_keys().unwrap();
    let error = runner.connect(&others).await.err().unwrap().to_string();
    assert!(error.contains("did not start: cannot connect to it"), "{error}");
    // A client that knows the certificate of the runner, but has another one itself.
    let (mut half, stranger) = generate_keys().unwrap();
    half.client.clone_from(&runner_keys.client);
    let other = Runner::start(&half);
    let error = other.connect(&stranger).await.err().unwrap().to_string();
    assert!(error.contains("did not start: cannot connect to it"), "{error}");
    let (client, _follow) = runner.connect(&keys).await.unwrap();
    client.close().await;
    assert_eq!(runner.exited().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_starts_no_other_package_than_its_pod_names() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let program = providers::program("corner");
    let package = Package { root: program.clone(), program };
    let hash = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let runner = Runner::with_hash(&runner_keys, package, hash);
    let error = runner.connect(&keys).await.err().unwrap().to_string();
    assert!(error.contains("the package has the checksum h1:") && error.contains(hash), "{error}");
    assert_eq!(runner.exited().await.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_runner_is_a_crash_that_says_what_was_lost() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    let (client, follow) = runner.connect(&keys).await.unwrap();
    runner.child.lock().unwrap().kill().unwrap();
    follow.await.unwrap();
    let error = client.validate_and_configure(nothing()).await.unwrap_err().to_string();
    assert!(error.contains("the test Pod was deleted"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_provider_in_a_runner_has_its_status_and_last_output() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    let (client, follow) = runner.connect(&keys).await.unwrap();
    let plugin = runner.plugin();
    signal(plugin, Signal::ABORT);
    follow.await.unwrap();
    let error = client.validate_and_configure(nothing()).await.unwrap_err();
    let PluginError::NotCalled { crash, .. } = &error else { panic!("{error}") };
    assert!(crash.status.is_some_and(|status| status.code() == Some(2) || status.signal() == Some(6)), "{error}");
    assert!(error.to_string().contains("SIGABRT: abort"), "{error}");
    assert_eq!(runner.exited().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_asked_to_end_goes_on_until_its_calls_can_go_elsewhere() {
    for is_replaceable in [true, false] {
        let (runner_keys, keys) = generate_keys().unwrap();
        let runner = Runner::start(&runner_keys);
        runner.ended.is_replaceable.store(is_replaceable, Ordering::Relaxed);
        let (client, _follow) = runner.connect(&keys).await.unwrap();
        assert!(!client.is_retired() && !client.is_last());
        signal(runner.pid(), Signal::TERM);
        until(|| client.is_retired() || client.is_last()).await;
        assert_eq!((client.is_retired(), client.is_last()), (is_replaceable, !is_replaceable));
        assert!(client.schema().await.is_ok());
        client.close().await;
        assert_eq!(runner.exited().await.code(), Some(0));
    }
}

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_kills_its_provider_when_its_controller_is_gone() {
    let (runner_keys, keys) = generate_keys().unwrap();
    let runner = Runner::start(&runner_keys);
    let (client, follow) = runner.connect(&keys).await.unwrap();
    let plugin = runner.plugin();
    // The sockets close as those of a process that was killed.
    follow.abort();
    gone(plugin).await;
    assert_eq!(runner.exited().await.code(), Some(1));
    assert!(!client.is_alive() || client.schema().await.is_err());
}

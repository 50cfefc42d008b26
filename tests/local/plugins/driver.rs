//! How the provider driver uses provider processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::driver::{ApplyRequest, ApplyResponse, CallContext, Driver, Preparation, ProviderOptions, Providers};
use purlin::install::{InstallOptions, Installer};
use purlin::model::{PlanRequest, PlanResponse, Provider, ProviderUse, RecordedObject, Value};
use purlin::process::Clock;
use tempfile::TempDir;

use super::{gone, is_running, stopped, until};
use crate::kit::ManualClock;
use crate::providers;

/// The driver with the provider `corner`, whose starts are counted.
pub(super) struct Bench {
    pub(super) directory: TempDir,
    pub(super) clock: Arc<ManualClock>,
    pub(super) providers: Providers,
    pub(super) provider: Arc<Provider>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(serde_json::json!({}))
    }

    /// Adds fields to the spec of the Provider.
    fn with(more: serde_json::Value) -> Self {
        Self::with_options(more, |options| options)
    }

    pub(super) fn with_options(
        more: serde_json::Value,
        change: impl FnOnce(ProviderOptions) -> ProviderOptions,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("corner");
        let text = format!(
            "#!/bin/sh\necho $$ >> '{}'\nexec '{}'\n",
            directory.path().join("pids").display(),
            providers::program("corner").display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut provider = serde_json::json!({
            "name": "corner", "source": "registry.opentofu.org/purlin/corner", "package": {"path": program},
        });
        provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let clock = Arc::new(ManualClock::new());
        let installer = Arc::new(Installer::new(InstallOptions::from_environment()));
        let launcher = env!("CARGO_BIN_EXE_purlin").into();
        let options = ProviderOptions { launcher, ..ProviderOptions::new(installer) };
        let providers = Providers::new(change(options), Arc::clone(&clock) as _);
        Self { directory, clock, providers, provider: Arc::new(serde_json::from_value(provider).unwrap()) }
    }

    /// Returns the started processes in order.
    pub(super) fn started(&self) -> Vec<u32> {
        let pids = fs::read_to_string(self.directory.path().join("pids")).unwrap_or_default();
        pids.lines().map(|line| line.parse().unwrap()).collect()
    }

    fn last(&self) -> u32 {
        *self.started().last().unwrap()
    }

    pub(super) async fn prepare(&self) {
        let needed = std::slice::from_ref(&self.provider);
        self.providers
            .prepare(Preparation { namespace: None, version: 0, needed, current: &[], configurations: &[] })
            .await;
        assert!(self.providers.preparation_error(&self.provider).is_none());
    }

    pub(super) fn context(&self, limit: Duration) -> CallContext {
        let settings = Value::map([("folder", Value::from(self.directory.path().to_str().unwrap()))]);
        CallContext {
            type_name: "corner_trouble".into(),
            namespace: "shop".into(),
            address: "web".into(),
            provider: Some(Arc::new(ProviderUse::new("corner".into(), Arc::clone(&self.provider), settings))),
            service_account: "".into(),
            deadline: self.clock.now() + SignedDuration::try_from(limit).unwrap(),
            ..CallContext::default()
        }
    }

    async fn call(&self) {
        let context = self.context(Duration::from_mins(1));
        self.providers.validate(&context, &Value::map::<&str>([])).await.unwrap();
    }

    /// Waits until the last process exits, and checks that the next call starts a new one.
    async fn is_replaced(&self) {
        let before = self.started().len();
        gone(self.last()).await;
        self.call().await;
        assert_eq!(self.started().len(), before + 1);
    }

    /// Creates an object with the given behavior of the create call.
    async fn create(&self, on_create: &str) -> ApplyResponse {
        self.create_within(Duration::from_mins(1), on_create).await
    }

    pub(super) async fn create_within(&self, limit: Duration, on_create: &str) -> ApplyResponse {
        let context = self.context(Duration::from_mins(1));
        let config = Value::map([("on_create", Value::from(on_create))]);
        let request = PlanRequest {
            prior: None,
            config: config.clone(),
            entropy: [0; 16],
            previous_plan: None,
            ignored: None,
            replaces: None,
        };
        let PlanResponse { planned, private, .. } = self.providers.plan(&context, request).await.unwrap();
        let request = ApplyRequest { prior: None, config, planned: Some(planned), private };
        self.providers.apply(&self.context(limit), request).await
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(self.last().cast_signed()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }
}

#[tokio::test]
async fn a_process_validates_then_configures_and_exits_when_idle() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.call().await;
    assert_eq!(bench.started().len(), 1);
    bench.clock.advance(Duration::from_mins(4));
    bench.call().await;
    assert_eq!(bench.started().len(), 1);
    bench.clock.advance(Duration::from_mins(6));
    bench.is_replaced().await;
    // A process that is always in use is also replaced.
    bench.clock.advance(Duration::from_hours(25));
    bench.is_replaced().await;
    bench.providers.close().await;
    gone(bench.last()).await;
}

#[tokio::test]
async fn a_busy_process_exits_after_a_day() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.call().await;
    let minutes = 24 * 60;
    for _ in (4..minutes).step_by(4) {
        bench.clock.advance(Duration::from_mins(4));
        bench.call().await;
    }
    assert_eq!(bench.started().len(), 1);
    bench.clock.advance(Duration::from_mins(4));
    bench.call().await;
    gone(bench.started()[0]).await;
    bench.call().await;
    assert_eq!(bench.started().len(), 2);
    bench.providers.close().await;
}

#[tokio::test]
async fn a_process_above_the_limit_gets_no_new_calls_and_exits_after_its_last_one() {
    let bench = Bench::with(serde_json::json!({"maxMemory": 160 << 20}));
    bench.prepare().await;
    let slow = bench.create("slow");
    let meanwhile = async {
        until(|| bench.directory.path().join("started").exists()).await;
        let swollen = bench.create("swell").await;
        assert!(swollen.error.is_none(), "{:?}", swollen.error);
        while bench.started().len() == 1 {
            bench.call().await;
            // The garbage of calls without a pause can exceed the hard limit of the process, which is full.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The running call is not cancelled.
        assert!(is_running(bench.started()[0]));
        fs::write(bench.directory.path().join("release"), "").unwrap();
    };
    let (made, ()) = tokio::join!(slow, meanwhile);
    assert!(made.error.is_none() && made.object.is_some(), "{:?}", made.error);
    gone(bench.started()[0]).await;
    bench.call().await;
    assert_eq!(bench.started().len(), 2);
    bench.providers.close().await;
}

#[tokio::test]
async fn a_rejected_configuration_is_reported_to_every_object() {
    let bench = Bench::new();
    bench.prepare().await;
    let error_with = async |setting: &str| {
        let settings = Value::map([(setting, Value::from("no account"))]);
        let used = ProviderUse::new("own".into(), Arc::clone(&bench.provider), settings);
        let context = CallContext { provider: Some(Arc::new(used)), ..bench.context(Duration::from_mins(1)) };
        let nothing = Value::map::<&str>([]);
        // The first call configures the process, the second waits for it, and the third comes before the retry.
        let both =
            tokio::join!(bench.providers.validate(&context, &nothing), bench.providers.validate(&context, &nothing));
        let third = bench.providers.validate(&context, &nothing).await;
        let messages = [both.0, both.1, third].map(|answer| answer.unwrap_err().line());
        assert!(messages.iter().all(|one| *one == messages[0]), "{messages:?}");
        messages[0].clone()
    };
    let refused = "the provider `corner` rejected the provider configuration `own`: spec.config.fail: The configuration is refused: no account";
    assert_eq!(error_with("fail").await, refused);
    let mistyped = "the provider configuration `own` is not valid: spec.config.foldr: unsupported argument (hint: did you mean `folder`?)";
    assert_eq!(error_with("foldr").await, mistyped);
    bench.providers.close().await;
}

#[tokio::test]
async fn an_unconfigured_process_exits_when_idle() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.clock.advance(Duration::from_mins(6));
    bench.is_replaced().await;
    bench.providers.close().await;
}

#[tokio::test]
async fn a_trial_of_a_configuration_keeps_no_process() {
    let bench = Bench::new();
    bench.prepare().await;
    let used = bench.context(Duration::from_mins(1)).provider.unwrap();
    assert_eq!(bench.providers.configure(&"shop".into(), &used, false).await.unwrap(), []);
    gone(bench.last()).await;
    assert_eq!(bench.started().len(), 1);
    bench.providers.configure(&"shop".into(), &used, true).await.unwrap();
    bench.call().await;
    assert_eq!(bench.started().len(), 2, "the process is kept for objects");
    bench.providers.close().await;
}

#[tokio::test]
async fn an_exited_or_unresponsive_process_is_replaced() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.call().await;
    bench.signal(rustix::process::Signal::KILL);
    bench.is_replaced().await;
    bench.signal(rustix::process::Signal::STOP);
    stopped(bench.last()).await;
    let context = bench.context(Duration::from_secs(1));
    let error = bench.providers.validate(&context, &Value::map::<&str>([])).await.unwrap_err();
    assert!(error.message.contains("did not respond to ValidateResourceConfig within"), "{}", error.message);
    bench.is_replaced().await;
    bench.providers.close().await;
}

#[tokio::test]
async fn a_recorded_identity_of_an_older_version_is_upgraded() {
    let bench = Bench::new();
    bench.prepare().await;
    fs::write(bench.directory.path().join("home-x"), "").unwrap();
    let context = CallContext { type_name: "corner_identified".into(), ..bench.context(Duration::from_mins(1)) };
    let texts = |texts: &[(&str, &str)]| Value::map(texts.iter().map(|(name, text)| (*name, Value::from(*text))));
    // Version 0 of the identity had no region. Without private data, an object has that version.
    let recorded = RecordedObject {
        value: texts(&[("id", "home-x"), ("name", "x"), ("region", "home")]),
        identity: Some(texts(&[("name", "x")])),
        ..RecordedObject::default()
    };
    let read = bench.providers.read(&context, &recorded).await.unwrap().unwrap();
    assert_eq!(read.identity, Some(texts(&[("name", "x"), ("region", "home")])));

    // The record has the new version then.
    let upgraded = RecordedObject { identity: read.identity.clone(), private: read.private.clone(), ..recorded };
    assert_eq!(bench.providers.read(&context, &upgraded).await.unwrap().unwrap(), read);
    bench.providers.close().await;
}

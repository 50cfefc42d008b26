//! The driver of providers: how it uses their processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use purlin::driver::{
    ApplyRequest, ApplyResponse, CallContext, Driver, Preparation, ProviderOptions, Providers, Warnings,
};
use purlin::install::{InstallOptions, Installer};
use purlin::model::{PlanRequest, PlanResponse, Provider, ProviderUse, Value};
use purlin::process::Clock;
use tempfile::TempDir;

use super::{gone, is_running, stopped, until};
use crate::kit::ManualClock;
use crate::providers;

/// The driver with the provider `corner`, whose starts are counted.
struct Bench {
    folder: TempDir,
    clock: Arc<ManualClock>,
    providers: Providers,
    provider: Arc<Provider>,
}

impl Bench {
    fn new() -> Self {
        Self::with(serde_json::json!({}))
    }

    /// With more that a Provider says.
    fn with(more: serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("corner");
        let text = format!(
            "#!/bin/sh\necho $$ >> '{}'\nexec '{}'\n",
            folder.path().join("pids").display(),
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
        let providers = Providers::new(options, Arc::clone(&clock) as _);
        Self { folder, clock, providers, provider: Arc::new(serde_json::from_value(provider).unwrap()) }
    }

    /// The processes that were started, the last one last.
    fn started(&self) -> Vec<u32> {
        let pids = fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        pids.lines().map(|line| line.parse().unwrap()).collect()
    }

    fn last(&self) -> u32 {
        *self.started().last().unwrap()
    }

    async fn prepare(&self) {
        let needed = std::slice::from_ref(&self.provider);
        self.providers.prepare(Preparation { namespace: None, version: 0, needed, current: &[], settled: &[] }).await;
        assert!(self.providers.fault(&self.provider).is_none());
    }

    fn context(&self, limit: Duration) -> CallContext {
        let settings = Value::map([("folder", Value::from(self.folder.path().to_str().unwrap()))]);
        CallContext {
            type_name: "corner_trouble".into(),
            namespace: "shop".into(),
            address: "web".into(),
            provider: Some(Arc::new(ProviderUse::new("corner".into(), Arc::clone(&self.provider), settings))),
            service_account: "".into(),
            deadline: self.clock.now() + SignedDuration::try_from(limit).unwrap(),
            operation_id: "".into(),
            warnings: Warnings::default(),
        }
    }

    /// One call.
    async fn call(&self) {
        let context = self.context(Duration::from_mins(1));
        self.providers.validate(&context, &Value::map::<&str>([])).await.unwrap();
    }

    /// The process that was started last ends, and the next call is answered by a new one.
    async fn is_replaced(&self) {
        let before = self.started().len();
        gone(self.last()).await;
        self.call().await;
        assert_eq!(self.started().len(), before + 1);
    }

    /// Makes an object that does something in the call.
    async fn create(&self, on_create: &str) -> ApplyResponse {
        let context = self.context(Duration::from_mins(1));
        let config = Value::map([("on_create", Value::from(on_create))]);
        let request = PlanRequest { prior: None, config: config.clone(), entropy: [0; 16], planned_before: None };
        let PlanResponse { planned, private, .. } = self.providers.plan(&context, request).await.unwrap();
        let request = ApplyRequest { prior: None, config, planned: Some(planned), private };
        self.providers.apply(&context, request).await
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(self.last().cast_signed()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }
}

#[tokio::test]
async fn a_process_is_asked_then_configured_and_ends_when_nobody_needs_it() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.call().await;
    assert_eq!(bench.started().len(), 1);
    bench.clock.advance(Duration::from_mins(4));
    bench.call().await;
    assert_eq!(bench.started().len(), 1);
    bench.clock.advance(Duration::from_mins(6));
    bench.is_replaced().await;
    // One that is used all the time ends at last.
    bench.clock.advance(Duration::from_hours(25));
    bench.is_replaced().await;
    bench.providers.close().await;
    gone(bench.last()).await;
}

#[tokio::test]
async fn a_process_that_is_always_used_ends_when_it_is_a_day_old() {
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
async fn a_process_above_the_limit_of_its_provider_gets_no_new_calls_and_ends_with_its_last_one() {
    let bench = Bench::with(serde_json::json!({"maxMemory": 160 << 20}));
    bench.prepare().await;
    let slow = bench.create("slow");
    let meanwhile = async {
        until(|| bench.folder.path().join("started").exists()).await;
        let swollen = bench.create("swell").await;
        assert!(swollen.error.is_none(), "{:?}", swollen.error);
        while bench.started().len() == 1 {
            bench.call().await;
        }
        // What runs in it is not cut.
        assert!(is_running(bench.started()[0]));
        fs::write(bench.folder.path().join("release"), "").unwrap();
    };
    let (made, ()) = tokio::join!(slow, meanwhile);
    assert!(made.error.is_none() && made.object.is_some(), "{:?}", made.error);
    gone(bench.started()[0]).await;
    bench.call().await;
    assert_eq!(bench.started().len(), 2);
    bench.providers.close().await;
}

#[tokio::test]
async fn refused_settings_are_told_alike_to_all_who_have_them() {
    let bench = Bench::new();
    bench.prepare().await;
    let told = async |setting: &str| {
        let settings = Value::map([(setting, Value::from("no account"))]);
        let used = ProviderUse::new("own".into(), Arc::clone(&bench.provider), settings);
        let context = CallContext { provider: Some(Arc::new(used)), ..bench.context(Duration::from_mins(1)) };
        let nothing = Value::map::<&str>([]);
        // The first one tries it, another waits for that, and the rest comes while it is not tried again.
        let both =
            tokio::join!(bench.providers.validate(&context, &nothing), bench.providers.validate(&context, &nothing));
        let third = bench.providers.validate(&context, &nothing).await;
        let told = [both.0, both.1, third].map(|answer| answer.unwrap_err().line());
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        told[0].clone()
    };
    let refused = "the settings `own` are refused by the provider `corner`: spec.config.fail: The configuration is refused: no account";
    assert_eq!(told("fail").await, refused);
    let mistyped =
        "the settings `own` are not valid: spec.config.foldr: there is no such argument (hint: did you mean `folder`?)";
    assert_eq!(told("foldr").await, mistyped);
    bench.providers.close().await;
}

#[tokio::test]
async fn a_process_that_nobody_configures_ends_too() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.clock.advance(Duration::from_mins(6));
    bench.is_replaced().await;
    bench.providers.close().await;
}

#[tokio::test]
async fn a_process_that_is_gone_or_answers_nothing_any_more_is_replaced() {
    let bench = Bench::new();
    bench.prepare().await;
    bench.call().await;
    bench.signal(rustix::process::Signal::KILL);
    bench.is_replaced().await;
    bench.signal(rustix::process::Signal::STOP);
    stopped(bench.last()).await;
    let context = bench.context(Duration::from_secs(1));
    let error = bench.providers.validate(&context, &Value::map::<&str>([])).await.unwrap_err();
    assert!(error.message.contains("did not answer ValidateResourceConfig within"), "{}", error.message);
    bench.is_replaced().await;
    bench.providers.close().await;
}

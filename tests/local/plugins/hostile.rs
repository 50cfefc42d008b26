//! Providers that misbehave on purpose. Only their own objects are disturbed, and everything recovers when they behave.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use purlin::driver::{CallContext, Driver as _, ProviderOptions};
use purlin::model::{
    DriverError, ImportRequest, PlanRequest, PlanResponse, Provider, ProviderUse, RecordedObject, Value,
};
use purlin::plugin::Limits;
use serde_json::json;

use super::driver::Bench;
use super::{gone, is_running};
use crate::providers;

/// The time for the start and for each call: more than a slow machine needs.
const LIMIT: Duration = Duration::from_secs(5);

/// With short limits, and a limit of responses as in the controller.
fn limited(options: ProviderOptions) -> ProviderOptions {
    let grace = Duration::from_millis(100);
    let limits = Limits { start: LIMIT, call: LIMIT, stop_grace_period: grace, response: 16 << 20, ..options.limits };
    ProviderOptions { limits, ..options }
}

/// A provider that hangs in a method.
fn hanging(method: &str) -> Bench {
    Bench::with_options(json!({ "environment": { "CORNER_HANG": method } }), limited)
}

/// A call of another provider, in the same namespace.
async fn call_another(bench: &Bench) {
    let provider: Provider = serde_json::from_value(json!({
        "name": "random", "source": "registry.opentofu.org/hashicorp/random", "package": { "path": providers::program("random") },
    }))
    .unwrap();
    let used = ProviderUse::new("random".into(), Arc::new(provider), Value::map::<&str>([]));
    let context =
        CallContext { type_name: "random_pet".into(), provider: Some(Arc::new(used)), ..bench.context(LIMIT) };
    assert_eq!(bench.providers.validate(&context, &Value::map::<&str>([])).await.unwrap(), []);
}

async fn plan(bench: &Bench, on_plan: &str) -> Result<PlanResponse, DriverError> {
    let config = Value::map([("on_plan", Value::from(on_plan))]);
    let request =
        PlanRequest { prior: None, config, entropy: [0; 16], previous_plan: None, ignored: None, replaces: None };
    bench.providers.plan(&bench.context(LIMIT), request).await
}

/// Checks that the call fails with this text, and that another provider is called meanwhile.
async fn fails_alone(bench: &Bench, on_plan: &str, expected: &str) {
    let (failed, ()) = tokio::join!(plan(bench, on_plan), call_another(bench));
    let failed = failed.err().unwrap().line();
    assert!(failed.contains(expected), "{on_plan}: {failed}");
}

#[tokio::test]
async fn a_provider_that_hangs_disturbs_only_its_own_objects() {
    let hangs = async |method: &str, expected: &str| {
        let bench = hanging(method);
        let bad = async { plan(&bench, "").await.err().unwrap().line() };
        let mut bad = Box::pin(bad);
        tokio::select! {
            biased;
            failed = &mut bad => panic!("{method}: {failed}"),
            () = call_another(&bench) => {}
        }
        let failed = bad.await;
        assert!(failed.contains(expected), "{method}: {failed}");
        bench.providers.close().await;
    };
    tokio::join!(
        hangs("start", "did not complete the handshake within 5 s"),
        hangs("GetProviderSchema", "did not respond to GetProviderSchema within 5 s"),
        hangs("ValidateProviderConfig", "did not respond to ValidateProviderConfig within 5 s"),
        hangs("ConfigureProvider", "did not respond to ConfigureProvider within 5 s"),
    );
}

/// Calls the provider about one object in the way that uses this method.
async fn call_about_object(bench: &Bench, method: &str) -> Result<(), DriverError> {
    let (context, providers) = (bench.context(LIMIT), &bench.providers);
    match method {
        "ValidateResourceConfig" => providers.validate(&context, &Value::map::<&str>([])).await.map(drop),
        "ImportResourceState" => providers.import(&context, &ImportRequest::Id("x".into())).await.map(drop),
        "ReadDataSource" => {
            let context = CallContext { type_name: "corner_lookup".into(), ..context };
            let config = Value::map([("id", Value::from("x"))]);
            providers.data().unwrap().read_data(&context, &config).await.map(drop)
        }
        _ => {
            let object = RecordedObject { value: Value::map([("id", Value::from("x"))]), ..RecordedObject::default() };
            providers.read(&context, &object).await.map(drop)
        }
    }
}

#[tokio::test]
async fn a_provider_that_hangs_in_a_call_about_an_object_disturbs_only_that_object() {
    let methods =
        ["ValidateResourceConfig", "UpgradeResourceState", "ReadResource", "ImportResourceState", "ReadDataSource"];
    let hangs = async |method: &str| {
        let bench = hanging(method);
        bench.prepare().await;
        let (hung, ()) = tokio::join!(call_about_object(&bench, method), call_another(&bench));
        let hung = hung.err().unwrap().line();
        assert!(hung.contains(&format!("did not respond to {method} within 5 s")), "{method}: {hung}");
        assert!(plan(&bench, "").await.is_ok(), "{method}: other calls work");
        bench.providers.close().await;
    };
    futures::future::join_all(methods.map(hangs)).await;
}

#[tokio::test]
async fn a_provider_that_takes_too_long_to_start_is_killed_and_works_once_it_starts_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let slow = directory.path().join("slow");
    fs::write(&slow, "").unwrap();
    let environment = json!({ "environment": { "CORNER_SLOW_START": slow } });
    let bench = Bench::with_options(environment, limited);
    let (failed, ()) = tokio::join!(plan(&bench, ""), call_another(&bench));
    let failed = failed.err().unwrap().line();
    assert!(failed.contains("did not complete the handshake within 5 s"), "{failed}");
    gone(bench.started()[0]).await;
    fs::remove_file(&slow).unwrap();
    bench.clock.advance(Duration::from_mins(2));
    assert!(plan(&bench, "").await.is_ok());
    bench.providers.close().await;
}

#[tokio::test]
async fn a_provider_that_leaks_memory_crashes_alone() {
    let bench = Bench::with_options(json!({ "maxMemory": 160 << 20 }), limited);
    fails_alone(&bench, "grow", "exited during PlanResourceChange").await;
    fs::write(bench.directory.path().join("peace"), "").unwrap();
    bench.clock.advance(Duration::from_mins(2));
    assert!(plan(&bench, "grow").await.is_ok());
    bench.providers.close().await;
}

#[tokio::test]
async fn a_provider_that_panics_at_random_disturbs_only_its_own_objects() {
    let bench = Bench::with_options(json!({}), limited);
    for _ in 0..10 {
        let calls = (0..4).map(|_| plan(&bench, "gamble"));
        let (answers, ()) = tokio::join!(futures::future::join_all(calls), call_another(&bench));
        for error in answers.into_iter().filter_map(Result::err) {
            let error = error.line();
            assert!(error.contains("panic: the provider panics at random"), "{error}");
        }
        bench.clock.advance(Duration::from_mins(10));
    }
    fs::write(bench.directory.path().join("peace"), "").unwrap();
    assert!(plan(&bench, "gamble").await.is_ok());
    bench.providers.close().await;
}

#[tokio::test]
async fn a_provider_that_ignores_the_stop_request_is_killed() {
    let bench = hanging("StopProvider");
    bench.prepare().await;
    let hung = bench.create_within(Duration::from_secs(1), "hang");
    let (hung, ()) = tokio::join!(hung, call_another(&bench));
    let error = hung.error.unwrap().line();
    assert!(error.contains("exited during ApplyResourceChange: signal: 9 (SIGKILL)"), "{error}");
    fs::write(bench.directory.path().join("peace"), "").unwrap();
    bench.clock.advance(Duration::from_mins(2));
    assert!(plan(&bench, "hang").await.is_ok());
    bench.providers.close().await;
}

#[tokio::test]
async fn bad_answers_are_errors_of_their_object() {
    let cases = [
        ("garbage", "the planned state cannot be read"),
        ("huge", "decoded message length too large"),
        ("flood", "the response has more than 20000 elements"),
        ("hang", "did not respond to PlanResourceChange within 5 s"),
        ("hang up", "the connection to the provider corner broke during PlanResourceChange"),
        ("panic", "exited during PlanResourceChange: exit status: 2: panic: the provider panics as asked"),
    ];
    let misbehaves = async |on_plan: &str, expected: &str| {
        let bench = Bench::with_options(json!({}), limited);
        fails_alone(&bench, on_plan, expected).await;
        fs::write(bench.directory.path().join("peace"), "").unwrap();
        bench.clock.advance(Duration::from_mins(2));
        assert!(plan(&bench, on_plan).await.is_ok(), "{on_plan}: it behaves again");
        bench.providers.close().await;
    };
    futures::future::join_all(cases.map(|(on_plan, expected)| misbehaves(on_plan, expected))).await;
}

#[tokio::test]
async fn megabytes_of_output_stop_no_call() {
    let bench = Bench::with_options(json!({}), limited);
    let (planned, ()) = tokio::join!(plan(&bench, "noise"), call_another(&bench));
    assert!(planned.is_ok());
    bench.providers.close().await;
}

#[tokio::test]
async fn what_a_provider_leaves_behind_is_killed_with_it() {
    for is_killed in [false, true] {
        let bench = Bench::with_options(json!({}), limited);
        let report = plan(&bench, "orphans").await.err().unwrap().line();
        assert!(report.contains("started"), "{report}");
        let id = |name: &str| fs::read_to_string(bench.directory.path().join(name)).unwrap().trim().parse().unwrap();
        let orphans: [u32; 2] = [id("child"), id("grandchild")];
        assert!(orphans.iter().all(|process| is_running(*process)));
        if is_killed {
            bench.signal(rustix::process::Signal::KILL);
        } else {
            bench.providers.close().await;
        }
        for process in orphans {
            gone(process).await;
        }
        bench.providers.close().await;
    }
}

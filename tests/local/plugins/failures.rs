//! Failing providers: the errors that the caller receives, and the calls that continue.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use purlin::plugin::{Client, PluginError, Sandbox, reattach_targets};
use serde_json::json;

use super::corner::Corner;
use super::starting::script;
use super::{DebuggedProvider, gone, launch, of};

#[tokio::test]
async fn a_panic_fails_all_calls_with_its_message_and_location() {
    let corner = Corner::start().await;
    let seen = corner.create("corner_trouble", json!({"on_read": "slow"})).await;
    let (read, applied) = tokio::join!(corner.read("corner_trouble", &seen), async {
        corner.at_work().await;
        corner.change("corner_trouble", None, json!({"on_create": "panic"})).await
    });
    for (error, call) in [(read.err(), "ReadResource"), (applied.err(), "ApplyResourceChange")] {
        let error = error.unwrap();
        let text = error.to_string();
        let begin = format!(
            "the provider corner exited during {call}: exit status: 2: panic: the provider panics as asked \
             (at purlin.dev/purlin/tests/providers/corner/trouble.go:"
        );
        assert!(text.starts_with(&begin) && error.is_fatal(), "{text}");
        let PluginError::Crashed { crash, .. } = error else { panic!("{text}") };
        assert!(crash.trace.iter().any(|line| line.starts_with("goroutine ")), "{crash:?}");
    }
    assert!(!corner.client.is_alive());
    let later = corner.client.schema().await.unwrap_err().to_string();
    assert!(later.contains("exited before GetProviderSchema: exit status: 2: panic: "), "{later}");
    assert_eq!(corner.objects(), 2, "the object was created before the panic");
}

#[tokio::test]
async fn an_exit_is_reported_with_the_last_output() {
    let corner = Corner::start().await;
    let error = corner.change("corner_trouble", None, json!({"on_create": "exit"})).await.unwrap_err();
    let expected = "the provider corner exited during ApplyResourceChange: exit status: 3: giving up as asked";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_hanging_call_ends_at_its_limit_and_affects_no_other_call() {
    let corner = Corner::start().await;
    let config = corner.value("corner_trouble", json!({"on_plan": "hang"}));
    let ty = "corner_trouble";
    let request = purlin::plugin::PlanResourceChange {
        type_name: ty.into(),
        prior: purlin::plugin::DynamicValue::null(),
        proposed: corner.encoded(ty, &config),
        config: corner.encoded(ty, &config),
        ..<_>::default()
    };
    let limited = corner.client.with_limit(Duration::from_millis(300));
    let error = limited.plan_resource_change(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider corner did not respond to PlanResourceChange within 300 ms");
    assert!(!error.is_fatal() && corner.client.is_alive());
    let other = corner.create(ty, json!({"text": "t"})).await;
    assert!(corner.destroy(ty, &other).await.unwrap().state.is_null());
    let process = corner.client.process_id().unwrap();
    corner.client.close().await;
    gone(process).await;
}

#[tokio::test]
async fn a_stopped_apply_returns_its_object() {
    let corner = Corner::start().await;
    let (applied, ()) = tokio::join!(corner.change("corner_trouble", None, json!({"on_create": "slow"})), async {
        corner.at_work().await;
        assert_eq!(corner.client.stop().await.unwrap(), None);
    });
    let applied = applied.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "It was stopped");
    assert!(!applied.state.is_null());
    // The process still accepts calls.
    corner.create("corner_trouble", json!({})).await;
    corner.client.close().await;
}

#[tokio::test]
async fn an_apply_past_its_limit_is_stopped_and_its_late_response_is_used() {
    let corner = Corner::start().await;
    let limited = corner.client.with_limit(Duration::from_millis(300));
    let config = corner.value("corner_trouble", json!({"on_create": "slow"}));
    let planned = corner.plan("corner_trouble", None, &config).await.unwrap();
    let request = corner.application("corner_trouble", None, &config, &planned);
    let applied = limited.apply_resource_change(request).await.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "It was stopped");
    assert!(!applied.state.is_null() && corner.client.was_stopped());
    assert!(corner.client.is_retired() && corner.client.is_alive(), "new calls go to another process");
    corner.client.close().await;
}

#[tokio::test]
async fn an_apply_past_its_limit_stops_no_other_apply() {
    let corner = Corner::start().await;
    let limited = corner.client.with_limit(Duration::from_millis(300));
    let config = corner.value("corner_trouble", json!({"on_create": "slow"}));
    let planned = corner.plan("corner_trouble", None, &config).await.unwrap();
    let request = || corner.application("corner_trouble", None, &config, &planned);
    let release = async {
        corner.at_work().await;
        while !corner.client.is_retired() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Longer than a stop request takes.
        tokio::time::sleep(Duration::from_secs(2)).await;
        fs::write(corner.directory_path().join("release"), "").unwrap();
    };
    let (late, other) = (limited.apply_resource_change(request()), corner.client.apply_resource_change(request()));
    let (late, other, ()) = tokio::join!(late, other, release);
    for applied in [late.unwrap(), other.unwrap()] {
        assert!(applied.diagnostics.is_empty() && !applied.state.is_null(), "{:?}", applied.diagnostics);
    }
    assert!(!corner.client.was_stopped());
    corner.client.close().await;
}

#[tokio::test]
async fn a_hanging_provider_is_killed_after_the_grace_period() {
    let mut launch = launch("corner");
    launch.limits.stop_grace_period = Duration::from_secs(2);
    let corner = Corner::with(launch, json!({})).await;
    let limited = corner.client.with_limit(Duration::from_millis(300));
    let config = corner.value("corner_trouble", json!({"on_create": "hang"}));
    let planned = corner.plan("corner_trouble", None, &config).await.unwrap();
    let request = corner.application("corner_trouble", None, &config, &planned);
    let began = std::time::Instant::now();
    let error = limited.apply_resource_change(request).await.unwrap_err();
    assert!(matches!(error, PluginError::Crashed { .. }), "{error}");
    assert!(began.elapsed() > Duration::from_secs(2), "the grace period was not awaited");
}

#[tokio::test]
async fn an_abandoned_apply_continues() {
    let corner = Corner::start().await;
    tokio::select! {
        _ = corner.change("corner_trouble", None, json!({"on_create": "slow"})) => panic!("it is slow"),
        () = corner.at_work() => {}
    }
    // A cancelled call would end before the next one returns.
    corner.client.schema().await.unwrap();
    assert!(!corner.client.is_idle());
    fs::write(corner.directory_path().join("release"), "").unwrap();
    while !corner.client.is_idle() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(corner.client.is_alive());
    assert_eq!(corner.objects(), 1);
    corner.client.close().await;
}

#[tokio::test]
async fn a_partly_failed_change_returns_state_and_error() {
    let corner = Corner::start().await;
    let applied = corner.change("corner_trouble", None, json!({"on_create": "partial"})).await.unwrap();
    assert!(!applied.state.is_null());
    assert_eq!(applied.diagnostics[0].path().unwrap().to_string(), "on_create");
    let applied = corner.change("corner_trouble", None, json!({"on_create": "error"})).await.unwrap();
    assert!(applied.state.is_null());
    assert_eq!(corner.objects(), 1);
    corner.client.close().await;
}

#[tokio::test]
async fn a_rejected_configuration_is_reported_with_its_field() {
    let mut launch = launch("corner");
    launch.name = "corner of this test".into();
    let client = Client::start(&launch).await.unwrap();
    // Four attributes: `fail`, `folder`, `secret` and `warn`.
    let config = b"\x84\xa4fail\xa8no money\xa6folder\xc0\xa6secret\xc0\xa4warn\xc0".to_vec();
    let error = client.validate_and_configure(purlin::plugin::DynamicValue::encoded(config)).await.unwrap_err();
    let expected = "the provider corner of this test rejected its configuration: \
                    fail: The configuration is refused: no money";
    assert_eq!(error.to_string(), expected);
    client.close().await;
}

#[tokio::test]
async fn secrets_are_masked_in_the_output_of_a_provider() {
    let mut launch = launch("corner");
    launch.mask = Arc::new(|line: &str| line.replace("hunter2", "(sensitive)"));
    let corner = Corner::with(launch, json!({"secret": "hunter2"})).await;
    let error = corner.change("corner_trouble", None, json!({"on_create": "exit"})).await.unwrap_err();
    let PluginError::Crashed { crash, .. } = error else { panic!("{error}") };
    assert!(crash.trace.contains(&"connecting with password (sensitive)".to_owned()), "{crash:?}");
    assert!(!crash.trace.iter().any(|line| line.contains("hunter2")), "{crash:?}");
}

#[tokio::test]
async fn a_plugin_gets_a_clean_environment() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = of("odd", script(directory.path(), "env > \"$OUT\""));
    let out = directory.path().join("environment");
    launch.environment.insert("OUT".into(), out.to_str().unwrap().into());
    launch.environment.insert("CLOUD_REGION".into(), "north".into());
    // The certificate contains lines that look like variables.
    launch.tls = false;
    Client::start(&launch).await.err().unwrap();
    let seen = fs::read_to_string(out).unwrap();
    let names: Vec<&str> = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"CLOUD_REGION") && names.contains(&"PATH") && names.contains(&"TF_PLUGIN_MAGIC_COOKIE"));
    let known = [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "TMPDIR",
        "TF_PLUGIN_MAGIC_COOKIE",
        "TF_LOG_SDK",
        "CLOUD_REGION",
        "OUT",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    let strange: Vec<_> = names.iter().filter(|name| !known.contains(name) && !name.starts_with("PLUGIN_")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[tokio::test]
async fn a_sandboxed_plugin_can_access_only_allowed_paths() {
    let (given, secret) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(secret.path().join("token"), "hunter2").unwrap();
    let text = "cat \"$TOKEN\" > \"$OUT\" 2>&1; echo more >> \"$OUT\"; echo x > \"$TMPDIR/x\" && echo own >> \"$OUT\"";
    let mut launch = of("odd", script(secret.path(), text));
    launch.environment.insert("TOKEN".into(), secret.path().join("token").to_str().unwrap().into());
    launch.environment.insert("OUT".into(), given.path().join("out").to_str().unwrap().into());
    let mut confine = Sandbox::system();
    confine.write.push(given.path().into());
    launch.sandbox = Some(confine);
    Client::start(&launch).await.err().unwrap();
    let seen = fs::read_to_string(given.path().join("out")).unwrap();
    assert!(seen.contains("Permission denied") && seen.ends_with("more\nown\n"), "{seen}");
}

#[tokio::test]
async fn a_real_provider_works_in_the_sandbox() {
    let mut launch = launch("random");
    launch.sandbox = Some(Sandbox::system());
    let client = Client::start(&launch).await.unwrap();
    client.schema().await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn a_plugin_exits_when_its_parent_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let plugin = script(directory.path(), "echo $$ > \"$OUT.new\"; mv \"$OUT.new\" \"$OUT\"; exec sleep 600");
    let line = "\"$PURLIN\" launch-plugin --parent $$ -- \"$PLUGIN\" & wait";
    let mut parent = Command::new("sh")
        .args(["-c", line])
        .env("PURLIN", env!("CARGO_BIN_EXE_purlin"))
        .env("PLUGIN", &plugin)
        .env("OUT", &pid)
        .spawn()
        .unwrap();
    while !pid.exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let process: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    assert!(fs::exists(format!("/proc/{process}")).unwrap());
    parent.kill().unwrap();
    parent.wait().unwrap();
    gone(process).await;
}

#[tokio::test]
async fn a_provider_in_a_debugger_is_used_and_not_stopped() {
    let mut debugged = DebuggedProvider::start();
    let targets = reattach_targets(&debugged.reattach).unwrap();
    let target = &targets["registry.opentofu.org/purlin/corner"];
    let client = Client::reattach(&of("corner", ""), target).await.unwrap();
    assert!(client.schema().await.unwrap().0.resource_types().any(|name| name == "corner_thing"));
    client.close().await;
    assert_eq!(debugged.child.try_wait().unwrap(), None, "the provider must still run");
    debugged.child.kill().unwrap();
    debugged.child.wait().unwrap();
}

//! Providers receive the same requests from Purlin as from OpenTofu.
//!
//! `tests/vectors/calls` ran histories with OpenTofu and recorded the calls. Here, Purlin runs the same histories, and a
//! provider that plays the recorded responses compares its requests. `docs/provider-calls.md` lists the differences.
//!
//! `HISTORY="corner 7"` runs only the history of that name.

mod difference;
mod message;
mod playback;
mod vectors;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::runtime::Handle;

use crate::cli::sandbox::Sandbox;
use playback::Played;
use vectors::{Call, History, Step};

/// How many histories run at the same time: most of the time, they wait for the start of `purlin`.
const PARALLEL: usize = 4;

/// Runs a history. Returns what differs in the first step with a difference, since the next ones depend on it.
fn play(history: &History, runtime: &Handle) -> Vec<String> {
    let sandbox = Sandbox::new();
    let played = Arc::new(Mutex::new(Played::default()));
    let targets = targets(history, &sandbox, &played, runtime);
    for (number, step) in history.steps.iter().enumerate() {
        *played.lock().unwrap() = Played::new(step);
        let (failed, output) = run(history, step, &sandbox, &targets);
        let mut differences = played.lock().unwrap().differences();
        // Purlin evaluates no configuration with `--refresh-only`.
        if failed != step.failed && step.command != "refresh" {
            differences.push(format!("OpenTofu failed: {}, Purlin failed: {failed}", step.failed));
        }
        if !differences.is_empty() {
            let place = format!("{}, step {}", history.name, number + 1);
            return differences.iter().map(|one| format!("{place}: {one}\n{output}")).collect();
        }
    }
    Vec::new()
}

/// The value of `TF_REATTACH_PROVIDERS` for the providers of a history, which it starts.
fn targets(history: &History, sandbox: &Sandbox, played: &Arc<Mutex<Played>>, runtime: &Handle) -> String {
    let mut targets = BTreeMap::new();
    for (provider, source) in &history.providers {
        let socket = sandbox.path(provider);
        playback::serve(runtime, &socket, provider.clone(), Arc::clone(played));
        let is_new = |call: &Call| call.provider == *provider && call.method == "GetProviderSchema";
        let version = if history.steps.iter().flat_map(|step| &step.calls).any(is_new) { 6 } else { 5 };
        let address = json!({ "Network": "unix", "String": socket });
        targets.insert(
            format!("registry.opentofu.org/{source}"),
            json!({ "Protocol": "grpc", "ProtocolVersion": version, "Pid": 1, "Test": true, "Addr": address }),
        );
    }
    json!(targets).to_string()
}

/// Carries a step out with Purlin. Returns whether it failed, and its output.
fn run(history: &History, step: &Step, sandbox: &Sandbox, targets: &str) -> (bool, String) {
    let variables = [("TF_REATTACH_PROVIDERS", targets)];
    sandbox.write("files/objects.yaml", &step.manifests(&history.providers));
    for name in &step.taint {
        sandbox.run_with(&variables, &["state", "taint", name]);
    }
    let command: &[&str] = match step.command.as_str() {
        "apply" => &["apply", "-f", "files", "--yes"],
        "refresh" => &["apply", "-f", "files", "--refresh-only", "--yes"],
        "destroy" => &["destroy", "-f", "files", "--yes"],
        other => panic!("{other} is not a command"),
    };
    let ran = sandbox.run_with(&variables, command);
    (ran.code != Some(0), ran.stdout + &ran.stderr)
}

/// The histories to run.
fn selected() -> Vec<History> {
    let mut all = vectors::histories();
    assert!(all.len() >= 300, "{} histories", all.len());
    if let Ok(name) = std::env::var("HISTORY") {
        all.retain(|history| history.name == name);
    }
    all
}

#[test]
fn providers_receive_the_requests_of_opentofu() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (histories, next, found) = (selected(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(history) = histories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differences = play(history, runtime.handle());
                    found.lock().unwrap().extend(differences);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} differences in {} histories:\n{}", found.len(), histories.len(), found.join("\n"));
}

//! Providers receive the same requests from Purlin as from `OpenTofu`.
//!
//! `tests/vectors/calls` ran histories with `OpenTofu` and recorded the calls. Here, Purlin runs the same histories, and
//! a provider that plays the recorded responses compares its requests.

mod message;
mod playback;
mod vectors;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::cli::sandbox::Sandbox;
use playback::{Played, Request};
use vectors::{History, Step};

/// What differs in a step.
struct Difference {
    place: String,
    request: Request,
    /// Purlin made the request, and not `OpenTofu`.
    added: bool,
}

fn play(history: &History, runtime: &tokio::runtime::Handle) -> Vec<Difference> {
    let sandbox = Sandbox::new();
    let played = Arc::new(Mutex::new(Played::default()));
    let targets = targets(history, &sandbox, &played, runtime);
    let mut differences = Vec::new();
    for (number, step) in history.steps.iter().enumerate() {
        *played.lock().unwrap() = Played::new(step);
        let output = run(history, step, &sandbox, &targets);
        let played = played.lock().unwrap();
        let place = format!("{}, step {}", history.name, number + 1);
        let of = |added: bool| {
            let place = place.clone();
            move |request: &Request| Difference { place: place.clone(), request: request.clone(), added }
        };
        let before = differences.len();
        differences.extend(played.added().into_iter().map(of(true)));
        if std::env::var("SHOW").is_ok() {
            eprintln!("{place}: {output}");
        }
        differences.extend(played.missing().into_iter().map(of(false)));
        if differences.len() > before && differences[before..].iter().any(|one| one.added) {
            break;
        }
    }
    differences
}

/// The value of `TF_REATTACH_PROVIDERS` for the providers of a history.
fn targets(
    history: &History,
    sandbox: &Sandbox,
    played: &Arc<Mutex<Played>>,
    runtime: &tokio::runtime::Handle,
) -> String {
    let _guard = runtime.enter();
    let mut targets = BTreeMap::new();
    for (provider, source) in &history.providers {
        let socket = sandbox.path(provider);
        playback::serve(&socket, provider.clone(), Arc::clone(played));
        let is_new = |call: &vectors::Call| call.provider == *provider && call.method == "GetProviderSchema";
        let version = if history.steps.iter().flat_map(|step| &step.calls).any(is_new) { 6 } else { 5 };
        let address = json!({ "Network": "unix", "String": socket });
        targets.insert(
            format!("registry.opentofu.org/{source}"),
            json!({ "Protocol": "grpc", "ProtocolVersion": version, "Pid": 1, "Test": true, "Addr": address }),
        );
    }
    json!(targets).to_string()
}

/// Carries a step out with Purlin. Returns its output.
fn run(history: &History, step: &Step, sandbox: &Sandbox, targets: &str) -> String {
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
    format!("{command:?}: {:?} (failed: {})\n{}{}", ran.code, step.failed, ran.stdout, ran.stderr)
}

#[test]
fn providers_receive_the_requests_of_opentofu() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let only = std::env::var("HISTORY").unwrap_or_default();
    let mut histories = vectors::histories();
    histories.retain(|history| history.name.contains(&only));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(history) = histories.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let differences = play(history, runtime.handle());
                    found.lock().unwrap().extend(differences);
                }
            });
        }
    });
    for difference in found.into_inner().unwrap() {
        let (provider, method, request) = &difference.request;
        eprintln!("DIFF {}", json!([difference.place, difference.added, provider, method, request]));
    }
}

//! What an installation carries: three replicas of which one is killed every 30 s while users change everything, with
//! a count of the objects outside of Purlin; then new objects a second, the time until each is ready, memory, idle
//! writes and fail-over, for several numbers of objects and replicas, and other programs with the same objects in the
//! same run.
//!
//! `cargo bench --bench scale` measures the default sizes. The arguments: `objects=1000,10000 replicas=1,3` (each
//! number of objects with each number of replicas), `types=kubernetes_object,terraform_data`, `namespaces=10`,
//! `peers=kro,tofu` (empty: none), `kill=30` (seconds between two kills), `minutes=10` (of killing; 0: none), and
//! `write`, which replaces the tables of docs/benchmarks.md.
//!
//! Each row has a control plane of its own. The replicas run with the arguments of the chart and the times that it
//! sets for leases.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unchecked_time_subtraction,
    reason = "a benchmark prints figures with two digits"
)]

#[path = "../audit.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod audit;
#[path = "../../tests/cluster/controller.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod controller;
#[path = "../../tests/support/controlplane.rs"]
mod controlplane;
mod files;
#[path = "../../tests/cluster/installation.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod installation;
mod kro;
mod measure;
mod observer;
#[path = "../opentofu.rs"]
mod opentofu;
mod outside;
#[path = "../processes.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod processes;
#[path = "../../tests/support/programs.rs"]
mod programs;
#[path = "../../tests/support/providers.rs"]
mod providers;
mod replicas;
mod report;
mod rolling;
#[path = "../server.rs"]
#[allow(dead_code, reason = "the benchmark uses the part it needs")]
mod server;
mod user;
mod workload;

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use controlplane::ControlPlane;
use kro::Kro;
use replicas::Replicas;
use report::Report;
use server::Server;
use workload::Workload;

/// The replicas of which one at a time is killed.
const ROLLING_REPLICAS: usize = 3;

struct Options {
    objects: Vec<usize>,
    replicas: Vec<usize>,
    types: Vec<String>,
    namespaces: usize,
    peers: Vec<String>,
    kill: Duration,
    time: Duration,
    write: bool,
}

impl Options {
    fn of_arguments() -> Self {
        Self {
            objects: list("objects", "1000,10000"),
            replicas: list("replicas", "1,3"),
            types: list("types", "kubernetes_object,terraform_data"),
            namespaces: one("namespaces", "10"),
            peers: list("peers", "kro,tofu"),
            kill: Duration::from_secs(one("kill", "30")),
            time: Duration::from_mins(one("minutes", "10")),
            write: std::env::args().any(|argument| argument == "write"),
        }
    }
}

fn list<T: FromStr>(name: &str, default: &str) -> Vec<T> {
    let given = std::env::args().find_map(|argument| argument.strip_prefix(&format!("{name}=")).map(str::to_owned));
    let text = given.unwrap_or_else(|| default.to_owned());
    let items = text.split(',').filter(|item| !item.is_empty());
    items.map(|item| item.parse().unwrap_or_else(|_| panic!("{name}={text}: `{item}` is not valid"))).collect()
}

fn one<T: FromStr>(name: &str, default: &str) -> T {
    list(name, default).into_iter().next().unwrap_or_else(|| panic!("{name}= needs a value"))
}

fn main() -> ExitCode {
    // `cargo bench` passes `--bench`; `cargo test --benches` does not, and then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.expect("a runtime").block_on(run(&Options::of_arguments())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Fails if an argument is not valid, and panics if an object was lost or made twice.
async fn run(options: &Options) -> Result<(), String> {
    let workloads = options.types.iter().map(|name| Workload::of_type(name)).collect::<Result<Vec<_>, _>>()?;
    let mut report = Report::start(options.write);
    // A lost object is worse than a slow one, so this comes first.
    if !options.time.is_zero() {
        let plane = control_plane();
        let server = Server::new(&plane).await;
        let mut replicas = Replicas::start_logged(&plane, ROLLING_REPLICAS);
        let outcome = rolling::run(&server, &mut replicas, options.namespaces, options.kill, options.time).await;
        report.rolling(&outcome);
        // The logs of a control plane are kept after a panic.
        outcome.verdict().unwrap_or_else(|problems| panic!("{problems}"));
    }
    for &objects in &options.objects {
        for workload in &workloads {
            for &replicas in &options.replicas {
                let plane = control_plane();
                let server = Server::new(&plane).await;
                let mut replicas = Replicas::start(&plane, replicas);
                report.row(measure::row(&server, workload, &mut replicas, objects, options.namespaces).await);
            }
        }
        if options.peers.iter().any(|peer| peer == "kro") {
            measure_kro(&mut report, objects, options.namespaces).await;
        }
        if options.peers.iter().any(|peer| peer == "tofu") {
            measure_files(&mut report, objects);
        }
    }
    Ok(())
}

fn control_plane() -> ControlPlane {
    let plane = ControlPlane::start();
    installation::install(&plane);
    plane
}

async fn measure_kro(report: &mut Report, objects: usize, namespaces: usize) {
    match kro::program() {
        Err(why) => report.left_out("kro", &why),
        Ok(program) => {
            let plane = ControlPlane::start();
            let server = Server::new(&plane).await;
            let mut kro = Kro::start(&plane, &program);
            report.row(measure::row(&server, &kro::workload(), &mut kro, objects, namespaces).await);
        }
    }
}

fn measure_files(report: &mut Report, objects: usize) {
    let tofu = opentofu::program();
    if let Err(why) = &tofu {
        report.left_out("OpenTofu", why);
    }
    for kind in files::KINDS {
        report.files(files::purlin(kind, objects));
        if let Ok(tofu) = &tofu {
            report.files(files::opentofu(tofu, kind, objects));
        }
    }
}

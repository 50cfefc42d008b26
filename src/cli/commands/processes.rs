//! `purlin launch-plugin`, `purlin launch-hook` and `purlin runner`: the commands that Purlin runs itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use crate::cli::args::{LaunchHookArgs, LaunchPluginArgs, RunnerArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Console;
use model::OWN_VARIABLES;
use process::{Shutdown, hide_from_others, memory_limit, panics, supervisor, telemetry};
use tfprovider::install::Hash;
use tfprovider::plugin::launcher::{LaunchOptions, launch};
use tfprovider::plugin::remote::{RunnerKeys, RunnerOptions, serve};

/// The exit code, if the program of a hook cannot be started, as in shells.
const NOT_STARTED: u8 = 127;

/// Replaces the process with the plugin. Returns only on errors.
pub fn launch_plugin(args: LaunchPluginArgs) -> anyhow::Result<Exit> {
    let mut words = args.program.into_iter();
    // Clap requires at least one argument.
    let program = words.next().unwrap_or_default().into();
    let launching = LaunchOptions {
        parent: args.parent,
        memory: args.memory,
        read: args.read,
        write: args.write,
        program,
        arguments: words.collect(),
    };
    let error = launch(&launching);
    Err(anyhow::anyhow!("{} cannot be executed: {error}", launching.program.display()))
}

/// Runs the program of a hook, and ends with its exit code.
pub fn launch_hook(args: LaunchHookArgs, console: Console) -> anyhow::Result<Exit> {
    let mut words = args.program.into_iter();
    // Clap requires at least one argument.
    let program = words.next().unwrap_or_default();
    let arguments: Vec<_> = words.collect();
    let code = supervisor::run(&program, &arguments).unwrap_or_else(|error| {
        console.notice(&format!("`{}` cannot be started: {error}", program.display()));
        NOT_STARTED
    });
    Ok(Exit::Program(code))
}

/// Runs one provider for one controller.
pub async fn runner(args: RunnerArgs) -> anyhow::Result<Exit> {
    telemetry::init(args.log_format.into(), None)?;
    panics::log_panics();
    // The keys are in the environment.
    if let Err(error) = hide_from_others() {
        tracing::warn!(%error, "the provider can read the memory of the runner");
    }
    let keys = RunnerKeys {
        certificate: key("PURLIN_RUNNER_CERTIFICATE")?,
        key: key("PURLIN_RUNNER_KEY")?,
        client: key("PURLIN_RUNNER_CLIENT")?,
    };
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let environment: BTreeMap<String, String> = variables
        .filter(|(name, _)| !name.starts_with(OWN_VARIABLES))
        .filter_map(|(name, value)| Some((name, value.into_string().ok()?)))
        .collect();
    let temporary = std::env::temp_dir();
    let directory = temporary.join(format!("package-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let expected = args.package;
    let options = RunnerOptions {
        listen: SocketAddr::new(args.address, args.port),
        keys,
        directory: directory.clone(),
        runtime_dir: temporary,
        verify: Box::new(move |package| verify(package, &expected)),
        environment,
        // The runner and the kernel need some of it too.
        memory: memory_limit().map(|limit| limit / 4 * 3),
    };
    let shutdown = Shutdown::default();
    let signals = shutdown.clone().on_signals();
    let served = async {
        let served = serve(options, shutdown.triggered()).await;
        // The Pod has no further use for it; a runner that is killed leaves it to its Pod.
        let _ = std::fs::remove_dir_all(&directory);
        served
    };
    tokio::select! {
        served = served => served?,
        failed = signals => failed?,
    }
    Ok(Exit::Success)
}

fn key(name: &str) -> anyhow::Result<String> {
    let hint = "Purlin starts this command itself, in a Pod that it creates";
    std::env::var(name).map_err(|_| Failure::hinted(format!("the environment variable {name} is not set"), hint))
}

/// Whether the files in a directory have a checksum.
fn verify(package: &Path, expected: &Hash) -> Result<(), String> {
    let hash = Hash::of_files(package).map_err(|error| format!("the package cannot be read: {error}"))?;
    if hash == *expected {
        return Ok(());
    }
    Err(format!("the package has the checksum {hash} and not {expected}, which the Pod names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_package_that_the_pod_names_is_accepted() {
        let package = tempfile::tempdir().unwrap();
        std::fs::write(package.path().join("provider"), "one").unwrap();
        let hash = Hash::of_files(package.path()).unwrap();
        assert_eq!(verify(package.path(), &hash), Ok(()));
        std::fs::write(package.path().join("provider"), "other").unwrap();
        let error = verify(package.path(), &hash).unwrap_err();
        assert!(error.contains(&format!("and not {hash}, which the Pod names")), "{error}");
    }
}

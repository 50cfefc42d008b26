//! The command line: `purlin`, also as `kubectl purlin`.
//!
//! `args` parses the command line, `options` interprets it, and one of the `commands` runs. Commands that plan start
//! from `inputs`, which `local` reads from files and `cluster` from the API server. Only `output` prints, and only this
//! module uses `anyhow`.

pub mod args;
pub mod cluster;
pub mod commands;
pub mod dev;
pub mod root_module;
pub mod terraform_settings;
pub mod run;
pub mod expression_value;
pub mod failure;
pub mod failures;
pub mod init;
pub mod json;
pub mod live;
pub mod local;
pub mod report;
pub mod options;
pub mod other_records;
pub mod output;
pub mod outputs;
pub mod preview;
pub mod progress;
pub mod provider;
pub mod saved;
pub mod show;
pub mod signals;
pub mod inputs;
pub mod state;
pub mod table;
pub mod ui;
pub mod view;
pub mod messages;

use std::any::TypeId;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::runtime::{Builder, Runtime};

use args::{ColorChoice, Command, PurlinArgs};
use failure::{Exit, Failure};
use output::Console;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn main() -> ExitCode {
    let (args, namespace) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    // The console is copied to wherever something is printed, until the process ends.
    let console = Console::new(if args.no_color { ColorChoice::Never } else { args.color }, namespace.leak());
    let ended = run(args.command, console);
    programs::close_opened();
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            console.failure(&error);
            Exit::Problems.into()
        }
    }
}

/// Returns the arguments, and the namespace among them or an empty text. Help texts show `kubectl purlin` if the program
/// runs as a kubectl plugin.
fn parse() -> Result<(PurlinArgs, String), clap::Error> {
    let mut command = with_words(PurlinArgs::command()).version(VERSION);
    let called = std::env::args_os().next().map(std::path::PathBuf::from);
    if called.is_some_and(|path| path.file_stem().is_some_and(|stem| stem == "kubectl-purlin")) {
        command = command.bin_name("kubectl purlin");
    }
    let words = args::with_two_dashes(std::env::args_os(), &command);
    let matches = command.try_get_matches_from(words)?;
    let namespace = namespace(&matches).unwrap_or_default();
    Ok((PurlinArgs::from_arg_matches(&matches)?, namespace))
}

fn namespace(matches: &clap::ArgMatches) -> Option<String> {
    let given = matches.try_get_one::<String>("namespace").ok().flatten();
    given.cloned().or_else(|| namespace(matches.subcommand()?.1))
}

/// Refuses an empty text wherever a command expects a word, such as that of a variable of a script that is not set. A
/// request for an object without a name would be one for all objects.
fn with_words(command: clap::Command) -> clap::Command {
    if [tfprovider::plugin::launcher::COMMAND, "runner", "controller"].contains(&command.get_name()) {
        return command;
    }
    let command = command.mut_args(|arg| match arg.get_value_parser().type_id() == TypeId::of::<String>() {
        true => arg.value_parser(NonEmptyStringValueParser::new()),
        false => arg,
    });
    command.mut_subcommands(with_words)
}

/// Help and version exit with 0, all other errors with 1. Clap's exit code for errors, 2, means "there are changes"
/// with `--detailed-exitcode`.
fn usage(error: &clap::Error) -> ExitCode {
    let exit = if error.use_stderr() { Exit::Problems } else { Exit::Success };
    if let Some((command, instead)) = terraform_command(error) {
        Console::new(ColorChoice::Auto, "")
            .failure(&Failure::hinted(format!("there is no command `{command}`"), instead));
        return exit.into();
    }
    // An error here means that the terminal is closed.
    let _ = error.print();
    exit.into()
}

/// Returns a command of Terraform that Purlin does not have, and what to use instead.
fn terraform_command(error: &clap::Error) -> Option<(&str, &'static str)> {
    let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let instead = match command.as_str() {
        "workspace" => "use a state file for each environment, and select it with --state: see docs/environments.md",
        "refresh" => "use `purlin apply --refresh-only -f DIR`",
        "taint" => "use `purlin state taint NAME`, or `purlin apply --replace NAME`",
        "untaint" => "use `purlin state untaint NAME`",
        "test" => "`purlin validate -f DIR` checks files; conditions check objects: see docs/conditions.md",
        "force-unlock" => "the lock of a state file ends with the process that holds it",
        "modules" => "`purlin init` installs modules",
        "login" | "logout" => "credentials of registries are those of Terraform: see docs/providers.md",
        _ => return None,
    };
    Some((command, instead))
}

fn run(command: Command, console: Console) -> anyhow::Result<Exit> {
    use commands as c;
    match command {
        Command::Init(args) => local_runtime()?.block_on(c::init::run(args, console)),
        Command::Providers(args) => c::providers::run(args, console),
        Command::Fmt(args) => c::fmt::run(args, console),
        Command::Validate(args) => local_runtime()?.block_on(c::validate::run(args, console)),
        Command::Crds => c::about::crds(console),
        Command::Version(args) => c::about::version(&args, console),
        Command::Completion(args) => c::about::completion(&args, console),
        Command::Plan(args) => local_runtime()?.block_on(c::plan::run(args, console)),
        Command::Apply(args) => local_runtime()?.block_on(c::apply::apply(args, console)),
        Command::Destroy(args) => local_runtime()?.block_on(c::apply::destroy(args, console)),
        Command::Dev(args) => local_runtime()?.block_on(c::dev::run(args, console)),
        Command::Graph(args) => local_runtime()?.block_on(c::graph::run(args, console)),
        Command::Explain(args) => local_runtime()?.block_on(c::explain::run(args, console)),
        Command::History(args) => local_runtime()?.block_on(c::history::run(args, console)),
        Command::Get(args) => local_runtime()?.block_on(c::get::run(args, console)),
        Command::Tree(args) => local_runtime()?.block_on(c::tree::run(args, console)),
        Command::Import(args) => local_runtime()?.block_on(c::import::run(args, console)),
        // Planning must not delay the requests of the page.
        Command::Ui(args) => Builder::new_multi_thread().enable_all().build()?.block_on(c::ui::run(args, console)),
        Command::Output(args) => c::output::run(args, console),
        Command::Show(args) => local_runtime()?.block_on(c::show::run(args, console)),
        Command::Console(args) => local_runtime()?.block_on(c::console::run(args, console)),
        Command::Migrate(args) => local_runtime()?.block_on(c::migrate::run(args, console)),
        Command::Approve(args) => local_runtime()?.block_on(c::decide::approve(args, console)),
        Command::Reject(args) => local_runtime()?.block_on(c::decide::reject(args, console)),
        Command::Suspend(args) => local_runtime()?.block_on(c::switch::suspend(args, console)),
        Command::Resume(args) => local_runtime()?.block_on(c::switch::resume(args, console)),
        Command::Reconcile(args) => local_runtime()?.block_on(c::reconcile::run(args, console)),
        Command::LaunchPlugin(args) => c::processes::launch_plugin(args),
        Command::LaunchHook(args) => c::processes::launch_hook(args, console),
        Command::Runner(args) => {
            Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(c::processes::runner(args))
        }
        Command::State(command) => local_runtime()?.block_on(state::command::run(command, console)),
        Command::Provider(command) => local_runtime()?.block_on(provider::run(command, console)),
        Command::ExplainType(args) => local_runtime()?.block_on(provider::explain_type(args, console)),
        Command::Controller(args) => {
            let heartbeat =
                Builder::new_multi_thread().worker_threads(1).thread_name("heartbeat").enable_all().build()?;
            let main = Builder::new_multi_thread().enable_all().build()?;
            main.block_on(c::controller::run(*args, heartbeat.handle().clone()))
        }
    }
}

/// One thread is enough to walk a graph, which mostly waits for I/O. It saves the cost of starting and synchronizing
/// other threads.
fn local_runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(command: &'a clap::Command, path: &[&'a str], found: &mut Vec<Vec<String>>) {
        let owned = |path: &[&str]| path.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        for arg in command.get_arguments().filter(|arg| arg.get_value_parser().type_id() == TypeId::of::<String>()) {
            let empty = arg.get_long().map_or_else(String::new, |long| format!("--{long}="));
            found.push([owned(path), vec![empty]].concat());
        }
        for inner in command.get_subcommands() {
            words(inner, &[path, &[inner.get_name()]].concat(), found);
        }
    }

    #[test]
    fn an_empty_word_is_refused_by_every_command() {
        let mut all = Vec::new();
        words(&PurlinArgs::command(), &["purlin"], &mut all);
        all.retain(|line| !["launch-plugin", "runner", "controller"].contains(&line[1].as_str()));
        assert!(all.contains(&vec!["purlin".to_owned(), "reject".to_owned(), String::new()]), "{all:?}");
        for line in all {
            let error = with_words(PurlinArgs::command()).try_get_matches_from(&line).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("a value is required for") && text.contains("but none was supplied"),
                "{line:?}: {text}"
            );
        }
    }
}

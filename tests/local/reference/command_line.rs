//! `docs/reference/cli.md`: every command, argument and environment variable.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use clap::{Arg, Command, CommandFactory as _};
use expect_test::expect_file;
use purlin::cli::args::PurlinArgs;

use super::{anchor, cell, sentence};
use crate::tidy;

const BEGIN: &str = "# Command line reference

Every command and option of `purlin`, from its help texts. `purlin COMMAND --help` prints the same. A test checks that this
page is up to date. [Command line](../command-line.md) explains the most important options with examples, and
[Output formats](../formats.md) documents `-o json`. The binary also works as a kubectl plugin under the name
`kubectl-purlin`: `kubectl purlin get`.
";

const EXIT_CODES: &str = "
## Exit codes

| Code | Meaning |
|---|---|
| 0 | Success. With `--detailed-exitcode`: there are no changes. |
| 1 | An error, an invalid argument, or an object that could not be planned or applied. |
| 2 | Only with `--detailed-exitcode`: there are changes. |
| 3 | Only of `purlin fmt --check`: a file is not formatted. |
| 130 | A signal ended the command while steps were running. |
";

/// Variables that Purlin reads, with their meaning.
const VARIABLES: [(&str, &str); 19] = [
    ("KUBECONFIG", "The kubeconfig files, unless `--kubeconfig` names one."),
    ("NO_COLOR", "If set, the output has no colors."),
    ("RUST_LOG", "The log filter. It takes precedence over `--log-level`."),
    (
        "PURLIN_PLUGIN_CACHE",
        "The cache of provider packages [default: `purlin/providers` in the user's cache directory].",
    ),
    ("PURLIN_PLUGIN_DIR", "Directories of provider packages, separated by colons, in addition to `--plugin-dir`."),
    (
        "PURLIN_PROVIDER_KILL_AFTER",
        "The number of seconds after `StopProvider` until a hanging provider is killed [default: 600].",
    ),
    ("TF_TOKEN_*", "The token for a registry: `TF_TOKEN_registry_example_com` for `registry.example.com`."),
    (
        "TF_CLI_CONFIG_FILE",
        "The settings of Terraform's command line; see [providers](../providers.md) [default: `.tofurc` or `.terraformrc` in \
         `HOME`].",
    ),
    ("TF_VAR_*", "The value of a variable of a Terraform configuration: `TF_VAR_region` for `region`."),
    ("TF_INPUT", "`0` or `false`: as `--input=false`."),
    ("TF_REATTACH_PROVIDERS", "Providers that their developer has started; see [providers](../providers.md)."),
    ("TF_LOG_SDK", "Passed to providers: the log level of their SDK."),
    ("SSL_CERT_FILE", "Trusted certificates that replace those of the system. Also passed to providers."),
    (
        "SSL_CERT_DIR",
        "A directory of trusted certificates. With `SSL_CERT_FILE`, those of both are trusted. Also passed to providers.",
    ),
    ("HTTPS_PROXY", "The proxy for HTTPS. `HTTP_PROXY` and `NO_PROXY` are supported too. Also passed to providers."),
    ("XDG_CACHE_HOME", "The user's cache directory [default: `.cache` in `HOME`]."),
    ("POD_NAMESPACE", "Controller: the namespace of its Pod. The chart sets it."),
    ("POD_NAME", "Controller: the name of its Pod, with `POD_UID`. The chart sets both."),
    (
        "POD_SERVICE_ACCOUNT",
        "Controller: the ServiceAccount of its Pod, as which no object can act. The chart sets it.",
    ),
];

#[test]
fn the_command_line_reference_is_up_to_date() {
    let mut root = PurlinArgs::command();
    root.build();
    let mut commands = Vec::new();
    collect(&root, &mut commands);
    let mut page = BEGIN.to_owned();
    page.push_str("\n## Commands\n\n| Command | |\n|---|---|\n");
    for command in &commands {
        let name = command.get_bin_name().unwrap_or_default();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| [`{name}`](#{}) | {} |", anchor(name), cell(&sentence(&about)));
    }
    page.push_str("\n## Global options\n");
    page.push_str(&table("Option", &root.get_arguments().filter(|arg| arg.is_global_set()).collect::<Vec<_>>()));
    page.push_str("\n## Environment variables\n\n| Variable | |\n|---|---|\n");
    for (name, meaning) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
    page.push_str(EXIT_CODES);
    commands.iter().for_each(|command| page.push_str(&section(command)));
    expect_file!["../../../docs/reference/cli.md"].assert_eq(&page);
}

/// The commands that do something, in the order of the help.
fn collect<'c>(command: &'c Command, found: &mut Vec<&'c Command>) {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    let subcommands: Vec<&Command> = shown.collect();
    if subcommands.is_empty() {
        found.push(command);
    }
    subcommands.into_iter().for_each(|sub| collect(sub, found));
}

fn section(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_default();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim().to_owned();
    let mut text = format!("\n## `{name}`\n\n{}\n\n```text\n{usage}\n```\n", paragraphs(&about));
    let is_common = |arg: &Arg| arg.is_global_set() || matches!(arg.get_id().as_str(), "help" | "version");
    let own = command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_common(arg));
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) = own.partition(|arg| arg.is_positional());
    text.push_str(&table("Argument", &arguments));
    text.push_str(&table("Option", &options));
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(text, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    text
}

fn is_flag(arg: &Arg) -> bool {
    !arg.is_positional() && !arg.get_action().takes_values()
}

/// Long help texts have one line per paragraph.
fn paragraphs(text: &str) -> String {
    text.split("\n\n").map(|part| sentence(&part.replace('\n', " "))).collect::<Vec<_>>().join("\n\n")
}

fn table(heading: &str, args: &[&Arg]) -> String {
    let rows: String = args.iter().map(|arg| row(arg)).collect();
    if rows.is_empty() { rows } else { format!("\n| {heading} | |\n|---|---|\n{rows}") }
}

fn row(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let mut shown: Vec<String> = short.into_iter().chain(long).collect();
    match (arg.is_positional(), shown.last_mut()) {
        (true, _) => shown.push(value),
        (false, Some(last)) if arg.get_action().takes_values() => last.push_str(&format!(" {value}")),
        (false, _) => {}
    }
    let shown: Vec<String> = shown.iter().map(|name| format!("`{}`", cell(name))).collect();
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![sentence(&help)];
    let values: Vec<String> = match arg.is_hide_possible_values_set() || is_flag(arg) {
        true => Vec::new(),
        false => arg.get_possible_values().iter().filter(|value| !value.is_hide_set()).map(value_text).collect(),
    };
    let is_boolean = matches!(arg.get_value_parser().type_id(), id if id == std::any::TypeId::of::<bool>());
    if !values.is_empty() && !is_boolean {
        parts.push(format!("Values: {}.", values.join("; ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| format!("`{}`", value.display())).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        parts.push(format!("Default: {}.", defaults.join(", ")));
    }
    format!("| {} | {} |\n", shown.join(", "), cell(&parts.join(" ")))
}

fn value_text(value: &clap::builder::PossibleValue) -> String {
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.trim_end_matches('.');
    // `always`: Always.
    if help.to_lowercase() == value.get_name() || help.is_empty() {
        format!("`{}`", value.get_name())
    } else {
        format!("`{}`, {}", value.get_name(), lower(help))
    }
}

fn lower(text: &str) -> String {
    // Acronyms stay: `JSON`.
    let second_is_upper = text.chars().nth(1).is_some_and(char::is_uppercase);
    match text.chars().next() {
        Some(first) if !second_is_upper => first.to_lowercase().chain(text.chars().skip(1)).collect(),
        _ => text.to_owned(),
    }
}

#[test]
fn every_variable_of_the_reference_is_read_and_every_variable_that_is_read_is_documented() {
    let mut files = Vec::new();
    ["src", "crates"].iter().for_each(|part| tidy::rust_files(&tidy::root().join(part), &mut files));
    let pattern = regex::Regex::new(r#""((?:PURLIN|TF|POD)_[A-Z_]+)""#).unwrap();
    let documented: BTreeSet<String> =
        VARIABLES.iter().map(|(name, _)| name.trim_end_matches('*').to_owned()).collect();
    let mut read = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        read.extend(pattern.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    // Set by the protocol of plugins, and documented with `POD_NAME`.
    read.retain(|name| name != "TF_PLUGIN_MAGIC_COOKIE" && name != "POD_UID");
    // Purlin sets them in the Pods that it creates.
    read.retain(|name| name != "POD_IP" && !name.starts_with("PURLIN_RUNNER_"));
    let own = documented.iter().filter(|name| ["PURLIN_", "TF_", "POD_"].iter().any(|begin| name.starts_with(begin)));
    assert_eq!(own.cloned().collect::<BTreeSet<_>>(), read);
}

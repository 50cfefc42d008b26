//! `--var` and `--var-file`, in the order of the command line: a later one takes the place of an earlier one. And whether to ask
//! for values.

use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use crate::cli::root_module::{Assignment, Variables};

/// The options as clap reads them, each by itself.
#[derive(Args)]
struct Options {
    /// The value of a variable of a Terraform configuration. Can be repeated. Of several values, the last one counts, also
    /// beside --var-file.
    #[arg(long = "var", value_name = "NAME=VALUE", hide_short_help = true)]
    variables: Vec<String>,
    /// A file with values of variables of a Terraform configuration. Can be repeated.
    #[arg(long = "var-file", value_name = "FILE", hide_short_help = true)]
    variable_files: Vec<PathBuf>,
    /// Whether `plan`, `apply`, `destroy` and `migrate` ask at a terminal for the value of a variable that has none [default:
    /// true] [env: TF_INPUT]
    #[arg(long, value_name = "BOOL", hide_short_help = true, action = ArgAction::Set)]
    input: Option<bool>,
}

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub struct VariableArgs {
    pub given: Variables,
    /// `--input`.
    pub input: Option<bool>,
}

impl VariableArgs {
    /// Whether to ask for values. `TF_INPUT` decides without `--input`, as in OpenTofu.
    pub fn asks(&self) -> bool {
        self.input.unwrap_or_else(|| !std::env::var("TF_INPUT").is_ok_and(|text| ["0", "false"].contains(&&*text)))
    }
}

impl Args for VariableArgs {
    fn augment_args(command: Command) -> Command {
        Options::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Options::augment_args_for_update(command)
    }
}

impl FromArgMatches for VariableArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Options { variables, variable_files, input } = Options::from_arg_matches(matches)?;
        let values = matches.indices_of("variables").into_iter().flatten();
        let values = values.zip(variables.into_iter().map(Assignment::Value));
        let files = matches.indices_of("variable_files").into_iter().flatten();
        let files = files.zip(variable_files.into_iter().map(Assignment::File));
        let mut assignments: Vec<(usize, Assignment)> = values.chain(files).collect();
        assignments.sort_by_key(|(place, _)| *place);
        let given = Variables(assignments.into_iter().map(|(_, assignment)| assignment).collect());
        Ok(Self { given, input })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

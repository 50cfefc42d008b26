//! `--var` and `--var-file`, in the order of the command line: a later one takes the place of an earlier one.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

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
}

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub struct VariableArgs(pub Variables);

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
        let Options { variables, variable_files } = Options::from_arg_matches(matches)?;
        let values = matches.indices_of("variables").into_iter().flatten();
        let values = values.zip(variables.into_iter().map(Assignment::Value));
        let files = matches.indices_of("variable_files").into_iter().flatten();
        let files = files.zip(variable_files.into_iter().map(Assignment::File));
        let mut assignments: Vec<(usize, Assignment)> = values.chain(files).collect();
        assignments.sort_by_key(|(place, _)| *place);
        Ok(Self(Variables(assignments.into_iter().map(|(_, assignment)| assignment).collect())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

//! What was typed after `purlin provider` and `purlin explain-type`.

#![expect(missing_docs, reason = "a doc comment becomes help text, and a flattened group has none of its own")]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{FileArgs, Format};

/// `purlin provider`.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Install the providers that the files name, and lock them.
    Install(ProviderInstallArgs),
    /// List the providers that the files name, with what is locked; asks nobody.
    List(ProviderListArgs),
    /// Lock the packages of other machines, too.
    Lock(ProviderLockArgs),
    /// Print the schemas of a provider as `terraform providers schema -json` does.
    Schema(ProviderNameArgs),
    /// Write pages of Markdown about a provider and its types.
    Docs(ProviderDocsArgs),
}

/// `purlin provider install`.
#[derive(Debug, Args)]
pub struct ProviderInstallArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// Choose versions anew, whatever is locked.
    #[arg(long)]
    pub upgrade: bool,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin provider list`.
#[derive(Debug, Args)]
pub struct ProviderListArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// `purlin provider lock`.
#[derive(Debug, Args)]
pub struct ProviderLockArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// For which machine, OS_ARCH as in `linux_amd64`; may be given more than once [default: this one]
    #[arg(long = "platform", value_name = "OS_ARCH")]
    pub platforms: Vec<crate::install::Platform>,
}

/// `purlin provider schema`.
#[derive(Debug, Args)]
pub struct ProviderNameArgs {
    /// The name of the Provider.
    pub name: String,
    #[command(flatten)]
    pub files: FileArgs,
}

/// `purlin provider docs`.
#[derive(Debug, Args)]
pub struct ProviderDocsArgs {
    /// The name of the Provider.
    pub name: String,
    #[command(flatten)]
    pub files: FileArgs,
    /// Write a file for each type into this folder, instead of everything to standard output.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `purlin explain-type`.
#[derive(Debug, Args)]
pub struct ExplainTypeArgs {
    /// The type, and below it an attribute: `random_pet`, `random_pet.length`.
    #[arg(value_name = "TYPE[.ATTRIBUTE]")]
    pub type_name: String,
    #[command(flatten)]
    pub files: FileArgs,
    /// The data source of that name, where there is a type as well.
    #[arg(long)]
    pub data: bool,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value_t = TypeFormat::Text)]
    pub output: TypeFormat,
}

/// The forms of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeFormat {
    /// For people.
    Text,
    /// A JSON Schema of `spec.config`, for editors.
    JsonSchema,
}

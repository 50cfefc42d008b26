//! The arguments of `purlin provider` and `purlin explain-type`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{FileArgs, Format, examples};

#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Install the providers that the manifests require, and lock their versions.
    #[command(after_help = examples::PROVIDER_INSTALL)]
    Install(ProviderInstallArgs),
    /// List the required providers and their locked versions, without network access.
    #[command(after_help = examples::PROVIDER_LIST)]
    List(ProviderListArgs),
    /// Write checksums of provider packages for other platforms to the lock file.
    #[command(after_help = examples::PROVIDER_LOCK)]
    Lock(ProviderLockArgs),
    /// Print the schema of a provider, in the format of `terraform providers schema -json`.
    #[command(after_help = examples::PROVIDER_SCHEMA)]
    Schema(ProviderNameArgs),
    /// Generate Markdown documentation for a provider and its types.
    #[command(after_help = examples::PROVIDER_DOCS)]
    Docs(ProviderDocsArgs),
}

#[derive(Debug, Args)]
pub struct ProviderInstallArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// Ignore the locked versions and select the newest versions that the constraints allow.
    #[arg(long)]
    pub upgrade: bool,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct ProviderListArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

#[derive(Debug, Args)]
pub struct ProviderLockArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// The platform to lock, such as `linux_amd64`. Can be repeated [default: the current platform]
    #[arg(long = "platform", value_name = "OS_ARCH")]
    pub platforms: Vec<tfprovider::install::Platform>,
}

#[derive(Debug, Args)]
pub struct ProviderNameArgs {
    /// The name of the provider.
    pub name: String,
    #[command(flatten)]
    pub files: FileArgs,
}

#[derive(Debug, Args)]
pub struct ProviderDocsArgs {
    /// The name of the provider.
    pub name: String,
    #[command(flatten)]
    pub files: FileArgs,
    /// Write one file per type to this directory, instead of standard output.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ExplainTypeArgs {
    /// The resource type, optionally with the path of an attribute: `random_pet`, `random_pet.length`.
    #[arg(value_name = "TYPE[.ATTRIBUTE]")]
    pub type_name: String,
    #[command(flatten)]
    pub files: FileArgs,
    /// Describe the data source of this name, not the resource type.
    #[arg(long)]
    pub data: bool,
    /// The output format.
    #[arg(short = 'o', long, value_enum, default_value_t = TypeFormat::Text)]
    pub output: TypeFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeFormat {
    /// Human-readable text.
    Text,
    /// A JSON Schema of `spec.config`, for use in editors.
    JsonSchema,
}

//! The arguments of the commands that Purlin runs itself, to start providers.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::LogFormat;
use tfprovider::install::Hash;

#[derive(Debug, Args)]
pub struct LaunchPluginArgs {
    /// The process ID of the parent. The plugin is killed when the parent exits.
    #[arg(long)]
    pub parent: i32,
    /// The maximum size of the plugin's data, in bytes.
    #[arg(long)]
    pub memory: Option<u64>,
    /// A path that the plugin may read, with everything below it. All other paths are forbidden. Can be repeated.
    #[arg(long)]
    pub read: Vec<PathBuf>,
    /// A path that the plugin may write, with everything below it. Can be repeated.
    #[arg(long)]
    pub write: Vec<PathBuf>,
    /// The plugin's program and its arguments.
    #[arg(last = true, required = true)]
    pub program: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub struct LaunchHookArgs {
    /// The program of the hook and its arguments.
    #[arg(last = true, required = true)]
    pub program: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub struct RunnerArgs {
    /// The address to listen on.
    #[arg(long)]
    pub address: IpAddr,
    /// The port to listen on.
    #[arg(long)]
    pub port: u16,
    /// The checksum of the package's files.
    #[arg(long, value_name = "CHECKSUM")]
    pub package: Hash,
    /// The format of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
}

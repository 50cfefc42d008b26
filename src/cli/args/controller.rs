//! The arguments of `purlin controller`, and parsers for its addresses and durations.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use model::{Provider, Quota};
use process::telemetry;

#[derive(Debug, Args)]
pub struct ControllerArgs {
    /// The path of the kubeconfig file. By default, the Pod's ServiceAccount is used, then the user's kubeconfig.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig context to use.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace of the records and the lease [default: the Pod's namespace]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Watch only this namespace. Can be repeated.
    #[arg(long = "watch-namespace", value_name = "NAME")]
    pub watch_namespaces: Vec<String>,
    /// The ServiceAccount for Resources that do not specify one.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub default_service_account: String,
    /// The maximum number of concurrent steps. One namespace gets half of them.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: u32,
    /// The quota of a namespace: `objects` limits its number of objects, `record-bytes` the size of their records, and
    /// `steps-per-minute` the creates, updates and replacements that start in a minute. 0 objects or bytes allow nothing new. The
    /// annotation `purlin.dev/quota` of a Namespace takes precedence for the limits that it sets.
    #[arg(long, value_name = "LIMITS", default_value_t = Quota::DEFAULT)]
    pub namespace_quota: Quota,
    /// The maximum number of provider processes. Fewer run if their memory limits exceed three quarters of the
    /// container's memory. The objects of one namespace get a quarter of them.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_provider_processes: u32,
    /// The memory limit of each provider process whose Provider sets none.
    #[arg(long, value_name = "SIZE", default_value = "512Mi", value_parser = memory)]
    pub provider_memory: u64,
    /// The image of the Pods in which providers with a runner of the kind `Pod` run: that of the controller.
    #[arg(long, value_name = "IMAGE")]
    pub runner_image: Option<String>,
    /// Start providers also on a node whose kernel has no Landlock. They can then read what the controller can read, and
    /// the data of all namespaces.
    #[arg(long)]
    pub allow_unconfined_providers: bool,
    /// The address to serve /metrics, /healthz and /readyz on, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", value_parser = listening)]
    pub metrics_address: Listening,
    /// Serve the live view below /ui/ on that address too. Users sign in with a token of the API server, and see and do what
    /// it allows.
    #[arg(long)]
    pub ui: bool,
    /// The number of shards into which the namespaces are divided. The same for all replicas.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shards: u16,
    /// Use leader election, so that each shard has one active replica.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// How long the lease of a replica is valid after its last renewal.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub lease_duration: Duration,
    /// How long a replica retries a renewal before it gives up its shards.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub lease_renew_deadline: Duration,
    /// The time between attempts to renew the lease and to take shards.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub lease_retry_period: Duration,
    /// How long to wait for running calls on shutdown.
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = duration)]
    pub grace_period: Duration,
    /// The format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
    /// The log level, or directives such as `info,purlin=debug` [default: info; warn for client libraries]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    On(SocketAddr),
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Human-readable text.
    Text,
}

impl From<LogFormat> for telemetry::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text => Self::Text,
        }
    }
}

fn memory(text: &str) -> Result<u64, String> {
    Provider::memory(text)
        .ok_or_else(|| format!("`{text}` is not a memory limit (write `64Mi` or more, with a unit such as Mi or Gi)"))
}

fn listening(text: &str) -> Result<Listening, String> {
    match text {
        "off" => Ok(Listening::Off),
        // Go programs, and so most controllers, write `:8080` for "all addresses".
        _ if text.starts_with(':') => listening(&format!("0.0.0.0{text}")),
        _ => text
            .parse()
            .map(Listening::On)
            .map_err(|_| format!("`{text}` is not an address (write `0.0.0.0:8080` or `off`)")),
    }
}

/// Parses a duration as Go and Kubernetes write it: `15s`, `1m30s`, `250ms`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("`{text}` is not a duration (write `15s`, `1m30s`, `250ms` or `2h`)"))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let part = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "5", "s", "1x", "0s", "1.5s", "99999999999999999999h", "9999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}

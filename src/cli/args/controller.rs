//! What was typed after `purlin controller`, with its addresses and durations read.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// `purlin controller`.
#[derive(Debug, Args)]
pub struct ControllerArgs {
    /// The kubeconfig file; without it the Pod's service account, then the user's kubeconfig.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig context.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The controller's own namespace, where records and the lease are [default: the Pod's namespace]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Care for the Resources of this namespace only; may be given more than once.
    #[arg(long = "watch-namespace", value_name = "NAME")]
    pub watch_namespaces: Vec<String>,
    /// The service account of Resources that name none.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub default_service_account: String,
    /// How many steps may run at once.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: u32,
    /// How many steps may run at once in one namespace.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency_per_namespace: u32,
    /// Where /metrics, /healthz and /readyz are served; `off`: nowhere.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", value_parser = listening)]
    pub metrics_address: Listening,
    /// Work only while holding the lease.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// How long the lease is valid without being renewed.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub lease_renew_deadline: Duration,
    /// How long to wait between two tries.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub lease_retry_period: Duration,
    /// How long running calls are awaited after a stop.
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = duration)]
    pub grace_period: Duration,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
    /// What is logged: a level, or directives such as `info,purlin=debug` [default: info, client libraries less]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// `--metrics-address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// There.
    On(SocketAddr),
    /// Nowhere.
    Off,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// An address to listen at, or `off`.
fn listening(text: &str) -> Result<Listening, String> {
    match text {
        "off" => Ok(Listening::Off),
        // `:8080` is how Go programs, so most controllers, say "every address".
        _ if text.starts_with(':') => listening(&format!("0.0.0.0{text}")),
        _ => text
            .parse()
            .map(Listening::On)
            .map_err(|_| format!("`{text}` is no address (write `0.0.0.0:8080` or `off`)")),
    }
}

/// A duration as Go and Kubernetes write it: `15s`, `1m30s`, `250ms`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let malformed = || format!("`{text}` is no duration (write `15s`, `1m30s`, `250ms` or `2h`)");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(malformed)?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| malformed())?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let part = match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3600).map(Duration::from_secs),
            _ => None,
        };
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(malformed)?;
        rest = tail;
    }
    if total.is_zero() { Err(malformed()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "5", "s", "1x", "0s", "1.5s", "99999999999999999999h", "9999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}

//! Telemetry: logs of the process on standard error, as JSON lines or as text.

use tracing_subscriber::EnvFilter;

use super::Clock as _;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line, for log collectors.
    #[default]
    Json,
    /// For people.
    Text,
}

/// Logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is none.
    #[error("`{0}` is no log level (hint: `info`, `debug`, or a filter such as `purlin=debug,kube=info`)")]
    InvalidLevel(String),
    /// Another subscriber is installed.
    #[error("logs are set up already")]
    AlreadySet,
}

/// What is logged when neither the environment nor a flag says so.
const DEFAULT_LEVEL: &str = "info";

/// What the client libraries may add to a plain level: they log each request at `debug`, and what they tell of failed
/// ones is told by us as well.
const LIBRARIES: &str = "kube=warn,kube_client::client::builder=off,hyper=warn,tower=warn";

/// Installs the process-wide subscriber. `RUST_LOG` wins over `level`, as everywhere in Rust.
///
/// # Errors
///
/// When the filter cannot be read, or logs are set up already.
pub fn init(format: LogFormat, level: Option<&str>) -> Result<(), TelemetryError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV)
        .ok()
        .filter(|text| !text.is_empty())
        .or_else(|| level.map(str::to_owned))
        .unwrap_or_else(|| DEFAULT_LEVEL.to_owned());
    let is_level = filter.parse::<tracing::level_filters::LevelFilter>().is_ok();
    let filter = if is_level { format!("{filter},{LIBRARIES}") } else { filter };
    let filter = EnvFilter::try_new(&filter).map_err(|_| TelemetryError::InvalidLevel(filter))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = match format {
        LogFormat::Json => builder.json().flatten_event(true).with_timer(Utc).try_init(),
        LogFormat::Text => builder.with_timer(Utc).with_target(false).try_init(),
    };
    result.map_err(|_| TelemetryError::AlreadySet)
}

/// Times as everywhere in Purlin: RFC 3339, UTC, six fraction digits.
struct Utc;

impl tracing_subscriber::fmt::time::FormatTime for Utc {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{:.6}", super::SystemClock.now())
    }
}

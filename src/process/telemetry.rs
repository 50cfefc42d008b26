//! Logs on standard error, as JSON lines or as text.

use tracing_subscriber::EnvFilter;

use super::Clock as _;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line, for log collectors.
    #[default]
    Json,
    Text,
}

/// The error of [`init`].
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("`{0}` is not a valid log level (hint: use `info`, `debug`, or a filter such as `purlin=debug,kube=info`)")]
    InvalidLevel(String),
    #[error("logging is already initialized")]
    AlreadyInitialized,
}

/// The level without an environment variable or a flag.
const DEFAULT_LEVEL: &str = "info";

/// The levels of client libraries if the filter is a plain level. They log every request at `debug`, and Purlin logs
/// failed requests itself.
const LIBRARIES: &str = "kube=warn,hyper=warn,tower=warn";

/// The client of the API server logs responses that it cannot decode, with the objects of all users. No filter switches
/// this on.
const NEVER: &str = "kube_client::client=off";

/// Installs the global subscriber. `RUST_LOG` takes precedence over `level`.
///
/// # Errors
///
/// Returns an error if the filter is invalid or a subscriber is already installed.
pub fn init(format: LogFormat, level: Option<&str>) -> Result<(), TelemetryError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV)
        .ok()
        .filter(|text| !text.is_empty())
        .or_else(|| level.map(str::to_owned))
        .unwrap_or_else(|| DEFAULT_LEVEL.to_owned());
    let is_level = filter.parse::<tracing::level_filters::LevelFilter>().is_ok();
    let levels = if is_level { format!("{filter},{LIBRARIES},{NEVER}") } else { format!("{filter},{NEVER}") };
    let filter = EnvFilter::try_new(levels).map_err(|_| TelemetryError::InvalidLevel(filter))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = match format {
        LogFormat::Json => builder.json().flatten_event(true).with_timer(Utc).try_init(),
        LogFormat::Text => builder.with_timer(Utc).with_target(false).try_init(),
    };
    result.map_err(|_| TelemetryError::AlreadyInitialized)
}

/// Timestamps in RFC 3339 format, in UTC and with six fraction digits, as everywhere in Purlin.
struct Utc;

impl tracing_subscriber::fmt::time::FormatTime for Utc {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{:.6}", super::SystemClock.now())
    }
}

//! Logs on standard error, as JSON lines or as text.

use tracing::{Dispatch, dispatcher};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

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
    let dispatch = subscriber(format, self::filter(&filter)?, std::io::stderr);
    dispatcher::set_global_default(dispatch).map_err(|_| TelemetryError::AlreadyInitialized)
}

/// The filter for a level, or for the levels of modules.
///
/// # Errors
///
/// If the text is neither.
pub fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    let is_level = text.parse::<tracing::level_filters::LevelFilter>().is_ok();
    let levels = if is_level { format!("{text},{LIBRARIES},{NEVER}") } else { format!("{text},{NEVER}") };
    EnvFilter::try_new(levels).map_err(|_| TelemetryError::InvalidLevel(text.to_owned()))
}

/// Writes log lines.
pub fn subscriber<W>(format: LogFormat, filter: EnvFilter, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_timer(Utc);
    match format {
        // Every span has all the fields that its lines need.
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).finish().into(),
        LogFormat::Text => builder.with_target(false).finish().into(),
    }
}

/// Timestamps in RFC 3339 format, in UTC and with six fraction digits, as everywhere in Purlin.
struct Utc;

impl tracing_subscriber::fmt::time::FormatTime for Utc {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{:.6}", super::SystemClock.now())
    }
}

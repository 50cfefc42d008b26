//! Logs on standard error, as JSON lines or as text.

use std::io;

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
/// failed requests and watches itself.
const LIBRARIES: &str = "kube=warn,kube_runtime=error,hyper=warn,tower=warn";

/// The client of the API server logs responses that it cannot decode, with the objects of all users. No filter switches
/// this on.
const NEVER: &str = "kube_client::client=off";

/// A longer line is shortened, in bytes.
const MAX_LINE: usize = 8 * 1024;

/// How many characters of a long text are kept.
const MAX_TEXT: usize = 2 * 1024;

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
    let writer = ToShortLines { format, writer };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_timer(Utc);
    match format {
        // Every span has all the fields that its lines need.
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).finish().into(),
        LogFormat::Text => builder.with_target(false).finish().into(),
    }
}

struct ToShortLines<W> {
    format: LogFormat,
    writer: W,
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for ToShortLines<W> {
    type Writer = ShortLines<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        ShortLines { format: self.format, writer: self.writer.make_writer() }
    }
}

/// Shortens lines that are too long: an error can quote a whole response of a server, with the texts of tenants.
struct ShortLines<W> {
    format: LogFormat,
    writer: W,
}

impl<W: io::Write> io::Write for ShortLines<W> {
    /// Receives one complete line, as the subscriber writes it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= MAX_LINE {
            return self.writer.write(line);
        }
        let text = String::from_utf8_lossy(line);
        let short = match self.format {
            LogFormat::Json => match serde_json::from_str(&text) {
                Ok(json) => format!("{}\n", short_values(json)),
                Err(_) => short(&text) + "\n",
            },
            LogFormat::Text => short(&text) + "\n",
        };
        self.writer.write_all(short.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The line with its long texts shortened. It has a fixed number of fields.
fn short_values(line: serde_json::Value) -> serde_json::Value {
    match line {
        serde_json::Value::String(text) => short(&text).into(),
        serde_json::Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, short_values(value))).collect()
        }
        other => other,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}… ({} bytes are left out)", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

/// Timestamps in RFC 3339 format, in UTC and with six fraction digits, as everywhere in Purlin.
struct Utc;

impl tracing_subscriber::fmt::time::FormatTime for Utc {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{:.6}", super::SystemClock.now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::lock;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, error: &str) -> String {
        let lines = Lines::default();
        let written = lines.clone();
        let subscriber = subscriber(format, filter("info").unwrap(), move || written.clone());
        dispatcher::with_default(&subscriber, || tracing::warn!(namespace = "shop", %error, "could not write"));
        String::from_utf8(lock(&lines.0).clone()).unwrap()
    }

    #[test]
    fn a_long_text_is_shortened_in_the_log() {
        let response = "é\"\\ ".repeat(200_000);
        for format in [LogFormat::Json, LogFormat::Text] {
            let line = logged(format, &response);
            assert!(line.len() < 2 * MAX_LINE && line.lines().count() == 1, "{} bytes", line.len());
            assert!(line.contains("bytes are left out") && line.contains("shop"), "{line}");
        }
        let json: serde_json::Value = serde_json::from_str(&logged(LogFormat::Json, &response)).unwrap();
        assert_eq!(json["message"], "could not write");
        let usual = logged(LogFormat::Json, "refused");
        assert!(usual.contains("refused") && !usual.contains("left out"), "{usual}");
    }
}

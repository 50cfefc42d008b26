//! Reads the output of a plugin. The pipes are drained as long as the plugin runs, because a full pipe would block it.
//! Its log entries are logged at `debug` and `trace`, never higher: they are written for the developers of the
//! provider. While all calls of the plugin are about one object, the entries have the fields of that object.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;

use process::lock;

use super::Mask;
use super::crash::{Crash, OutputTail};
use super::observer::RunningCalls;

/// Longer lines are truncated: a dump of a request can be megabytes long.
const MAX_LINE_LENGTH: usize = 64 * 1024;

pub struct Output {
    provider: String,
    mask: Mask,
    calls: Arc<RunningCalls>,
    last: Mutex<OutputTail>,
    /// Gets the lines instead of the log.
    copy: Option<LineSink>,
}

/// Takes a line of output, which can contain secrets.
pub type LineSink = Box<dyn Fn(&str) + Send + Sync>;

impl Output {
    pub fn new(provider: String, mask: Mask, calls: Arc<RunningCalls>) -> Self {
        Self { provider, mask, calls, last: Mutex::default(), copy: None }
    }

    /// Output that is logged elsewhere.
    pub fn copied(provider: String, copy: LineSink) -> Self {
        let copy = Some(copy);
        Self { copy, ..Self::new(provider, Arc::new(str::to_owned), Arc::default()) }
    }

    pub fn crash(&self, status: Option<std::process::ExitStatus>) -> Crash {
        lock(&self.last).crash(status)
    }

    /// Handles one line, without its line break.
    pub fn line(&self, line: &str) {
        if let Some(copy) = &self.copy {
            copy(line);
        }
        let line = (self.mask)(line);
        let provider = self.provider.as_str();
        let span = self.calls.common_span();
        let _entered = span.enter();
        let mut last = lock(&self.last);
        match Entry::parse(&line).filter(|_| !last.is_panicking()) {
            Some(_) if self.copy.is_some() => {}
            Some(entry) if entry.level == "trace" => tracing::trace!(provider, "{}", entry.text),
            Some(entry) => tracing::debug!(provider, level = entry.level, "{}", entry.text),
            None => {
                if self.copy.is_none() {
                    tracing::debug!(provider, "{line}");
                }
                last.push(line);
            }
        }
    }

    /// Reads the pipe to its end.
    pub async fn drain(&self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(pipe) = pipe else { return };
        let mut lines = Lines::new(pipe);
        while let Some(line) = lines.next().await {
            self.line(&line);
        }
    }

    /// Like [`Self::drain`], but sends the first line, the handshake, to `first`.
    pub async fn drain_after_first(&self, pipe: Option<impl AsyncRead + Unpin>, first: oneshot::Sender<String>) {
        let Some(pipe) = pipe else { return };
        let mut lines = Lines::new(pipe);
        let Some(line) = lines.next().await else { return };
        // The receiver is dropped if the start was canceled.
        let _ = first.send(line);
        while let Some(line) = lines.next().await {
            self.line(&line);
        }
    }
}

/// A log entry of the plugin framework: one JSON object per line.
struct Entry<'a> {
    level: &'a str,
    text: String,
}

impl Entry<'_> {
    fn parse(line: &str) -> Option<Entry<'static>> {
        if !line.starts_with('{') {
            return None;
        }
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).ok()?;
        let level = match fields.remove("@level")?.as_str()? {
            "trace" => "trace",
            "debug" => "debug",
            "info" => "info",
            "warn" => "warn",
            _ => "error",
        };
        let mut text = fields.remove("@message")?.as_str()?.to_owned();
        for (key, value) in fields.iter().filter(|(key, _)| !key.starts_with('@')) {
            match value {
                serde_json::Value::String(value) => text.push_str(&format!(" {key}={value}")),
                value => text.push_str(&format!(" {key}={value}")),
            }
        }
        Some(Entry { level, text })
    }
}

/// The lines of a pipe, truncated to a maximum length.
struct Lines<R> {
    pipe: R,
    buffer: Vec<u8>,
    /// The start of the unread part of the buffer.
    read: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(pipe: R) -> Self {
        Self { pipe, buffer: Vec::new(), read: 0 }
    }

    /// Returns the next line without its line break; `None` at the end of the pipe or after an error.
    async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            let chunk = &self.buffer[self.read..];
            let (taken, complete) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (chunk.len(), false),
            };
            let room = MAX_LINE_LENGTH.saturating_sub(line.len());
            line.extend_from_slice(&chunk[..taken.min(room)]);
            self.read += taken;
            if complete {
                break;
            }
            self.buffer.resize(4096, 0);
            self.read = 0;
            let count = self.pipe.read(&mut self.buffer).await.unwrap_or(0);
            self.buffer.truncate(count);
            if count == 0 && line.is_empty() {
                return None;
            }
            if count == 0 {
                break;
            }
        }
        Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_truncated_and_the_last_needs_no_line_break() {
        let text = format!("a\r\n\n{}\nend", "x".repeat(3 * MAX_LINE_LENGTH));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await.as_deref(), Some("a"));
        assert_eq!(lines.next().await.as_deref(), Some(""));
        assert_eq!(lines.next().await.map(|line| line.len()), Some(MAX_LINE_LENGTH));
        assert_eq!(lines.next().await.as_deref(), Some("end"));
        assert_eq!(lines.next().await, None);
    }

    #[test]
    fn log_entries_are_parsed_and_other_lines_are_kept_and_masked() {
        let entry =
            Entry::parse(r#"{"@level":"warn","@message":"slow","@module":"sdk","tf_rpc":"Read","n":3}"#).unwrap();
        assert_eq!((entry.level, entry.text.as_str()), ("warn", "slow n=3 tf_rpc=Read"));

        let output =
            Output::new("random".into(), Arc::new(|line: &str| line.replace("hunter2", "***")), Arc::default());
        output.line(r#"{"@level":"info","@message":"hunter2"}"#);
        output.line("password hunter2");
        assert_eq!(output.crash(None).trace, ["password ***"]);
    }
}

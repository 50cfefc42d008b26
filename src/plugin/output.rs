//! What a plugin writes. Its pipes are drained for as long as it lives, since a full one would block it. Its log goes
//! to ours at `debug` and `trace`, never higher: it is written for the provider's authors, and may be about anything.

use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;

use crate::process::lock;

use super::Mask;
use super::crash::{Crash, LastWords};

/// Longer lines are cut: a dump of a request can have megabytes.
const LONGEST_LINE: usize = 64 * 1024;

/// Takes the output of one plugin.
pub(super) struct Output {
    provider: String,
    mask: Mask,
    last: Mutex<LastWords>,
}

impl Output {
    pub(super) fn new(provider: String, mask: Mask) -> Self {
        Self { provider, mask, last: Mutex::default() }
    }

    /// What is to be told of the plugin's end.
    pub(super) fn crash(&self, status: Option<std::process::ExitStatus>) -> Crash {
        lock(&self.last).crash(status)
    }

    /// Takes one line, without its end.
    pub(super) fn line(&self, line: &str) {
        let line = (self.mask)(line);
        let provider = self.provider.as_str();
        let mut last = lock(&self.last);
        match Entry::parse(&line).filter(|_| !last.is_panicking()) {
            Some(entry) if entry.level == "trace" => tracing::trace!(provider, "{}", entry.text),
            Some(entry) => tracing::debug!(provider, level = entry.level, "{}", entry.text),
            None => {
                tracing::debug!(provider, "{line}");
                last.push(line);
            }
        }
    }

    /// Reads lines to the end of a pipe.
    pub(super) async fn drain(&self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(pipe) = pipe else { return };
        let mut lines = Lines::new(pipe);
        while let Some(line) = lines.next().await {
            self.line(&line);
        }
    }

    /// As [`Self::drain`], but the first line goes to whoever waits for the handshake.
    pub(super) async fn drain_after_first(&self, pipe: Option<impl AsyncRead + Unpin>, first: oneshot::Sender<String>) {
        let Some(pipe) = pipe else { return };
        let mut lines = Lines::new(pipe);
        let Some(line) = lines.next().await else { return };
        // Nobody waits any more when the start was given up.
        let _ = first.send(line);
        while let Some(line) = lines.next().await {
            self.line(&line);
        }
    }
}

/// An entry of the log that the plugin framework writes, one JSON object a line.
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

/// The lines of a pipe, each bounded.
struct Lines<R> {
    pipe: R,
    buffer: Vec<u8>,
    /// Where the next chunk begins that was not looked at.
    read: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(pipe: R) -> Self {
        Self { pipe, buffer: Vec::new(), read: 0 }
    }

    /// The next line without its end; `None` after the last one. A pipe that breaks has ended.
    async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            let chunk = &self.buffer[self.read..];
            let (taken, complete) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (chunk.len(), false),
            };
            let room = LONGEST_LINE.saturating_sub(line.len());
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
    async fn lines_are_bounded_and_the_last_needs_no_end() {
        let text = format!("a\r\n\n{}\nend", "x".repeat(3 * LONGEST_LINE));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await.as_deref(), Some("a"));
        assert_eq!(lines.next().await.as_deref(), Some(""));
        assert_eq!(lines.next().await.map(|line| line.len()), Some(LONGEST_LINE));
        assert_eq!(lines.next().await.as_deref(), Some("end"));
        assert_eq!(lines.next().await, None);
    }

    #[test]
    fn an_entry_of_the_log_is_read_and_other_lines_are_kept_and_masked() {
        let entry =
            Entry::parse(r#"{"@level":"warn","@message":"slow","@module":"sdk","tf_rpc":"Read","n":3}"#).unwrap();
        assert_eq!((entry.level, entry.text.as_str()), ("warn", "slow n=3 tf_rpc=Read"));

        let output = Output::new("random".into(), std::sync::Arc::new(|line: &str| line.replace("hunter2", "***")));
        output.line(r#"{"@level":"info","@message":"hunter2"}"#);
        output.line("password hunter2");
        assert_eq!(output.crash(None).trace, ["password ***"]);
    }
}

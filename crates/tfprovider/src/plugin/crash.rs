//! Keeps the last output lines of a plugin, and the trace if it panics, to explain why its process exited.

use std::collections::VecDeque;
use std::fmt;
use std::process::ExitStatus;

use tokio::sync::watch;

/// The exit status and last output of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// `None` if the operating system does not report it.
    pub status: Option<ExitStatus>,
    /// The lines from the panic on, or the last lines if there was none. Masked.
    pub trace: Vec<String>,
    /// Whether the trace begins with a panic.
    pub panicked: bool,
    /// How the machine of the process ended, if it did, such as `the Pod shop/purlin-random-1 was deleted`.
    pub host: Option<String>,
}

/// A panic starts with the message and the relevant frames; other goroutines follow.
const MAX_PANIC_LINES: usize = 100;

/// Enough for the usage text or the error of a program that is not a plugin.
const MAX_TAIL_LINES: usize = 20;

/// The maximum number of characters of a line that an error quotes.
const MAX_QUOTE: usize = 300;

impl Crash {
    /// Waits until the end of a process is reported.
    pub(crate) async fn reported(end: &watch::Receiver<Option<Self>>) -> Self {
        let mut end = end.clone();
        // The sender is dropped without a value only when the runtime shuts down.
        end.wait_for(Option::is_some).await.map_or_else(|_| Self::default(), |crash| crash.clone().unwrap_or_default())
    }

    /// The location of the panic, `file.go:12`: the first frame outside of the Go runtime.
    fn place(&self) -> Option<&str> {
        let frames = self.trace.iter().skip_while(|line| !line.starts_with("goroutine ")).skip(1);
        let mut places = frames.filter_map(|line| line.strip_prefix('\t')).filter_map(|line| line.split(' ').next());
        places.find(|place| place.contains(".go:") && !place.contains("/runtime/") && !place.starts_with("runtime/"))
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &self.host) {
            (Some(status), _) => write!(f, "{status}")?,
            (None, Some(host)) => f.write_str(host)?,
            (None, None) => f.write_str("the process no longer exists")?,
        }
        let last = if self.panicked { self.trace.first() } else { self.trace.last() };
        if let Some(last) = last {
            let end = last.char_indices().nth(MAX_QUOTE).map_or(last.len(), |(end, _)| end);
            write!(f, ": {}", &last[..end])?;
        }
        match self.place().filter(|_| self.panicked) {
            Some(place) => write!(f, " (at {place})"),
            None => Ok(()),
        }
    }
}

/// The last lines of output, or a panic.
#[derive(Debug, Default)]
pub struct OutputTail {
    lines: VecDeque<String>,
    panic: Vec<String>,
}

impl OutputTail {
    /// Adds a line that is not a log entry.
    pub fn push(&mut self, line: String) {
        if self.is_panicking() || begins_trace(&line) {
            if self.panic.len() < MAX_PANIC_LINES {
                self.panic.push(line);
            }
            return;
        }
        if self.lines.len() == MAX_TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Whether a panic has started. All lines after it belong to it.
    pub fn is_panicking(&self) -> bool {
        !self.panic.is_empty()
    }

    pub fn crash(&self, status: Option<ExitStatus>) -> Crash {
        let panicked = self.is_panicking();
        let trace = if panicked { self.panic.clone() } else { self.lines.iter().cloned().collect() };
        Crash { status, trace, panicked, host: None }
    }
}

/// Whether the line starts a crash report of Go: a panic, a fatal error of the runtime, or an unhandled signal, for
/// example when an allocation fails.
fn begins_trace(line: &str) -> bool {
    ["panic:", "fatal error:"].iter().any(|begin| line.starts_with(begin))
        || line.split_once(": ").is_some_and(|(signal, _)| {
            signal.starts_with("SIG") && signal.bytes().all(|byte| byte.is_ascii_uppercase())
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn crash(lines: &[&str]) -> String {
        let mut words = OutputTail::default();
        lines.iter().for_each(|line| words.push((*line).to_owned()));
        words.crash(Some(ExitStatus::from_raw(2 << 8))).to_string()
    }

    #[test]
    fn a_panic_is_shown_with_its_message_and_location() {
        let text = crash(&[
            "starting",
            "panic: runtime error: invalid memory address or nil pointer dereference",
            "[signal SIGSEGV: segmentation violation code=0x1]",
            "",
            "goroutine 52 [running]:",
            "panic({0x1, 0x2})",
            "\t/usr/local/go/src/runtime/panic.go:783 +0x132",
            "example.com/provider.(*thing).Create(0x0)",
            "\texample.com/provider/thing.go:41 +0x1d",
        ]);
        let expected = "exit status: 2: panic: runtime error: invalid memory address or nil pointer dereference \
                        (at example.com/provider/thing.go:41)";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_signal_is_shown_without_registers() {
        let lines = ["SIGSEGV: segmentation violation", "PC=0x43723d m=6 sigcode=1 addr=0x0", "", "gs     0x0"];
        assert_eq!(crash(&lines), "exit status: 2: SIGSEGV: segmentation violation");
        assert_eq!(crash(&["SIGnal: x", "the end"]), "exit status: 2: the end");
    }

    #[test]
    fn without_a_panic_the_last_line_is_shown() {
        assert_eq!(crash(&["usage: x", "x: bad flag"]), "exit status: 2: x: bad flag");
        assert_eq!(crash(&[]), "exit status: 2");
    }

    #[test]
    fn kept_output_is_limited() {
        let mut words = OutputTail::default();
        (0..1000).for_each(|n| words.push(n.to_string()));
        assert_eq!(words.crash(None).trace.len(), MAX_TAIL_LINES);
        words.push("panic: x".to_owned());
        (0..1000).for_each(|n| words.push(n.to_string()));
        assert_eq!(words.crash(None).trace.len(), MAX_PANIC_LINES);
    }
}

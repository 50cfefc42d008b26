//! What is kept of a plugin's output: its last lines, and the trace when it panics, which is the only thing that tells
//! why all its calls ended.

use std::collections::VecDeque;
use std::fmt;
use std::process::ExitStatus;

/// How a plugin ended, and its last words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// How the process ended; `None` when the system does not tell.
    pub status: Option<ExitStatus>,
    /// The lines from the panic on, or the last ones when there was none. Masked.
    pub trace: Vec<String>,
    /// Whether the trace begins with a panic.
    pub panicked: bool,
}

/// A panic has its message and the interesting frames at its beginning; those of other goroutines follow.
const KEPT_OF_PANIC: usize = 100;

/// Enough for the usage text or the error of a program that is no plugin.
const KEPT_LINES: usize = 20;

/// How much of a line an error repeats.
const LONGEST_QUOTE: usize = 300;

impl Crash {
    /// Where the code of the provider panicked, `file.go:12`: the first frame that is not of Go itself.
    fn place(&self) -> Option<&str> {
        let frames = self.trace.iter().skip_while(|line| !line.starts_with("goroutine ")).skip(1);
        let mut places = frames.filter_map(|line| line.strip_prefix('\t')).filter_map(|line| line.split(' ').next());
        places.find(|place| place.contains(".go:") && !place.contains("/runtime/") && !place.starts_with("runtime/"))
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("the process is gone")?,
        }
        let words = if self.panicked { self.trace.first() } else { self.trace.last() };
        if let Some(words) = words {
            let end = words.char_indices().nth(LONGEST_QUOTE).map_or(words.len(), |(end, _)| end);
            write!(f, ": {}", &words[..end])?;
        }
        match self.place().filter(|_| self.panicked) {
            Some(place) => write!(f, " (at {place})"),
            None => Ok(()),
        }
    }
}

/// Keeps what will be wanted when the plugin ends.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    lines: VecDeque<String>,
    panic: Vec<String>,
}

impl LastWords {
    /// Takes one line that is no log entry.
    pub(super) fn push(&mut self, line: String) {
        if self.is_panicking() || begins_trace(&line) {
            if self.panic.len() < KEPT_OF_PANIC {
                self.panic.push(line);
            }
            return;
        }
        if self.lines.len() == KEPT_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Whether a panic has begun: nothing after it is an ordinary line.
    pub(super) fn is_panicking(&self) -> bool {
        !self.panic.is_empty()
    }

    /// What is to be told of the end.
    pub(super) fn crash(&self, status: Option<ExitStatus>) -> Crash {
        let panicked = self.is_panicking();
        let trace = if panicked { self.panic.clone() } else { self.lines.iter().cloned().collect() };
        Crash { status, trace, panicked }
    }
}

/// Whether Go tells with this line why it gives up: a panic, an error of its runtime, or a signal that nobody takes, as
/// when it gets no memory where it does not look for that.
fn begins_trace(line: &str) -> bool {
    let is_signal = |name: &str| name.starts_with("SIG") && name.bytes().all(|byte| byte.is_ascii_uppercase());
    ["panic:", "fatal error:"].iter().any(|begin| line.starts_with(begin))
        || line.split_once(": ").is_some_and(|(name, _)| is_signal(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn crash(lines: &[&str]) -> String {
        let mut words = LastWords::default();
        lines.iter().for_each(|line| words.push((*line).to_owned()));
        words.crash(Some(ExitStatus::from_raw(2 << 8))).to_string()
    }

    #[test]
    fn a_panic_is_told_with_its_message_and_place() {
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
    fn a_signal_is_told_and_not_the_registers_that_follow() {
        let lines = ["SIGSEGV: segmentation violation", "PC=0x43723d m=6 sigcode=1 addr=0x0", "", "gs     0x0"];
        assert_eq!(crash(&lines), "exit status: 2: SIGSEGV: segmentation violation");
        assert_eq!(crash(&["SIGnal: x", "the end"]), "exit status: 2: the end");
    }

    #[test]
    fn without_a_panic_the_last_line_is_told() {
        assert_eq!(crash(&["usage: x", "x: bad flag"]), "exit status: 2: x: bad flag");
        assert_eq!(crash(&[]), "exit status: 2");
    }

    #[test]
    fn endless_output_is_not_kept() {
        let mut words = LastWords::default();
        (0..1000).for_each(|n| words.push(n.to_string()));
        assert_eq!(words.crash(None).trace.len(), KEPT_LINES);
        words.push("panic: x".to_owned());
        (0..1000).for_each(|n| words.push(n.to_string()));
        assert_eq!(words.crash(None).trace.len(), KEPT_OF_PANIC);
    }
}

//! The live display of a run on a terminal: a line with a spinner for each long step, below the lines of ended steps.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::messages::{elapsed, format_duration, subject, verbs};
use model::text::{counted, escape};
use model::{Step, Text};
use runtime::execute::{Progress, ProgressKind};

/// A step gets a line only after this time, so that short steps do not flicker.
const MIN_DURATION: Duration = Duration::from_millis(300);

/// The last line counts the remaining steps.
const MAX_LINES: usize = 12;

/// The running steps, and the lines to print above them at the next redraw.
pub struct LiveDisplay {
    display: MultiProgress,
    pending: Vec<String>,
    running: BTreeMap<Step, Timestamp>,
    bars: BTreeMap<Step, ProgressBar>,
    more: Option<ProgressBar>,
    /// The number of steps of the run, and how many have ended.
    steps: Option<(usize, usize)>,
    started: Option<Timestamp>,
    overall: Option<ProgressBar>,
}

impl Default for LiveDisplay {
    fn default() -> Self {
        let picture = MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stdout());
        Self {
            display: picture,
            pending: Vec::new(),
            running: BTreeMap::new(),
            bars: BTreeMap::new(),
            more: None,
            steps: None,
            started: None,
            overall: None,
        }
    }
}

impl LiveDisplay {
    /// Shows how many of so many steps have ended, and the elapsed time.
    pub fn expect_steps(&mut self, count: usize) {
        self.steps = Some((count, 0));
    }

    /// Adds an event. A started step gets a spinner.
    pub fn event(&mut self, progress: &Progress) {
        if matches!(progress.kind, ProgressKind::Started) {
            self.started.get_or_insert(progress.at);
            self.running.insert(progress.step.clone(), progress.at);
            return;
        }
        if matches!(progress.kind, ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_)) {
            return;
        }
        if let Some((_, ended)) = &mut self.steps {
            *ended += 1;
        }
        self.running.remove(&progress.step);
        if let Some(bar) = self.bars.remove(&progress.step) {
            self.display.remove(&bar);
        }
    }

    pub fn note(&mut self, line: &Text) {
        self.lines(line.as_str());
    }

    /// Adds lines that are escaped already.
    pub fn lines(&mut self, lines: &str) {
        self.pending.push(lines.to_owned());
    }

    /// Redraws: prints what is pending in one write, then the spinners.
    pub fn draw(&mut self, now: Timestamp) {
        self.print_pending();
        for (step, since) in &self.running {
            let took = elapsed(*since, now);
            if !self.bars.contains_key(step) && took >= MIN_DURATION && self.bars.len() < MAX_LINES {
                let bar = self.add_line();
                self.bars.insert(step.clone(), bar);
            }
            if let Some(bar) = self.bars.get(step) {
                let doing = verbs(step.operation).in_progress;
                let subject = subject(step);
                bar.set_message(format!("{}: {doing} {}", escape(&subject), format_duration(took)));
                bar.tick();
            }
        }
        self.show_remaining_count();
        self.show_overall(now);
    }

    /// Removes all spinners and prints what is pending.
    pub fn close(&mut self) {
        self.bars.clear();
        self.more = None;
        self.overall = None;
        let _ = self.display.clear();
        self.print_pending();
    }

    fn print_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut text = self.pending.join("\n");
        text.push('\n');
        self.pending.clear();
        // `MultiProgress::println` pads every line with spaces, which are annoying when copying from the terminal.
        // Errors of a closed terminal are ignored; the run continues.
        self.display.suspend(|| drop(io::stdout().lock().write_all(text.as_bytes())));
    }

    /// Shows the number of ended steps as the last line, once a step takes long enough to be shown.
    fn show_overall(&mut self, now: Timestamp) {
        let Some(((count, ended), since)) = self.steps.zip(self.started) else { return };
        let took = elapsed(since, now);
        if took < MIN_DURATION {
            return;
        }
        let bar = self
            .overall
            .get_or_insert_with(|| self.display.add(ProgressBar::new_spinner().with_style(overall_style())));
        bar.set_message(overall_line(count, ended, took));
        bar.tick();
    }

    /// Adds a line above the last one.
    fn add_line(&self) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_style(style());
        match &self.overall {
            Some(last) => self.display.insert_before(last, bar),
            None => self.display.add(bar),
        }
    }

    fn show_remaining_count(&mut self) {
        let rest = self.running.len() - self.bars.len();
        if self.bars.len() < MAX_LINES || rest == 0 {
            if let Some(bar) = self.more.take() {
                self.display.remove(&bar);
            }
            return;
        }
        let bar = self.more.take().unwrap_or_else(|| self.add_line());
        bar.set_message(format!("and {rest} more"));
        bar.tick();
        self.more = Some(bar);
    }
}

/// `12 of 40 steps, 1m05s`.
fn overall_line(count: usize, ended: usize, took: Duration) -> String {
    format!("{ended} of {}, {}", counted(count, "step"), format_duration(took))
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn overall_style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_the_steps() {
        assert_eq!(overall_line(40, 12, Duration::from_secs(65)), "12 of 40 steps, 1m05s");
    }
}

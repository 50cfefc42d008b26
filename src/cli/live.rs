//! The live display of a run on a terminal: a line with a spinner for each long step, below the lines of ended steps.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::messages::{elapsed, format_duration, subject, verbs};
use crate::execute::{Progress, ProgressKind};
use crate::model::Step;

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
}

impl Default for LiveDisplay {
    fn default() -> Self {
        let picture = MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stdout());
        Self { display: picture, pending: Vec::new(), running: BTreeMap::new(), bars: BTreeMap::new(), more: None }
    }
}

impl LiveDisplay {
    /// Adds an event with its line. The line of a started step is not printed, since the spinner shows it.
    pub fn event(&mut self, progress: &Progress, line: String) {
        if matches!(progress.kind, ProgressKind::Started) {
            self.running.insert(progress.step.clone(), progress.at);
            return;
        }
        if matches!(progress.kind, ProgressKind::Hook(_) | ProgressKind::Warning(_) | ProgressKind::Delayed(_)) {
            return self.pending.push(line);
        }
        self.running.remove(&progress.step);
        if let Some(bar) = self.bars.remove(&progress.step) {
            self.display.remove(&bar);
        }
        self.pending.push(line);
    }

    /// Adds a line that is not about a step.
    pub fn note(&mut self, line: String) {
        self.pending.push(line);
    }

    /// Redraws: prints what is pending in one write, then the spinners.
    pub fn draw(&mut self, now: Timestamp) {
        self.print_pending();
        for (step, since) in &self.running {
            let took = elapsed(*since, now);
            if !self.bars.contains_key(step) && took >= MIN_DURATION && self.bars.len() < MAX_LINES {
                let bar = self.display.add(ProgressBar::new_spinner().with_style(style()));
                self.bars.insert(step.clone(), bar);
            }
            if let Some(bar) = self.bars.get(step) {
                let doing = verbs(step.operation).in_progress;
                bar.set_message(format!("{}: {doing} {}", subject(step), format_duration(took)));
                bar.tick();
            }
        }
        self.show_remaining_count();
    }

    /// Removes all spinners and prints what is pending.
    pub fn close(&mut self) {
        self.bars.clear();
        self.more = None;
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

    fn show_remaining_count(&mut self) {
        let rest = self.running.len() - self.bars.len();
        if self.bars.len() < MAX_LINES || rest == 0 {
            if let Some(bar) = self.more.take() {
                self.display.remove(&bar);
            }
            return;
        }
        let bar = self.more.get_or_insert_with(|| self.display.add(ProgressBar::new_spinner().with_style(style())));
        bar.set_message(format!("and {rest} more"));
        bar.tick();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

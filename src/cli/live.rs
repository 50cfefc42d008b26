//! The live picture of a run on a terminal: a line with a spinner for every step that takes its time, and what is
//! over above.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::wording::{elapsed, seconds, subject, words};
use crate::execute::{Progress, ProgressKind};
use crate::model::Step;

/// A step gets a line only after this long: thousands of instant steps would only flicker.
const WORTH_SHOWING: Duration = Duration::from_millis(300);

/// More lines than this help nobody; the rest are counted in the last one.
const MOST_LINES: usize = 12;

/// The running steps, and what is to be printed above them at the next redraw.
pub struct Live {
    picture: MultiProgress,
    pending: Vec<String>,
    running: BTreeMap<Step, Timestamp>,
    bars: BTreeMap<Step, ProgressBar>,
    more: Option<ProgressBar>,
}

impl Default for Live {
    fn default() -> Self {
        let picture = MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stdout());
        Self { picture, pending: Vec::new(), running: BTreeMap::new(), bars: BTreeMap::new(), more: None }
    }
}

impl Live {
    /// Takes an event with its line. The line of a start is not printed: the spinner tells it.
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
            self.picture.remove(&bar);
        }
        self.pending.push(line);
    }

    /// Takes a line that concerns no step.
    pub fn note(&mut self, line: String) {
        self.pending.push(line);
    }

    /// Redraws: prints what is pending in one write, then the spinners.
    pub fn draw(&mut self, now: Timestamp) {
        self.print_pending();
        for (step, since) in &self.running {
            let took = elapsed(*since, now);
            if !self.bars.contains_key(step) && took >= WORTH_SHOWING && self.bars.len() < MOST_LINES {
                let bar = self.picture.add(ProgressBar::new_spinner().with_style(style()));
                self.bars.insert(step.clone(), bar);
            }
            if let Some(bar) = self.bars.get(step) {
                let doing = words(step.operation).doing;
                bar.set_message(format!("{}: {doing} {}", subject(step), seconds(took)));
                bar.tick();
            }
        }
        self.count_the_rest();
    }

    /// Removes all spinners and prints what is pending.
    pub fn close(&mut self) {
        self.bars.clear();
        self.more = None;
        let _ = self.picture.clear();
        self.print_pending();
    }

    fn print_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut text = self.pending.join("\n");
        text.push('\n');
        self.pending.clear();
        // `println` of the picture would fill every line up with spaces, which spoils copying from the terminal.
        // Nothing can be done about a terminal that went away; the run goes on.
        self.picture.suspend(|| drop(io::stdout().lock().write_all(text.as_bytes())));
    }

    fn count_the_rest(&mut self) {
        let rest = self.running.len() - self.bars.len();
        if self.bars.len() < MOST_LINES || rest == 0 {
            if let Some(bar) = self.more.take() {
                self.picture.remove(&bar);
            }
            return;
        }
        let bar = self.more.get_or_insert_with(|| self.picture.add(ProgressBar::new_spinner().with_style(style())));
        bar.set_message(format!("and {rest} more"));
        bar.tick();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

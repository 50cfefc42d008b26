//! What must not come out of a process: its settings, and what it was told of the objects that it was asked about lately. A
//! provider may quote any of it in an error, and write any of it to its log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use crate::model::{Diagnostic, DriverError, Secrets};
use crate::plugin::Mask;
use crate::process::lock;

/// Of how many calls the secrets are remembered: what a process writes about a call may come a moment after its answer.
const REMEMBERED: usize = 64;

/// The secrets of one process.
#[derive(Debug, Default)]
pub(super) struct ProcessMask {
    settings: Secrets,
    recent: Mutex<VecDeque<Secrets>>,
}

impl ProcessMask {
    /// The mask of a process with settings that hold these.
    pub fn new(settings: Secrets) -> Arc<Self> {
        Arc::new(Self { settings, recent: Mutex::default() })
    }

    /// Masks these as well.
    pub fn remember(&self, secrets: Secrets) {
        if secrets.is_empty() {
            return;
        }
        let mut recent = lock(&self.recent);
        if recent.contains(&secrets) {
            return;
        }
        if recent.len() >= REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(secrets);
    }

    /// The text without any of them.
    pub fn text(&self, text: &str) -> String {
        let text = self.settings.text(text.to_owned());
        lock(&self.recent).iter().fold(text, |text, secrets| secrets.text(text))
    }

    /// The error without any of them.
    pub fn error(&self, error: DriverError) -> DriverError {
        DriverError { message: self.text(&error.message), hint: error.hint.map(|hint| self.text(&hint)), ..error }
    }

    /// The diagnostic without any of them.
    pub fn diagnostic(&self, diagnostic: Diagnostic) -> Diagnostic {
        let diagnostic = self.settings.diagnostic(diagnostic);
        lock(&self.recent).iter().fold(diagnostic, |diagnostic, secrets| secrets.diagnostic(diagnostic))
    }
}

/// The mask of what a process writes. One that is asked what it serves has no settings, and so no secrets, until it is
/// configured.
#[derive(Clone, Debug, Default)]
pub(super) struct LateMask(Arc<OnceLock<Arc<ProcessMask>>>);

impl LateMask {
    /// From now on this is the mask. It is set once.
    pub fn set(&self, mask: &Arc<ProcessMask>) {
        // A process is configured once.
        let _ = self.0.set(Arc::clone(mask));
    }

    /// For whoever reads what the process writes.
    pub fn of_output(&self) -> Mask {
        let this = self.clone();
        Arc::new(move |line| this.0.get().map_or_else(|| line.to_owned(), |mask| mask.text(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    #[test]
    fn settings_are_masked_for_ever_and_objects_as_long_as_anything_of_them_may_come() {
        let secret = |text: String| Secrets::of([&Value::from(text.as_str()).into_sensitive()]);
        let mask = ProcessMask::new(secret("of-the-settings".into()));
        let late = LateMask::default();
        let output = late.of_output();
        late.set(&mask);
        mask.remember(secret("of-an-object".into()));
        assert_eq!(output("of-the-settings, of-an-object"), "(sensitive), (sensitive)");
        (0..REMEMBERED).for_each(|count| mask.remember(secret(format!("call-{count}"))));
        assert_eq!(output("of-the-settings, of-an-object, call-0"), "(sensitive), of-an-object, (sensitive)");
    }
}

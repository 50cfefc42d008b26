//! Masks the secrets of a provider process: those of its configuration and of recent calls. A provider may quote them
//! in errors and logs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use model::Secrets;
use process::lock;
use tfprovider::plugin::Mask;

/// The number of recent calls whose secrets are masked, since a process may log about a call after its response.
const RECENT_CALLS: usize = 64;

#[derive(Debug, Default)]
pub struct ProcessMask {
    configuration: Secrets,
    recent: Mutex<VecDeque<Secrets>>,
}

impl ProcessMask {
    /// A mask for the secrets of a provider configuration.
    pub fn new(configuration: Secrets) -> Arc<Self> {
        Arc::new(Self { configuration, recent: Mutex::default() })
    }

    /// Also masks the secrets of a call.
    pub fn add(&self, secrets: Secrets) {
        if secrets.is_empty() {
            return;
        }
        let mut recent = lock(&self.recent);
        if recent.contains(&secrets) {
            return;
        }
        if recent.len() >= RECENT_CALLS {
            recent.pop_front();
        }
        recent.push_back(secrets);
    }

    pub fn text(&self, text: &str) -> String {
        let text = self.configuration.redact(text.to_owned());
        lock(&self.recent).iter().fold(text, |text, secrets| secrets.redact(text))
    }

    /// All secrets that are masked now.
    pub fn secrets(&self) -> Secrets {
        lock(&self.recent).iter().fold(self.configuration.clone(), Secrets::and)
    }
}

/// The mask for the output of a process. It is set when the process is configured; before that, the process has no
/// secrets.
#[derive(Clone, Debug, Default)]
pub struct LateMask(Arc<OnceLock<Arc<ProcessMask>>>);

impl LateMask {
    pub fn set(&self, mask: &Arc<ProcessMask>) {
        // A process is configured once.
        let _ = self.0.set(Arc::clone(mask));
    }

    /// The mask for the reader of the output.
    pub fn output_mask(&self) -> Mask {
        let this = self.clone();
        Arc::new(move |line| this.0.get().map_or_else(|| line.to_owned(), |mask| mask.text(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Value;

    fn secret(text: String) -> Secrets {
        Secrets::of([&Value::from(text.as_str()).into_sensitive()])
    }

    #[test]
    fn secrets_of_the_configuration_are_masked_permanently_and_secrets_of_calls_for_a_while() {
        let mask = ProcessMask::new(secret("of-the-configuration".into()));
        let late = LateMask::default();
        let output = late.output_mask();
        late.set(&mask);
        mask.add(secret("of-an-object".into()));
        assert_eq!(output("of-the-configuration, of-an-object"), "(sensitive), (sensitive)");
        (0..RECENT_CALLS).for_each(|count| mask.add(secret(format!("call-{count}"))));
        assert_eq!(output("of-the-configuration, of-an-object, call-0"), "(sensitive), of-an-object, (sensitive)");
    }
}

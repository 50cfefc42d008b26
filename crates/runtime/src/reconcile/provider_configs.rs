//! Manages the `ProviderConfigs` of the namespace: checks them with their providers, tracks their dependents, and
//! writes their status. A finalizer protects a `ProviderConfig` that is in use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::index::{ProviderConfigMeta, ProviderConfigView};
use super::provider_status::{ConfigurationCheck, notes, status};
use super::time::Time;
use super::{Command, Reconciler, ReportSubject, retry};
use api::IN_USE;
use api::conditions::{self, ConditionType};
use model::{ProviderUse, Reason, Uid, Version, with_namespace};

/// The debounce before all `ProviderConfigs` are checked: a check visits every Resource.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// The state of all `ProviderConfigs`.
#[derive(Debug, Default)]
pub struct ProviderConfigs {
    known: BTreeMap<Arc<str>, TrackedProviderConfig>,
    /// When to check all of them.
    check_at: Option<Time>,
}

#[derive(Debug)]
struct TrackedProviderConfig {
    uid: Uid,
    /// The `Ready` message of the current generation if the provider has accepted it before. It saves a restarted
    /// controller from starting every provider of every namespace.
    accepted: Option<String>,
    /// The configuration that was checked last, or is being checked.
    checked: Option<Arc<ProviderUse>>,
    check: ConfigurationCheck,
    /// A call to the provider is in flight.
    is_checking: bool,
    /// Nothing used it at its last check.
    is_trial: bool,
    /// A check is due, but waits: for the end of another trial, or until something uses it.
    is_due: bool,
    /// A request to the API server is in flight.
    is_writing: bool,
    /// The version that is being written, or was written last.
    written_version: Version,
    /// Consecutive rejections by the provider.
    failures: u32,
    /// Consecutive failed writes.
    write_failures: u32,
    /// When to write again after a failure, and the version that could not be written.
    write_again: Option<(Time, Version)>,
    /// When to check again.
    retry_at: Option<Time>,
}

impl Reconciler {
    /// Processes the `ProviderConfigs` that are due. Returns when more will be due.
    pub fn reconcile_provider_configs(&mut self) -> Option<Time> {
        let now = self.now.time;
        if self.index.take_provider_configs_touched() {
            self.provider_configs.check_at.get_or_insert(now + DEBOUNCE);
        }
        let next = self.provider_configs.next()?;
        if next > now {
            return Some(next);
        }
        self.provider_configs.end_timers(now);
        let views = self.index.provider_configs(self.schedule.readings());
        self.provider_configs.known.retain(|name, _| views.iter().any(|view| view.name == *name));
        let mut is_trying = self.provider_configs.known.values().any(|known| known.is_checking && known.is_trial);
        for view in views {
            self.reconcile_provider_config(view, &mut is_trying);
        }
        self.provider_configs.next()
    }

    /// `is_trying`: whether a trial is in flight.
    fn reconcile_provider_config(&mut self, view: ProviderConfigView, is_trying: &mut bool) {
        let now = self.now.time;
        let namespace = self.command_namespace().to_owned();
        let known = self
            .provider_configs
            .known
            .entry(view.name.clone())
            .or_insert_with(|| TrackedProviderConfig::of(&view.meta));
        if known.uid != view.meta.uid {
            *known = TrackedProviderConfig::of(&view.meta);
        }
        let is_current = view.meta.status.observed_generation == view.meta.generation;
        if is_current && matches!(view.configuration, Err((Reason::Waiting, _))) {
            // The inputs are being read. The previous status remains until then.
            return;
        }
        if let Some(used) = known.next_check(&view, *is_trying) {
            *is_trying |= known.is_trial;
            let (name, keep) = (view.name.clone(), !known.is_trial);
            self.commands.push(Command::ConfigureProvider { name, used, keep });
        }
        let is_postponed = known.write_again.is_some_and(|(at, version)| at > now && version == view.meta.version);
        if known.is_writing || is_postponed {
            return;
        }
        let has = view.meta.finalizers.iter().any(|finalizer| finalizer == IN_USE);
        // The API server rejects new finalizers on objects that are being deleted.
        let needed = !view.users.is_empty() && (has || !view.meta.deleting);
        let mut status = status(&view, &known.check, self.now.wall);
        for condition in &mut status.conditions {
            condition.message = with_namespace(&condition.message, &namespace);
        }
        if has == needed && status == view.meta.status {
            return;
        }
        (known.is_writing, known.write_again) = (true, None);
        known.written_version = view.meta.version;
        for note in notes(&view.meta.status, &status) {
            let (name, uid) = (view.name.clone(), view.meta.uid.clone());
            self.report(ReportSubject::ProviderConfig { name, uid }, note);
        }
        let finalizers = (has != needed).then(|| {
            let others = view.meta.finalizers.iter().filter(|finalizer| *finalizer != IN_USE).cloned();
            others.chain(needed.then(|| IN_USE.to_owned())).collect()
        });
        let (view, status) = (Box::new(view), Box::new(status));
        self.commands.push(Command::WriteProviderConfig { view, status, finalizers });
    }

    /// Handles the provider's response to a configuration.
    pub fn provider_configured(&mut self, name: &Arc<str>, used: &Arc<ProviderUse>, check: ConfigurationCheck) {
        let (now, draw) = (self.now.time, self.random.number());
        let Some(known) = self.provider_configs.known.get_mut(name) else { return };
        known.is_checking = false;
        // The configuration may have changed since.
        let was_rejected = known.is_rejected();
        if known.checked.as_ref() == Some(used) {
            let refused = matches!(check, ConfigurationCheck::Rejected(_));
            known.failures = if refused { known.failures + 1 } else { 0 };
            known.retry_at = refused.then(|| now + retry::delay(known.failures, draw));
            known.check = check;
        }
        // The Resources that wait for it say so.
        if known.is_rejected() != was_rejected {
            self.resources.changed.extend(self.index.users_of(name));
        }
        self.provider_configs.check_at = Some(now);
    }

    /// Handles the result of writing a `ProviderConfig`.
    pub fn provider_config_written(&mut self, name: &Arc<str>, done: bool) {
        let (now, draw) = (self.now.time, self.random.number());
        let Some(known) = self.provider_configs.known.get_mut(name) else { return };
        known.is_writing = false;
        known.write_failures = if done { 0 } else { known.write_failures + 1 };
        if done {
            self.provider_configs.check_at = Some(now);
        } else {
            known.write_again = Some((now + retry::delay(known.write_failures, draw), known.written_version));
        }
    }
}

impl ProviderConfigs {
    /// Whether the status of a `ProviderConfig` says why its provider cannot be used.
    pub fn is_rejected(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(TrackedProviderConfig::is_rejected)
    }

    /// Retries all that were rejected.
    pub fn retry_rejected(&mut self, now: Time) {
        self.known.values_mut().for_each(|known| known.retry_at = known.retry_at.map(|at| at.min(now)));
    }

    /// Ends the timers that are due. What is not checked now, because something else must happen first, has no timer:
    /// one in the past would cause a turn immediately after each turn.
    fn end_timers(&mut self, now: Time) {
        self.check_at = None;
        for known in self.known.values_mut() {
            known.is_due |= known.retry_at.take_if(|at| *at <= now).is_some();
            known.write_again = known.write_again.filter(|(at, _)| *at > now);
        }
    }

    fn next(&self) -> Option<Time> {
        let retries = self.known.values().flat_map(|known| [known.retry_at, known.write_again.map(|(at, _)| at)]);
        retries.flatten().chain(self.check_at).min()
    }
}

impl TrackedProviderConfig {
    fn is_rejected(&self) -> bool {
        matches!(self.check, ConfigurationCheck::Rejected(_))
    }

    /// The configuration to check with the provider now. `None` if no check is due.
    /// `others_try`: another trial is in flight. A namespace tries one `ProviderConfig` that nothing uses at a time,
    /// because each trial starts a process. The end of a trial checks the others again.
    fn next_check(&mut self, view: &ProviderConfigView, others_try: bool) -> Option<Arc<ProviderUse>> {
        let desired = view.configuration.as_ref().ok();
        if let Some(message) = self.accepted.take() {
            self.checked = desired.cloned();
            self.check = ConfigurationCheck::Accepted { version: view.meta.status.version.clone(), message };
        }
        if self.checked.as_ref() != desired {
            (self.checked, self.check, self.failures, self.retry_at) = (None, ConfigurationCheck::Pending, 0, None);
        }
        // An unused `ProviderConfig` that is being deleted is not worth a provider process.
        let needed = !(view.meta.deleting && view.users.is_empty());
        let due = self.checked.is_none() || self.is_due;
        let used = desired.filter(|_| needed && due && !self.is_checking)?;
        self.retry_at = None;
        self.is_due = view.users.is_empty() && others_try;
        if self.is_due {
            return None;
        }
        self.checked = Some(used.clone());
        self.is_checking = true;
        self.is_trial = view.users.is_empty();
        Some(used.clone())
    }

    fn of(meta: &ProviderConfigMeta) -> Self {
        let is_current = meta.status.observed_generation == meta.generation;
        let ready = conditions::find(&meta.status.conditions, ConditionType::Ready);
        let accepted = ready.filter(|ready| is_current && ready.reason == Reason::Available.as_str());
        Self {
            uid: meta.uid.clone(),
            accepted: accepted.map(|condition| condition.message.clone()),
            checked: None,
            check: ConfigurationCheck::Pending,
            is_checking: false,
            is_trial: false,
            is_due: false,
            is_writing: false,
            written_version: Version(0),
            failures: 0,
            write_failures: 0,
            write_again: None,
            retry_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ProviderConfigStatus;
    use model::Version;

    fn view(name: &str, users: &[&str]) -> ProviderConfigView {
        ProviderConfigView {
            name: name.into(),
            provider: "cloud".into(),
            meta: Arc::new(ProviderConfigMeta {
                uid: name.into(),
                version: Version(1),
                generation: 1,
                deleting: false,
                finalizers: Vec::new(),
                status: ProviderConfigStatus::default(),
            }),
            configuration: Ok(testkit::provider_use(name)),
            users: users.iter().map(|user| (*user).into()).collect(),
            abandoned: BTreeMap::new(),
        }
    }

    #[test]
    fn a_provider_config_without_users_waits_for_the_trial_of_another() {
        let (unused, used) = (view("unused", &[]), view("used", &["disk"]));
        let mut tracked = TrackedProviderConfig::of(&unused.meta);
        assert_eq!(tracked.next_check(&unused, true), None);
        assert!(tracked.is_due && tracked.retry_at.is_none(), "the end of the other trial checks it");
        assert!(tracked.next_check(&unused, false).is_some());
        assert!(tracked.is_trial && !tracked.is_due);
        let mut tracked = TrackedProviderConfig::of(&used.meta);
        assert!(tracked.next_check(&used, true).is_some(), "objects need it");
        assert!(!tracked.is_trial);
        // A retry that is due waits too.
        (tracked.is_checking, tracked.is_due) = (false, true);
        let no_longer_used = ProviderConfigView { users: Vec::new().into_iter().collect(), ..used };
        assert_eq!(tracked.next_check(&no_longer_used, true), None);
        assert!(tracked.is_due);
        assert!(tracked.next_check(&no_longer_used, false).is_some());
    }
}

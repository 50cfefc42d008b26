//! The `ProviderConfigs` of the namespace: whether their providers accept them, who uses them, and what their status says.
//! One that is used is held by a finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::index::{SettingsMeta, SettingsView};
use super::provider_status::{Trial, notes, status};
use super::time::Time;
use super::{About, Command, Reconciler, retry};
use crate::api::IN_USE;
use crate::api::conditions::ConditionType;
use crate::model::{ProviderUse, Reason};

/// How long what happens is gathered before all provider configurations are looked at: that costs a look at every
/// Resource.
const GATHERED: Duration = Duration::from_millis(200);

/// What is remembered of the `ProviderConfigs`.
#[derive(Debug, Default)]
pub(super) struct ProviderConfigs {
    known: BTreeMap<Arc<str>, Known>,
    /// When to look at them all.
    look_at: Option<Time>,
}

#[derive(Debug)]
struct Known {
    uid: Arc<str>,
    /// What its status says of the present generation when the provider has accepted it. So a controller that starts
    /// again need not start every provider of every namespace only to see that.
    accepted: Option<String>,
    /// The settings that were tried, or are being tried.
    tried: Option<Arc<ProviderUse>>,
    trial: Trial,
    /// A call to the provider is under way.
    is_tried: bool,
    /// A request to the API server is under way.
    is_written: bool,
    /// How often the settings were refused in a row.
    failures: u32,
    /// How often they could not be written in a row.
    unwritten: u32,
    /// When to try again.
    again: Option<Time>,
}

impl Reconciler {
    /// Does what is due about `ProviderConfigs`; returns the time at which more will be.
    pub(super) fn tend_provider_configs(&mut self) -> Option<Time> {
        let now = self.now.time;
        if self.index.take_settings_touched() {
            self.provider_configs.look_at.get_or_insert(now + GATHERED);
        }
        let next = self.provider_configs.next()?;
        if next > now {
            return Some(next);
        }
        self.provider_configs.look_at = None;
        let views = self.index.settings(self.schedule.readings());
        self.provider_configs.known.retain(|name, _| views.iter().any(|view| view.name == *name));
        for view in views {
            self.tend(view);
        }
        self.provider_configs.next()
    }

    fn tend(&mut self, view: SettingsView) {
        let known = self.provider_configs.known.entry(view.name.clone()).or_insert_with(|| Known::of(&view.meta));
        if known.uid != view.meta.uid {
            *known = Known::of(&view.meta);
        }
        let is_current = view.meta.status.observed_generation == view.meta.generation;
        if is_current && matches!(view.settled, Err((Reason::Waiting, _))) {
            // The inputs are just being read. What was known of them a moment ago stands.
            return;
        }
        if let Some(used) = known.next_trial(&view, self.now.time) {
            self.commands.push(Command::TryProvider(view.name.clone(), used));
        }
        if known.is_written {
            return;
        }
        let has = view.meta.finalizers.iter().any(|finalizer| finalizer == IN_USE);
        // The API server takes no new finalizer of what is being deleted.
        let wants = !view.users.is_empty() && (has || !view.meta.deleting);
        let status = status(&view, &known.trial, self.now.wall);
        if has == wants && status == view.meta.status {
            return;
        }
        known.is_written = true;
        for note in notes(&view.meta.status, &status) {
            let (name, uid) = (view.name.clone(), view.meta.uid.clone());
            self.report(About::ProviderConfig { name, uid }, note);
        }
        let finalizers = (has != wants).then(|| {
            let others = view.meta.finalizers.iter().filter(|finalizer| *finalizer != IN_USE).cloned();
            others.chain(wants.then(|| IN_USE.to_owned())).collect()
        });
        let (view, status) = (Box::new(view), Box::new(status));
        self.commands.push(Command::WriteProviderConfig { view, status, finalizers });
    }

    /// Takes in what a provider says to a configuration.
    pub(super) fn provider_tried(&mut self, name: &Arc<str>, used: &Arc<ProviderUse>, trial: Trial) {
        let (now, draw) = (self.now.time, self.draws.number());
        let Some(known) = self.provider_configs.known.get_mut(name) else { return };
        known.is_tried = false;
        // Another one may be wanted by now.
        if known.tried.as_ref() == Some(used) {
            let refused = matches!(trial, Trial::Refused(_));
            known.failures = if refused { known.failures + 1 } else { 0 };
            known.again = refused.then(|| now + retry::delay(known.failures, draw));
            known.trial = trial;
        }
        self.provider_configs.look_at = Some(now);
    }

    /// Takes in whether a `ProviderConfig` could be written.
    pub(super) fn provider_config_written(&mut self, name: &Arc<str>, done: bool) {
        let (now, draw) = (self.now.time, self.draws.number());
        let Some(known) = self.provider_configs.known.get_mut(name) else { return };
        known.is_written = false;
        known.unwritten = if done { 0 } else { known.unwritten + 1 };
        if done {
            self.provider_configs.look_at = Some(now);
        } else {
            let at = now + retry::delay(known.unwritten, draw);
            self.provider_configs.look_at.get_or_insert(at);
        }
    }
}

impl ProviderConfigs {
    /// When something is to be done next.
    fn next(&self) -> Option<Time> {
        self.known.values().filter_map(|known| known.again).chain(self.look_at).min()
    }
}

impl Known {
    /// The configuration that the provider is to be tried with now, if it is to be tried.
    fn next_trial(&mut self, view: &SettingsView, now: Time) -> Option<Arc<ProviderUse>> {
        let wanted = view.settled.as_ref().ok();
        if let Some(message) = self.accepted.take() {
            self.tried = wanted.cloned();
            self.trial = Trial::Accepted { version: view.meta.status.version.clone(), message };
        }
        if self.tried.as_ref() != wanted {
            (self.tried, self.trial, self.failures, self.again) = (None, Trial::Open, 0, None);
        }
        // What is not used any more and is to go is not worth a process.
        let needed = !(view.meta.deleting && view.users.is_empty());
        let due = self.tried.is_none() || self.again.is_some_and(|at| at <= now);
        let used = wanted.filter(|_| needed && due && !self.is_tried)?;
        self.tried = Some(used.clone());
        self.is_tried = true;
        self.again = None;
        Some(used.clone())
    }

    fn of(meta: &SettingsMeta) -> Self {
        let is_current = meta.status.observed_generation == meta.generation;
        let accepted = |condition: &&Condition| {
            condition.type_ == ConditionType::Ready.as_str() && condition.reason == Reason::Available.as_str()
        };
        let accepted = meta.status.conditions.iter().find(accepted).filter(|_| is_current);
        Self {
            uid: meta.uid.clone(),
            accepted: accepted.map(|condition| condition.message.clone()),
            tried: None,
            trial: Trial::Open,
            is_tried: false,
            is_written: false,
            failures: 0,
            unwritten: 0,
            again: None,
        }
    }
}

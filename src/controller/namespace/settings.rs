//! The `ProviderConfigs` of the namespace: whether their providers accept them, who uses them, and what their status says.
//! One that is used is held by a finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tokio::time::Instant;

use super::{Chore, NamespaceTask};
use crate::api::conditions::ConditionType;
use crate::api::{self, IN_USE, ProviderConfigStatus};
use crate::controller::index::{Event, SettingsMeta, SettingsView};
use crate::controller::settings::{Trial, notes, status};
use crate::controller::summarize::Note;
use crate::controller::{retry, watch};
use crate::load::Interner;
use crate::model::{ProviderUse, Reason};

/// How long what happens is gathered before all settings are looked at: that costs a look at every Resource.
const GATHERED: Duration = Duration::from_millis(200);

/// What is remembered of the `ProviderConfigs`.
#[derive(Debug, Default)]
pub(super) struct Settings {
    known: BTreeMap<Arc<str>, Known>,
    /// When to look at them all.
    look_at: Option<Instant>,
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
    again: Option<Instant>,
}

/// What became of a chore about a `ProviderConfig`.
#[derive(Debug)]
pub(super) enum SettingsDone {
    /// The provider was configured, or was not.
    Tried(Arc<ProviderUse>, Trial),
    /// It was written, or could not be.
    Written(bool),
}

impl NamespaceTask {
    /// Does what is due about `ProviderConfigs`; gives the time at which more will be.
    pub(super) fn tend_settings(&mut self, now: Instant) -> Option<Instant> {
        if self.shared.index().take_settings_touched() {
            self.settings.look_at.get_or_insert(now + GATHERED);
        }
        let next = self.settings.next()?;
        if next > now {
            return Some(next);
        }
        self.settings.look_at = None;
        let views = self.shared.index().settings(self.run.readings());
        self.settings.known.retain(|name, _| views.iter().any(|view| view.name == *name));
        for view in views {
            self.tend(view, now);
        }
        self.settings.next()
    }

    fn tend(&mut self, view: SettingsView, now: Instant) {
        let known = self.settings.known.entry(view.name.clone()).or_insert_with(|| Known::of(&view.meta));
        if known.uid != view.meta.uid {
            *known = Known::of(&view.meta);
        }
        let is_current = view.meta.status.observed_generation == view.meta.generation;
        if is_current && matches!(view.settled, Err((Reason::Waiting, _))) {
            // The inputs are just being read. What was known of them a moment ago stands.
            return;
        }
        let wanted = view.settled.as_ref().ok();
        if let Some(message) = known.accepted.take() {
            known.tried = wanted.cloned();
            known.trial = Trial::Accepted { version: view.meta.status.version.clone(), message };
        }
        if known.tried.as_ref() != wanted {
            (known.tried, known.trial, known.failures, known.again) = (None, Trial::Open, 0, None);
        }
        // What nobody uses any more and is to go is not worth a process.
        let needed = !(view.meta.deleting && view.users.is_empty());
        let due = known.tried.is_none() || known.again.is_some_and(|at| at <= now);
        if let Some(used) = wanted.filter(|_| needed && due && !known.is_tried) {
            known.tried = Some(used.clone());
            known.is_tried = true;
            known.again = None;
            self.try_settings(view.name.clone(), used.clone());
        }
        let Some(known) = self.settings.known.get_mut(&view.name).filter(|known| !known.is_written) else { return };
        let has = view.meta.finalizers.iter().any(|finalizer| finalizer == IN_USE);
        // The API server takes no new finalizer of what is being deleted.
        let wants = !view.users.is_empty() && (has || !view.meta.deleting);
        let status = status(&view, &known.trial, self.context.engine.clock.now());
        if has == wants && status == view.meta.status {
            return;
        }
        known.is_written = true;
        let told = notes(&view.meta.status, &status);
        for note in told {
            self.tell_settings(&view, note);
        }
        let finalizers = (has != wants).then(|| {
            let others = view.meta.finalizers.iter().filter(|finalizer| *finalizer != IN_USE).cloned();
            others.chain(wants.then(|| IN_USE.to_owned())).collect()
        });
        self.write_settings(view, status, finalizers);
    }

    /// Configures the provider, which also is ready then for whoever comes.
    fn try_settings(&mut self, name: Arc<str>, used: Arc<ProviderUse>) {
        let context = self.context.clone();
        self.chores.spawn(async move {
            let Some(driver) = context.engine.drivers.providers() else { return Chore::Done };
            let trial = match driver.configure(&used).await {
                Ok(warnings) => {
                    let version = driver.facts(&used.provider).and_then(|facts| facts.version);
                    Trial::accepted(version, &warnings)
                }
                Err(error) => Trial::Refused(error.line()),
            };
            Chore::Settings(name, SettingsDone::Tried(used, trial))
        });
    }

    fn write_settings(&mut self, view: SettingsView, status: ProviderConfigStatus, finalizers: Option<Vec<String>>) {
        let (context, namespace) = (self.context.clone(), self.shared.name().clone());
        self.chores.spawn(async move {
            let api: Api<api::ProviderConfig> = Api::namespaced(context.client.clone(), &namespace);
            let written = write(&api, &view, &status, finalizers).await;
            context.metrics.wrote("status", written.is_ok());
            let done = match written {
                Ok(object) => {
                    let account = &context.default_service_account;
                    let observed = watch::observe_settings(&object, account, &mut Interner::default());
                    // Should it be gone by now, the watch has told so, or is about to.
                    if object.metadata.deletion_timestamp.is_none() || !observed.meta.finalizers.is_empty() {
                        context.world.apply(&namespace, Event::ProviderConfigApplied(observed));
                    }
                    true
                }
                // It is gone; there is nobody to tell.
                Err(kube::Error::Api(error)) if error.code == 404 => true,
                Err(error) => {
                    let name = &*view.name;
                    tracing::warn!(%namespace, name, %error, "a ProviderConfig could not be written; it is tried again");
                    false
                }
            };
            Chore::Settings(view.name, SettingsDone::Written(done))
        });
    }

    /// Takes in how a chore about a `ProviderConfig` ended.
    pub(super) fn take_settings(&mut self, name: &Arc<str>, done: SettingsDone) {
        let (now, draw) = (Instant::now(), self.context.engine.random.number());
        let Some(known) = self.settings.known.get_mut(name) else { return };
        match done {
            SettingsDone::Tried(used, trial) => {
                known.is_tried = false;
                // Others may be wanted by now.
                if known.tried.as_ref() == Some(&used) {
                    let refused = matches!(trial, Trial::Refused(_));
                    known.failures = if refused { known.failures + 1 } else { 0 };
                    known.again = refused.then(|| now + retry::delay(known.failures, draw));
                    known.trial = trial;
                }
            }
            SettingsDone::Written(done) => {
                known.is_written = false;
                known.unwritten = if done { 0 } else { known.unwritten + 1 };
                if !done {
                    let at = now + retry::delay(known.unwritten, draw);
                    self.settings.look_at.get_or_insert(at);
                    return;
                }
            }
        }
        self.settings.look_at = Some(now);
    }

    fn tell_settings(&self, view: &SettingsView, note: Note) {
        let (namespace, name) = (&**self.shared.name(), &*view.name);
        if note.warning {
            tracing::warn!(namespace, name, reason = note.reason, "ProviderConfig: {}", note.note);
        } else {
            tracing::info!(namespace, name, reason = note.reason, "ProviderConfig: {}", note.note);
        }
        if !self.shared.index().is_terminating() {
            let regarding = ObjectReference {
                api_version: Some(api::API_VERSION.to_owned()),
                kind: Some("ProviderConfig".to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: Some(view.meta.uid.to_string()),
                ..ObjectReference::default()
            };
            self.context.events.tell(regarding, note);
        }
    }
}

impl Settings {
    /// When something is to be done next.
    fn next(&self) -> Option<Instant> {
        self.known.values().filter_map(|known| known.again).chain(self.look_at).min()
    }
}

impl Known {
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

/// Writes the status, and then the finalizers if they are to be others.
async fn write(
    api: &Api<api::ProviderConfig>,
    view: &SettingsView,
    status: &ProviderConfigStatus,
    finalizers: Option<Vec<String>>,
) -> Result<api::ProviderConfig, kube::Error> {
    let params = PatchParams::default();
    // Fields that the new status no longer has are removed only when they are named.
    let said = serde_json::json!({
        "metadata": { "uid": view.meta.uid },
        "status": {
            "observedGeneration": status.observed_generation,
            "conditions": status.conditions,
            "provider": status.provider,
            "version": status.version,
            "users": status.users,
        },
    });
    let status_differs = *status != view.meta.status;
    let Some(finalizers) = finalizers else {
        return api.patch_status(&view.name, &params, &Patch::Merge(said)).await;
    };
    let written =
        if status_differs { Some(api.patch_status(&view.name, &params, &Patch::Merge(said)).await?) } else { None };
    let version = match &written {
        Some(object) => object.metadata.resource_version.clone(),
        None => Some(view.meta.version.0.to_string()),
    };
    let marks = serde_json::json!({
        "metadata": { "uid": view.meta.uid, "resourceVersion": version, "finalizers": finalizers },
    });
    api.patch(&view.name, &params, &Patch::Merge(marks)).await
}

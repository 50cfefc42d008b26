//! Requests and responses of driver calls.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tokio::sync::watch;

use super::masked::redacted;
use super::provider::ProcessMask;
use model::{
    Diagnostic, Diagnostics, DriverError, Namespace, ObjectState, Provider, ProviderUse, Reason, RecordedObject,
    Secrets, TypeName, Value,
};
use process::lock;

/// The context of a call: everything besides its values.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    pub type_name: TypeName,
    pub namespace: Namespace,
    /// Name and instance as a string, for owner annotations and messages.
    pub address: Arc<str>,
    /// The provider and its configuration; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// The service account to impersonate; empty for the identity of the process (on files).
    pub service_account: Arc<str>,
    /// Reads and plans return by the deadline. A change that cannot be repeated continues until it returns; at the
    /// deadline Purlin sends its provider a stop request and reports the delay to the user.
    pub deadline: Timestamp,
    /// The ID of the operation, for drivers that store it in the object; empty for reads and plans.
    pub operation_id: Arc<str>,
    /// Collects the warnings of the driver, also of a failed call. Paths are relative to `spec.config`.
    pub warnings: Warnings,
    /// Why an `apply` call has not returned yet.
    pub delay: CallDelay,
    /// Asks an `apply` call to return early.
    pub stop: StopRequest,
    /// The values that the expressions of the object read. Their secrets are masked in answers, as those of the
    /// arguments of a call.
    pub read: Arc<[Value]>,
    /// The secrets that only the driver knows, which are masked in answers as well.
    pub masks: Masks,
}

/// What a call waits for, as far as its driver knows. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CallDelay(Arc<Mutex<(String, Secrets)>>);

impl CallDelay {
    /// Sets what the call waits for, in one line.
    pub fn set(&self, what: String) {
        let mut known = lock(&self.0);
        known.0 = known.1.redact(what);
    }

    /// Masks secrets in what is set from now on.
    pub(crate) fn mask(&self, secrets: Secrets) {
        lock(&self.0).1 = secrets;
    }

    /// `None` if the call waits for nothing but its response.
    pub fn get(&self) -> Option<String> {
        Some(lock(&self.0).0.clone()).filter(|what| !what.is_empty())
    }
}

/// Asks a call that has no more effects, and only waits for other clients, to return. The next plan makes it again, and waits
/// again. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<watch::Sender<bool>>);

impl StopRequest {
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is requested.
    pub(crate) async fn requested(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}

/// The masks of the processes that a call used. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Masks(Arc<Mutex<Vec<Arc<ProcessMask>>>>);

impl Masks {
    pub(crate) fn add(&self, mask: &Arc<ProcessMask>) {
        lock(&self.0).push(Arc::clone(mask));
    }

    /// `secrets`, and those of the processes.
    pub(crate) fn with_secrets(&self, secrets: Secrets) -> Secrets {
        lock(&self.0).iter().fold(secrets, |secrets, mask| secrets.and(&mask.secrets()))
    }
}

impl CallContext {
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref().map(|used| used.provider.as_ref())
    }
}

/// A create (`prior` is `None`), an update, or a destroy (`planned` is `None`).
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    pub prior: Option<Arc<RecordedObject>>,
    /// The evaluated configuration, wholly known. `Null` for a destroy.
    pub config: Value,
    pub planned: Option<Value>,
    /// The private data of the plan. For a destroy, those of the plan that requires the replacement of the object; empty
    /// if there is none.
    pub private: Arc<[u8]>,
}

/// The result of `apply`. A partially created object is returned together with the error.
#[derive(Debug, Default)]
pub struct ApplyResponse {
    /// The object after the call. `None` after a create means that no object exists. `None` after a failed update or
    /// destroy means that the prior object is unchanged as far as is known.
    pub object: Option<ObjectState>,
    pub error: Option<DriverError>,
    /// The object may differ from its plan without an error, for example because of admission webhooks or the legacy
    /// type system of the plugin protocol.
    pub allows_differences: bool,
    /// It is unknown whether the call took effect, because the callee died or did not respond. The intent stays open
    /// and recovery resolves it.
    pub outcome_unknown: bool,
    /// A create returned early after a stop request (`Providers::stop`): the object may still be complete. Or a destroy did
    /// (`CallContext::stop`): the object still exists.
    pub interrupted: bool,
    /// The object exists but is not ready; [`Driver::wait_ready`] waits for it until this deadline.
    pub ready_by: Option<Timestamp>,
    /// The object was found after an interrupted create, so it may differ from its plan.
    pub recovered: bool,
}

#[derive(Debug)]
pub struct ReadinessError {
    pub error: DriverError,
    /// The last observation of the object.
    pub last: Observation,
}

#[derive(Debug)]
pub enum Observation {
    /// The object could not be read, so its readiness is unknown.
    Nothing,
    Object(ObjectState),
    /// The object no longer exists.
    Missing,
}

impl From<DriverError> for ReadinessError {
    fn from(error: DriverError) -> Self {
        Self { error, last: Observation::Nothing }
    }
}

/// The warnings of one call or of several related calls, apart from their results: a failed call has warnings too. Clones share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Diagnostics>>);

impl Warnings {
    /// Adds a warning unless it is a duplicate: calls may be repeated, and providers repeat warnings.
    pub fn add(&self, warning: Diagnostic) {
        let mut warnings = lock(&self.0);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Masks secrets in the collected warnings.
    pub(crate) fn mask(&self, secrets: &Secrets) {
        self.take().into_iter().for_each(|warning| self.add(redacted(secrets, warning)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Removes the warnings with this reason. Returns whether there were any.
    pub fn remove(&self, reason: Reason) -> bool {
        let mut warnings = lock(&self.0);
        let before = warnings.len();
        warnings.retain(|warning| warning.reason != reason);
        warnings.len() < before
    }

    pub fn take(&self) -> Diagnostics {
        std::mem::take(&mut *lock(&self.0))
    }
}

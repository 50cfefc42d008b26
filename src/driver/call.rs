//! What a call of a driver is given besides its object, and what a change answers.

use std::sync::Arc;

use jiff::Timestamp;

use super::Warnings;
use crate::model::{DriverError, ObjectState, Provider, ProviderUse, RecordedObject, Value};

/// Everything a call needs besides its values.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The resource type.
    pub type_name: Arc<str>,
    /// Namespace of the Resource.
    pub namespace: Arc<str>,
    /// Name and instance, as text: for owner marks and messages.
    pub address: Arc<str>,
    /// The provider, with its settings; `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// As which service account to act; empty: as the process itself (local mode).
    pub service_account: Arc<str>,
    /// How long the call may take. What reads or plans has ended by then. A change that cannot be made again goes on until
    /// it is answered: then its provider is asked to give up, and the user is told.
    pub deadline: Timestamp,
    /// The id of the operation, for drivers that leave it at the object; empty for reads and plans.
    pub operation_id: Arc<str>,
    /// Takes what the driver warns of, whatever becomes of the call. Paths are below `spec.config`.
    pub warnings: Warnings,
}

impl CallContext {
    /// Which provider is called, whatever its settings.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref().map(|used| used.provider.as_ref())
    }
}

/// What `apply` is asked: to create (`prior` is `None`), update, or destroy (`planned` is `None`).
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// The object as it is.
    pub prior: Option<Arc<RecordedObject>>,
    /// The evaluated configuration, wholly known; `Null` for a destroy.
    pub config: Value,
    /// The planned value.
    pub planned: Option<Value>,
    /// The private bytes of the plan.
    pub private: Arc<[u8]>,
}

/// What `apply` answers. Both may be set: an object that was made half way comes with the error.
#[derive(Debug, Default)]
pub struct ApplyResponse {
    /// The object afterwards. `None` after a create: nothing was made. `None` after an update or a destroy with an
    /// error: the prior object stands as far as is known.
    pub object: Option<ObjectState>,
    /// Why it did not work.
    pub error: Option<DriverError>,
    /// Others take part in what the object becomes, so it may differ from its plan, as with the legacy type system of
    /// the plugin protocol: differences are no fault of the driver.
    pub tolerant: bool,
    /// Nobody can tell whether the call did its work: who was called is gone, or did not answer. The intent stays open,
    /// and recovery finds out.
    pub unsettled: bool,
    /// A create came back early because we asked for that (`Providers::stop`): the object may be complete all the same.
    pub interrupted: bool,
    /// The object is there and not ready yet, and may take until then to get so: [`Driver::wait_ready`] says when it is.
    pub ready_by: Option<Timestamp>,
    /// The object was looked up after a create that was cut, so it need not be what was planned.
    pub found: bool,
}

/// Why an object has not got ready.
#[derive(Debug)]
pub struct NotReady {
    /// What is wrong.
    pub error: DriverError,
    /// What was seen of the object last.
    pub last: LastSeen,
}

/// What a wait has seen of its object.
#[derive(Debug)]
pub enum LastSeen {
    /// Nothing: whether it is ready is as open as before.
    Nothing,
    /// It is there like this.
    Object(ObjectState),
    /// It does not exist any more.
    Gone,
}

impl From<DriverError> for NotReady {
    fn from(error: DriverError) -> Self {
        Self { error, last: LastSeen::Nothing }
    }
}

//! The progress of planning one object: the results of its driver calls and the next action.

use std::sync::Arc;

use super::DriverRequest;
use super::decision::Decision;
use model::{
    ChangeCause, DeposedKey, Diagnostics, Drift, DriverError, Health, Path, ProviderUse, RecordedObject, Value,
};

/// The purpose of a driver call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPurpose {
    Current,
    Deposed(DeposedKey),
    /// Checking the published copies.
    Copies,
    Import,
    Plan,
    Data,
}

pub enum NextAction {
    /// Wait for a response.
    Wait,
    /// Make these calls.
    Call(Vec<(CallPurpose, DriverRequest)>),
    /// All reads are done, so the configuration can be evaluated.
    Evaluate,
    Decided(Box<Decision>),
}

/// The result of a read.
#[derive(Clone, Debug)]
pub enum RefreshResult {
    Found(Arc<RecordedObject>),
    Missing,
    /// The object was not found, but the provider configuration has changed since it was last read.
    MissingAfterConfigChange,
    Failed(DriverError),
}

/// Why an object is replaced.
#[derive(Debug)]
pub enum Replacement {
    Tainted,
    Requested,
    Interrupted,
    /// `replaceTriggeredBy`, with the cause.
    Triggered(ChangeCause),
    /// Attributes that cannot be changed in place.
    Attributes(Vec<Path>),
}

#[derive(Default)]
pub struct Progress {
    pub open_reads: usize,
    /// The provider with its configuration. `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    /// `None` if the object was not read, so that the record applies.
    pub current: Option<RefreshResult>,
    pub deposed: Vec<(DeposedKey, RefreshResult)>,
    pub imported: Option<Arc<RecordedObject>>,
    /// The health of the object, if it was read.
    pub health: Option<Health>,
    pub import_requested: bool,
    /// The import takes over an object that Purlin created for this address earlier.
    pub adopts: bool,
    /// The evaluated configuration for the driver, with the types of the schema.
    pub config: Value,
    /// The evaluated configuration before `ignoreChanges`, if that changes it.
    pub configured: Option<Value>,
    /// The id of the provider configuration of the plan.
    pub configuration: Arc<str>,
    pub replacement: Option<Replacement>,
    /// The private data of the driver's plan for the existing object.
    pub update_private: Arc<[u8]>,
    /// Another client changed a published copy.
    pub copies_drifted: bool,
    /// The drift, if the configuration has not changed.
    pub drift: Option<Drift>,
    /// Why a data source cannot be read during planning.
    pub delayed: Option<ChangeCause>,
    pub data_read: bool,
    /// Warnings of evaluation and planning.
    pub diagnostics: Diagnostics,
    pub read_warnings: Diagnostics,
}

impl Progress {
    /// Whether the object was read, whether it exists or not.
    pub fn was_read(&self) -> bool {
        self.data_read
            || self.imported.is_some()
            || matches!(self.current, Some(RefreshResult::Found(_) | RefreshResult::Missing))
    }

    /// The `because` of a change of an imported object.
    pub fn imported_because(&self) -> ChangeCause {
        if self.adopts { ChangeCause::Adopted } else { ChangeCause::Imported }
    }

    /// Whether the recorded object was read and no longer exists.
    pub fn found_missing(&self) -> bool {
        matches!(self.current, Some(RefreshResult::Missing))
    }
}

impl Replacement {
    /// The `because` in the plan.
    pub fn because(&self) -> ChangeCause {
        match self {
            Self::Tainted => ChangeCause::Tainted,
            Self::Requested => ChangeCause::Requested,
            Self::Interrupted => ChangeCause::Interrupted,
            Self::Triggered(trigger) => trigger.clone(),
            Self::Attributes(_) => ChangeCause::Forced,
        }
    }
}

pub fn decided(decision: Decision) -> NextAction {
    NextAction::Decided(Box::new(decision))
}

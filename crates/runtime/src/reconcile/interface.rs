//! What goes into the reconciler and comes out of it: signals and the environment, commands and figures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::held_plan::{HeldPlan, PlanOwner};
use super::index::{InputKey, KnownRecord, PlanId, ProviderConfigView};
use super::planning::{PlanRequest, PlanResult};
use super::provider_status::ConfigurationCheck;
use super::summarize::{Note, ObjectState};
use super::time::Time;
use crate::execute::{Adoption, JournalError, Permits, ProgressKind, Recovery, WorkerCommand, WorkerEvent, Workers};
use api::{PlanStatus, ProviderConfigStatus, Status};
use engine::load::Instance;
use engine::plan::moves::Move;
use model::{
    Address, Diagnostics, Name, Namespace, ProviderUse, Quota, Reason, Recorded, RecordedObject, Step, Stored,
    TypeName, Uid,
};
/// The differences between the controller and `purlin dev`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    pub max_running_steps: usize,
    /// The maximum number of names in one plan; a component is never split. Planning components together is cheaper,
    /// but a slow driver must not block too many of them.
    pub max_names_per_plan: usize,
    /// While so many steps wait for others to end, components with only new Resources are not planned. `None`: no limit.
    /// Namespaces in which changes wait have equal shares of it.
    pub max_waiting_steps: Option<usize>,
    /// The limits of a namespace, unless its annotation sets others.
    pub quota: Quota,
    /// Whether to destroy an object whose Resource no longer exists without a deletion request. In a cluster,
    /// finalizers request deletion, and a record without a Resource is abandoned.
    pub destroy_orphans: bool,
    /// Whether changes wait for the approvals that `spec.approval` requires. On files, there is no Plan to approve.
    pub requires_approval: bool,
}

/// A change that the reconciler must process, other than the events of watches.
#[derive(Debug)]
pub enum Signal {
    /// The requested time has come, or [`Reconciler::observe`](super::Reconciler::observe) has received an event.
    Wake,
    /// This replica has become the leader, or a turn panicked. Everything is checked; running calls continue.
    Started,
    /// This replica is no longer the leader.
    LeadershipLost,
    ShuttingDown,
    /// Plan these objects now, with a reading.
    ReadObjects(BTreeSet<Address>),
    /// Retry all failed objects now.
    Retry,
    /// A provider process can start after one could not: retry what waits for its provider.
    ProcessAvailable,
    /// A [`Command::Plan`] has finished.
    Planned(Box<PlanResult>),
    /// A [`Command::Plan`] for these names panicked.
    PlanningPanicked(BTreeSet<Name>),
    /// Progress of a [`Command::Execute`].
    Worker(WorkerEvent),
    /// A [`Command::Recover`] has finished.
    Recovered(Box<RecoveryResult>),
    /// A [`Command::Move`] has finished.
    Moved(Box<MoveResult>),
    /// The release of the Resource with this name and UID failed.
    ReleaseFailed(Name, Uid),
    /// The [`Command::Claim`] of this name has succeeded (`true`) or failed.
    Claimed(Name, bool),
    /// The response of a provider to the configuration of a `ProviderConfig`.
    ProviderConfigured(Arc<str>, Arc<ProviderUse>, ConfigurationCheck),
    /// A [`Command::WriteApproval`] has ended: the UID of the Plan, or `None` if it failed.
    ApprovalWritten(Box<ApprovalWrite>, Option<PlanId>),
    /// Writing a `ProviderConfig` has succeeded (`true`) or failed.
    ProviderConfigWritten(Arc<str>, bool),
}

/// A task for the caller of [`Reconciler::react`](super::Reconciler::react).
#[derive(Debug)]
pub enum Command {
    /// Compute a plan; ends with [`Signal::Planned`] or [`Signal::PlanningPanicked`].
    Plan(Box<PlanRequest>),
    /// Cancel all plannings.
    CancelPlans,
    /// Informational: a plan was adopted.
    Adopted { names: BTreeSet<Name>, adoption: Arc<Adoption> },
    /// Informational: the progress of a step.
    Progress(Step, ProgressKind),
    /// Execute an order of the schedule; ends with [`Signal::Worker`].
    Execute(WorkerCommand),
    /// Resolve the open intent of a record; ends with [`Signal::Recovered`].
    Recover(Stored),
    /// Move records; ends with [`Signal::Moved`].
    Move(Box<MoveRequest>),
    /// Watch the object of an instance with the driver of its type.
    Watch { address: Address, type_name: TypeName, service_account: Arc<str>, object: Arc<RecordedObject> },
    /// End the watch of an object.
    Unwatch {
        address: Address,
        /// The type whose driver watches it.
        type_name: TypeName,
    },
    /// Watch exactly these ConfigMaps and Secrets.
    WatchInputs(BTreeSet<InputKey>),
    /// Write the status of a Resource, unless a newer one is queued.
    WriteStatus(StatusTarget, Box<StatusUpdate>),
    /// Report an event to the user.
    Report {
        about: ReportSubject,
        note: Note,
        /// Whether the namespace is terminating: no event can be created in it.
        terminating: bool,
    },
    /// Remove the finalizer and the annotation of a Resource that is being deleted, if the store has no record of it.
    Release { name: Name, uid: Uid },
    /// Add the finalizer and the annotation to a Resource that lacks one of them, unless the store shows that it needs
    /// none; ends with [`Signal::Claimed`].
    Claim {
        uid: Uid,
        /// The address of a record of the Resource, if it has one with an object.
        address: Address,
    },
    /// Read a record again that another process may have written or removed. The result is an [`Event::RecordRead`](super::index::Event::RecordRead) with
    /// this knowledge of the record.
    ReadRecord(Address, KnownRecord),
    /// Configure a provider; ends with [`Signal::ProviderConfigured`].
    ConfigureProvider {
        /// The name of the `ProviderConfig`.
        name: Arc<str>,
        used: Arc<ProviderUse>,
        /// Whether the process is kept, because objects use it.
        keep: bool,
    },
    /// Write a Plan; ends with [`Signal::ApprovalWritten`].
    WriteApproval(Box<ApprovalWrite>),
    /// Write the status and the finalizers of a `ProviderConfig`; ends with [`Signal::ProviderConfigWritten`].
    WriteProviderConfig {
        view: Box<ProviderConfigView>,
        status: Box<ProviderConfigStatus>,
        /// All finalizers, if they change.
        finalizers: Option<Vec<String>>,
    },
}

#[derive(Debug)]
pub struct MoveRequest {
    pub moves: Vec<Move>,
    /// The records that the moves change; executing the moves updates them.
    pub records: Recorded,
    pub(crate) names: BTreeSet<Name>,
    /// The objects whose records may change.
    pub(crate) involved: BTreeSet<Address>,
    /// Warnings of the drivers of new types.
    pub(crate) warnings: Diagnostics,
}

/// The result of the moves of one component.
#[derive(Debug)]
pub struct MoveResult {
    /// The request, with the updated records.
    pub request: MoveRequest,
    pub outcome: Result<(), JournalError>,
}

#[derive(Debug)]
pub struct RecoveryResult {
    pub address: Address,
    pub outcome: Recovery,
    /// Warnings of the driver.
    pub warnings: Diagnostics,
}

/// A write of a Plan.
#[derive(Clone, Debug)]
pub enum ApprovalWrite {
    Create {
        plan: Arc<HeldPlan>,
        /// The Resources under which tools show the Plan.
        owners: Vec<PlanOwner>,
    },
    /// The status of this version of the Plan with this name.
    Status { name: Arc<str>, id: PlanId, status: Box<PlanStatus> },
}

impl ApprovalWrite {
    /// The digest of a Plan that is created, else its name. Only one write of each runs.
    pub fn key(&self) -> &Arc<str> {
        match self {
            Self::Create { plan, .. } => &plan.digest,
            Self::Status { name, .. } => name,
        }
    }
}

/// Identifies a Resource, a `DataSource` or a Module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusTarget {
    pub namespace: Namespace,
    /// The name in its address.
    pub name: Name,
    pub uid: Uid,
}

/// A status to write.
#[derive(Clone, Debug)]
pub struct StatusUpdate {
    pub status: Status,
    /// The generation that the status was computed from. The API server rejects the status if there is a newer generation.
    pub generation: i64,
    /// Identifies the status in the report.
    pub digest: u64,
    pub urgency: Urgency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The Resource is in progress. Final statuses have precedence.
    Interim,
    /// The Resource is idle.
    Final,
    /// The Resource was ready, and a change begins that its spec did not cause. It is written before final statuses: a
    /// client that waits for all Resources must not see the cause of the change ready and this one still ready.
    NoLongerReady,
}

#[derive(Clone, Debug)]
pub enum ReportSubject {
    Resource(Arc<Instance>),
    ProviderConfig {
        name: Arc<str>,
        uid: Uid,
    },
    /// A record without a Resource.
    Record(Address),
}

/// The environment that the reconciler queries during a turn. All responses come from memory.
pub trait Environment: Permits {
    fn can_watch(&self, type_name: &str) -> bool;

    /// Whether the watch of a type reports the health of objects, so that they are ready only when they were seen.
    fn reports_health(&self, type_name: &str) -> bool;

    /// Whether the object of an instance is being watched.
    fn is_watching(&self, type_name: &str, address: &Address) -> bool;

    /// How many namespaces share [`Policy::max_waiting_steps`]: those in which changes wait.
    fn sharing_namespaces(&self) -> usize;
}

/// An environment without watches of objects.
impl Environment for Workers {
    fn can_watch(&self, _type_name: &str) -> bool {
        false
    }

    fn reports_health(&self, _type_name: &str) -> bool {
        false
    }

    fn is_watching(&self, _type_name: &str, _address: &Address) -> bool {
        false
    }

    fn sharing_namespaces(&self) -> usize {
        1
    }
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When to call the reconciler again; `None`: not before the next event.
    pub wake: Option<Time>,
    /// Nothing is running, and only timers or events can cause work.
    pub is_quiet: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Names that are not planned yet.
    pub queued: usize,
    pub abandoned: usize,
    /// Names whose objects the limit of the namespace holds back.
    pub over_quota: usize,
    /// Steps that wait only for a permit or for a quota.
    pub waiting: usize,
    /// Steps that the limit of steps in a minute delays.
    pub over_rate: usize,
    /// Steps that the limit of the size of records delays.
    pub over_record_bytes: usize,
    /// The size of all records.
    pub record_bytes: usize,
    pub objects: BTreeMap<(ObjectState, Reason), usize>,
}

/// What happened since it was last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that were planned again after a failure.
    pub retries: u64,
    /// Readings that found drift.
    pub drift: u64,
}

//! The decision about one object. It becomes a `Change` once the whole plan is final.

use std::sync::Arc;

use super::input::{Id, Node};
use model::{
    Action, Address, ChangeCause, DeposedKey, Diagnostic, Diagnostics, Drift, DriverError, ErrorKind, Health, Path,
    ProviderUse, ReadResult, Reason, RecordedObject, Refusal, Value, errors,
};

/// Why an object, or a destroy of it, has no step.
#[derive(Clone, Debug)]
pub struct Block {
    /// Never empty. The first error, or else the first entry, provides reason and message.
    pub diagnostics: Diagnostics,
    pub waiting_for: Vec<Id>,
    /// Dependents may proceed with the recorded value.
    pub held: bool,
    /// The object must not be changed at all, and neither must its deposed objects.
    pub frozen: bool,
}

/// The driver's plan for an object that gets a step.
#[derive(Debug)]
pub struct PlannedChange {
    pub config: Value,
    pub value: Value,
    pub private: Arc<[u8]>,
    /// As in a prepared step.
    pub destroy_private: Arc<[u8]>,
    pub identity: Option<Value>,
    pub replace_paths: Vec<Path>,
    pub requires_update: bool,
    /// The id of the provider configuration that the identity belongs to.
    pub configuration: Arc<str>,
    pub refusal: Option<Refusal>,
}

#[derive(Debug)]
pub struct Decision {
    pub action: Action,
    /// Set if and only if the action is `Blocked`.
    pub block: Option<Box<Block>>,
    pub because: Option<ChangeCause>,
    /// The recorded, refreshed or imported object. `None` if no object exists.
    pub prior: Option<Arc<RecordedObject>>,
    /// Set for `Create`, `Update`, `Replace` and `Read`.
    pub planned: Option<Box<PlannedChange>>,
    /// Set for a data source that needs no step.
    pub reading: Option<Arc<ReadResult>>,
    /// The old object is forgotten instead of destroyed.
    pub forget: bool,
    /// The value that expressions read. `None` if it is not available, so that dependents wait.
    pub value: Option<Value>,
    /// Whether expressions read a value that differs from the recorded one.
    pub changed: bool,
    /// Whether a replacement creates first. Set when the constraints are applied.
    pub create_first: bool,
    /// Why a create-first replacement keeps its old object for now.
    pub hold_destroy: Option<Box<Block>>,
    /// Why the record must be written: the read, imported or completed object differs from it.
    pub record_differs: Option<ChangeCause>,
    /// A condition depends on unknown values, so an unchanged object gets a step that checks it.
    pub check_later: bool,
    /// Why the published copies must be written.
    pub publishes: Option<ChangeCause>,
    /// Another client changed a published copy.
    pub copies_drifted: bool,
    /// The drift of the object, if the action has no other cause.
    pub drift: Option<Drift>,
    /// The health of the object, if it was read.
    pub health: Option<Health>,
    /// Whether it was read, whether it exists or not.
    pub read: bool,
    /// Whether the recorded object was read and no longer exists.
    pub missing: bool,
    /// Decided before its dependencies, so that it is not planned again when they change.
    pub decided_early: bool,
    /// The called provider with its configuration.
    pub provider: Option<Arc<ProviderUse>>,
    /// Warnings of drivers and of loading.
    pub diagnostics: Diagnostics,
    pub deposed: Vec<DeposedDecision>,
}

/// The decision about one deposed object.
#[derive(Debug)]
pub struct DeposedDecision {
    pub key: DeposedKey,
    pub object: Arc<RecordedObject>,
    pub action: Action,
    pub block: Option<Box<Block>>,
    pub because: Option<ChangeCause>,
    /// Whether it still exists, as far as Purlin knows.
    pub exists: bool,
}

impl Block {
    /// The object cannot be planned. Its dependents wait.
    pub fn broken(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], waiting_for: Vec::new(), held: false, frozen: false }
    }

    /// The object is not changed now. Its dependents read the recorded value.
    pub fn held(diagnostic: Diagnostic) -> Self {
        Self { held: true, ..Self::broken(diagnostic) }
    }

    /// The object and its deposed objects must not be changed. Its dependents read the recorded value.
    pub fn frozen(diagnostic: Diagnostic) -> Self {
        Self { frozen: true, ..Self::held(diagnostic) }
    }

    pub fn waiting_for(mut self, ids: impl IntoIterator<Item = Id>) -> Self {
        self.waiting_for.extend(ids);
        self
    }

    /// A failed driver call.
    pub fn failed(address: &Address, what: &str, error: DriverError) -> Self {
        let reason = error.kind.reason();
        let mut diagnostic = match error.kind {
            ErrorKind::Unavailable => Diagnostic::error(address, reason, error.message),
            _ => Diagnostic::error(address, reason, what).because(error.message),
        };
        diagnostic.path = error.path.map(|path| super::conform::below_config(&path));
        diagnostic.hint = error.hint;
        Self::broken(diagnostic)
    }

    /// Sets the path of the diagnostics that have none.
    pub fn at(mut self, path: Path) -> Self {
        self.diagnostics.iter_mut().for_each(|diagnostic| _ = diagnostic.path.get_or_insert_with(|| path.clone()));
        self
    }

    /// The first error, or else the first diagnostic.
    pub fn cause(&self) -> &Diagnostic {
        let error = errors(&self.diagnostics).next();
        error.or(self.diagnostics.first()).expect("a block has a diagnostic")
    }

    pub fn reason(&self) -> Reason {
        self.cause().reason
    }
}

impl Decision {
    pub fn no_op() -> Self {
        Self {
            action: Action::NoOp,
            block: None,
            because: None,
            prior: None,
            planned: None,
            reading: None,
            forget: false,
            value: None,
            changed: false,
            create_first: false,
            hold_destroy: None,
            record_differs: None,
            check_later: false,
            publishes: None,
            copies_drifted: false,
            drift: None,
            health: None,
            read: false,
            missing: false,
            decided_early: false,
            provider: None,
            diagnostics: Vec::new(),
            deposed: Vec::new(),
        }
    }

    pub fn unchanged(current: Option<&Arc<RecordedObject>>) -> Self {
        Self { value: current.map(|object| object.value.clone()), prior: current.cloned(), ..Self::no_op() }
    }

    /// Dependents read the recorded value if `block` allows it.
    pub fn blocked(block: Block, current: Option<&Arc<RecordedObject>>) -> Self {
        let value = if block.held { current.map(|object| object.value.clone()) } else { None };
        Self { action: Action::Blocked, block: Some(Box::new(block)), value, prior: current.cloned(), ..Self::no_op() }
    }

    /// Replaces the planned step with a block.
    pub fn block(&mut self, block: Block, current: Option<&Arc<RecordedObject>>) {
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let deposed = std::mem::take(&mut self.deposed);
        let (at_once, read, gone) = (self.decided_early, self.read, self.missing);
        let health = self.health.take();
        let blocked = Self { health, diagnostics, deposed, ..Self::blocked(block, current) };
        *self = Self { read, missing: gone, decided_early: at_once, ..blocked };
    }

    /// Whether the object exists without a record, which only an import does.
    pub fn imports(&self, node: Node<'_>) -> bool {
        self.prior.is_some() && node.current().is_none()
    }

    pub fn is_blocked(&self) -> bool {
        self.block.is_some()
    }

    /// Why the driver refuses the change as things are now.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.planned.as_ref()?.refusal.as_ref()
    }

    /// Whether the current object is destroyed or forgotten without a successor.
    pub fn removes(&self) -> bool {
        matches!(self.action, Action::Destroy | Action::Forget)
    }

    /// Whether the plan has a step `C(x)` for the object. Record-only steps and reads do not count.
    pub fn changes_object(&self) -> bool {
        matches!(self.action, Action::Create | Action::Update | Action::Replace)
    }
}

impl DeposedDecision {
    pub fn block(&mut self, block: Block) {
        self.action = Action::Blocked;
        self.block = Some(Box::new(block));
        self.because = None;
    }

    /// Keeps the object because nothing of its address is changed.
    pub fn keep(&mut self, address: &Address, block: &Block) {
        let cause = block.cause();
        let what = format!("the deposed object is kept while its object is blocked: {}", cause.summary);
        let mut diagnostic = Diagnostic::error(address, cause.reason, what);
        diagnostic.severity = cause.severity;
        self.block(Block::held(diagnostic).waiting_for(block.waiting_for.iter().copied()));
    }

    pub fn removes(&self) -> bool {
        matches!(self.action, Action::Destroy | Action::Forget)
    }
}

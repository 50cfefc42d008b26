//! What has been decided about one object so far. A draft becomes a `Change` once the whole plan is settled.

use std::sync::Arc;

use super::scene::Id;
use crate::model::{
    Action, Address, DeposedKey, Diagnostic, Diagnostics, Drift, DriverError, ErrorKind, Path, ProviderUse, Reading,
    Reason, RecordedObject, Severity, Value,
};

/// Why an object, or one of its destroys, has no step.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// At least one; the first error among them (or the first of all) gives reason and message.
    pub diagnostics: Diagnostics,
    pub waiting_for: Vec<Id>,
    /// Dependents may go on with the recorded value: nothing is wrong with the object, it is only not touched now.
    pub held: bool,
    /// Nothing at all may be done about the object, its leftovers included.
    pub frozen: bool,
}

/// What the driver planned for an object that gets a step.
#[derive(Debug)]
pub(super) struct Planned {
    pub config: Value,
    pub value: Value,
    pub private: Arc<[u8]>,
    pub identity: Option<Value>,
    pub replace_paths: Vec<Path>,
    pub tells: bool,
}

/// The decision about one object.
#[derive(Debug)]
pub(super) struct Draft {
    pub action: Action,
    /// Set when, and only when, the action is `Blocked`.
    pub block: Option<Box<Block>>,
    pub because: Option<String>,
    /// The object as it is: as recorded, refreshed or imported. `None` when there is none (any more).
    pub prior: Option<Arc<RecordedObject>>,
    /// `Create`, `Update` and `Replace` have it.
    pub planned: Option<Box<Planned>>,
    /// A data source that needs no step has it.
    pub reading: Option<Arc<Reading>>,
    /// The old object is forgotten, not destroyed.
    pub forget: bool,
    /// What expressions see of it; `None`: nothing to see, so dependents wait.
    pub seen: Option<Value>,
    /// Whether expressions see something else than what is recorded.
    pub changed: bool,
    /// Whether a replacement creates first. Known once the plan is settled.
    pub create_first: bool,
    /// A create-first replacement keeps its old object for now.
    pub hold_destroy: Option<Box<Block>>,
    /// The object is not what its record says (read, imported, completed), so the record is written.
    pub record_differs: Option<&'static str>,
    /// A condition reads what is not known yet, so an object that stays as it is gets a step that checks it.
    pub check_later: bool,
    /// What it publishes is not what its record says, so it gets a step.
    pub publishes: Option<&'static str>,
    /// Somebody else has changed what it has published.
    pub copies_drifted: bool,
    /// What somebody else has done to it, when that is all that the action is about.
    pub drift: Option<Drift>,
    /// Whether it was read, be it there or gone.
    pub read: bool,
    /// Whether the recorded object was read and is gone.
    pub gone: bool,
    /// Decided before any dependency was, so that it stays whatever becomes of them.
    pub at_once: bool,
    /// The provider that was asked, with its settings.
    pub provider: Option<Arc<ProviderUse>>,
    /// What drivers and load warned of.
    pub diagnostics: Diagnostics,
    pub leftovers: Vec<LeftoverDraft>,
}

/// The decision about one leftover.
#[derive(Debug)]
pub(super) struct LeftoverDraft {
    pub key: DeposedKey,
    pub object: Arc<RecordedObject>,
    pub action: Action,
    pub block: Option<Box<Block>>,
    pub because: Option<String>,
    /// Whether it is still there, as far as is known.
    pub exists: bool,
}

impl Block {
    /// An object that cannot be planned: its dependents wait.
    pub fn broken(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], waiting_for: Vec::new(), held: false, frozen: false }
    }

    /// An object that is not touched now: its dependents see what is recorded.
    pub fn held(diagnostic: Diagnostic) -> Self {
        Self { held: true, ..Self::broken(diagnostic) }
    }

    /// An object that must not be touched in any way.
    pub fn frozen(diagnostic: Diagnostic) -> Self {
        Self { frozen: true, ..Self::held(diagnostic) }
    }

    /// The same, waiting for others.
    pub fn waiting_for(mut self, ids: impl IntoIterator<Item = Id>) -> Self {
        self.waiting_for.extend(ids);
        self
    }

    /// A failed driver call.
    pub fn failed(address: &Address, what: &str, error: DriverError) -> Self {
        let reason = match error.kind {
            ErrorKind::Transient => Reason::OperationFailed,
            ErrorKind::Terminal => Reason::OperationRefused,
            ErrorKind::InvalidConfig => Reason::InvalidConfig,
            ErrorKind::Forbidden => Reason::Forbidden,
            ErrorKind::AlreadyExists => Reason::AlreadyExists,
            ErrorKind::Unavailable => Reason::ProviderNotReady,
        };
        let mut diagnostic = match error.kind {
            ErrorKind::Unavailable => Diagnostic::error(address, reason, error.message),
            _ => Diagnostic::error(address, reason, what).because(error.message),
        };
        diagnostic.path = error.path.map(|path| super::conform::below_config(&path));
        diagnostic.hint = error.hint;
        Self::broken(diagnostic)
    }

    /// The same, at the place where it was given, unless it has one.
    pub fn at(mut self, path: Path) -> Self {
        self.diagnostics.iter_mut().for_each(|diagnostic| _ = diagnostic.path.get_or_insert_with(|| path.clone()));
        self
    }

    /// What tells why: the first error, or what comes first.
    pub fn leading(&self) -> &Diagnostic {
        let error = self.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
        error.or(self.diagnostics.first()).expect("a block is made with a diagnostic")
    }

    pub fn reason(&self) -> Reason {
        self.leading().reason
    }
}

impl Draft {
    /// Nothing is to be done.
    pub fn nothing() -> Self {
        Self {
            action: Action::NoOp,
            block: None,
            because: None,
            prior: None,
            planned: None,
            reading: None,
            forget: false,
            seen: None,
            changed: false,
            create_first: false,
            hold_destroy: None,
            record_differs: None,
            check_later: false,
            publishes: None,
            copies_drifted: false,
            drift: None,
            read: false,
            gone: false,
            at_once: false,
            provider: None,
            diagnostics: Vec::new(),
            leftovers: Vec::new(),
        }
    }

    /// The object stays as it is recorded.
    pub fn unchanged(current: Option<&Arc<RecordedObject>>) -> Self {
        Self { seen: current.map(|object| object.value.clone()), prior: current.cloned(), ..Self::nothing() }
    }

    /// The object cannot be planned, or is held. Dependents of a held one see what is recorded.
    pub fn blocked(block: Block, current: Option<&Arc<RecordedObject>>) -> Self {
        let seen = if block.held { current.map(|object| object.value.clone()) } else { None };
        Self { action: Action::Blocked, block: Some(Box::new(block)), seen, prior: current.cloned(), ..Self::nothing() }
    }

    /// Takes the step away that was planned.
    pub fn block(&mut self, block: Block, current: Option<&Arc<RecordedObject>>) {
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let leftovers = std::mem::take(&mut self.leftovers);
        let (at_once, read, gone) = (self.at_once, self.read, self.gone);
        *self = Self { read, gone, at_once, diagnostics, leftovers, ..Self::blocked(block, current) };
    }

    pub fn is_blocked(&self) -> bool {
        self.block.is_some()
    }

    /// Whether the current object goes without a successor.
    pub fn leaves(&self) -> bool {
        matches!(self.action, Action::Destroy | Action::Forget)
    }

    /// Whether the plan changes the object by a step `C(x)`: record-only steps and reading change nothing.
    pub fn makes(&self) -> bool {
        matches!(self.action, Action::Create | Action::Update | Action::Replace)
    }
}

impl LeftoverDraft {
    pub fn block(&mut self, block: Block) {
        self.action = Action::Blocked;
        self.block = Some(Box::new(block));
        self.because = None;
    }

    pub fn goes(&self) -> bool {
        matches!(self.action, Action::Destroy | Action::Forget)
    }
}

//! What one Resource asks for, its expressions parsed.

use std::sync::Arc;
use std::time::Duration;

use super::{Condition, Hook, Inputs, Provided, Publication, Reference, Repetition, Template};
use crate::model::{Address, Diagnostics, ImportRequest, Path, Source, Value};

/// One wanted instance.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about the Resource")]
pub struct Instance {
    /// Which one.
    pub address: Address,
    /// The UID of the Resource; empty in local mode.
    pub uid: Arc<str>,
    /// `metadata.generation`; in local mode a fingerprint of the spec.
    pub generation: i64,
    /// The resource type.
    pub type_name: Arc<str>,
    /// `spec.providerConfigRef.name`, when it is given.
    pub provider_config: Option<Arc<str>>,
    /// What serves it; `None` when no provider is named like its type.
    pub provider: Option<Arc<Provided>>,
    /// `spec.config`.
    pub config: Template,
    /// `spec.inputs`, with their values once they are resolved.
    pub inputs: Inputs,
    /// `spec.publish`.
    pub publish: Arc<[Publication]>,
    /// `count`, `forEach`, `enabled`: set on a Resource as it was read, and not on the instances that come of it.
    pub repetition: Option<Arc<Repetition>>,
    /// `each.value` of an instance of a `forEach` family.
    pub each: Option<Arc<Each>>,
    /// Every dependency: references in expressions and `dependsOn`, sorted by address and place.
    pub references: Arc<[Reference]>,
    /// `lifecycle.createBeforeDestroy`, when it is given.
    pub create_before_destroy: Option<bool>,
    /// `lifecycle.preventDestroy`; false beside an expression.
    pub prevent_destroy: bool,
    /// `lifecycle.preventDestroyWhen`.
    pub prevent_destroy_when: Option<Template>,
    /// `lifecycle.ignoreChanges`, in the order given.
    pub ignore_changes: Arc<[IgnoredChange]>,
    /// `lifecycle.preconditions`.
    pub preconditions: Arc<[Condition]>,
    /// `lifecycle.postconditions`.
    pub postconditions: Arc<[Condition]>,
    /// `lifecycle.replaceTriggeredBy`, in the order given; what each refers to is in `references`.
    pub triggers: Arc<[Trigger]>,
    /// `managementPolicies`: what may be done with the object.
    pub policies: Policies,
    /// `hooks`.
    pub hooks: Arc<[Hook]>,
    /// What happens to the object when it is not wanted any more.
    pub deletion_policy: DeletionPolicy,
    /// `import.id`.
    pub import: Option<ImportRequest>,
    /// What becomes of changes by somebody else.
    pub drift: Drift,
    /// As which service account built-in drivers act; empty in local mode.
    pub service_account: Arc<str>,
    /// `suspend`, or the annotation `purlin.dev/paused`.
    pub suspended: bool,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// The annotation `purlin.dev/replace-requested-at`; empty when absent.
    pub replace_requested: Arc<str>,
    /// The annotation `purlin.dev/reconcile-requested-at`; empty when absent.
    pub reconcile_requested: Arc<str>,
    /// The annotation `purlin.dev/moved-from`: where the object may have been recorded before, best first.
    pub moved_from: Arc<[Address]>,
    /// The annotation `purlin.dev/record`: the UID that the record was written for; empty when absent.
    pub record_annotation: Arc<str>,
    /// Whether our finalizer is on the Resource.
    pub has_finalizer: bool,
    /// The Resource is being deleted: the object is no longer wanted, though its spec is still there.
    pub deleting: bool,
    /// What is wrong with the Resource. With an error in it the instance is present but cannot be planned.
    pub problems: Diagnostics,
    /// Where it was read from.
    pub source: Option<Source>,
}

impl Instance {
    /// Whether the object is wanted, in the sense of the ordering rules.
    pub fn is_wanted(&self) -> bool {
        !self.deleting
    }

    /// Whether the Resource carries our finalizer and our annotation, which it gets with its record.
    pub fn is_marked(&self) -> bool {
        self.has_finalizer && self.record_annotation == self.uid
    }

    /// Whether the Resource says that it has a record. An annotation that names another Resource counts as absent.
    pub fn says_it_is_recorded(&self) -> bool {
        !self.record_annotation.is_empty() && self.record_annotation == self.uid
    }

    /// Whether it asks for the same as another form of the same Resource: only our own marks may differ. The spec is the
    /// same as long as its generation is.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        (&self.uid, self.generation, self.deleting, self.suspended)
            == (&other.uid, other.generation, other.deleting, other.suspended)
            && self.replace_requested == other.replace_requested
            && self.reconcile_requested == other.reconcile_requested
            && self.moved_from == other.moved_from
            // An annotation that could not be read, and can be now, may mean what it was taken to mean.
            && self.problems == other.problems
    }

    /// The Resource as it is read again, which shares with how it was read `before` all that is the same: after each
    /// write of a mark or of its status it comes anew.
    #[must_use]
    pub fn read_again(self: Arc<Self>, before: &Arc<Self>) -> Arc<Self> {
        if !self.asks_the_same(before) {
            return self;
        }
        let marks = |instance: &Self| (instance.has_finalizer, instance.record_annotation.clone());
        if marks(&self) == marks(before) {
            return Arc::clone(before);
        }
        let (has_finalizer, record_annotation) = marks(&self);
        Arc::new(Self { record_annotation, has_finalizer, ..Self::clone(before) })
    }

    /// Whether the object stays when it is not wanted any more.
    pub fn keeps_object(&self) -> bool {
        self.deletion_policy == DeletionPolicy::Orphan || !self.policies.delete
    }
}

#[cfg(test)]
impl Instance {
    /// An instance that asks for nothing in particular; tests name what matters to them.
    pub(crate) fn plain(address: Address, type_name: &str) -> Self {
        Self {
            address,
            uid: "".into(),
            generation: 0,
            type_name: type_name.into(),
            provider_config: None,
            provider: None,
            config: Template::default(),
            inputs: Inputs::default(),
            publish: Arc::default(),
            repetition: None,
            each: None,
            references: Arc::default(),
            create_before_destroy: None,
            prevent_destroy: false,
            prevent_destroy_when: None,
            ignore_changes: Arc::default(),
            preconditions: Arc::default(),
            postconditions: Arc::default(),
            triggers: Arc::default(),
            policies: Policies::default(),
            hooks: Arc::default(),
            deletion_policy: DeletionPolicy::Delete,
            import: None,
            drift: Drift::default(),
            service_account: "".into(),
            suspended: false,
            timeouts: Timeouts::default(),
            replace_requested: "".into(),
            reconcile_requested: "".into(),
            moved_from: Arc::default(),
            record_annotation: "".into(),
            has_finalizer: false,
            deleting: false,
            problems: Vec::new(),
            source: None,
        }
    }
}

/// What an instance of a `forEach` family is made for.
#[derive(Clone, Debug)]
pub struct Each {
    /// `each.value`, as far as it was known when the instances were made out.
    pub value: Value,
    /// `forEach` itself, which tells the value once all is known.
    pub source: Template,
}

/// One entry of `lifecycle.ignoreChanges`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredChange {
    /// `all`: everything that can be configured.
    All,
    /// The attribute at this path, or what stands inside of it.
    At(Path),
}

/// One entry of `lifecycle.replaceTriggeredBy`.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// As it was written.
    pub text: Arc<str>,
    /// The path that it is.
    pub path: Template,
    /// How many segments follow the name of the Resource.
    pub depth: usize,
}

/// `spec.managementPolicies`, beside `Observe`, which is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each action is allowed or not, whatever the others are")]
pub struct Policies {
    /// A new object may be made.
    pub create: bool,
    /// The object may be changed in place.
    pub update: bool,
    /// A new object may be made instead of the old one.
    pub replace: bool,
    /// The object may be destroyed; otherwise it is forgotten.
    pub delete: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self { create: true, update: true, replace: true, delete: true }
    }
}

impl Policies {
    /// Whether the object is only looked at, so that its configuration says nothing.
    pub fn only_observe(self) -> bool {
        !self.create && !self.update && !self.replace
    }
}

/// `spec.deletionPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// Destroy the object.
    #[default]
    Delete,
    /// Forget it.
    Orphan,
}

/// `spec.drift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// How often the object is read.
    pub interval: Duration,
    /// What becomes of a difference.
    pub action: DriftAction,
}

/// `spec.drift.action`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftAction {
    /// The object is changed back, or made anew.
    #[default]
    Correct,
    /// It stays as it is, and that is told.
    Report,
    /// The object is not read.
    Ignore,
}

impl Default for Drift {
    fn default() -> Self {
        Self { interval: Duration::from_mins(30), action: DriftAction::Correct }
    }
}

/// `spec.timeouts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Of a create.
    pub create: Duration,
    /// Of an update.
    pub update: Duration,
    /// Of a destroy.
    pub delete: Duration,
    /// Of a read.
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let half_an_hour = Duration::from_mins(30);
        Self { create: half_an_hour, update: half_an_hour, delete: half_an_hour, read: Duration::from_mins(5) }
    }
}

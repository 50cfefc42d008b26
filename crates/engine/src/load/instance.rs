//! The desired state of one instance, with parsed expressions.

use std::sync::Arc;
use std::time::Duration;

use super::{Condition, Hook, Inputs, Lines, Program, ProviderBinding, Publication, Reference, Repetition, Template};
use model::{
    Address, Diagnostics, IgnoredChange, ImportRequest, InstanceKey, Path, RequiredApprovals, Source, TypeName, Uid,
    Value, has_errors,
};

/// One desired instance of a Resource.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about the Resource")]
pub struct Instance {
    pub address: Address,
    /// Empty on files.
    pub uid: Uid,
    /// `metadata.generation`. On files, a hash of the spec.
    pub generation: i64,
    pub type_name: TypeName,
    /// `spec.providerConfigRef.name`.
    pub provider_config: Option<Arc<str>>,
    /// `None`: the type is built in, or no provider matches the type.
    pub provider: Option<Arc<ProviderBinding>>,
    /// `spec.config`.
    pub config: Template,
    /// `spec.inputs`, with values after they are resolved.
    pub inputs: Inputs,
    /// `spec.publish`.
    pub publish: Arc<[Publication]>,
    /// `count`, `forEach` and `enabled`. Set on the shared part of a family, not on its instances.
    pub repetition: Option<Arc<Repetition>>,
    /// Of a Module: the configuration whose objects it has. The Module itself is no object.
    pub program: Option<Arc<dyn Program>>,
    /// `each.value` in a `forEach` family.
    pub each: Option<Arc<EachValue>>,
    /// All dependencies: references in expressions and `dependsOn`, sorted by address and path.
    pub references: Arc<[Reference]>,
    /// Of a data source: the objects whose changes delay its read. `None`: all that it depends on.
    pub reads_after: Option<Arc<[ReadsAfter]>>,
    /// `lifecycle.createBeforeDestroy`.
    pub create_before_destroy: Option<bool>,
    /// `lifecycle.preventDestroy`. False if it is an expression.
    pub prevent_destroy: bool,
    /// The expression of `lifecycle.preventDestroy`.
    pub prevent_destroy_when: Option<Template>,
    /// `lifecycle.ignoreChanges`.
    pub ignore_changes: Arc<[IgnoredChange]>,
    /// What of `config` is ephemeral, and never recorded.
    pub ephemeral: Arc<[Path]>,
    /// Whether another value of a write-only argument alone is no reason for an update. Terraform never sees one.
    pub ignores_write_only: bool,
    /// `lifecycle.preconditions`.
    pub preconditions: Arc<[Condition]>,
    /// `lifecycle.postconditions`.
    pub postconditions: Arc<[Condition]>,
    /// `lifecycle.replaceTriggeredBy`. Its references are also in `references`.
    pub triggers: Arc<[Trigger]>,
    /// `managementPolicies`.
    pub policies: Policies,
    pub hooks: Arc<[Hook]>,
    pub deletion_policy: DeletionPolicy,
    /// `import.id`.
    pub import: Option<ImportRequest>,
    pub drift: Drift,
    /// `spec.approval.requireFor`.
    pub require_approval: RequiredApprovals,
    /// The ServiceAccount of the built-in drivers; empty on files.
    pub service_account: Arc<str>,
    /// `spec.suspend`.
    pub suspended: bool,
    pub timeouts: Timeouts,
    /// The annotation `purlin.dev/replace-requested-at`; empty when absent.
    pub replace_requested: Arc<str>,
    /// The annotation `purlin.dev/reconcile-requested-at`; empty when absent.
    pub reconcile_requested: Arc<str>,
    /// `spec.moved` and the annotation `purlin.dev/moved-from`: former addresses of the objects of the Resource, the
    /// nearest first.
    pub moved_from: Arc<[MovedFrom]>,
    /// The annotation `purlin.dev/record`: the UID that the record was written for; empty when absent.
    pub record_annotation: Uid,
    /// Whether the Resource has Purlin's finalizer.
    pub has_finalizer: bool,
    /// The Resource is being deleted, so the object is no longer desired.
    pub deleting: bool,
    /// Problems of the Resource. An instance with an error cannot be planned.
    pub problems: Diagnostics,
    /// The position of the manifest, if it was read from a file.
    pub source: Option<Source>,
    /// The lines of the manifest's fields, if it was read from a file.
    pub lines: Lines,
    /// The file of the manifest as records store it, `-` for standard input. `None` in a cluster.
    pub source_file: Option<Arc<str>>,
    /// The manifest is in a source that is not given. All that is known comes from the record, and the object is left
    /// unchanged.
    pub only_recorded: bool,
}

impl Instance {
    /// Returns the position of a field in the file of the manifest, or of the manifest itself.
    pub fn source_of(&self, field: Option<&Path>) -> Option<Source> {
        field.map_or_else(|| self.source.clone(), |field| self.lines.source_of(field, self.source.as_ref()))
    }

    /// Whether it stands for any number of objects, which are not known before they are planned.
    pub fn is_family(&self) -> bool {
        self.repetition.is_some() || self.program.is_some()
    }

    /// Whether the object is desired, as the ordering rules define it.
    pub fn is_desired(&self) -> bool {
        !self.deleting
    }

    /// Whether the evaluation of its expressions may take long: they do more than to read paths.
    pub fn is_computed(&self) -> bool {
        let has_conditions = !self.preconditions.is_empty() || !self.postconditions.is_empty();
        let has_others = !self.hooks.is_empty() || !self.publish.is_empty() || self.prevent_destroy_when.is_some();
        self.config.is_computed() || has_conditions || has_others
    }

    /// Whether the Resource has Purlin's finalizer and record annotation. It gets both with its record.
    pub fn is_marked(&self) -> bool {
        self.has_finalizer && self.record_annotation == self.uid
    }

    /// Whether the manifest has errors. Then the recorded settings may apply instead of those of the Resource.
    pub fn has_errors(&self) -> bool {
        has_errors(&self.problems)
    }

    /// Whether the annotation of the Resource names its own record. An annotation that names another Resource counts as
    /// absent.
    pub fn has_record_annotation(&self) -> bool {
        !self.record_annotation.is_empty() && self.record_annotation == self.uid
    }

    /// Whether both versions of a Resource have the same desired state. Only Purlin's own marks may differ. An
    /// unchanged generation means an unchanged spec.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        (&self.uid, self.generation, self.deleting, self.suspended)
            == (&other.uid, other.generation, other.deleting, other.suspended)
            && self.replace_requested == other.replace_requested
            && self.reconcile_requested == other.reconcile_requested
            && self.moved_from == other.moved_from
            // A corrected annotation can mean the same as before.
            && self.problems == other.problems
            // Its files can change without its spec.
            && self.program.as_ref().map(Arc::as_ptr) == other.program.as_ref().map(Arc::as_ptr)
    }

    /// Shares all unchanged parts with the version `before`. Each write of a mark or of the status sends a new version.
    #[must_use]
    pub fn share_with(self: Arc<Self>, before: &Arc<Self>) -> Arc<Self> {
        if !self.is_equivalent(before) {
            return self;
        }
        if self.has_finalizer == before.has_finalizer && self.record_annotation == before.record_annotation {
            return Arc::clone(before);
        }
        Arc::new(Self {
            has_finalizer: self.has_finalizer,
            record_annotation: self.record_annotation.clone(),
            ..Self::clone(before)
        })
    }

    /// Whether the object remains when its Resource is deleted.
    pub fn keeps_object(&self) -> bool {
        self.deletion_policy == DeletionPolicy::Orphan || !self.policies.delete
    }
}

impl Instance {
    /// An instance without any settings.
    pub fn plain(address: Address, type_name: impl Into<TypeName>) -> Self {
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
            program: None,
            each: None,
            references: Arc::default(),
            reads_after: None,
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
            require_approval: RequiredApprovals::default(),
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
            lines: Lines::default(),
            source_file: None,
            only_recorded: false,
            ignores_write_only: false,
            ephemeral: Arc::default(),
        }
    }
}

/// The `forEach` entry of an instance.
#[derive(Clone, Debug)]
pub struct EachValue {
    /// `each.value`, as far as it was known when the family was expanded.
    pub value: Value,
    /// The `forEach` expression, which gives the value when everything is known.
    pub source: Template,
}

/// An object or family whose changes delay the read of a data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadsAfter {
    pub target: Address,
    /// Whether changes of what it depends on delay the read too.
    pub transitive: bool,
}

/// One entry of `lifecycle.replaceTriggeredBy`.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// The source text.
    pub text: Arc<str>,
    /// The parsed path.
    pub path: Template,
    /// The number of segments after the name of the Resource.
    pub depth: usize,
}

/// `spec.managementPolicies`. `Observe` is always included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each action is allowed independently of the others")]
pub struct Policies {
    /// Purlin may create an object.
    pub create: bool,
    /// Purlin may update the object in place.
    pub update: bool,
    /// Purlin may replace the object.
    pub replace: bool,
    /// Purlin may destroy the object. If not, it forgets the object.
    pub delete: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self { create: true, update: true, replace: true, delete: true }
    }
}

impl Policies {
    /// Whether the object is only observed, so its configuration has no effect.
    pub fn only_observe(self) -> bool {
        !self.create && !self.update && !self.replace
    }
}

/// `spec.deletionPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    #[default]
    Delete,
    /// Drop the record and leave the object.
    Orphan,
}

/// `spec.drift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    pub interval: Duration,
    pub action: DriftAction,
}

/// `spec.drift.action`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftAction {
    /// Purlin updates the object, or creates it again if it is missing.
    #[default]
    Correct,
    /// Purlin reports the drift and leaves the object unchanged.
    Report,
    /// Purlin does not read the object.
    Ignore,
}

impl Drift {
    /// An object is not read more often. One tenant with a shorter interval would keep the API servers of all busy.
    pub const SHORTEST: Duration = Duration::from_secs(1);
}

impl Default for Drift {
    fn default() -> Self {
        Self { interval: Duration::from_mins(30), action: DriftAction::Correct }
    }
}

/// `spec.timeouts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub create: Duration,
    pub update: Duration,
    pub delete: Duration,
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let half_an_hour = Duration::from_mins(30);
        Self { create: half_an_hour, update: half_an_hour, delete: half_an_hour, read: Duration::from_mins(5) }
    }
}

/// A former address of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MovedFrom {
    pub from: Address,
    /// The instance to which the object belongs now, at the end of a chain of entries. `None`: the Resource itself, or,
    /// for a whole family, the instance with the same key.
    pub to: Option<InstanceKey>,
    pub place: MovedPlace,
}

/// Where a former address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MovedPlace {
    /// The entry of `spec.moved` with this number.
    Entry(usize),
    /// The annotation `purlin.dev/moved-from`.
    Annotation,
    /// A `moved` block of Terraform.
    Block,
}

impl MovedFrom {
    /// An address in the annotation.
    pub fn annotation(from: Address) -> Self {
        Self { from, to: None, place: MovedPlace::Annotation }
    }

    /// Whether it names a Resource as a whole, so that each instance comes from the one with its key.
    pub fn is_whole(&self) -> bool {
        self.to.is_none() && self.from.key == InstanceKey::None
    }

    /// Whether it means what it says, and nothing else. A `moved` block stays in a module for years, so OpenTofu ignores one
    /// whose objects do not exist, and destroys what has no instance any more. A manifest is asked whether it is a slip.
    pub fn is_literal(&self) -> bool {
        self.place == MovedPlace::Block
    }

    /// The field of the manifest with all former addresses that are written there.
    pub fn path(&self) -> Option<Path> {
        match self.place {
            MovedPlace::Entry(_) => Some(Path::of(&["spec", "moved"])),
            MovedPlace::Annotation => Some(Path::of(&["metadata", "annotations", api::MOVED_FROM])),
            MovedPlace::Block => None,
        }
    }

    /// What contains it, in words.
    pub fn field(&self) -> String {
        match self.place {
            MovedPlace::Entry(entry) => format!("`spec.moved[{entry}]`"),
            MovedPlace::Annotation => format!("the annotation `{}`", api::MOVED_FROM),
            MovedPlace::Block => "the `moved` block".to_owned(),
        }
    }
}

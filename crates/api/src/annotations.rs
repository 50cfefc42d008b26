//! The annotations of Purlin on its own kinds.

/// Annotation: a new value requests an immediate refresh of the object.
pub const RECONCILE_REQUESTED_AT: &str = "purlin.dev/reconcile-requested-at";

/// Annotation: the former name or address of the object, or several, newest first.
pub const MOVED_FROM: &str = "purlin.dev/moved-from";

/// Annotation: a new value requests a replacement of the object.
pub const REPLACE_REQUESTED_AT: &str = "purlin.dev/replace-requested-at";

/// Annotation: the UID of the Resource for which the record was written. Without it, no record was written yet.
pub const RECORD: &str = "purlin.dev/record";

/// Annotation of a Namespace: its limits, such as `objects=100,record-bytes=64Mi,steps-per-minute=600`.
pub const QUOTA: &str = "purlin.dev/quota";

/// Annotation of a Namespace: the kinds of changes in it that need an approval, such as `Replace,Destroy`.
pub const REQUIRE_APPROVAL: &str = "purlin.dev/require-approval";

/// Annotation of a Namespace that is being deleted: `true` approves all destroys in it. No Plan can be created there.
pub const APPROVE_DESTROYS: &str = "purlin.dev/approve-destroys";

/// Annotation of a Plan: the name of the user who approved or rejected it.
pub const DECIDED_BY: &str = "purlin.dev/decided-by";

/// An annotation of Purlin on a Resource.
#[derive(Debug)]
pub struct Annotation {
    pub name: &'static str,
    pub value: AnnotationValue,
    /// Whether users can set it on a `DataSource` and on a Module as well.
    pub on_all_kinds: bool,
}

/// What the value of an annotation can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationValue {
    /// Addresses, separated by commas.
    Addresses,
    /// Any string.
    Any,
}

/// All annotations with the prefix `purlin.dev/` on a Resource, a `DataSource` or a Module. Any other is an error.
pub const ANNOTATIONS: &[Annotation] = &[
    Annotation { name: MOVED_FROM, value: AnnotationValue::Addresses, on_all_kinds: false },
    Annotation { name: RECONCILE_REQUESTED_AT, value: AnnotationValue::Any, on_all_kinds: true },
    Annotation { name: RECORD, value: AnnotationValue::Any, on_all_kinds: true },
    Annotation { name: REPLACE_REQUESTED_AT, value: AnnotationValue::Any, on_all_kinds: false },
];

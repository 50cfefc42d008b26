//! Schemas of fields whose validation their Rust type does not say.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A DNS label, as `metadata.name` of a Resource must be one.
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// The name of a type, which never changes.
pub(super) fn type_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "pattern": "^[a-z][a-z0-9_-]*$",
        "x-kubernetes-validations": [{
            "rule": "self == oldSelf",
            "message": "spec.type is immutable: create a Resource of another name instead",
        }],
    })
}

/// The name of a Resource, or of a DataSource after `data.`.
pub(super) fn dependency_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 68,
        "pattern": "^(data\\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    })
}

/// A whole number, or an expression. The most is what `load` allows as well.
pub(super) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [
            {
                "rule": "type(self) != int || (self >= 0 && self <= 10000)",
                "message": "must not be negative, and at most 10000",
            },
            {
                "rule": "type(self) != string || self.contains('${') || self.matches('^[0-9]+$')",
                "message": "must be a whole number, or an expression as ${size(zones.names)}",
            },
        ],
    })
}

/// A number of objects.
pub(super) fn counter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0})
}

/// Whatever it is. Where CEL needs a type, it does not see such a field.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A map of anything, owned field by field.
pub(super) fn free_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A map of anything that is replaced as a whole.
pub(super) fn free_atomic_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic",
    })
}

/// A choice whose variants are told in the field's own description.
pub(super) fn deletion_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Delete", "Orphan"]})
}

/// A set of allowed actions. Nothing can be done without reading.
pub(super) fn management_policies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["Observe", "Create", "Update", "Replace", "Delete"]},
        "x-kubernetes-validations": [{
            "rule": "self.exists(policy, policy == 'Observe')",
            "message": "must hold Observe: nothing can be done with an object that is not read",
        }],
    })
}

/// A list of texts each of which stands once.
pub(super) fn set_of_texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 1000,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "minLength": 1, "maxLength": 1024},
    })
}

/// As [`deletion_policy`].
pub(super) fn drift_action(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Correct", "Report", "Ignore"]})
}

/// The name of a hook, which becomes part of the name of its Job.
pub(super) fn hook_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": DNS_LABEL})
}

/// When a hook runs.
pub(super) fn hook_when(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["AfterCreate", "BeforeDestroy"]})
}

/// What a failure of a hook means.
pub(super) fn hook_on_failure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Fail", "Continue"]})
}

/// A duration as Go writes it, longer than nothing.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "pattern": "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
        "x-kubernetes-validations": [{
            "rule": "duration(self) > duration('0s')",
            "message": "must be a duration longer than nothing, such as 30m or 1h30m",
        }],
    })
}

/// `metav1.Condition`, with the validation that the Kubernetes API conventions give it.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "Which aspect, in CamelCase.",
                    "maxLength": 316,
                },
                "status": {
                    "type": "string",
                    "description": "Whether it holds: True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "type": "string",
                    "description": "Why, in one CamelCase word. Every reason has its documentation.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "Why, and what to do next, for people.",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation of the Resource that the condition is about.",
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
            },
        },
    })
}

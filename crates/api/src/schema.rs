//! Schemas of fields whose validation cannot be derived from their Rust type.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A DNS label, like `metadata.name` of a Resource.
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// The type of a Resource.
pub fn resource_type(_: &mut SchemaGenerator) -> Schema {
    immutable_type("Resource")
}

/// The type of a `DataSource`.
pub fn data_source_type(_: &mut SchemaGenerator) -> Schema {
    immutable_type("DataSource")
}

fn immutable_type(kind: &str) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "pattern": "^[a-z][a-z0-9_-]*$",
        "x-kubernetes-validations": [{
            "rule": "self == oldSelf",
            "message": format!("spec.type is immutable: create a {kind} with another name instead"),
        }],
    })
}

/// The name of a Resource, or `data.` and the name of a DataSource.
pub fn dependency_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 68,
        "pattern": "^(data\\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    })
}

/// The address of a Resource or an instance.
pub fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 2048,
        "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\[([0-9]+|\".+\")\\])?$",
    })
}

/// The key of an instance as in its address.
pub fn instance_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 3,
        "maxLength": 2048,
        "pattern": "^\\[([0-9]+|\".+\")\\]$",
    })
}

/// A whole number, or an expression. `load` enforces the same maximum.
pub fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [
            {
                "rule": "type(self) != int || (self >= 0 && self <= 10000)",
                "message": "must be between 0 and 10000",
            },
            {
                "rule": "type(self) != string || self.contains('${') || self.matches('^[0-9]+$')",
                "message": "must be a whole number, or an expression such as ${size(zones.names)}",
            },
        ],
    })
}

/// True, false, or an expression. A schema without a type cannot name these types, so `load` reports other values. A
/// string without an expression is rejected here: an author could believe that `"true"` protects an object.
pub fn boolean_or_expression(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true, "pattern": "\\$\\{"})
}

pub fn counter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0})
}

/// Any value. CEL rules cannot access such a field.
pub fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A map with arbitrary values. Field managers own its entries separately.
pub fn free_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A map with arbitrary values that field managers own and replace as a whole.
pub fn free_atomic_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic",
    })
}

/// The description of the field explains the variants.
pub fn deletion_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Delete", "Orphan"]})
}

/// The description of the field explains the variants.
pub fn runner_kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["InProcess", "Pod"]})
}

/// The description of the field explains the variants.
pub fn prune(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["None", "Selector", "All"]})
}

/// The description of the field explains the variants.
pub fn refresh(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Due", "All", "None"]})
}

/// A set of allowed actions. Every action needs a read first.
pub fn management_policies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["Observe", "Create", "Update", "Replace", "Delete"]},
        "x-kubernetes-validations": [{
            "rule": "self.exists(policy, policy == 'Observe')",
            "message": "must contain Observe: Purlin reads an object before any other action",
        }],
    })
}

/// The description of the field explains the variants.
pub fn approval_kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["Create", "Update", "Replace", "Destroy", "Drift"]},
    })
}

/// A list of unique strings.
pub fn set_of_strings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 1000,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "minLength": 1, "maxLength": 1024},
    })
}

/// The description of the field explains the variants.
pub fn drift_action(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Correct", "Report", "Ignore"]})
}

/// The name of a hook, which is a part of the name of its Job.
pub fn hook_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": DNS_LABEL})
}

pub fn hook_when(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["AfterCreate", "BeforeDestroy"]})
}

pub fn hook_on_failure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Fail", "Continue"]})
}

/// A positive duration in Go's format.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "pattern": "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
        "x-kubernetes-validations": [{
            "rule": "duration(self) > duration('0s')",
            "message": "must be a positive duration, such as 30m or 1h30m",
        }],
    })
}

/// `metav1.Condition`, with the validation of the Kubernetes API conventions.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
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
                    "description": "The type of the condition, in CamelCase.",
                    "maxLength": 316,
                },
                "status": {
                    "type": "string",
                    "description": "The status of the condition: True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "type": "string",
                    "description": "The reason for the status, as one CamelCase word.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "Why the condition has this status, and what to do next.",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation of the object for which the condition was set.",
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

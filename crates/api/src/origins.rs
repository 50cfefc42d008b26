//! Where existing objects of a Resource come from: `spec.import` and `spec.moved`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A former address of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The former address: `name`, `name[0]` or `name["key"]`. It can be an address of this Resource.
    #[schemars(schema_with = "schema::address")]
    pub from: String,
    /// The instance of this Resource that has the object now: `[0]` or `["key"]`. If absent, the object belongs to the
    /// Resource itself, and each instance of a family to the instance with the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::instance_key")]
    pub to: Option<String>,
}

/// An existing object to import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.id) != has(self.identity)",
    "message": "exactly one of id and identity must be set",
}]))]
pub struct Import {
    /// The import ID of the object, as documented by the provider for `terraform import`. With `forEach` or `count`, an
    /// expression such as `db-${each.key}` gives the ID of each instance; an instance for which it is null is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub id: Option<String>,
    /// The attributes of the object's identity by name, for types that support resource identity. With `forEach` or
    /// `count`, they can contain the same expressions as `id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_atomic_map")]
    pub identity: Option<serde_json::Value>,
}

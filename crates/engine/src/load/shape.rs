//! The schemas of the CRDs in the form in which manifests are checked and read.
//!
//! Patterns and CEL rules are missing here: `decode` checks what they say for files and cluster objects alike, with
//! messages that explain the rule. A test compares the two.

use std::sync::{Arc, LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::tree::{Node, Tree};
use model::{Number, Path, Segment};

/// What a value of a document can be.
#[derive(Debug)]
pub enum Shape {
    /// Any value, or a map of any values. Its content is not typed.
    Free {
        is_map: bool,
    },
    Map(Fields),
    /// A map of strings with arbitrary keys.
    Strings {
        min: usize,
        max: usize,
    },
    List(Box<Items>),
    /// A string with a length in characters, and one of `values` unless that is empty.
    String {
        min: usize,
        max: usize,
        values: Vec<Arc<str>>,
    },
    Boolean,
    /// A whole number that is not negative.
    Integer {
        min: i64,
        max: i64,
    },
}

/// The fields of a map.
#[derive(Debug)]
pub struct Fields {
    /// Sorted by name.
    pub all: Vec<(Arc<str>, Shape)>,
    pub required: Vec<Arc<str>>,
}

/// The items of a list.
#[derive(Debug)]
pub struct Items {
    pub shape: Shape,
    pub min: usize,
    pub max: usize,
    pub unique: Unique,
}

/// Which items of a list count as duplicates.
#[derive(Debug)]
pub enum Unique {
    No,
    /// Equal items.
    Items,
    /// Items with the same value in this field.
    Field(Arc<str>),
}

/// Returns the shape of the documents of a kind. An unknown kind has the shape of a Resource.
pub fn of(kind: &str) -> &'static Shape {
    static RESOURCE: LazyLock<Shape> = LazyLock::new(|| document(&api::resource_crd()));
    static DATA_SOURCE: LazyLock<Shape> = LazyLock::new(|| document(&api::data_source_crd()));
    static MODULE: LazyLock<Shape> = LazyLock::new(|| document(&api::module_crd()));
    static PROVIDER: LazyLock<Shape> = LazyLock::new(|| document(&api::provider_crd()));
    static PROVIDER_CONFIG: LazyLock<Shape> = LazyLock::new(|| document(&api::provider_config_crd()));
    match kind {
        api::DATA_SOURCE_KIND => &DATA_SOURCE,
        api::MODULE_KIND => &MODULE,
        api::PROVIDER_KIND => &PROVIDER,
        api::PROVIDER_CONFIG_KIND => &PROVIDER_CONFIG,
        _ => &RESOURCE,
    }
}

impl Fields {
    pub fn get(&self, name: &str) -> Option<&Shape> {
        self.all.binary_search_by(|(known, _)| (**known).cmp(name)).ok().map(|index| &self.all[index].1)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(name, _)| name.as_ref())
    }
}

impl Shape {
    /// Whether the value is of this type. The content of maps and lists is not checked.
    pub fn fits(&self, tree: &Tree) -> bool {
        match (self, &tree.node) {
            (Self::Free { is_map: false }, _)
            | (Self::Free { .. } | Self::Map(_) | Self::Strings { .. }, Node::Map(_))
            | (Self::List(_), Node::List(_))
            | (Self::Boolean, Node::Bool(_)) => true,
            (Self::String { values, .. }, Node::String(text)) => values.is_empty() || values.contains(text),
            (Self::Integer { .. }, Node::Number(Number::Int(number))) => (0..=i64::from(i32::MAX)).contains(number),
            _ => false,
        }
    }

    /// Returns the shape of the `spec` of a document.
    pub fn spec(&self) -> &Self {
        match self {
            Self::Map(fields) => fields.get("spec"),
            _ => None,
        }
        .expect("every document has a spec")
    }

    /// Returns the shape at a path.
    pub fn at(&self, path: &Path) -> Option<&Self> {
        let mut here = self;
        for segment in &path.0 {
            here = match (here, segment) {
                (Self::Map(fields), Segment::Name(name)) => fields.get(name)?,
                (Self::List(items), Segment::Index(_)) => &items.shape,
                _ => return None,
            };
        }
        Some(here)
    }

    fn of_fields(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let mut all: Vec<(Arc<str>, Self)> = fields.into_iter().map(|(name, shape)| (name.into(), shape)).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self::Map(Fields { all, required: Vec::new() })
    }

    fn of_schema(schema: &JSONSchemaProps) -> Self {
        let is_map = schema.type_.as_deref() == Some("object");
        if schema.x_kubernetes_preserve_unknown_fields == Some(true) || schema.x_kubernetes_int_or_string == Some(true)
        {
            return Self::Free { is_map };
        }
        match schema.type_.as_deref() {
            Some("object") => match &schema.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(_)) => {
                    Self::Strings { min: at_least(schema.min_properties), max: at_most(schema.max_properties) }
                }
                _ => Self::Map(fields(schema)),
            },
            Some("array") => Self::List(Box::new(items(schema))),
            Some("string") => Self::String {
                min: at_least(schema.min_length),
                max: at_most(schema.max_length),
                values: schema.enum_.iter().flatten().filter_map(|value| value.0.as_str()).map(Arc::from).collect(),
            },
            Some("boolean") => Self::Boolean,
            // Limits of whole numbers are small.
            Some("integer") => Self::Integer {
                min: schema.minimum.map_or(0, |limit| limit as i64),
                max: schema.maximum.map_or(i64::MAX, |limit| limit as i64),
            },
            _ => Self::Free { is_map: false },
        }
    }
}

fn fields(schema: &JSONSchemaProps) -> Fields {
    // The properties are sorted by name.
    let properties = schema.properties.iter().flatten();
    Fields {
        all: properties.map(|(name, schema)| (name.as_str().into(), Shape::of_schema(schema))).collect(),
        required: schema.required.iter().flatten().map(|name| name.as_str().into()).collect(),
    }
}

fn items(schema: &JSONSchemaProps) -> Items {
    let unique = match (schema.x_kubernetes_list_type.as_deref(), schema.x_kubernetes_list_map_keys.as_deref()) {
        (Some("set"), _) => Unique::Items,
        (Some("map"), Some([key])) => Unique::Field(key.as_str().into()),
        _ => Unique::No,
    };
    let shape = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(schema)) => Shape::of_schema(schema),
        _ => Shape::Free { is_map: false },
    };
    Items { shape, min: at_least(schema.min_items), max: at_most(schema.max_items), unique }
}

fn at_least(limit: Option<i64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0)
}

fn at_most(limit: Option<i64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// The whole document. The API server ignores a `status` that a client applies.
fn document(crd: &api::CustomResourceDefinition) -> Shape {
    let schema = crd.spec.versions.first().and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|root| root.properties.as_ref()?.get("spec")).expect("every kind has a spec");
    let fields = [
        ("apiVersion", string()),
        ("kind", string()),
        ("metadata", metadata()),
        ("spec", Shape::of_schema(spec)),
        ("status", anything()),
    ];
    // A missing spec is an empty one.
    Shape::of_fields(fields)
}

/// The fields of `metadata` that a manifest, or the output of `kubectl get`, can contain.
fn metadata() -> Shape {
    let fields = [
        ("annotations", strings()),
        ("creationTimestamp", anything()),
        ("deletionGracePeriodSeconds", anything()),
        ("deletionTimestamp", anything()),
        ("finalizers", anything()),
        ("generateName", anything()),
        ("generation", anything()),
        ("labels", strings()),
        ("managedFields", anything()),
        ("name", string()),
        ("namespace", string()),
        ("ownerReferences", anything()),
        ("resourceVersion", anything()),
        ("selfLink", anything()),
        ("uid", anything()),
    ];
    Shape::of_fields(fields)
}

fn anything() -> Shape {
    Shape::Free { is_map: false }
}

fn strings() -> Shape {
    Shape::Strings { min: 0, max: usize::MAX }
}

fn string() -> Shape {
    Shape::String { min: 0, max: usize::MAX, values: Vec::new() }
}

//! Types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Number,
    String,
    /// Not known yet, or any type where a type is asked for.
    Dynamic,
    List(Arc<Type>),
    Set(Arc<Type>),
    Map(Arc<Type>),
    Tuple(Arc<[Type]>),
    Object(Arc<ObjectType>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectType {
    pub attributes: BTreeMap<Arc<str>, Type>,
    /// The attributes that a conversion may leave out. Only types that are asked for have them, never those of values.
    pub optional: BTreeSet<Arc<str>>,
}

impl Type {
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    pub fn set(element: Self) -> Self {
        Self::Set(Arc::new(element))
    }

    pub fn map(element: Self) -> Self {
        Self::Map(Arc::new(element))
    }

    pub fn tuple(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::Tuple(elements.into_iter().collect())
    }

    pub fn object<K: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::object_with_optional(attributes, std::iter::empty())
    }

    pub fn object_with_optional<K: Into<Arc<str>>>(
        attributes: impl IntoIterator<Item = (K, Self)>,
        optional: impl IntoIterator<Item = K>,
    ) -> Self {
        Self::Object(Arc::new(ObjectType {
            attributes: attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect(),
            optional: optional.into_iter().map(Into::into).collect(),
        }))
    }

    pub fn is_primitive(&self) -> bool {
        matches!(self, Self::Bool | Self::Number | Self::String)
    }

    pub fn is_collection(&self) -> bool {
        self.element().is_some()
    }

    /// The type of the elements of a list, set or map.
    pub fn element(&self) -> Option<&Self> {
        match self {
            Self::List(element) | Self::Set(element) | Self::Map(element) => Some(element),
            _ => None,
        }
    }

    /// Whether the type is or contains `dynamic`.
    pub fn has_dynamic(&self) -> bool {
        match self {
            Self::Dynamic => true,
            Self::Bool | Self::Number | Self::String => false,
            Self::List(element) | Self::Set(element) | Self::Map(element) => element.has_dynamic(),
            Self::Tuple(elements) => elements.iter().any(Self::has_dynamic),
            Self::Object(object) => object.attributes.values().any(Self::has_dynamic),
        }
    }

    fn has_optional(&self) -> bool {
        match self {
            Self::Dynamic | Self::Bool | Self::Number | Self::String => false,
            Self::List(element) | Self::Set(element) | Self::Map(element) => element.has_optional(),
            Self::Tuple(elements) => elements.iter().any(Self::has_optional),
            Self::Object(object) => !object.optional.is_empty() || object.attributes.values().any(Self::has_optional),
        }
    }

    /// The type of the values that a conversion to this type gives.
    #[must_use]
    pub fn without_optional(&self) -> Self {
        if !self.has_optional() {
            return self.clone();
        }
        match self {
            Self::List(element) => Self::list(element.without_optional()),
            Self::Set(element) => Self::set(element.without_optional()),
            Self::Map(element) => Self::map(element.without_optional()),
            Self::Tuple(elements) => Self::tuple(elements.iter().map(Self::without_optional)),
            Self::Object(object) => {
                Self::object(object.attributes.iter().map(|(name, ty)| (name.clone(), ty.without_optional())))
            }
            other => other.clone(),
        }
    }

    /// Whether values of this type are what `wanted` asks for, without conversion.
    pub fn conforms_to(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (_, Self::Dynamic) => true,
            (Self::List(own), Self::List(wanted))
            | (Self::Set(own), Self::Set(wanted))
            | (Self::Map(own), Self::Map(wanted)) => own.conforms_to(wanted),
            (Self::Tuple(own), Self::Tuple(wanted)) => {
                own.len() == wanted.len() && own.iter().zip(wanted.iter()).all(|(own, wanted)| own.conforms_to(wanted))
            }
            (Self::Object(own), Self::Object(wanted)) => {
                own.attributes.len() == wanted.attributes.len()
                    && own
                        .attributes
                        .iter()
                        .zip(&wanted.attributes)
                        .all(|((name, own), (other, wanted))| name == other && own.conforms_to(wanted))
            }
            _ => self == wanted,
        }
    }

    /// The type in JSON, as providers and state files have it.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::Bool => out.push_str("\"bool\""),
            Self::Number => out.push_str("\"number\""),
            Self::String => out.push_str("\"string\""),
            Self::Dynamic => out.push_str("\"dynamic\""),
            Self::List(element) => element.write_json_collection("list", out),
            Self::Set(element) => element.write_json_collection("set", out),
            Self::Map(element) => element.write_json_collection("map", out),
            Self::Tuple(elements) => {
                out.push_str("[\"tuple\",[");
                for (position, element) in elements.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    element.write_json(out);
                }
                out.push_str("]]");
            }
            Self::Object(object) => object.write_json(out),
        }
    }

    fn write_json_collection(&self, kind: &str, out: &mut String) {
        out.push_str(&format!("[\"{kind}\","));
        self.write_json(out);
        out.push(']');
    }

    /// Reads what [`Self::to_json`] writes.
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        if let Some(name) = json.as_str() {
            return match name {
                "bool" => Some(Self::Bool),
                "number" => Some(Self::Number),
                "string" => Some(Self::String),
                "dynamic" => Some(Self::Dynamic),
                _ => None,
            };
        }
        let parts = json.as_array()?;
        let inner = parts.get(1)?;
        match parts.first()?.as_str()? {
            "list" => Some(Self::list(Self::from_json(inner)?)),
            "set" => Some(Self::set(Self::from_json(inner)?)),
            "map" => Some(Self::map(Self::from_json(inner)?)),
            "tuple" => inner.as_array()?.iter().map(Self::from_json).collect::<Option<Vec<_>>>().map(Self::tuple),
            "object" => {
                let attributes = inner.as_object()?.iter();
                let attributes = attributes.map(|(name, ty)| Some((name.as_str(), Self::from_json(ty)?)));
                let optional = parts.get(2).and_then(|names| names.as_array()).into_iter().flatten();
                Some(Self::object_with_optional(
                    attributes.collect::<Option<Vec<_>>>()?,
                    optional.filter_map(|name| name.as_str()),
                ))
            }
            _ => None,
        }
    }
}

impl ObjectType {
    fn write_json(&self, out: &mut String) {
        out.push_str("[\"object\",{");
        for (position, (name, ty)) in self.attributes.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            crate::json::write_string(name, out);
            out.push(':');
            ty.write_json(out);
        }
        out.push('}');
        if !self.optional.is_empty() {
            out.push_str(",[");
            for (position, name) in self.optional.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                crate::json::write_string(name, out);
            }
            out.push(']');
        }
        out.push(']');
    }
}

/// The form in messages: `list of string`, `object`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Number => f.write_str("number"),
            Self::String => f.write_str("string"),
            Self::Dynamic => f.write_str("any type"),
            Self::List(element) => write!(f, "list of {element}"),
            Self::Set(element) => write!(f, "set of {element}"),
            Self::Map(element) => write!(f, "map of {element}"),
            Self::Tuple(_) => f.write_str("tuple"),
            Self::Object(_) => f.write_str("object"),
        }
    }
}

//! Types.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Entries, Error, MAX_DEPTH, normalize};

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
    pub attributes: Entries<Type>,
    /// The attributes that a conversion may leave out. Only types that are asked for have them, never those of values.
    pub optional: BTreeSet<Arc<str>>,
    /// Kept with the type, so that asking does not walk it.
    has_dynamic: bool,
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
        let attributes: Entries<Self> = attributes.into_iter().collect();
        let optional = optional.into_iter().map(Into::into).collect();
        let has_dynamic = attributes.values().any(Self::has_dynamic);
        Self::Object(Arc::new(ObjectType { attributes, optional, has_dynamic }))
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

    /// The type of the element of a list, set or tuple at an index.
    pub fn item(&self, index: usize) -> Option<&Self> {
        match self {
            Self::List(element) | Self::Set(element) => Some(element),
            Self::Tuple(elements) => elements.get(index),
            _ => None,
        }
    }

    /// The type of the element of a map at a key, or of the attribute of an object.
    pub fn entry(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(element) => Some(element),
            Self::Object(object) => object.attributes.get(name),
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
            Self::Object(object) => object.has_dynamic,
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
    ///
    /// # Errors
    /// If it is not the JSON of a type, or nested more than [`MAX_DEPTH`] levels deep.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let json = serde_json::from_slice(bytes).map_err(|error| invalid(&error.to_string()))?;
        Self::from_json_value(json, 0)
    }

    fn from_json_value(json: Json, depth: usize) -> Result<Self, Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("it is nested too deeply"));
        }
        let inner = |json: Json| Self::from_json_value(json, depth + 1);
        let mut parts = match json {
            Json::String(name) => {
                return match name.as_str() {
                    "string" => Ok(Self::String),
                    "number" => Ok(Self::Number),
                    "bool" => Ok(Self::Bool),
                    "dynamic" => Ok(Self::Dynamic),
                    other => Err(invalid(&format!("unknown type `{other}`"))),
                };
            }
            Json::Array(parts) => parts.into_iter(),
            _ => return Err(invalid("it is neither a string nor an array")),
        };
        let (kind, argument, optional) = (parts.next(), parts.next(), parts.next());
        let (Some(Json::String(kind)), Some(argument), None) = (kind, argument, parts.next()) else {
            return Err(invalid("an array must hold a type constructor and its argument"));
        };
        match (kind.as_str(), argument, optional) {
            ("list", element, None) => Ok(Self::list(inner(element)?)),
            ("set", element, None) => Ok(Self::set(inner(element)?)),
            ("map", element, None) => Ok(Self::map(inner(element)?)),
            ("tuple", Json::Array(elements), None) => {
                Ok(Self::Tuple(elements.into_iter().map(inner).collect::<Result<_, _>>()?))
            }
            ("object", Json::Object(attributes), optional @ (None | Some(Json::Array(_)))) => {
                let attributes = attributes.into_iter().map(|(name, ty)| Ok((normalize(&name), inner(ty)?)));
                let attributes = attributes.collect::<Result<Vec<_>, Error>>()?;
                let names = parts_of(optional).map(|name| name.as_str().map(normalize));
                let names = names.collect::<Option<Vec<_>>>().ok_or_else(|| invalid("an attribute has no name"))?;
                Ok(Self::object_with_optional(attributes, names))
            }
            (kind, ..) => Err(invalid(&format!("unknown type constructor `{kind}`, or an invalid argument for it"))),
        }
    }
}

fn invalid(why: &str) -> Error {
    Error::new(format!("invalid type: {why}"))
}

fn parts_of(array: Option<Json>) -> impl Iterator<Item = Json> {
    let parts = if let Some(Json::Array(parts)) = array { parts } else { Vec::new() };
    parts.into_iter()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written_as_go_cty_does() {
        for text in [
            r#""dynamic""#,
            r#"["list",["set",["map","bool"]]]"#,
            r#"["tuple",[]]"#,
            r#"["tuple",["string",["list","number"]]]"#,
            r#"["object",{}]"#,
            r#"["object",{"a":"string","b\u003e":["object",{"c":"dynamic"}]}]"#,
            r#"["object",{"a":"string","b":"bool"},["b"]]"#,
        ] {
            assert_eq!(Type::from_json(text.as_bytes()).unwrap().to_json(), text);
        }
        let optional = Type::from_json(br#"["object",{"a":"string","b":"bool"},["b"]]"#).unwrap();
        assert_eq!(optional.without_optional(), Type::object([("a", Type::String), ("b", Type::Bool)]));
    }

    #[test]
    fn invalid_types_are_rejected() {
        for text in ["", "null", "1", r#""text""#, "[]", r#"["list"]"#, r#"["list","string","x"]"#, r#"["object",[]]"#]
        {
            assert!(Type::from_json(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("{}\"string\"{}", r#"["list","#.repeat(120), "]".repeat(120));
        assert!(Type::from_json(deep.as_bytes()).is_err());
    }
}

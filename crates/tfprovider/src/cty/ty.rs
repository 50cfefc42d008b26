//! Types and their JSON form.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{MAX_DEPTH, strings};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    String,
    Number,
    Bool,
    /// Any type: a value of this type carries its own type.
    Dynamic,
    List(Arc<Type>),
    Set(Arc<Type>),
    Map(Arc<Type>),
    /// A list of fixed length with a type for each element.
    Tuple(Arc<[Type]>),
    /// The types of the attributes by name. A value has all of them, possibly null.
    Object(Arc<BTreeMap<Arc<str>, Type>>),
}

/// An invalid JSON form of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid type: {0}")]
pub struct TypeError(String);

impl TypeError {
    pub(super) fn new(what: String) -> Self {
        Self(what)
    }
}

impl Type {
    pub fn object<K: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Object(Arc::new(attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect()))
    }

    /// Whether the type is or contains `dynamic`.
    pub fn has_dynamic(&self) -> bool {
        match self {
            Self::Dynamic => true,
            Self::String | Self::Number | Self::Bool => false,
            Self::List(element) | Self::Set(element) | Self::Map(element) => element.has_dynamic(),
            Self::Tuple(elements) => elements.iter().any(Self::has_dynamic),
            Self::Object(attributes) => attributes.values().any(Self::has_dynamic),
        }
    }

    /// Reads the JSON form: `"string"`, `["list",T]`, `["object",{name:T}]`. The third element of an object type, which
    /// lists its optional attributes, matters only for the conversion of literals and is ignored.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TypeError> {
        let json = serde_json::from_slice(bytes).map_err(|error| TypeError(error.to_string()))?;
        Self::from_json_value(json, 0)
    }

    fn from_json_value(json: Json, depth: usize) -> Result<Self, TypeError> {
        let fail = |what: &str| Err(TypeError(what.to_owned()));
        if depth > MAX_DEPTH {
            return fail("it is nested too deeply");
        }
        let inner = |json: Json| Self::from_json_value(json, depth + 1);
        let mut parts = match json {
            Json::String(name) => {
                return match name.as_str() {
                    "string" => Ok(Self::String),
                    "number" => Ok(Self::Number),
                    "bool" => Ok(Self::Bool),
                    "dynamic" => Ok(Self::Dynamic),
                    other => fail(&format!("unknown type `{other}`")),
                };
            }
            Json::Array(parts) => parts.into_iter(),
            _ => return fail("it is neither a string nor an array"),
        };
        let (kind, argument, optional) = (parts.next(), parts.next(), parts.next());
        let (Some(Json::String(kind)), Some(argument), None) = (kind, argument, parts.next()) else {
            return fail("an array must hold a type constructor and its argument");
        };
        match (kind.as_str(), argument, optional) {
            ("list", element, None) => Ok(Self::List(Arc::new(inner(element)?))),
            ("set", element, None) => Ok(Self::Set(Arc::new(inner(element)?))),
            ("map", element, None) => Ok(Self::Map(Arc::new(inner(element)?))),
            ("tuple", Json::Array(elements), None) => {
                Ok(Self::Tuple(elements.into_iter().map(inner).collect::<Result<_, _>>()?))
            }
            ("object", Json::Object(attributes), None | Some(Json::Array(_))) => {
                let attributes = attributes.into_iter().map(|(name, ty)| Ok((strings::to_nfc(&name), inner(ty)?)));
                Ok(Self::Object(Arc::new(attributes.collect::<Result<_, _>>()?)))
            }
            (kind, ..) => fail(&format!("unknown type constructor `{kind}`, or an invalid argument for it")),
        }
    }

    /// Returns the JSON form without whitespace, with attributes sorted by name.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::String => out.push_str("\"string\""),
            Self::Number => out.push_str("\"number\""),
            Self::Bool => out.push_str("\"bool\""),
            Self::Dynamic => out.push_str("\"dynamic\""),
            Self::List(element) | Self::Set(element) | Self::Map(element) => {
                out.push_str(match self {
                    Self::List(_) => "[\"list\",",
                    Self::Set(_) => "[\"set\",",
                    _ => "[\"map\",",
                });
                element.write_json(out);
            }
            Self::Tuple(elements) => {
                out.push_str("[\"tuple\",[");
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write_json(out);
                }
                out.push(']');
            }
            Self::Object(attributes) => {
                out.push_str("[\"object\",{");
                for (index, (name, ty)) in attributes.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    strings::write_json(name, out);
                    out.push(':');
                    ty.write_json(out);
                }
                out.push('}');
            }
        }
        if !matches!(self, Self::String | Self::Number | Self::Bool | Self::Dynamic) {
            out.push(']');
        }
    }
}

/// The form in messages: `list of string`, `object`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Number => f.write_str("number"),
            Self::Bool => f.write_str("bool"),
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
        ] {
            assert_eq!(Type::from_json(text.as_bytes()).unwrap().to_json(), text);
        }
        let optional = Type::from_json(br#"["object",{"a":"string","b":"bool"},["b"]]"#).unwrap();
        assert_eq!(optional, Type::object([("a", Type::String), ("b", Type::Bool)]));
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

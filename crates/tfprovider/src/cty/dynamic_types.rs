//! The types of the values at dynamic positions, recorded separately because model values cannot hold them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Type, TypeError, Value};
use model::{Path, Segment};

/// The types of the values at dynamic positions, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicTypes(BTreeMap<Path, Type>);

impl DynamicTypes {
    /// Collects the dynamic types in a value of the type `ty`.
    pub fn of(value: &Value, ty: &Type) -> Self {
        let mut types = Self::default();
        if ty.has_dynamic() {
            types.collect(value, ty, &Path::default());
        }
        types
    }

    fn collect(&mut self, value: &Value, ty: &Type, at: &Path) {
        match (value, ty) {
            (Value::Dynamic(typed), Type::Dynamic) => {
                self.0.insert(at.clone(), typed.ty.clone());
                self.collect(&typed.value, &typed.ty, at);
            }
            _ if !ty.has_dynamic() => {}
            (Value::List(items), Type::List(element)) => {
                items.iter().enumerate().for_each(|(index, item)| self.collect(item, element, &at.index(index)));
            }
            (Value::Set(items), Type::Set(element)) => {
                items.iter().enumerate().for_each(|(index, item)| self.collect(item, element, &at.index(index)));
            }
            (Value::Tuple(items), Type::Tuple(elements)) => {
                let items = items.iter().zip(elements.iter()).enumerate();
                items.for_each(|(index, (item, element))| self.collect(item, element, &at.index(index)));
            }
            (Value::Map(entries), Type::Map(element)) => {
                entries.iter().for_each(|(key, item)| self.collect(item, element, &at.name(key.clone())));
            }
            (Value::Object(entries), Type::Object(attributes)) => {
                let entries = entries.iter().filter_map(|(name, item)| Some((name, item, attributes.get(name)?)));
                entries.for_each(|(name, item, ty)| self.collect(item, ty, &at.name(name.clone())));
            }
            _ => {}
        }
    }

    /// True for values of nearly every schema.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn at(&self, path: &[Segment]) -> Option<&Type> {
        if self.0.is_empty() { None } else { self.0.get(&Path(path.to_vec())) }
    }

    /// Encodes the types as a JSON list of pairs of path and type.
    pub fn to_json(&self) -> String {
        let pairs = self.0.iter().map(|(path, ty)| {
            let segments = path.0.iter().map(|segment| match segment {
                Segment::Name(name) => Json::from(name.as_ref()),
                Segment::Index(index) => Json::from(*index),
            });
            format!("[{},{}]", segments.collect::<Json>(), ty.to_json())
        });
        format!("[{}]", pairs.collect::<Vec<_>>().join(","))
    }

    /// Decodes the output of [`Self::to_json`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, TypeError> {
        let pairs: Vec<(Vec<Json>, Json)> =
            serde_json::from_slice(bytes).map_err(|error| TypeError::new(error.to_string()))?;
        let read = |(path, ty): (Vec<Json>, Json)| {
            let segments = path.into_iter().map(|segment| match segment {
                Json::String(name) => Ok(Segment::Name(name.into())),
                Json::Number(index) => index.as_u64().map(|index| Segment::Index(index as usize)).ok_or(()),
                _ => Err(()),
            });
            let segments: Result<Vec<_>, ()> = segments.collect();
            let path = segments.map_err(|()| TypeError::new("a path is malformed".to_owned()))?;
            Ok((Path(path), Type::from_json(ty.to_string().as_bytes())?))
        };
        pairs.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

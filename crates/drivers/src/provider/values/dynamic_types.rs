//! The types of the values at dynamic positions, recorded separately because model values cannot hold them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use cty::{Error, Type, Value};
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
        if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
            self.0.insert(at.clone(), value.ty().clone());
            return self.collect(value, value.ty(), at);
        }
        if !ty.has_dynamic() {
            return;
        }
        for (index, item) in value.as_items().into_iter().flatten().enumerate() {
            self.collect(item, ty.item(index).unwrap_or(&Type::Dynamic), &at.index(index));
        }
        for (name, item) in value.as_entries().into_iter().flatten() {
            self.collect(item, ty.entry(name).unwrap_or(&Type::Dynamic), &at.name(name.clone()));
        }
    }

    /// True for values of nearly every schema.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn at(&self, path: &[Segment]) -> Option<&Type> {
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
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let pairs: Vec<(Vec<Json>, Json)> =
            serde_json::from_slice(bytes).map_err(|error| Error::new(error.to_string()))?;
        let types = pairs.into_iter().map(|(path, ty)| {
            let path = read_path(path).ok_or_else(|| Error::new("a path is malformed"))?;
            Ok((path, Type::from_json(ty.to_string().as_bytes())?))
        });
        types.collect::<Result<_, _>>().map(Self)
    }
}

fn read_path(segments: Vec<Json>) -> Option<Path> {
    let segments = segments.into_iter().map(|segment| match segment {
        Json::String(name) => Some(Segment::Name(name.into())),
        Json::Number(index) => index.as_u64().map(|index| Segment::Index(index as usize)),
        _ => None,
    });
    segments.collect::<Option<_>>().map(Path)
}

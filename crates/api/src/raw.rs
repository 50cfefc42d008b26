//! Objects as the API server sent them. A list or a watch decodes only their metadata: an object that cannot be decoded
//! is an error of this object, and not of all others.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::PlanObject;

/// The metadata of an object, without its managed fields, which are nested as deeply as the object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "HeadFields")]
pub struct Head {
    pub metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct HeadFields {
    #[serde(default)]
    metadata: MetadataFields,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MetadataFields {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

impl From<HeadFields> for Head {
    fn from(HeadFields { metadata }: HeadFields) -> Self {
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            annotations: metadata.annotations,
            labels: metadata.labels,
            finalizers: metadata.finalizers,
            ..ObjectMeta::default()
        };
        Self { metadata }
    }
}

/// An object of the kind `K`, with decoded metadata.
#[derive(Clone)]
pub struct RawObject<K> {
    pub metadata: ObjectMeta,
    json: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

impl<K> RawObject<K> {
    fn parts(&self) -> Parts<'_> {
        // The JSON was read as an object before.
        serde_json::from_str(self.json.get()).unwrap_or(Parts { spec: None, status: None })
    }

    /// The fields of the `spec` that can be decoded, and why the others cannot. A field that is null is as good as none.
    pub fn fields(&self) -> (Map<String, Value>, Vec<(String, String)>) {
        let (mut fields, mut undecodable) = (Map::new(), Vec::new());
        let spec = self.parts().spec.map(|spec| serde_json::from_str::<BTreeMap<String, &RawValue>>(spec.get()));
        for (name, value) in spec.and_then(Result::ok).unwrap_or_default() {
            match serde_json::from_str(value.get()) {
                Ok(Value::Null) => {}
                Ok(value) => drop(fields.insert(name, value)),
                Err(error) => undecodable.push((name, reason(&error))),
            }
        }
        (fields, undecodable)
    }

    /// Decodes the `spec`.
    ///
    /// # Errors
    /// If it is not of the type `S`, or nested too deeply.
    pub fn spec<S: DeserializeOwned + Default>(&self) -> Result<S, serde_json::Error> {
        self.parts().spec.map_or_else(|| Ok(S::default()), |spec| serde_json::from_str(spec.get()))
    }

    /// Decodes the `status`; `None` if there is none, or it cannot be decoded.
    pub fn status<S: DeserializeOwned>(&self) -> Option<S> {
        serde_json::from_str(self.parts().status?.get()).ok()
    }
}

impl RawObject<PlanObject> {
    /// The Plan, without a status that cannot be decoded: the controller replaces it.
    ///
    /// # Errors
    /// If the `spec` cannot be decoded.
    pub fn plan(&self) -> Result<PlanObject, serde_json::Error> {
        Ok(PlanObject { metadata: self.metadata.clone(), spec: self.spec()?, status: self.status() })
    }
}

/// The error without its position, which no user can look up.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match text {
        "recursion limit exceeded" => "it is nested too deeply: Purlin reads 120 levels".to_owned(),
        text => text.to_owned(),
    }
}

impl<'de, K> Deserialize<'de> for RawObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        Ok(Self { metadata, json, kind: PhantomData })
    }
}

/// Without the content of the object, which must not be in a log.
impl<K> fmt::Debug for RawObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

impl<K: kube::Resource<DynamicType = ()>> kube::Resource for RawObject<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;
    use crate::{Resource, ResourceSpec, ResourceStatus};

    /// An object whose managed fields are as deep as its `spec`, as the API server sends it.
    fn nested(name: &str, levels: usize) -> String {
        let value = "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"u","managedFields":[{{"fieldsV1":{value}}}]}},
                "spec":{{"type":"terraform_data","config":{value}}},"status":{{"observedGeneration":3}}}}"#
        )
    }

    #[test]
    fn one_deep_object_does_not_fail_a_list_or_a_watch() {
        let list =
            format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{},{}]}}"#, nested("a", 5000), nested("b", 3));
        let list: ObjectList<RawObject<Resource>> = serde_json::from_str(&list).unwrap();
        let [deep, flat] = list.items.as_slice() else { panic!() };
        assert_eq!(flat.spec::<ResourceSpec>().unwrap().type_name, "terraform_data");
        let (fields, undecodable) = deep.fields();
        assert_eq!(fields["type"], "terraform_data", "what can be decoded counts");
        let [(field, why)] = undecodable.as_slice() else { panic!() };
        assert_eq!((field.as_str(), why.as_str()), ("config", "it is nested too deeply: Purlin reads 120 levels"));
        assert_eq!(deep.status::<ResourceStatus>().unwrap().observed_generation, 3);
        let event = format!(r#"{{"type":"ADDED","object":{}}}"#, nested("a", 5000));
        let event: WatchEvent<RawObject<Resource>> = serde_json::from_str(&event).unwrap();
        assert!(matches!(event, WatchEvent::Added(object) if object.metadata.name.as_deref() == Some("a")));
    }

    #[test]
    fn the_content_of_an_object_is_not_in_its_debug_form() {
        let object = r#"{"metadata":{"name":"a"},"spec":{"config":{"password":"secret"}}}"#;
        let object: RawObject<Resource> = serde_json::from_str(object).unwrap();
        assert_eq!(format!("{object:?}"), r#"RawObject { name: Some("a"), .. }"#);
    }
}

//! What Purlin makes in the cluster itself: the objects of `kubernetes_object`, copies of outputs, Jobs of hooks. Which of
//! it there is, and whether it is as it is wished.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::apiserver::{Object, Server};
use crate::hands::SHOP;

/// The type whose objects are here, and not in the world outside.
const TYPE: &str = "kubernetes_object";
/// The kinds of which stories let Purlin make something.
pub(crate) const KINDS: [(&str, &str); 4] =
    [("", "configmaps"), ("", "secrets"), ("apps", "deployments"), ("batch", "jobs")];

/// Whether the object of a Resource is in the cluster.
pub(crate) fn is_in_cluster(resource: &Value) -> bool {
    resource["spec"]["type"] == TYPE
}

/// Everything in the users' namespace that carries a mark of Purlin.
pub(crate) fn all(server: &Server) -> Vec<Arc<Object>> {
    let of_kind = |(group, plural)| server.objects(group, plural);
    let there = KINDS.into_iter().flat_map(of_kind).filter(|object| object.namespace() == SHOP);
    there.filter(|object| address(&object.value).is_some()).cloned().collect()
}

/// The address of the Resource instance that an object was made for.
pub(crate) fn address(object: &Value) -> Option<String> {
    let annotations = &object["metadata"]["annotations"];
    if let Some(address) = annotations["purlin.dev/for"].as_str() {
        return Some(address.to_owned());
    }
    let mut mark = annotations["purlin.dev/owner"].as_str()?.splitn(4, '/').skip(2);
    let (name, instance) = (mark.next()?, mark.next()?);
    Some(if instance.is_empty() { name.to_owned() } else { format!("{name}[{instance}]") })
}

/// Whether it is there for its own sake. Copies and Jobs belong to their Resource.
pub(crate) fn is_object(object: &Value) -> bool {
    address(object).is_some() && object["metadata"]["ownerReferences"].is_null()
}

/// What it holds, in words: its kind, its name, and its data or its image. The drawn end of a name is left out.
pub(crate) fn shown(object: &Value, resource: Option<&Value>) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let prefix = resource.and_then(|one| one["spec"]["config"]["manifest"]["metadata"]["generateName"].as_str());
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let name = match prefix.filter(|prefix| name.starts_with(prefix)) {
        Some(prefix) => format!("{prefix}*"),
        None if kind == "Job" => "*".to_owned(),
        None => name.to_owned(),
    };
    let mut words = vec![kind.to_owned(), name];
    words.extend(object["data"].as_object().into_iter().flatten().map(|(key, value)| {
        let text = value.as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).ok().filter(|_| kind == "Secret");
        format!("{key}={}", bytes.map_or(text.into(), |bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }));
    words.extend(object.pointer("/spec/template/spec/containers/0/image").filter(|_| kind != "Job").map(image));
    words.join(" ")
}

fn image(image: &Value) -> String {
    format!("image={}", image.as_str().unwrap_or_default())
}

/// Whether an object is what the manifest of a Resource asks for, as far as that is written down as constants, and all
/// that runs of it runs.
pub(crate) fn is_as_wished(object: &Value, spec: &Value) -> bool {
    let runs = object["kind"] != "Deployment"
        || (object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && object["status"]["availableReplicas"] == object["spec"]["replicas"]);
    runs && object["metadata"]["deletionTimestamp"].is_null() && covers(object, &spec["config"]["manifest"])
}

fn covers(object: &Value, manifest: &Value) -> bool {
    match manifest {
        Value::Object(fields) => fields.iter().all(|(name, wanted)| match name.as_str() {
            "generateName" => object["name"].as_str() > wanted.as_str(),
            name => covers(&object[name], wanted),
        }),
        Value::Array(items) => {
            let there = object.as_array().map(Vec::as_slice).unwrap_or_default();
            there.len() == items.len() && there.iter().zip(items).all(|(object, item)| covers(object, item))
        }
        Value::String(text) if text.contains("${") => true,
        wanted => object == wanted,
    }
}

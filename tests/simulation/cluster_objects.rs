//! The objects that Purlin creates in the cluster: those of `kubernetes_object`, copies of outputs, and Jobs of hooks.
//! Finds them, and compares them with their Resources.

use std::sync::Arc;

use apiserver::{Object, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::kubectl::SHOP;

/// The type whose objects are in the cluster, not in the service.
const TYPE: &str = "kubernetes_object";
/// Group and plural of the kinds that Purlin creates in stories.
pub(crate) const KINDS: [(&str, &str); 4] =
    [("", "configmaps"), ("", "secrets"), ("apps", "deployments"), ("batch", "jobs")];

/// Whether the object of a Resource is in the cluster.
pub(crate) fn is_in_cluster(resource: &Value) -> bool {
    resource["spec"]["type"] == TYPE
}

/// All objects in the users' namespace that have an annotation of Purlin.
pub(crate) fn all(server: &Server) -> Vec<Arc<Object>> {
    let of_kind = |(group, plural)| server.objects(group, plural);
    let there = KINDS.into_iter().flat_map(of_kind).filter(|object| object.namespace() == SHOP);
    there.filter(|object| address(&object.value).is_some()).cloned().collect()
}

/// The address for which Purlin created an object.
pub(crate) fn address(object: &Value) -> Option<String> {
    let annotations = &object["metadata"]["annotations"];
    if let Some(address) = annotations["purlin.dev/for"].as_str() {
        return Some(address.to_owned());
    }
    let mut mark = annotations["purlin.dev/owner"].as_str()?.splitn(4, '/').skip(2);
    let (name, instance) = (mark.next()?, mark.next()?);
    Some(if instance.is_empty() { name.to_owned() } else { format!("{name}[{instance}]") })
}

/// Whether it is the object of a Resource. Copies and Jobs are not: their Resource owns them.
pub(crate) fn is_object(object: &Value) -> bool {
    address(object).is_some() && object["metadata"]["ownerReferences"].is_null()
}

/// The kind, the name, and the data or the image of an object. The generated suffix of a name is left out.
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

/// Whether an object matches the constants in the manifest of its Resource. A Deployment must also be available.
pub(crate) fn matches_spec(object: &Value, spec: &Value) -> bool {
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

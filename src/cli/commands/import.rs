//! `purlin import ADDRESS ID`: imports an existing object. With a manifest, it writes the record. Without one, it
//! prints a manifest that imports the object with the next apply.

use std::io::Write as _;
use std::sync::Arc;

use crate::cli::args::ImportArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::{PlanParameters, PlanResult};
use crate::cli::local::{self, Session};
use crate::cli::options::{Files, Planning, Target, address};
use crate::cli::output::Console;
use crate::cli::show;
use crate::cli::view::View;
use drivers::kubernetes_object;
use engine::load::{Config, Instance};
use engine::plan::render::Detail;
use model::{
    Address, Cause, ChangeCause, ChangeKind, ChangeOutcome, HistoryEntry, ImportRequest, InstanceKey, ObjectStatus,
    Record, RecordedObject, Stored, TypeName, Uid, Value,
};
use runtime::execute::Limits;
use runtime::pipeline;
use serde_json::{Value as Json, json};

/// Fields of `metadata` that the API server sets.
const SET_BY_SERVER: [&str; 7] =
    ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp"];

/// Annotations that tools set.
const SET_BY_TOOLS: [&str; 2] = ["purlin.dev/owner", "kubectl.kubernetes.io/last-applied-configuration"];

pub async fn run(args: ImportArgs, console: Console) -> anyhow::Result<Exit> {
    let address = address(&args.address)?;
    let Target::Files(files) = Target::from_args(args.target.clone()) else {
        let hint = "in a cluster, set `spec.import.id` in the Resource; for files, use -f";
        return Err(Failure::hinted("`purlin import` works only on files", hint));
    };
    files.require_sources("import")?;
    let desired = local::read(&files);
    if desired.modules.is_some() {
        let hint = format!("write an `import` block with `to = {address}` and the identifier");
        return Err(Failure::hinted("`purlin import` cannot import into a Terraform configuration yet", hint));
    }
    match desired.config.instances.contains_key(&address) {
        true if args.type_name.is_some() || args.out.is_some() => {
            Err(Failure::hinted(format!("`{address}` already has a manifest"), "omit --type and --out"))
        }
        true => import_to_record(&files, &address, &import_request(&args), console).await,
        false => print_manifest(&files, &address, &args, console).await,
    }
}

fn import_request(args: &ImportArgs) -> ImportRequest {
    match &args.identity {
        Some(identity) => ImportRequest::Identity(Value::from_json(identity.clone())),
        None => ImportRequest::Id(args.id.as_deref().unwrap_or_default().into()),
    }
}

/// Writes the object to the record, and shows what the next apply would do.
async fn import_to_record(
    files: &Files,
    address: &Address,
    request: &ImportRequest,
    console: Console,
) -> anyhow::Result<Exit> {
    let mut session = local::open(files, Limits::default(), console).await?;
    let existing = session.inputs.recorded.get(address).cloned();
    if existing.as_ref().is_some_and(|stored| stored.record.has_objects() || stored.record.intent.is_some()) {
        let hint = format!("`purlin state show {address}` shows it; `purlin state rm {address}` forgets it");
        return Err(Failure::hinted(format!("`{address}` already has a recorded object"), hint));
    }
    let planning = Planning { targets: [address.clone()].into(), ..Planning::default() };
    let config = Arc::clone(&session.inputs.config);
    session.inputs.config = Arc::new(with_import(&config, address, request));
    let planned = session.inputs.plan(&session.engine, &planning, PlanParameters::default()).await?;
    let Some(object) = imported_object(&planned, address) else {
        let mut diagnostics = planned.diagnostics;
        diagnostics.retain(|diagnostic| diagnostic.address.as_ref().is_none_or(|concerned| concerned == address));
        console.diagnostics(&diagnostics);
        console.notice("Nothing was imported.");
        return Ok(Exit::Problems);
    };
    let stored = write_record(&session, address, existing, object).await?;
    console.notice(&format!("`{address}` is imported."));
    session.inputs.config = config;
    session.inputs.recorded.insert(address.clone(), stored);
    let next = session.inputs.plan(&session.engine, &planning, PlanParameters::default()).await?;
    show::plan(&next, Detail::default(), console)?;
    Ok(Exit::of(next.has_errors(), false, false))
}

/// The configuration with `spec.import` set for the object.
fn with_import(config: &Config, address: &Address, request: &ImportRequest) -> Config {
    let mut config = config.clone();
    if let Some(instance) = config.instances.get_mut(address) {
        let import = Some(request.clone());
        *instance = Arc::new(Instance { import, suspended: false, ..instance.as_ref().clone() });
    }
    config
}

/// Returns the object that was read, with flags and dependencies of its manifest; `None` if it does not exist or cannot
/// be planned.
fn imported_object(planned: &PlanResult, address: &Address) -> Option<RecordedObject> {
    let prepared = planned.plan.prepared(address)?;
    let object = prepared.prior.as_ref().or(prepared.replaced.as_ref())?;
    Some(RecordedObject {
        value: object.value.clone(),
        private: object.private.clone(),
        identity: object.identity.clone(),
        schema_version: object.schema_version,
        status: ObjectStatus::Ready,
        ..prepared.recorded.clone()
    })
}

async fn write_record(
    session: &Session,
    address: &Address,
    existing: Option<Stored>,
    object: RecordedObject,
) -> anyhow::Result<Stored> {
    let config = &session.inputs.config;
    let instance = config.instances.get(address);
    let type_name = instance.map(|instance| instance.type_name.clone()).unwrap_or_default();
    let (base, mut record) = match existing {
        Some(Stored { record, version }) => (Some(version), record.as_ref().clone()),
        None => (None, Record::empty(config.namespace.clone(), address.clone(), Uid::default(), type_name)),
    };
    let now = session.engine.clock.now();
    let cause = Cause { because: ChangeCause::Imported.to_string().into(), ..Cause::default() };
    record.history.add(HistoryEntry::new(ChangeKind::Import, cause, now, now, ChangeOutcome::Succeeded));
    record.current = Some(Arc::new(object));
    if let Some(instance) = instance {
        record.source.clone_from(&instance.source_file);
        record.handled_replace_request = Arc::clone(&instance.replace_requested);
    }
    let record = Arc::new(record);
    let version = session.engine.journal.intend(Arc::clone(&record), base).await?;
    Ok(Stored { record, version })
}

/// Prints a manifest for the object, without recording it.
async fn print_manifest(files: &Files, address: &Address, args: &ImportArgs, console: Console) -> anyhow::Result<Exit> {
    if address.key != InstanceKey::None {
        let message = format!("`{address}` has no manifest, and none can be printed for an instance");
        return Err(Failure::hinted(message, "write the manifest of the family first"));
    }
    let type_name = args.type_name.clone().or_else(|| {
        args.id.as_deref().is_some_and(kubernetes_object::is_import_id).then(|| kubernetes_object::TYPE_NAME.to_owned())
    });
    let type_name: TypeName = type_name.map(TypeName::from).ok_or_else(|| {
        let message = format!("`{address}` has no manifest, and its type is not known");
        Failure::hinted(message, "write the manifest first, or specify --type to print one")
    })?;
    let request = import_request(args);
    let view = View::open(Target::Files(files.clone()), Limits::default(), console).await?;
    let namespace = &view.inputs.config.namespace;
    let provider = view.inputs.config.provider_of(&type_name);
    let object = pipeline::import(&view.engine, namespace, address, &type_name, provider.as_ref(), &request).await;
    let object = object.map_err(|error| Failure {
        message: format!("the object to import could not be read: {error}"),
        hint: error.hint.clone(),
    })?;
    let object = object
        .ok_or_else(|| Failure::hinted(format!("the object to import does not exist: `{request}`"), "check the ID"))?;
    let (value, problems) = match object.config {
        Some(generated) => (generated.config, generated.problems),
        None => (object.state.value, Vec::new()),
    };
    let text = manifest(address, &type_name, &request, &value)?;
    for problem in problems {
        console.notice(&format!("warning: correct the printed arguments manually: {problem}"));
    }
    match &args.out {
        None => console.result(|out| out.write_all(text.as_bytes()))?,
        Some(path) => {
            let written = std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| {
                Failure::hinted(format!("`{}` cannot be written: {error}", path.display()), "specify another file")
            })?;
        }
    }
    console.notice("Nothing is recorded yet. The next apply with this manifest imports the object.");
    Ok(Exit::Success)
}

fn manifest(address: &Address, type_name: &str, request: &ImportRequest, value: &Value) -> anyhow::Result<String> {
    let import = match request {
        ImportRequest::Id(id) => json!({ "id": &**id }),
        ImportRequest::Identity(identity) => json!({ "identity": identity.to_json() }),
    };
    let mut hidden = Vec::new();
    let config = match type_name {
        kubernetes_object::TYPE_NAME => {
            let mut object = value.get("object").map(Value::to_public_json).unwrap_or_default();
            remove_server_fields(&mut object);
            remove_sensitive(&mut object, "", &mut hidden);
            json!({ "manifest": object })
        }
        _ => {
            let computed = ["id", "output"];
            let mut config = value.to_public_json();
            if let Json::Object(map) = &mut config {
                map.retain(|name, value| !computed.contains(&name.as_str()) && !value.is_null());
            }
            remove_sensitive(&mut config, "", &mut hidden);
            config
        }
    };
    let document = json!({
        "apiVersion": api::API_VERSION,
        "kind": api::KIND,
        "metadata": {"name": address.name()},
        "spec": {"type": type_name, "config": escape_value(&config), "import": import},
    });
    let mut text = String::new();
    for path in hidden {
        text.push_str(&format!("# {path} is sensitive and was omitted. Add it here.\n"));
    }
    text.push_str(serde_saphyr::to_string(&document)?.trim_end());
    text.push('\n');
    Ok(text)
}

/// Removes fields that the API server and tools set.
fn remove_server_fields(object: &mut Json) {
    let Json::Object(map) = object else { return };
    map.remove("status");
    let Some(Json::Object(metadata)) = map.get_mut("metadata") else { return };
    metadata.retain(|name, _| !SET_BY_SERVER.contains(&name.as_str()));
    if let Some(Json::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|name, _| !SET_BY_TOOLS.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Removes sensitive values, and adds their paths to `hidden`.
fn remove_sensitive(value: &mut Json, at: &str, hidden: &mut Vec<String>) {
    let Json::Object(map) = value else { return };
    map.retain(|name, item| {
        let here = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let secret = json!({"sensitive": true});
        // No item of a list can be omitted.
        if *item == secret || (item.is_array() && contains(item, &secret)) {
            hidden.push(here);
            return false;
        }
        remove_sensitive(item, &here, hidden);
        true
    });
}

fn contains(value: &Json, desired: &Json) -> bool {
    match value {
        _ if value == desired => true,
        Json::Array(items) => items.iter().any(|item| contains(item, desired)),
        Json::Object(entries) => entries.values().any(|item| contains(item, desired)),
        _ => false,
    }
}

/// Escapes all strings in a value, so that they contain no expressions.
fn escape_value(value: &Json) -> Json {
    match value {
        Json::String(text) => Json::String(text.replace("${", "$${")),
        Json::Array(items) => items.iter().map(escape_value).collect(),
        Json::Object(entries) => {
            Json::Object(entries.iter().map(|(key, item)| (key.clone(), escape_value(item))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_contains_no_computed_or_sensitive_values() {
        let object = Value::from_json(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "token", "namespace": "shop", "uid": "1", "resourceVersion": "7", "labels": {"app": "web", "literal": "${x}"},
                "annotations": {"purlin.dev/owner": "x"},
            },
            "type": "Opaque",
        }))
        .with("data", Value::from("c2VjcmV0").into_sensitive());
        let value = Value::map([("id", Value::from("1")), ("object", object)]);
        let text = manifest(
            &Address::single("token"),
            "kubernetes_object",
            &ImportRequest::Id("v1/Secret/shop/token".into()),
            &value,
        )
        .unwrap();
        let loaded = engine::load::source::read_strings(&[("a.yaml", &text)]);
        assert!(loaded.config.incomplete.is_empty() && loaded.config.instances.len() == 1, "{text}");
        assert!(text.starts_with("# data is sensitive"), "{text}");
        for absent in ["c2VjcmV0", "uid", "resourceVersion", "annotations", "owner"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        for present in ["$${x}", "Opaque", "namespace: shop", "app: web", "v1/Secret/shop/token"] {
            assert!(text.contains(present), "{present}: {text}");
        }
    }
}

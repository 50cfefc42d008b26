//! Changes who owns the fields of an object: takes them over from the tools that applied it before, and gives an object
//! up that Purlin no longer manages.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value as Json, json};

use crate::CallContext;
use model::{Diagnostic, DriverError, Path, Reason, RecordedObject, Value};

use super::api_error::{self, RequestError};
use super::discovery::ApiKind;
use super::ownership::{self, FieldPath, KeptField};
use super::patch::{Patch, PatchTarget};
use super::server::{Call, ServerResponse};
use super::target::{OWNER_ANNOTATION, Target};
use super::{FIELD_MANAGER, KubernetesObject, discovery_error, error_context, object, recorded_target};

/// Attempts to write the owners of an object that other clients change at the same time.
const ATTEMPTS: u32 = 4;

/// How many kept fields of one manager a warning names.
const NAMED: usize = 8;

/// The fields that an object keeps, as the private data of its record: later plans report them too.
#[derive(Default)]
pub struct KeptFields(Vec<(FieldPath, String)>);

impl KeptFields {
    fn of_record(recorded: &RecordedObject) -> Self {
        let stored: Vec<(Vec<String>, String)> = serde_json::from_slice(&recorded.private).unwrap_or_default();
        Self(stored.into_iter().map(|(keys, manager)| (FieldPath::from_keys(keys), manager)).collect())
    }

    /// The recorded fields that the object still has because of another manager, and that `desired` does not set.
    pub fn remaining(recorded: &RecordedObject, live: &Json, desired: &Value) -> Self {
        let Self(mut fields) = Self::of_record(recorded);
        if !fields.is_empty() {
            let object = object::value(live, desired);
            fields.retain(|(path, _)| {
                path.find(desired).is_none() && path.find(&object).is_some() && ownership::is_owned_by_other(live, path)
            });
        }
        Self(fields)
    }

    fn add(&mut self, kept: Vec<KeptField>) {
        for KeptField { path, manager, .. } in kept {
            if !self.0.iter().any(|(known, by)| *known == path && *by == manager) {
                self.0.push((path, manager));
            }
        }
    }

    /// Without the fields that an apply takes over and removes.
    pub fn without_tools(mut self, kept: &[KeptField]) -> Self {
        self.0.retain(|(path, _)| !kept.iter().any(|kept| kept.is_of_tool && kept.path == *path));
        self
    }

    pub fn private(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let stored: Vec<(&[String], &str)> = self.0.iter().map(|(path, by)| (path.keys(), by.as_str())).collect();
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Reports the fields of each manager.
    pub fn warn(&self, context: &CallContext) {
        let mut by_manager: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (path, manager) in &self.0 {
            by_manager.entry(manager).or_default().push(format!("`{path}`"));
        }
        for (manager, paths) in by_manager {
            let more = match paths.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = paths[..paths.len().min(NAMED)].join(", ");
            let (is, stays, it) = if paths.len() == 1 { ("is", "stays", "it") } else { ("are", "stay", "them") };
            let what =
                format!("{named}{more} {is} no longer in the manifest, but {stays}, because `{manager}` owns {it} too");
            let hint = format!("remove {it} with `{manager}`, or with `kubectl edit`");
            let warning =
                Diagnostic { address: context.address.parse().ok(), ..Diagnostic::general(Reason::FieldKept, what) };
            let warning = Diagnostic { severity: model::Severity::Warning, ..warning };
            context.warnings.add(warning.at(Path::default().name("manifest")).hint(hint));
        }
    }
}

impl KubernetesObject {
    /// Applies to an existing object, and takes the fields of tools over: those that the manifest of an imported object
    /// sets, and those that the manifest no longer sets, so that they are removed. Returns the object.
    pub(crate) async fn apply_and_take_over(
        &self,
        at: &PatchTarget<'_>,
        sent: &Patch,
        uid: Option<&str>,
    ) -> Result<Json, RequestError> {
        let mut live = self.apply_patch(at, sent, uid, false).await?.body;
        let is_first = sent.previous.is_none();
        for _ in 0..ATTEMPTS {
            let kept = kept_fields(&live, sent);
            let Some(owners) = ownership::taken_over(&live, is_first, &kept) else { break };
            match self.write_owners(at, &live, owners).await {
                Ok(answer) => live = answer.body,
                Err(RequestError::Api(api_error)) if api_error.code == 409 => {
                    match self.live(at.context, at.target).await {
                        Ok(Some(now)) if now["metadata"]["uid"].as_str() == uid => live = now,
                        _ => break,
                    }
                    continue;
                }
                // The apply itself succeeded. A field that stays is reported.
                Err(failure) => {
                    tracing::warn!(object = %at.target, ?failure, "cannot take over fields of other managers");
                    break;
                }
            }
            if kept.iter().any(|kept| kept.is_of_tool) {
                live = self.patch(at, &sent.desired, uid, false, true).await?.body;
            }
        }
        Ok(live)
    }

    /// Replaces `managedFields`, unless the object has changed.
    async fn write_owners(
        &self,
        at: &PatchTarget<'_>,
        live: &Json,
        owners: Json,
    ) -> Result<ServerResponse, RequestError> {
        let metadata = &live["metadata"];
        let operations = json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": owners},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        ]);
        self.json_patch(at.context, at.kind, at.target, operations).await
    }

    async fn json_patch(
        &self,
        context: &CallContext,
        kind: &ApiKind,
        target: &Target,
        operations: Json,
    ) -> Result<ServerResponse, RequestError> {
        let path = format!("{}/{}?fieldManager={FIELD_MANAGER}", kind.collection(&target.namespace), target.name);
        let call = Call {
            method: Method::PATCH,
            content_type: "application/json-patch+json",
            body: Some(operations),
            repeatable: false,
            ..Call::get(path)
        };
        let caller = self.caller(context).map_err(|error| RequestError::Unreachable(error.message))?;
        self.server.call(caller, &call, context.deadline).await
    }

    /// Removes the owner annotation from an object that Purlin no longer manages, if it is that of the instance.
    pub(crate) async fn remove_owner_annotation(
        &self,
        context: &CallContext,
        recorded: &RecordedObject,
    ) -> Result<(), DriverError> {
        let target = recorded_target(recorded)?;
        let (caller, owner) = (self.caller(context)?, self.owner(context).await?);
        let kind = self.server.kind_in_any_version(caller, &target.api_version, &target.kind, context.deadline).await;
        let kind = kind.map_err(|failure| discovery_error(context, &failure, &target.api_version, &target.kind))?;
        let Some(kind) = kind else { return Ok(()) };
        let attempt = error_context(context, "release", &kind.resource(), &target);
        for _ in 0..ATTEMPTS {
            let ours = self.live(context, &target).await?.filter(|live| {
                let metadata = &live["metadata"];
                metadata["uid"].as_str() == recorded.id()
                    && metadata["annotations"][OWNER_ANNOTATION].as_str() == Some(owner.as_str())
            });
            let Some(live) = ours else { return Ok(()) };
            let annotation = format!("/metadata/annotations/{}", OWNER_ANNOTATION.replace('/', "~1"));
            let operations = json!([
                {"op": "remove", "path": annotation},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
            ]);
            match self.json_patch(context, &kind, &target, operations).await {
                Ok(_) => return Ok(()),
                Err(RequestError::Api(api_error)) if api_error.code == 409 => {}
                Err(failure) => return Err(api_error::to_driver_error(&failure, &attempt)),
            }
        }
        Err(api_error::to_driver_error(&RequestError::Timeout, &attempt))
    }
}

/// The fields that an apply did not remove, because another manager owns them.
pub fn kept_fields(live: &Json, sent: &Patch) -> Vec<KeptField> {
    let Some(previous) = &sent.previous else { return Vec::new() };
    ownership::kept_fields(live, previous, &sent.desired, &object::value(live, &sent.desired))
}

/// All fields that an object keeps after an apply: those of this apply, and earlier ones.
pub fn all_kept_fields(prior: &RecordedObject, live: &Json, sent: &Patch) -> KeptFields {
    let mut kept = KeptFields::remaining(prior, live, &sent.desired);
    kept.add(kept_fields(live, sent));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::context;

    fn field(key: usize) -> FieldPath {
        FieldPath::from_keys(vec!["data".to_owned(), format!("k{key}")])
    }

    #[test]
    fn the_kept_fields_of_one_manager_are_one_warning() {
        let many = (0..NAMED + 2).map(|key| (field(key), "helm".to_owned()));
        let kept = KeptFields(many.chain([(field(99), "scaler".to_owned())]).collect());
        let context = context("kubernetes_object");
        kept.warn(&context);
        let warnings: Vec<String> = context.warnings.take().iter().map(Diagnostic::message).collect();
        assert_eq!(
            warnings,
            [
                "manifest: `data.k0`, `data.k1`, `data.k2`, `data.k3`, `data.k4`, `data.k5`, `data.k6`, `data.k7` and 2 \
                 more are no longer in the manifest, but stay, because `helm` owns them too (hint: remove them with \
                 `helm`, or with `kubectl edit`)",
                "manifest: `data.k99` is no longer in the manifest, but stays, because `scaler` owns it too (hint: remove \
                 it with `scaler`, or with `kubectl edit`)",
            ]
        );
    }
}

//! Writes the Plans of changes that wait for an approval, and reads the Plans with a digest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::context::Context;
use super::namespaces::NamespaceHandle;
use super::watch::{PlanEvent, PlanKey};
use api::{DECIDED_BY, PlanObject, PlanSpec, PlanStatus, PlanUse, RawObject, plan_name};
use engine::plan::approval::shown::is_consistent;
use engine::plan::published;
use process::{Random, request_error};
use runtime::reconcile::index::{ApprovalPlan, PlanId};
use runtime::reconcile::{APPROVAL_VALID, ApprovalWrite, HeldPlan, PlanOwner, Signal};
use runtime::store::secrets::SECRET_TYPE;

/// The Secret with the salt of the digests, in the namespace of the controller. If it is lost, no earlier digest matches:
/// changes must be approved again.
const SALT_SECRET: &str = "purlin-approvals";
const SALT_KEY: &str = "salt";
/// The label that backups select. Records have other values.
const SALT_LABEL: (&str, &str) = ("purlin.dev/record", "salt");
/// The label of the Plans that Purlin creates, for selectors of users. It decides nothing.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "purlin");
/// How many characters of the reason of the API server a condition has.
const MAX_REFUSAL: usize = 500;
/// The delay between attempts to read the salt.
const SALT_RETRY: Duration = Duration::from_secs(2);

/// A Plan with a digest, as the reconciler needs it. `None` for a preview.
pub(crate) fn observed(plan: &PlanObject) -> Option<ApprovalPlan> {
    let spec = &plan.spec;
    let digest: Arc<str> = spec.digest.as_deref()?.into();
    let mut status = published::unpack(plan.status.clone().unwrap_or_default());
    let is_invalid = !is_consistent(spec, &PlanStatus::default());
    if !is_consistent(&PlanSpec { digest: spec.digest.clone(), ..PlanSpec::default() }, &status) {
        // What it shows are not the changes of its digest.
        status = PlanStatus { approvals: Vec::new(), changes: Vec::new(), graph: None, result: None, ..status };
    }
    let valid = spec.approval_valid_seconds.map_or(APPROVAL_VALID, |seconds| SignedDuration::from_secs(seconds.into()));
    Some(ApprovalPlan {
        id: id(plan),
        generation: plan.metadata.generation.unwrap_or_default(),
        is_own: plan_name::is_drawn(&plan.name_any(), &digest),
        proposed: if is_invalid { Vec::new() } else { spec.changes.clone() },
        is_invalid,
        digest,
        approved: spec.approved,
        rejected: spec.rejected,
        decided_by: plan.annotations().get(DECIDED_BY).cloned(),
        valid,
        status,
    })
}

pub(crate) fn id(plan: &impl ResourceExt) -> PlanId {
    PlanId { uid: plan.uid().unwrap_or_default().into(), version: plan.resource_version().unwrap_or_default().into() }
}

/// Reads a Plan, without a status that cannot be decoded.
///
/// # Errors
/// When the API server cannot be asked, or the `spec` cannot be decoded.
pub async fn get(api: &Api<RawObject<PlanObject>>, name: &str) -> Result<Option<PlanObject>, kube::Error> {
    let plan = api.get_opt(name).await?;
    plan.map(|plan| plan.plan()).transpose().map_err(kube::Error::SerdeError)
}

/// Deletes a Plan unless it was replaced.
pub(crate) async fn delete(api: &Api<RawObject<PlanObject>>, plan: &PlanObject) -> Result<(), kube::Error> {
    let preconditions = Preconditions { uid: plan.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&plan.name_any(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(error)) if matches!(error.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Carries out a write, and reports how it ended.
pub(crate) async fn write(context: Arc<Context>, shared: Arc<NamespaceHandle>, write: ApprovalWrite) -> Signal {
    let name = match &write {
        ApprovalWrite::Create { plan, .. } => &plan.name,
        ApprovalWrite::Status { name, .. } => name,
    };
    let key = PlanKey { namespace: shared.name().clone(), name: Arc::clone(name) };
    let written = match &write {
        ApprovalWrite::Create { plan, owners } => {
            create(&context.client, &key.namespace, plan, owners, &*context.engine.random).await
        }
        ApprovalWrite::Status { name, id, status } => {
            let api = Api::namespaced(context.client.clone(), &key.namespace);
            write_status(&api, name, id, status).await
        }
    };
    if matches!(&written, Err(kube::Error::Api(error)) if error.code == 409) {
        // The next attempt starts from the present version. The receiver is dropped during shutdown.
        let _ = context.plans.send(PlanEvent::Conflict(key.clone()));
    }
    let written = written.map_err(|error| {
        let (namespace, plan, error) = (&*key.namespace, &*key.name, request_error(&error));
        tracing::warn!(namespace, plan, error, "could not write a Plan; retrying");
    });
    Signal::ApprovalWritten(Box::new(write), written.ok())
}

/// Creates a Plan; its status is written when the watch delivers it. One with the same digest from an earlier attempt is
/// used. If the name belongs to another one, or to one that has ended, Purlin draws another name: that Plan is the matter
/// of its author.
async fn create(
    client: &Client,
    namespace: &str,
    held: &HeldPlan,
    owners: &[PlanOwner],
    random: &dyn Random,
) -> Result<PlanId, kube::Error> {
    let labels = [MANAGED_BY, (PlanUse::LABEL, PlanUse::Approval.as_str())];
    let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let spec = PlanSpec { digest: Some(held.digest.to_string()), ..PlanSpec::default() };
    let metadata = ObjectMeta {
        name: Some(held.name.to_string()),
        labels: Some(labels),
        owner_references: Some(owners.iter().map(owner_reference).collect()),
        ..ObjectMeta::default()
    };
    let mut plan = PlanObject { metadata, spec, status: None };
    let api = Api::namespaced(client.clone(), namespace);
    match api.create(&PostParams::default(), &plan).await {
        Err(kube::Error::Api(error)) if error.code == 409 => {}
        created => return created.map(|created| id(&created)),
    }
    if let Some(existing) = get(&Api::namespaced(client.clone(), namespace), &held.name).await?
        && observed(&existing).is_some_and(|plan| plan.digest == held.digest && plan.is_open())
    {
        return Ok(id(&existing));
    }
    plan.metadata.name = held.other_name(random.number());
    api.create(&PostParams::default(), &plan).await.map(|created| id(&created))
}

fn owner_reference(owner: &PlanOwner) -> OwnerReference {
    OwnerReference {
        api_version: api::API_VERSION.to_owned(),
        kind: "Resource".to_owned(),
        name: owner.name.to_string(),
        uid: owner.uid.to_string(),
        // A deletion of the Resource in the foreground need not wait for the Plan.
        block_owner_deletion: None,
        controller: None,
    }
}

/// Replaces the status of this version of a Plan. A Plan that no longer exists needs none.
async fn write_status(
    api: &Api<RawObject<PlanObject>>,
    name: &str,
    known: &PlanId,
    status: &PlanStatus,
) -> Result<PlanId, kube::Error> {
    let written = patch_bounded(api, name, known, PlanUse::Approval, status).await?;
    Ok(written.unwrap_or_else(|| known.clone()))
}

/// As [`patch_status`], with a smaller status if the API server refuses this one: it would refuse it each time.
pub(crate) async fn patch_bounded(
    api: &Api<RawObject<PlanObject>>,
    name: &str,
    known: &PlanId,
    used_for: PlanUse,
    status: &PlanStatus,
) -> Result<Option<PlanId>, kube::Error> {
    let packed = published::pack(PlanStatus { used_for: Some(used_for), ..status.clone() });
    let mut refused = match patch_status(api, name, known, &packed).await {
        Err(kube::Error::Api(error)) if is_final(&error) => error,
        written => return written,
    };
    for with_changes in [true, false] {
        let message: String = refused.message.chars().take(MAX_REFUSAL).collect();
        let (namespace, plan) = (api.namespace().unwrap_or_default(), name);
        tracing::warn!(
            namespace,
            plan,
            error = message,
            "the API server refused the status of a Plan; writing a smaller one"
        );
        let reduced = published::refused(&packed, &message, with_changes);
        refused = match patch_status(api, name, known, &reduced).await {
            Err(kube::Error::Api(error)) if is_final(&error) => error,
            written => return written,
        };
    }
    Err(kube::Error::Api(refused))
}

/// Whether the API server will give this answer each time: the object is invalid, or too large for it or for etcd.
fn is_final(error: &kube::core::Status) -> bool {
    let is_too_large = error.message.contains("too large") || error.message.contains("larger than max");
    matches!(error.code, 400 | 413 | 422) || is_too_large
}

/// Replaces the status of this version of a Plan. `None`: the Plan does not exist anymore. Another version is a
/// conflict: another replica may have written a newer status since.
async fn patch_status(
    api: &Api<RawObject<PlanObject>>,
    name: &str,
    known: &PlanId,
    status: &PlanStatus,
) -> Result<Option<PlanId>, kube::Error> {
    let status = status.replacement().map_err(kube::Error::SerdeError)?;
    let patch = json!({ "metadata": { "uid": known.uid, "resourceVersion": known.version }, "status": status });
    match api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => Ok(Some(id(&written))),
        Err(kube::Error::Api(error)) if error.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// The salt of the digests. The first caller reads or creates it; retried until that succeeds.
pub(crate) async fn salt(context: &Context) -> Arc<[u8]> {
    Arc::clone(context.approval_salt.get_or_init(|| retry_read_salt(context)).await)
}

async fn retry_read_salt(context: &Context) -> Arc<[u8]> {
    loop {
        match read_salt(&context.client, &context.namespace, &*context.engine.random).await {
            Ok(salt) => return salt,
            Err(error) => {
                let namespace = &*context.namespace;
                tracing::warn!(namespace, secret = SALT_SECRET, %error, "could not read the salt of approvals; retrying");
                tokio::time::sleep(SALT_RETRY).await;
            }
        }
    }
}

async fn read_salt(client: &Client, namespace: &str, random: &dyn Random) -> Result<Arc<[u8]>, kube::Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let known = api.get_opt(SALT_SECRET).await?.and_then(|secret| secret.data?.remove(SALT_KEY));
    if let Some(salt) = known {
        return Ok(salt.0.into());
    }
    // A backup of the records contains it.
    let labels = [MANAGED_BY, SALT_LABEL].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let labels = BTreeMap::from(labels);
    let salt: Vec<u8> = (0..4).flat_map(|_| random.number().to_le_bytes()).collect();
    let secret = Secret {
        metadata: ObjectMeta { name: Some(SALT_SECRET.to_owned()), labels: Some(labels), ..ObjectMeta::default() },
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([(SALT_KEY.to_owned(), ByteString(salt.clone()))])),
        immutable: Some(true),
        ..Secret::default()
    };
    match api.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(salt.into()),
        // Another replica was faster: the next attempt reads its salt.
        Err(error) => Err(error),
    }
}

//! `purlin approve` and `reject`: decide on the changes of a Plan in a cluster, with the user's permissions.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::api::{self, ApprovalState, PlanObject};
use crate::cli::args::DecisionArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure, message};
use crate::cli::inputs::PlanResult;
use crate::cli::options::{Cluster, Target};
use crate::cli::output::Console;
use crate::cli::show;
use crate::plan::approval::noun;
use crate::plan::render::Detail;
use crate::plan::{Plan, published};

pub async fn approve(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, "approved", console).await
}

pub async fn reject(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, "rejected", console).await
}

/// `field`: the field of the spec that records the decision.
async fn decide(args: DecisionArgs, field: &str, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args)?;
    let (client, namespace) = cluster::client(&target, console).await?;
    let plans: Api<PlanObject> = Api::namespaced(client.clone(), &namespace);
    let Some(plan) = plans.get_opt(&args.name).await? else {
        let hint = format!("`kubectl -n {namespace} get plans` lists them");
        return Err(Failure::hinted(format!("the Plan `{}` does not exist", args.name), hint));
    };
    if let Some(why) = undecidable(&plan, field) {
        console.notice(&format!("{why} Nothing was changed."));
        return Ok(Exit::Success);
    }
    if plan.spec.digest.is_none() {
        let hint = format!("`kubectl -n {namespace} get plans` shows the Plans that wait for an approval");
        return Err(Failure::hinted(format!("`{}` is a preview, which changes nothing", args.name), hint));
    }
    show_changes(&plan, console)?;
    if !args.yes && !confirmed(field, console)? {
        console.notice("Nothing was changed.");
        return Ok(Exit::Success);
    }
    let user = user(client).await;
    write(&plans, &plan, field, user).await.map_err(|error| refused(error, &namespace))?;
    let next = format!("`kubectl -n {namespace} get plan {}` shows the progress", args.name);
    console.notice(&match field {
        "approved" => format!("The changes of `{}` are approved; {next}.", args.name),
        _ => format!("The changes of `{}` are rejected; the objects stay as they are.", args.name),
    });
    Ok(Exit::Success)
}

/// Shows the planned changes, or what is known of changes that are not due yet.
fn show_changes(plan: &PlanObject, console: Console) -> anyhow::Result<()> {
    let status = plan.status.clone().unwrap_or_default();
    if status.result.is_some() {
        let (changes, diagnostics) = published::read(&status);
        let planned = PlanResult { plan: Plan { changes, ..Plan::default() }, diagnostics, ..PlanResult::default() };
        return show::plan(&planned, Detail::default(), console);
    }
    let digest = plan.spec.digest.as_deref().unwrap_or_default();
    console.notice(&format!("The changes with the digest {digest} are not due yet."));
    for change in &plan.spec.changes {
        console.notice(&format!("  {}: {}", change.address, noun(change.action)));
    }
    Ok(())
}

fn require_cluster(args: &DecisionArgs) -> anyhow::Result<Cluster> {
    match Target::from_args(args.target.clone()) {
        Target::Cluster(cluster) => Ok(cluster),
        Target::Files(_) => {
            let hint = "on files, `purlin apply` asks for confirmation";
            Err(Failure::hinted("this command works only on Plans in a cluster", hint))
        }
    }
}

/// Why there is nothing to decide.
fn undecidable(plan: &PlanObject, field: &str) -> Option<String> {
    let name = plan.metadata.name.clone().unwrap_or_default();
    match plan.status.as_ref().and_then(|status| status.approval) {
        Some(ApprovalState::Applied) => Some(format!("The changes of `{name}` were made.")),
        Some(ApprovalState::Superseded) => {
            Some(format!("`{name}` is superseded: other changes are planned, or none at all."))
        }
        Some(ApprovalState::Expired) => Some(format!("The approval of `{name}` has expired.")),
        _ if plan.spec.approved => Some(format!("`{name}` is already approved.")),
        _ if plan.spec.rejected && field == "rejected" => Some(format!("`{name}` is already rejected.")),
        _ if plan.spec.rejected => Some(format!("`{name}` is rejected; delete it to get a new Plan.")),
        _ => None,
    }
}

fn confirmed(field: &str, console: Console) -> anyhow::Result<bool> {
    if !console.can_ask {
        return Err(Failure::hinted("cannot ask for confirmation without a terminal", "add --yes"));
    }
    let verb = if field == "approved" { "approve" } else { "reject" };
    console.confirms(&format!("\nDo you want to {verb} these changes? "))
}

/// The name of the user, as the API server knows it. `None` if it does not say.
async fn user(client: Client) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username
}

async fn write(
    plans: &Api<PlanObject>,
    plan: &PlanObject,
    field: &str,
    user: Option<String>,
) -> Result<PlanObject, kube::Error> {
    // Another Plan of this name, or a changed one, is not the one that was shown.
    let metadata = json!({
        "uid": plan.metadata.uid,
        "annotations": { api::DECIDED_BY: user },
    });
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { field: true } }));
    let params = PatchParams { field_manager: Some("purlin-cli".to_owned()), ..PatchParams::default() };
    plans.patch(plan.metadata.name.as_deref().unwrap_or_default(), &params, &patch).await
}

fn refused(error: kube::Error, namespace: &str) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if status.is_forbidden() && !status.message.contains("(hint: ") => {
            let hint =
                format!("ask for a RoleBinding to the ClusterRole `purlin-approver` in the namespace `{namespace}`");
            Failure::hinted(message(&error), hint)
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{PlanSpec, PlanStatus};

    fn plan(state: Option<ApprovalState>, approved: bool, rejected: bool) -> PlanObject {
        let spec = PlanSpec { digest: Some("d".to_owned()), approved, rejected, ..PlanSpec::default() };
        let status = Some(PlanStatus { approval: state, ..PlanStatus::default() });
        PlanObject { spec, status, ..PlanObject::default() }
    }

    #[test]
    fn a_decision_is_made_once() {
        assert_eq!(undecidable(&plan(Some(ApprovalState::Waiting), false, false), "approved"), None);
        assert!(undecidable(&plan(Some(ApprovalState::Approved), true, false), "rejected").is_some());
        assert!(undecidable(&plan(Some(ApprovalState::Rejected), false, true), "approved").is_some());
        for state in [ApprovalState::Applied, ApprovalState::Superseded, ApprovalState::Expired] {
            assert!(undecidable(&plan(Some(state), true, false), "approved").is_some());
        }
    }
}

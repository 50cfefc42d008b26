//! `purlin approve` and `reject`: decide on the changes of a Plan in a cluster, with the user's permissions.

use std::time::Duration;

use kube::Api;
use kube::runtime::wait::await_condition;

use crate::cli::args::DecisionArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::PlanResult;
use crate::cli::options::{Cluster, Target};
use crate::cli::output::Console;
use crate::cli::show;
use api::{PlanObject, RawObject};
use controller::ui::decision::{self, Decision};
use engine::plan::approval::noun;
use engine::plan::approval::shown::provable;
use engine::plan::published;
use engine::plan::render::Detail;
use model::kube_names::is_name;
use process::request_error;

/// The field manager of changes by this command line.
const FIELD_MANAGER: &str = "purlin-cli";

/// How long the controller may take to write what a new Plan shows.
const UNSEEN: Duration = Duration::from_secs(10);

pub async fn approve(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, Decision::Approve, console).await
}

pub async fn reject(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, Decision::Reject, console).await
}

async fn decide(args: DecisionArgs, decision: Decision, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args)?;
    let (client, namespace) = cluster::client(&target, console).await?;
    let plans: Api<RawObject<PlanObject>> = Api::namespaced(client.clone(), &namespace);
    let hint = format!("`kubectl -n {namespace} get pplan` lists them");
    let Some(name) = plan_name(&args.name) else {
        return Err(Failure::hinted(format!("`{}` is not the name of a Plan", args.name), hint));
    };
    let Some(plan) = observed(&plans, name).await? else {
        return Err(Failure::hinted(format!("the Plan `{name}` does not exist"), hint));
    };
    if let Some(why) = decision::undecidable(&plan, decision) {
        console.notice(&format!("{why} Nothing was changed."));
        return Ok(Exit::Success);
    }
    if plan.spec.digest.is_none() {
        let hint = format!("`kubectl -n {namespace} get plans` shows the Plans that wait for an approval");
        return Err(Failure::hinted(format!("`{name}` is a preview, which changes nothing"), hint));
    }
    if let Some((why, hint)) = decision::unseen(&plan, decision, &namespace) {
        return Err(Failure::hinted(why, hint));
    }
    show_changes(&plan, console)?;
    if !args.yes && !confirmed(decision, console)? {
        console.notice("Nothing was changed.");
        return Ok(Exit::Success);
    }
    let user = decision::user(client).await.ok();
    decision::write(&plans, &plan, decision, user, FIELD_MANAGER).await.map_err(|error| refused(error, &namespace))?;
    let next = match decision {
        Decision::Approve => format!("; `kubectl -n {namespace} get pplan {name}` shows the progress"),
        Decision::Reject => String::new(),
    };
    console.notice(&format!("{}{next}.", decision.done(name)));
    Ok(Exit::Success)
}

/// The name of a Plan, which may have its kind before it, as in the output of `kubectl get -o name`.
fn plan_name(text: &str) -> Option<&str> {
    let kinds = ["plan/", "plans/", "pplan/", "plan.purlin.dev/", "plans.purlin.dev/"];
    let name = kinds.iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text);
    is_name(name).then_some(name)
}

/// The Plan, with what it shows if the controller writes it soon.
async fn observed(plans: &Api<RawObject<PlanObject>>, name: &str) -> Result<Option<PlanObject>, kube::Error> {
    let plan = controller::approvals::get(plans, name).await?;
    if !plan.as_ref().is_some_and(is_new) {
        return Ok(plan);
    }
    let observed = await_condition(plans.clone(), name, |plan: Option<&RawObject<PlanObject>>| {
        !plan.and_then(|plan| plan.plan().ok()).is_some_and(|plan| is_new(&plan))
    });
    // Without its status, the Plan is not approved.
    let _ = tokio::time::timeout(UNSEEN, observed).await;
    controller::approvals::get(plans, name).await
}

fn is_new(plan: &PlanObject) -> bool {
    plan.spec.digest.is_some() && plan.status.is_none()
}

/// Shows the planned changes in full, because a user decides about all of them, or what is known of changes that are not due.
/// Nothing is shown that nothing can prove.
fn show_changes(plan: &PlanObject, console: Console) -> anyhow::Result<()> {
    let status = published::unpack(plan.status.clone().unwrap_or_default());
    // A Plan that shows something else was refused before.
    let (status, coverage) = provable(&plan.spec, status).unwrap_or_default();
    if status.result.is_some() {
        let (changes, diagnostics) = published::read(&status);
        let not_shown = published::not_shown(&status).into_iter().chain(coverage.sentences());
        // What is left out is no reason to say that there are no changes.
        if changes.is_empty() {
            console.lines("The Plan does not show its changes.\n")?;
        } else {
            let planned = PlanResult::of_changes(changes, diagnostics);
            show::plan(&planned, Detail { full: true }, console)?;
        }
        not_shown.for_each(|sentence| console.notice(&sentence));
        return Ok(());
    }
    let digest = plan.spec.digest.as_deref().unwrap_or_default();
    console.notice(&format!("The changes with the digest {digest} are not due."));
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

fn confirmed(decision: Decision, console: Console) -> anyhow::Result<bool> {
    if !console.can_ask {
        return Err(Failure::hinted("cannot ask for confirmation without a terminal", "add --yes"));
    }
    console.confirms(&format!("\nDo you want to {} these changes? ", decision.verb()))
}

fn refused(error: kube::Error, namespace: &str) -> anyhow::Error {
    match decision::hint(&error, namespace) {
        Some(hint) => Failure::hinted(request_error(&error), hint),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_named_with_and_without_its_kind() {
        for text in ["store-1", "plan/store-1", "pplan/store-1", "plan.purlin.dev/store-1"] {
            assert_eq!(plan_name(text), Some("store-1"));
        }
        for text in ["", "store-1 ", "pres/store-1", "../store-1", "store-1?x=1", "plan/plan/store-1", "plan/"] {
            assert_eq!(plan_name(text), None, "{text}");
        }
    }
}

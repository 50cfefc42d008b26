//! `purlin approve` and `reject`: decide on the changes of a Plan in a cluster, with the user's permissions.

use kube::Api;

use crate::api::PlanObject;
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
use crate::ui::decision::{self, Decision};

/// The field manager of changes by this command line.
const FIELD_MANAGER: &str = "purlin-cli";

pub async fn approve(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, Decision::Approve, console).await
}

pub async fn reject(args: DecisionArgs, console: Console) -> anyhow::Result<Exit> {
    decide(args, Decision::Reject, console).await
}

async fn decide(args: DecisionArgs, decision: Decision, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args)?;
    let (client, namespace) = cluster::client(&target, console).await?;
    let plans: Api<PlanObject> = Api::namespaced(client.clone(), &namespace);
    let Some(plan) = plans.get_opt(&args.name).await? else {
        let hint = format!("`kubectl -n {namespace} get plans` lists them");
        return Err(Failure::hinted(format!("the Plan `{}` does not exist", args.name), hint));
    };
    if let Some(why) = decision::undecidable(&plan, decision) {
        console.notice(&format!("{why} Nothing was changed."));
        return Ok(Exit::Success);
    }
    if plan.spec.digest.is_none() {
        let hint = format!("`kubectl -n {namespace} get plans` shows the Plans that wait for an approval");
        return Err(Failure::hinted(format!("`{}` is a preview, which changes nothing", args.name), hint));
    }
    show_changes(&plan, console)?;
    if !args.yes && !confirmed(decision, console)? {
        console.notice("Nothing was changed.");
        return Ok(Exit::Success);
    }
    let user = decision::user(client).await.ok();
    decision::write(&plans, &plan, decision, user, FIELD_MANAGER).await.map_err(|error| refused(error, &namespace))?;
    let next = match decision {
        Decision::Approve => format!("; `kubectl -n {namespace} get pplan {}` shows the progress", args.name),
        Decision::Reject => String::new(),
    };
    console.notice(&format!("{}{next}.", decision.done(&args.name)));
    Ok(Exit::Success)
}

/// Shows the planned changes, or what is known of changes that are not due yet.
fn show_changes(plan: &PlanObject, console: Console) -> anyhow::Result<()> {
    let status = plan.status.clone().unwrap_or_default();
    if status.result.is_some() {
        let (changes, diagnostics) = published::read(&status);
        let not_shown = published::not_shown(&status);
        let planned = PlanResult { plan: Plan { changes, ..Plan::default() }, diagnostics, ..PlanResult::default() };
        show::plan(&planned, Detail::default(), console)?;
        not_shown.iter().for_each(|sentence| console.notice(sentence));
        return Ok(());
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

fn confirmed(decision: Decision, console: Console) -> anyhow::Result<bool> {
    if !console.can_ask {
        return Err(Failure::hinted("cannot ask for confirmation without a terminal", "add --yes"));
    }
    console.confirms(&format!("\nDo you want to {} these changes? ", decision.verb()))
}

fn refused(error: kube::Error, namespace: &str) -> anyhow::Error {
    match decision::hint(&error, namespace) {
        Some(hint) => Failure::hinted(message(&error), hint),
        None => error.into(),
    }
}

//! `purlin suspend`, `resume` and `reconcile`: marks on a Resource of a cluster, set with the rights of the user.

use serde_json::{Value as Json, json};

use crate::api::{self, Resource};
use crate::cli::args::ResourceArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Cluster, Target};
use crate::cli::output::Console;
use crate::process::{Clock as _, SystemClock};

/// Runs `purlin suspend`.
pub async fn suspend(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = cluster_of(&args, "set `spec.suspend: true` in the manifest")?;
    let changed = cluster::change(&target, &args.name, console, pause).await?;
    Ok(say(console, &args.name, changed, "is suspended", "is suspended already"))
}

/// Runs `purlin resume`.
pub async fn resume(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = cluster_of(&args, "set `spec.suspend: false` in the manifest")?;
    let changed = cluster::change(&target, &args.name, console, unpause).await?;
    Ok(say(console, &args.name, changed, "is resumed", "is not suspended"))
}

/// Runs `purlin reconcile`.
pub async fn reconcile(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = cluster_of(&args, "`purlin apply -f DIR` looks at everything")?;
    let now = SystemClock.now().to_string();
    cluster::change(&target, &args.name, console, |_| Some(annotate(api::RECONCILE_REQUESTED_AT, json!(now)))).await?;
    Ok(say(console, &args.name, true, "will be looked at now; `purlin explain` tells what comes of it", ""))
}

fn cluster_of(args: &ResourceArgs, hint: &str) -> anyhow::Result<Cluster> {
    match Target::decide(args.target.clone()) {
        Target::Cluster(cluster) => Ok(cluster),
        Target::Files(_) => Err(Failure::hinted("this is for Resources of a cluster; files are what they say", hint)),
    }
}

fn say(console: Console, name: &str, changed: bool, done: &str, already: &str) -> Exit {
    console.notice(&format!("`{name}` {}.", if changed { done } else { already }));
    Exit::Success
}

fn annotate(name: &str, value: Json) -> Json {
    json!({"metadata": {"annotations": {name: value}}})
}

fn is_paused(resource: &Resource) -> bool {
    resource.annotation(api::PAUSED) == "true"
}

/// By the annotation: the spec belongs to whoever applies it, and would be set back.
fn pause(resource: &Resource) -> Option<Json> {
    (!is_paused(resource) && !resource.spec.suspend).then(|| annotate(api::PAUSED, json!("true")))
}

/// Both switches are turned off, or nothing would happen.
fn unpause(resource: &Resource) -> Option<Json> {
    let mut patch = annotate(api::PAUSED, Json::Null);
    if resource.spec.suspend {
        patch["spec"] = json!({"suspend": false});
    }
    (is_paused(resource) || resource.spec.suspend).then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_switches_are_turned_off_and_only_one_is_turned_on() {
        let mut resource = Resource::default();
        assert_eq!(unpause(&resource), None);
        assert_eq!(pause(&resource), Some(json!({"metadata": {"annotations": {"purlin.dev/paused": "true"}}})));
        resource.spec.suspend = true;
        assert_eq!(pause(&resource), None);
        let expected = json!({"metadata": {"annotations": {"purlin.dev/paused": null}}, "spec": {"suspend": false}});
        assert_eq!(unpause(&resource), Some(expected));
    }
}

//! `purlin suspend`, `resume` and `reconcile`: set annotations of a Resource in a cluster, with the user's permissions.

use serde_json::{Value as Json, json};

use crate::api::{self, Resource};
use crate::cli::args::ResourceArgs;
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Cluster, Target};
use crate::cli::output::Console;
use crate::process::{Clock as _, SystemClock};

pub async fn suspend(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args, "set `spec.suspend: true` in the manifest")?;
    let changed = cluster::patch_resource(&target, &args.name, console, pause).await?;
    Ok(report(console, &args.name, changed, "is suspended", "is already suspended"))
}

pub async fn resume(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args, "set `spec.suspend: false` in the manifest")?;
    let changed = cluster::patch_resource(&target, &args.name, console, unpause).await?;
    Ok(report(console, &args.name, changed, "is resumed", "is not suspended"))
}

pub async fn reconcile(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let target = require_cluster(&args, "`purlin apply -f DIR` plans all objects")?;
    let now = SystemClock.now().to_string();
    cluster::patch_resource(&target, &args.name, console, |_| Some(annotate(api::RECONCILE_REQUESTED_AT, json!(now))))
        .await?;
    Ok(report(console, &args.name, true, "will be reconciled now; `purlin explain` shows the result", ""))
}

fn require_cluster(args: &ResourceArgs, hint: &str) -> anyhow::Result<Cluster> {
    match Target::from_args(args.target.clone()) {
        Target::Cluster(cluster) => Ok(cluster),
        Target::Files(_) => Err(Failure::hinted("this command works only on Resources in a cluster", hint)),
    }
}

fn report(console: Console, name: &str, changed: bool, done: &str, already: &str) -> Exit {
    console.notice(&format!("`{name}` {}.", if changed { done } else { already }));
    Exit::Success
}

fn annotate(name: &str, value: Json) -> Json {
    json!({"metadata": {"annotations": {name: value}}})
}

fn is_paused(resource: &Resource) -> bool {
    resource.annotation(api::PAUSED) == "true"
}

/// Sets the annotation, because the next apply of the manifest would revert the spec.
fn pause(resource: &Resource) -> Option<Json> {
    (!is_paused(resource) && !resource.spec.suspend).then(|| annotate(api::PAUSED, json!("true")))
}

/// Removes the annotation and `spec.suspend`, since each of them suspends the Resource.
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
    fn resume_reverts_the_annotation_and_the_spec() {
        let mut resource = Resource::default();
        assert_eq!(unpause(&resource), None);
        assert_eq!(pause(&resource), Some(json!({"metadata": {"annotations": {"purlin.dev/paused": "true"}}})));
        resource.spec.suspend = true;
        assert_eq!(pause(&resource), None);
        let expected = json!({"metadata": {"annotations": {"purlin.dev/paused": null}}, "spec": {"suspend": false}});
        assert_eq!(unpause(&resource), Some(expected));
    }
}

//! `purlin suspend` and `resume`: change Resources in a cluster, with the user's permissions.

use serde_json::{Value as Json, json};

use crate::cli::args::ResourceArgs;
use crate::cli::cluster::selection::{self, Selection};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Choice, Cluster, Target};
use crate::cli::output::Console;
use api::Resource;
use model::text::counted;

pub async fn suspend(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let words =
        Words { hint: "set `spec.suspend: true` in the manifest", done: "suspended", already: "is already suspended" };
    switch(args, &words, suspended, console).await
}

pub async fn resume(args: ResourceArgs, console: Console) -> anyhow::Result<Exit> {
    let words =
        Words { hint: "set `spec.suspend: false` in the manifest", done: "resumed", already: "is not suspended" };
    switch(args, &words, resumed, console).await
}

struct Words {
    /// What to do on files.
    hint: &'static str,
    done: &'static str,
    /// For an object that needs no patch.
    already: &'static str,
}

/// Patches each chosen object. `patch` returns `None` if nothing needs to change.
async fn switch(
    args: ResourceArgs,
    words: &Words,
    patch: impl Fn(&Resource) -> Option<Json>,
    console: Console,
) -> anyhow::Result<Exit> {
    let (target, choice) = chosen(args, words.hint)?;
    let selection = Selection::read(&target, &choice, console).await?;
    let mut changed = 0;
    for object in selection.objects.values() {
        let name = shown_name(object, choice.all_namespaces);
        match patch(object) {
            Some(patch) => {
                selection.patch(object, patch).await?;
                console.notice(&format!("`{name}` is {}.", words.done));
                changed += 1;
            }
            None if !choice.names.is_empty() => console.notice(&format!("`{name}` {}.", words.already)),
            None => {}
        }
    }
    if choice.names.is_empty() {
        console.notice(&format!("{} of {} are {}.", changed, counted(selection.objects.len(), "object"), words.done));
    }
    Ok(Exit::Success)
}

/// The cluster and the objects that the arguments name.
pub fn chosen(args: ResourceArgs, hint: &str) -> anyhow::Result<(Cluster, Choice)> {
    let choice = Choice::new(args.names, args.choice);
    match Target::choosing(args.target, &choice)? {
        Target::Cluster(cluster) => Ok((cluster, choice)),
        Target::Files(_) => Err(Failure::hinted("this command works only on Resources in a cluster", hint)),
    }
}

/// The name of an object, with its namespace if there are several.
pub fn shown_name(object: &Resource, with_namespace: bool) -> String {
    let (namespace, name) = selection::key(object);
    if with_namespace { format!("{namespace}/{name}") } else { name }
}

pub fn is_suspended(resource: &Resource) -> bool {
    resource.spec.suspend
}

/// The patch that suspends a Resource. A client that applies a manifest without the field leaves it as it is.
fn suspended(resource: &Resource) -> Option<Json> {
    (!resource.spec.suspend).then(|| json!({"spec": {"suspend": true}}))
}

fn resumed(resource: &Resource) -> Option<Json> {
    resource.spec.suspend.then(|| json!({"spec": {"suspend": null}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspending_twice_patches_once() {
        let mut resource = Resource::default();
        assert_eq!(resumed(&resource), None);
        assert_eq!(suspended(&resource), Some(json!({"spec": {"suspend": true}})));
        resource.spec.suspend = true;
        assert_eq!(suspended(&resource), None);
        assert_eq!(resumed(&resource), Some(json!({"spec": {"suspend": null}})));
    }
}

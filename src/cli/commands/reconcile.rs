//! `purlin reconcile`: asks the controller to read and plan Resources now, and waits until they are ready.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

use super::switch::{chosen, is_suspended, shown_name};
use crate::cli::args::ReconcileArgs;
use crate::cli::cluster::selection::{Key, Seen, Selection, key};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Console;
use api::Resource;
use api::conditions::{self, ConditionType};
use model::Reason;
use model::text::counted;
use process::{Clock as _, SystemClock};

/// Of so many objects, the steps are shown too; of more, only the results.
const FEW: usize = 20;

pub async fn run(args: ReconcileArgs, console: Console) -> anyhow::Result<Exit> {
    let (target, choice) = chosen(args.resources, "`purlin apply -f DIR` plans all objects")?;
    let mut selection = Selection::read(&target, &choice, console).await?;
    let (suspended, objects): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut selection.objects).into_iter().partition(|(_, object)| is_suspended(object));
    selection.objects = objects;
    for object in suspended.values() {
        let name = shown_name(object, choice.all_namespaces);
        if !choice.names.is_empty() {
            return Err(Failure::hinted(format!("`{name}` is suspended"), format!("run `purlin resume {name}` first")));
        }
        console.notice(&format!("{name}: suspended, left as it is"));
    }
    // Before the request, so that nothing is missed.
    let seen = selection.watch();
    let requested = SystemClock.now().to_string();
    let request = json!({"metadata": {"annotations": {api::RECONCILE_REQUESTED_AT: requested}}});
    for object in selection.objects.values() {
        selection.patch(object, request.clone()).await?;
    }
    if args.no_wait {
        console.notice(&format!("Requested for {}.", counted(selection.objects.len(), "object")));
        return Ok(Exit::Success);
    }
    let mut waiting = Waiting::new(&selection.objects, requested, choice.all_namespaces, console);
    let in_time = tokio::time::timeout(args.timeout, waiting.until_all_ended(seen)).await;
    if let Ok(failed) = in_time {
        failed?;
    }
    Ok(waiting.report(args.timeout))
}

/// What a status says about a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Not ended yet, and why.
    Waits(String),
    Ready,
    /// It needs a user.
    Failed(String),
}

fn outcome(object: &Resource, requested: &str) -> Outcome {
    let is_handled = object.status.as_ref().is_some_and(|status| {
        status.last_handled_reconcile_at.as_deref() == Some(requested)
            && Some(status.observed_generation) == object.metadata.generation
    });
    if is_suspended(object) {
        return Outcome::Failed("suspended in the meantime".to_owned());
    }
    if !is_handled {
        return Outcome::Waits("waiting for the controller".to_owned());
    }
    let stops = [ConditionType::Stalled, ConditionType::ApprovalRequired, ConditionType::DeletionBlocked];
    let problem = stops.into_iter().filter_map(|kind| condition(object, kind)).find(|condition| is_true(condition));
    if let Some(problem) = problem {
        return Outcome::Failed(format!("{}: {}", problem.reason, problem.message));
    }
    let results = [ConditionType::Ready, ConditionType::Synced].map(|kind| condition(object, kind));
    match results.into_iter().find(|result| !result.is_some_and(is_true)) {
        None => Outcome::Ready,
        // The controller tries again later, but this attempt has its answer.
        Some(Some(problem)) if problem.reason == Reason::OperationFailed.as_str() => {
            Outcome::Failed(format!("{}: {}", problem.reason, problem.message))
        }
        Some(problem) => Outcome::Waits(problem.map(|problem| problem.message.clone()).unwrap_or_default()),
    }
}

fn condition(object: &Resource, kind: ConditionType) -> Option<&Condition> {
    conditions::find(&object.status.as_ref()?.conditions, kind)
}

fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}

/// The objects of a request that has not ended.
struct Waiting {
    requested: String,
    /// The objects that have not ended, with the last reason.
    open: BTreeMap<Key, String>,
    failed: BTreeSet<Key>,
    count: usize,
    with_namespace: bool,
    console: Console,
}

impl Waiting {
    fn new(objects: &BTreeMap<Key, Resource>, requested: String, with_namespace: bool, console: Console) -> Self {
        let open = objects.keys().map(|key| (key.clone(), String::new())).collect();
        Self { requested, open, failed: BTreeSet::new(), count: objects.len(), with_namespace, console }
    }

    async fn until_all_ended(
        &mut self,
        mut seen: impl futures::Stream<Item = anyhow::Result<Seen>> + Unpin,
    ) -> anyhow::Result<()> {
        while !self.open.is_empty() {
            match seen.next().await.transpose()? {
                Some(Seen::Object(object)) => self.object(&object),
                Some(Seen::Deleted(key)) if self.open.remove(&key).is_some() => self.say(&key, "deleted"),
                Some(Seen::Deleted(_)) => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &Resource) {
        let key = key(object);
        let Some(last) = self.open.get_mut(&key) else { return };
        match outcome(object, &self.requested) {
            Outcome::Waits(why) => {
                if self.count <= FEW && *last != why {
                    last.clone_from(&why);
                    self.say(&key, &why);
                } else {
                    *last = why;
                }
            }
            Outcome::Ready => {
                self.open.remove(&key);
                self.say(&key, "ready");
            }
            Outcome::Failed(why) => {
                self.open.remove(&key);
                self.say(&key, &why);
                self.failed.insert(key);
            }
        }
    }

    fn say(&self, key: &Key, text: &str) {
        self.console.notice(&format!("{}: {text}", self.name(key)));
    }

    fn name(&self, (namespace, name): &Key) -> String {
        if self.with_namespace { format!("{namespace}/{name}") } else { name.clone() }
    }

    /// Reports what is not ready.
    fn report(&self, timeout: Duration) -> Exit {
        for (key, why) in &self.open {
            self.say(key, &format!("not ready after {} s: {why}", timeout.as_secs_f64()));
        }
        let ready = self.count - self.open.len() - self.failed.len();
        if self.count != 1 {
            self.console.notice(&format!("{ready} of {} are ready.", counted(self.count, "object")));
        }
        if ready == self.count { Exit::Success } else { Exit::Problems }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(generation: i64, handled: &str, conditions: &[(&str, &str, &str)]) -> Resource {
        let condition = |(kind, status, message): &(&str, &str, &str)| {
            json!({"type": kind, "status": status, "reason": "Reason", "message": message,
                "lastTransitionTime": "2026-11-01T00:00:00Z"})
        };
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({
            "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2}, "spec": {"type": "t"},
            "status": {"observedGeneration": generation, "lastHandledReconcileAt": handled, "conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn a_request_has_ended_when_its_result_is_known() {
        let ready = [("Ready", "True", "fine"), ("Synced", "True", "fine")];
        let at = |generation, handled, conditions: &[_]| outcome(&object(generation, handled, conditions), "now");
        let waits = |text: &str| Outcome::Waits(text.to_owned());
        assert_eq!(at(2, "now", &ready), Outcome::Ready);
        assert_eq!(at(2, "before", &ready), waits("waiting for the controller"), "the result of an earlier request");
        assert_eq!(at(1, "now", &ready), waits("waiting for the controller"), "of an earlier generation");
        assert_eq!(at(2, "now", &[("Ready", "False", "updating"), ("Synced", "False", "updating")]), waits("updating"));
        assert_eq!(at(2, "now", &[("Ready", "True", "fine"), ("Synced", "False", "destroying")]), waits("destroying"));
        for kind in ["Stalled", "ApprovalRequired"] {
            let stopped = [("Ready", "False", "no"), ("Synced", "False", "no"), (kind, "True", "no")];
            assert_eq!(at(2, "now", &stopped), Outcome::Failed("Reason: no".to_owned()), "{kind}");
        }
        let mut failed = object(2, "now", &[("Ready", "False", "no quota"), ("Synced", "False", "no")]);
        failed.status.as_mut().unwrap().conditions[0].reason = "OperationFailed".to_owned();
        assert_eq!(outcome(&failed, "now"), Outcome::Failed("OperationFailed: no quota".to_owned()));
        let mut suspended = object(2, "now", &ready);
        suspended.spec.suspend = true;
        assert_eq!(outcome(&suspended, "now"), Outcome::Failed("suspended in the meantime".to_owned()));
    }
}

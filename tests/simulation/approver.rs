//! Users who require approvals, and approve and reject Plans.

use http::Method;
use serde_json::{Value, json};

use crate::apiserver::{Cluster, Server};
use crate::judge::Judge;
use crate::kubectl::SHOP;
use crate::random::Seeded;

const PLANS: &str = "/apis/purlin.dev/v1alpha1/namespaces/shop/plans";
const NAMESPACE: &str = "/api/v1/namespaces/shop";
/// The kinds of changes that can need an approval, except for `Drift`, which the judge does not distinguish.
const KINDS: [&str; 4] = ["Create", "Update", "Replace", "Destroy"];

pub(crate) struct Approver {
    cluster: Cluster,
    /// Whether the namespace requires approvals too.
    of_namespace: bool,
    count: u64,
}

/// Some kinds of changes.
pub(crate) fn some_kinds(random: &mut Seeded) -> Vec<&'static str> {
    KINDS.into_iter().filter(|_| random.chance(500)).collect()
}

impl Approver {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, of_namespace: false, count: 0 }
    }

    /// Requires approvals in the whole namespace, in some histories.
    pub(crate) fn in_some_histories(seed: u64, cluster: Cluster, judge: &Judge) -> Self {
        let mut random = Seeded::new(seed, "approver");
        let of_namespace = random.chance(300);
        if of_namespace {
            let kinds = some_kinds(&mut random);
            annotate(&cluster, "purlin.dev/require-approval", json!(kinds.join(",")));
            judge.namespace_requires(&kinds);
        }
        Self { of_namespace, ..Self::new(cluster) }
    }

    /// Decides on one Plan, or deletes it, or approves its digest in Git.
    pub(crate) fn act(&mut self, random: &mut Seeded, judge: &Judge) {
        let plans = self.undecided();
        if plans.is_empty() {
            return;
        }
        let plan = random.pick(&plans);
        match random.below(10) {
            0 => self.decide(plan, "rejected", judge),
            1 => self.delete(plan, judge),
            2 => self.approve_in_git(plan, random.chance(500), judge),
            _ => self.decide(plan, "approved", judge),
        }
    }

    /// Approves everything that waits, and deletes the Plans that were rejected.
    pub(crate) fn approve_all(&self, judge: &Judge) {
        let (rejected, undecided): (Vec<Value>, Vec<Value>) =
            self.open().into_iter().partition(|plan| plan["spec"]["rejected"] == json!(true));
        rejected.iter().for_each(|plan| self.delete(plan, judge));
        for plan in undecided.iter().filter(|plan| plan["spec"]["approved"] != json!(true)) {
            self.decide(plan, "approved", judge);
        }
    }

    /// Permits the destroys of a namespace that is being deleted. No Plan can be created in it. The judge requires the
    /// approvals of a namespace only until it is deleted: the next one of this name has no annotations.
    pub(crate) fn tick(&mut self, judge: &Judge) {
        let found = |server: &Server| Some(server.object("", "namespaces", "", SHOP)?.value["metadata"].clone());
        let namespace = self.cluster.with(|server, _| found(server)).unwrap_or_default();
        let is_terminating = !namespace["deletionTimestamp"].is_null();
        if is_terminating && namespace["annotations"]["purlin.dev/approve-destroys"].is_null() {
            judge.approve_destroys();
            judge.note("user approves all destroys in the namespace");
            annotate(&self.cluster, "purlin.dev/approve-destroys", json!("true"));
        }
        if self.of_namespace && (is_terminating || namespace["annotations"].is_null()) {
            self.of_namespace = false;
            judge.namespace_requires(&[]);
        }
    }

    fn open(&self) -> Vec<Value> {
        let is_open = |plan: &Value| {
            let state = plan["status"]["approval"].as_str();
            !plan["spec"]["digest"].is_null() && matches!(state, Some("Waiting" | "Rejected" | "Approved"))
        };
        self.cluster.with(|server, _| {
            let plans = server.objects("purlin.dev", "plans").map(|plan| plan.value.clone());
            plans.filter(|plan| plan["metadata"]["deletionTimestamp"].is_null() && is_open(plan)).collect()
        })
    }

    pub(crate) fn undecided(&self) -> Vec<Value> {
        let decided = |plan: &Value| ["approved", "rejected"].iter().any(|field| plan["spec"][*field] == json!(true));
        self.open().into_iter().filter(|plan| !decided(plan)).collect()
    }

    fn decide(&self, plan: &Value, field: &str, judge: &Judge) {
        let name = plan["metadata"]["name"].as_str().unwrap_or_default();
        judge.note(&format!("user decides that {name} is {field}"));
        if field == "approved" {
            judge.approved(plan);
        }
        let patch =
            json!({ "metadata": { "annotations": { "purlin.dev/decided-by": "eve" } }, "spec": { field: true } });
        self.cluster.with(|server, now| server.modify(now, &format!("{PLANS}/{name}"), &patch));
    }

    fn delete(&self, plan: &Value, judge: &Judge) {
        let name = plan["metadata"]["name"].as_str().unwrap_or_default();
        judge.note(&format!("user deletes the Plan {name}"));
        self.cluster.with(|server, now| server.erase(now, &format!("{PLANS}/{name}")));
    }

    /// Creates a Plan with the digest of another, with or without its changes.
    fn approve_in_git(&mut self, plan: &Value, with_changes: bool, judge: &Judge) {
        self.count += 1;
        let name = format!("git-{}", self.count);
        let mut spec = json!({ "digest": plan["spec"]["digest"], "approved": true });
        if with_changes {
            spec["changes"] = plan["status"]["approvals"][0]["changes"].clone();
        }
        judge.note(&format!("user creates the approved Plan {name} {spec}"));
        judge.approved(plan);
        let created = json!({
            "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan",
            "metadata": { "namespace": SHOP, "name": name }, "spec": spec,
        });
        self.cluster.with(|server, now| {
            let created = server.send(now, &Method::POST, PLANS, "application/json", &created);
            // The server creates nothing in a namespace that is being deleted.
            assert!(matches!(created, Ok(_) | Err((403, _))), "{name}: {created:?}");
        });
    }
}

fn annotate(cluster: &Cluster, annotation: &str, value: Value) {
    let patch = json!({ "metadata": { "annotations": { annotation: value } } });
    cluster.with(|server, now| server.modify(now, NAMESPACE, &patch));
}

/// Plans of Purlin that wait although nothing is left to change.
pub(crate) fn unfinished(server: &Server) -> Vec<String> {
    let of_purlin = |plan: &Value| plan["metadata"]["labels"]["app.kubernetes.io/managed-by"] == json!("purlin");
    let is_final = |plan: &Value| {
        let state = plan["status"]["approval"].as_str();
        matches!(state, Some("Applied" | "Superseded" | "Expired"))
    };
    let plans = server.objects("purlin.dev", "plans").map(|plan| &plan.value);
    let open = plans.filter(|plan| of_purlin(plan) && !is_final(plan));
    open.map(|plan| format!("the Plan {} is {}", plan["metadata"]["name"], plan["status"]["approval"])).collect()
}

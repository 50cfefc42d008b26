//! Users who require approvals, and approve and reject Plans, and an author who cheats.

use std::collections::BTreeSet;

use apiserver::{Cluster, Server};
use http::Method;
use purlin::api::{ChangeDigest, PlanSpec, PlanStatus, plan_name};
use purlin::model::Address;
use purlin::plan::approval::digest_of;
use purlin::plan::approval::shown::{Coverage, Mismatch, coverage};
use purlin::plan::published;
use serde_json::{Value, json};

use crate::judge::Judge;
use crate::random::Seeded;
use crate::user::source_of;

/// The kinds of changes that can need an approval, except for `Drift`, which the judge does not distinguish.
const KINDS: [&str; 4] = ["Create", "Update", "Replace", "Destroy"];

pub(crate) struct Approver {
    cluster: Cluster,
    /// The namespaces of users.
    namespaces: Vec<&'static str>,
    /// Those that require approvals too.
    requiring: BTreeSet<&'static str>,
    count: u64,
}

/// Some kinds of changes.
pub(crate) fn some_kinds(random: &mut Seeded) -> Vec<&'static str> {
    KINDS.into_iter().filter(|_| random.chance(500)).collect()
}

impl Approver {
    pub(crate) fn new(cluster: Cluster, namespaces: Vec<&'static str>) -> Self {
        Self { cluster, namespaces, requiring: BTreeSet::new(), count: 0 }
    }

    /// Requires approvals in whole namespaces, in some histories.
    #[must_use]
    pub(crate) fn for_some_namespaces(mut self, seed: u64, judge: &Judge) -> Self {
        let mut random = Seeded::new(seed, "approver");
        for namespace in self.namespaces.iter().copied() {
            if !random.chance(300) {
                continue;
            }
            let kinds = some_kinds(&mut random);
            self.annotate(namespace, "purlin.dev/require-approval", json!(kinds.join(",")));
            judge.namespace_requires(namespace, &kinds);
            self.requiring.insert(namespace);
        }
        self
    }

    /// Decides on one Plan, or deletes it, or approves its digest in Git.
    pub(crate) fn act(&mut self, random: &mut Seeded, judge: &Judge) {
        let plans = self.undecided();
        if plans.is_empty() {
            return;
        }
        let plan = random.pick(&plans);
        if !shows_all(plan) {
            return self.delete(plan, judge);
        }
        match random.below(15) {
            0 => self.decide(plan, "rejected", judge),
            1 => self.delete(plan, judge),
            2 => self.approve_in_git(plan, random.chance(500), judge),
            3 => self.squat(plan, random, judge),
            4 => self.lie(plan, random, judge),
            5 => self.relabel(plan, judge),
            6 => self.swap_source(plan, judge),
            _ => self.decide(plan, "approved", judge),
        }
    }

    fn squat(&self, plan: &Value, random: &mut Seeded, judge: &Judge) {
        let namespace = &plan["metadata"]["namespace"];
        let is_over = |other: &Value| {
            let state = other["status"]["approval"].as_str();
            other["metadata"]["namespace"] == *namespace && matches!(state, Some("Superseded" | "Applied"))
        };
        let earlier: Vec<Value> = self.cluster.with(|server, _| {
            let plans = server.objects("purlin.dev", "plans").map(|plan| plan.value.clone());
            plans.filter(is_over).collect()
        });
        if earlier.is_empty() {
            return;
        }
        self.take_name(plan, random.pick(&earlier), judge);
    }

    /// An author says something else about changes than they are: with their digest, or with one that fits the lie. Users
    /// approve it, and have not approved the changes.
    fn lie(&mut self, plan: &Value, random: &mut Seeded, judge: &Judge) {
        let changes = plan["status"]["approvals"][0]["changes"].clone();
        let Ok(mut changes) = serde_json::from_value::<Vec<ChangeDigest>>(changes) else { return };
        for change in &mut changes {
            match random.below(3) {
                0 => change.unknown_paths.clear(),
                1 => change.unknown_paths = vec![purlin::model::Path::default()],
                _ => {}
            }
            let other = if change.action == purlin::model::Action::Update { "Replace" } else { "Update" };
            change.action = serde_json::from_value(json!(other)).expect("an action");
        }
        self.count += 1;
        let name = format!("lie-{}", self.count);
        let digest = match random.chance(500) {
            true => plan["spec"]["digest"].clone(),
            false => json!(digest_of(&changes)),
        };
        judge.note(&format!("author lies in the Plan {name} about {}", plan["metadata"]["name"]));
        let spec = json!({ "digest": digest, "changes": changes, "approved": true });
        self.create(plan, &json!({ "name": name, "namespace": plan["metadata"]["namespace"] }), &spec);
    }

    /// An author gets a change approved whose value comes through another object, and then changes that one. Unless it needs
    /// an approval too, no user has seen the new value.
    fn swap_source(&mut self, plan: &Value, judge: &Judge) {
        let namespace = plan["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = |name: &str| format!("/apis/purlin.dev/v1alpha1/namespaces/{namespace}/resources/{name}");
        let source = self.cluster.with(|server, _| {
            let addresses = covered(plan).iter().filter_map(|change| change["address"].as_str()?.parse().ok());
            let mut resources = addresses.filter_map(|address: Address| {
                server.object("purlin.dev", "resources", namespace, address.name()).map(|found| found.value.clone())
            });
            resources.find_map(|resource| Some(source_of(&resource["spec"])?.to_owned()))
        });
        self.decide(plan, "approved", judge);
        let Some(source) = source else { return };
        self.count += 1;
        let value = format!("unseen-{}", self.count);
        judge.note(&format!("author changes {namespace}/{source} to {value} after the approval"));
        judge.unseen(&value);
        let patch = json!({ "spec": { "config": { "value": value } } });
        self.cluster.with(|server, now| server.modify(now, &path(&source), &patch));
    }

    /// An author removes the label of a Plan of Purlin.
    fn relabel(&self, plan: &Value, judge: &Judge) {
        judge.note(&format!("author removes the labels of {}", plan["metadata"]["name"]));
        let patch = json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": null } } });
        self.cluster.with(|server, now| server.modify(now, &Self::path(plan), &patch));
    }

    /// Approves everything that waits, and deletes the Plans that were rejected, and those that do not show their changes:
    /// Purlin creates them again.
    pub(crate) fn approve_all(&self, judge: &Judge) {
        let (rejected, undecided): (Vec<Value>, Vec<Value>) =
            self.open().into_iter().partition(|plan| plan["spec"]["rejected"] == json!(true));
        rejected.iter().for_each(|plan| self.delete(plan, judge));
        for plan in undecided.iter().filter(|plan| plan["spec"]["approved"] != json!(true)) {
            match shows_all(plan) {
                true => self.decide(plan, "approved", judge),
                false => self.delete(plan, judge),
            }
        }
    }

    /// Permits the destroys of a namespace that is being deleted. No Plan can be created in it. The judge requires the
    /// approvals of a namespace only until it is deleted: the next one of this name has no annotations.
    pub(crate) fn tick(&mut self, judge: &Judge) {
        for name in &self.namespaces {
            let found = |server: &Server| Some(server.object("", "namespaces", "", name)?.value["metadata"].clone());
            let namespace = self.cluster.with(|server, _| found(server)).unwrap_or_default();
            let is_terminating = !namespace["deletionTimestamp"].is_null();
            if is_terminating && namespace["annotations"]["purlin.dev/approve-destroys"].is_null() {
                judge.approve_destroys(name);
                judge.note(&format!("user approves all destroys in the namespace {name}"));
                self.annotate(name, "purlin.dev/approve-destroys", json!("true"));
            }
            if (is_terminating || namespace["annotations"].is_null()) && self.requiring.remove(name) {
                judge.namespace_requires(name, &[]);
            }
        }
    }

    fn annotate(&self, namespace: &str, annotation: &str, value: Value) {
        let patch = json!({ "metadata": { "annotations": { annotation: value } } });
        self.cluster.with(|server, now| server.modify(now, &format!("/api/v1/namespaces/{namespace}"), &patch));
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

    /// The Plans on which a user can decide: `purlin approve` and the page refuse one that does not show its changes.
    pub(crate) fn undecided(&self) -> Vec<Value> {
        let decided = |plan: &Value| ["approved", "rejected"].iter().any(|field| plan["spec"][*field] == json!(true));
        self.open().into_iter().filter(|plan| is_filled(plan) && !decided(plan)).collect()
    }

    /// The request path of a Plan.
    pub(crate) fn path(plan: &Value) -> String {
        format!("{}/{}", plans(plan), plan["metadata"]["name"].as_str().unwrap_or_default())
    }

    fn decide(&self, plan: &Value, field: &str, judge: &Judge) {
        let name = plan["metadata"]["name"].as_str().unwrap_or_default();
        judge.note(&format!("user decides that {name} is {field}"));
        if field == "approved" {
            judge.approved(plan);
            if let Err(mismatch) = proved(plan) {
                judge.object(&format!("the Plan {name} shows something else than its digest: {mismatch:?} {plan}"));
            }
        }
        let patch =
            json!({ "metadata": { "annotations": { "purlin.dev/decided-by": "eve" } }, "spec": { field: true } });
        self.cluster.with(|server, now| server.modify(now, &Self::path(plan), &patch));
    }

    fn delete(&self, plan: &Value, judge: &Judge) {
        let name = plan["metadata"]["name"].as_str().unwrap_or_default();
        judge.note(&format!("user deletes the Plan {name}"));
        self.cluster.with(|server, now| server.erase(now, &Self::path(plan)));
    }

    /// Approves only the changes of some objects of a Plan.
    pub(crate) fn approve_some(&mut self, plan: &Value, names: &[&str], judge: &Judge) {
        let changes = plan["status"]["approvals"][0]["changes"].clone();
        let mut changes: Vec<ChangeDigest> = serde_json::from_value(changes).expect("changes");
        changes.retain(|change| names.contains(&&**change.address.name()));
        let mut part = plan.clone();
        part["spec"]["digest"] = json!(digest_of(&changes));
        part["status"]["approvals"][0]["changes"] = json!(changes);
        self.approve_in_git(&part, true, judge);
    }

    /// An author puts an earlier digest under the name of a Plan that waits, with all its marks, and gets it approved.
    pub(crate) fn take_name(&self, plan: &Value, earlier: &Value, judge: &Judge) {
        let (name, namespace) = (&plan["metadata"]["name"], &plan["metadata"]["namespace"]);
        judge.note(&format!("author takes the name {name} for the changes of {}", earlier["metadata"]["name"]));
        self.delete(plan, judge);
        judge.approved(earlier);
        let labels = json!({ "app.kubernetes.io/managed-by": "purlin" });
        let spec = json!({ "digest": earlier["spec"]["digest"], "approved": true });
        self.create(plan, &json!({ "name": name, "namespace": namespace, "labels": labels }), &spec);
    }

    /// Creates a Plan with the digest of another, with or without its changes.
    pub(crate) fn approve_in_git(&mut self, plan: &Value, with_changes: bool, judge: &Judge) {
        self.count += 1;
        let name = format!("git-{}", self.count);
        let mut spec = json!({ "digest": plan["spec"]["digest"], "approved": true });
        if with_changes {
            spec["changes"] = plan["status"]["approvals"][0]["changes"].clone();
        }
        judge.note(&format!("user creates the approved Plan {name} {spec}"));
        judge.approved(plan);
        self.create(plan, &json!({ "namespace": plan["metadata"]["namespace"], "name": name }), &spec);
    }

    /// Creates a Plan beside another one.
    fn create(&self, beside: &Value, metadata: &Value, spec: &Value) {
        let plan = json!({ "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": metadata, "spec": spec });
        self.cluster.with(|server, now| {
            let created = server.send(now, &Method::POST, &plans(beside), "application/json", &plan);
            // The server creates nothing in a namespace that is being deleted.
            assert!(matches!(created, Ok(_) | Err((403, _))), "{metadata}: {created:?}");
        });
    }
}

/// The changes that a Plan covers.
fn covered(plan: &Value) -> &[Value] {
    plan["status"]["approvals"][0]["changes"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What `purlin approve` checks: the digest of a Plan covers what it shows.
fn proved(plan: &Value) -> Result<Coverage, Mismatch> {
    let spec: PlanSpec = serde_json::from_value(plan["spec"].clone()).expect("a spec");
    let status: PlanStatus = serde_json::from_value(plan["status"].clone()).expect("a status");
    coverage(&spec, &published::unpack(status))
}

/// Whether a Plan says what it is about.
fn is_filled(plan: &Value) -> bool {
    !plan["status"]["result"].is_null()
}

/// Whether a Plan shows what each change makes of its object. The API server may have refused the status with that.
fn shows_all(plan: &Value) -> bool {
    let shown = plan["status"]["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_shown = |change: &Value| {
        let same = |one: &Value| one["address"] == change["address"] && one["deposedKey"].is_null();
        change["action"] == "Destroy" || shown.iter().any(same)
    };
    is_filled(plan) && covered(plan).iter().all(is_shown)
}

/// The path of the Plans in the namespace of a Plan.
fn plans(plan: &Value) -> String {
    let namespace = plan["metadata"]["namespace"].as_str().unwrap_or_default();
    format!("/apis/purlin.dev/v1alpha1/namespaces/{namespace}/plans")
}

/// Plans of Purlin that wait although nothing is left to change.
pub(crate) fn unfinished(server: &Server) -> Vec<String> {
    let of_purlin = |plan: &Value| {
        let (name, digest) = (plan["metadata"]["name"].as_str(), plan["spec"]["digest"].as_str());
        name.zip(digest).is_some_and(|(name, digest)| plan_name::is_drawn(name, digest))
    };
    let is_final = |plan: &Value| {
        let state = plan["status"]["approval"].as_str();
        matches!(state, Some("Applied" | "Superseded" | "Expired" | "Invalid"))
    };
    let plans = server.objects("purlin.dev", "plans").map(|plan| &plan.value);
    let open = plans.filter(|plan| of_purlin(plan) && !is_final(plan));
    open.map(|plan| format!("the Plan {} is {}", plan["metadata"]["name"], plan["status"]["approval"])).collect()
}

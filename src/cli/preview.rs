//! Previews: sends manifests to the controller of a cluster as a Plan, waits for the result, and prints it as a plan
//! that was made locally.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use kube::Api;
use kube::api::{ObjectMeta, PostParams, WatchEvent, WatchParams};

use super::args::{PlanArgs, PlanFormat, RefreshChoice};
use super::cluster::{self, DEFAULT_SERVICE_ACCOUNT};
use super::failure::{Exit, Failure};
use super::inputs::PlanResult;
use super::options::{Cluster, DEFAULT_STATE};
use super::output::Console;
use super::show;
use api::plan::MAX_MANIFESTS;
use api::{
    API_VERSION, ConditionType, PLAN_KIND, PlanGraph, PlanObject, PlanSpec, PlanStatus, PlanUse, Preview,
    PreviewRefresh, Prune, RawObject, RequiredApproval, conditions,
};
use engine::graph::render::PublishedJson;
use engine::load::{self, ProposedFiles, SourcePaths};
use engine::plan::approval::shown::provable;
use engine::plan::published;
use engine::plan::render::{Detail, problems};
use model::text::counted;
use model::{Diagnostic, Diagnostics, Reason, Severity, has_errors};
use process::request_error;

/// Larger manifests are compressed. Smaller ones are not, so that `kubectl get -o yaml` shows them.
const MAX_PLAIN: usize = 128 * 1024;
/// How long the Plan remains: the user has its result.
const TTL_SECONDS: u32 = 600;
/// How often the Plan is read if it cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum length of one watch in seconds, as most proxies allow it.
const WATCH_SECONDS: u32 = 60;

/// What to preview, and how to print it.
#[derive(Debug)]
pub struct PreviewRequest {
    cluster: Cluster,
    sources: Vec<PathBuf>,
    prune: bool,
    selector: Option<String>,
    refresh: RefreshChoice,
    timeout: Duration,
    output: PlanFormat,
    full: bool,
    detailed_exitcode: bool,
}

impl PreviewRequest {
    /// The preview that `plan` makes if both files and a cluster are given.
    pub fn of_plan(args: &PlanArgs) -> anyhow::Result<Option<Self>> {
        let PlanArgs { target, planning, preview, .. } = args;
        let names_cluster = target.cluster.context.is_some() || target.cluster.namespace.is_some();
        if target.files.filenames.is_empty() || !names_cluster {
            return Ok(None);
        }
        let refused = [
            ("--replace", !planning.replace.is_empty()),
            ("--refresh-only", planning.refresh_only),
            ("--target", !planning.selecting.targets.is_empty()),
            ("--parallelism", planning.refreshing.parallelism.is_some()),
            ("--destroy", args.destroy),
            ("--out", args.out.is_some()),
        ];
        if let Some((flag, _)) = refused.iter().find(|(_, is_set)| *is_set) {
            let message = format!("{flag} cannot be used with files and a cluster: the controller makes the plan");
            return Err(Failure::hinted(message, format!("omit {flag}, or omit -n and --context to plan on files")));
        }
        Ok(Some(Self {
            cluster: Cluster {
                kubeconfig: target.cluster.kubeconfig.clone(),
                context: target.cluster.context.clone(),
                namespace: target.cluster.namespace.clone(),
                controller_namespace: target.cluster.controller_namespace.clone(),
            },
            sources: target.files.filenames.clone(),
            prune: planning.pruning.prune,
            selector: preview.selector.clone(),
            refresh: planning.refreshing.refresh,
            timeout: Duration::from_secs(preview.timeout.into()),
            output: args.output,
            full: args.full,
            detailed_exitcode: args.detailed_exitcode,
        }))
    }

    fn preview(&self, files: &ProposedFiles) -> anyhow::Result<Preview> {
        let text = &files.text;
        let compressed = if text.len() > MAX_PLAIN { Some(load::compress(text)?) } else { None };
        if compressed.as_ref().is_some_and(|compressed| compressed.len() > MAX_MANIFESTS) {
            let message = format!("the manifests are too large for a Plan, which holds {} KiB", MAX_MANIFESTS >> 10);
            return Err(Failure::hinted(message, "preview the parts of the namespace separately"));
        }
        let used = files.proposal.uses();
        Ok(Preview {
            manifests: compressed.is_none().then(|| text.clone()),
            manifests_zstd: compressed,
            prune: match (self.prune, &self.selector) {
                (false, _) => None,
                (true, None) => Some(Prune::All),
                (true, Some(_)) => Some(Prune::Selector),
            },
            selector: self.selector.clone(),
            refresh: Some(match self.refresh {
                RefreshChoice::Due => PreviewRefresh::Due,
                RefreshChoice::All => PreviewRefresh::All,
                RefreshChoice::None => PreviewRefresh::None,
            }),
            service_account_names: used.service_accounts.into_iter().collect(),
            types: used.types.into_iter().collect(),
        })
    }
}

/// The maximum size in bytes of the changes in a printed Plan. With its status, which lists them again, it fits into etcd.
const MAX_PLAN_CHANGES: usize = 512 * 1024;

pub async fn run(request: &PreviewRequest, console: Console) -> anyhow::Result<Exit> {
    let (client, namespace) = cluster::client(&request.cluster, console).await?;
    let paths = SourcePaths::new(Path::new(DEFAULT_STATE), Path::new("published"));
    let files = ProposedFiles::read(&request.sources, &paths, &namespace, &DEFAULT_SERVICE_ACCOUNT.into());
    if has_errors(&files.problems) {
        // An object whose manifest cannot be read would count as removed.
        return print(request, PlanStatus::default(), files.problems, console);
    }
    if files.proposal.instances.is_empty() {
        return Err(Failure::hinted("the files contain no Resource and no DataSource", "check -f"));
    }
    let preview = Some(request.preview(&files)?);
    let spec = PlanSpec { preview, ttl_seconds_after_finished: Some(TTL_SECONDS), ..PlanSpec::default() };
    let labels = [(PlanUse::LABEL.to_owned(), PlanUse::Preview.as_str().to_owned())].into();
    let generate_name = Some("preview-".to_owned());
    let metadata = ObjectMeta { generate_name, labels: Some(labels), ..ObjectMeta::default() };
    let plan = PlanObject { metadata, spec, status: None };
    let plans: Api<PlanObject> = Api::namespaced(client.clone(), &namespace);
    let created = plans.create(&PostParams::default(), &plan).await.map_err(|error| refused(error, &namespace))?;
    let name = created.metadata.name.clone().unwrap_or_default();
    let plans = Api::namespaced(client, &namespace);
    let waiting = tokio::time::timeout(request.timeout, finished(&plans, created));
    let status = waiting.await.map_err(|_| too_late(&name, &namespace, request.timeout))??;
    let diagnostics = diagnostics(&status, &files);
    print(request, status, diagnostics, console)
}

/// Waits until the Plan has a result.
async fn finished(api: &Api<RawObject<PlanObject>>, created: PlanObject) -> anyhow::Result<PlanStatus> {
    let name = created.metadata.name.clone().unwrap_or_default();
    let mut plan = created;
    loop {
        if let Some(status) = plan.status.clone().filter(|status| status.result.is_some()) {
            return Ok(status);
        }
        let version = plan.metadata.resource_version.clone().unwrap_or_default();
        // Without the right to watch, or after the end of a watch, the Plan is read.
        match next(api, &name, &version).await {
            Some(changed) => plan = changed.plan()?,
            None => {
                tokio::time::sleep(POLL_INTERVAL).await;
                plan = api.get(&name).await?.plan()?;
            }
        }
    }
}

/// The next version of the Plan, if a watch delivers one.
async fn next(api: &Api<RawObject<PlanObject>>, name: &str, version: &str) -> Option<RawObject<PlanObject>> {
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH_SECONDS);
    let mut events = api.watch(&params, version).await.ok()?.boxed();
    loop {
        match events.next().await?.ok()? {
            WatchEvent::Added(plan) | WatchEvent::Modified(plan) => return Some(plan),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Deleted(_) | WatchEvent::Error(_) => return None,
        }
    }
}

/// The diagnostics of the status, at the places of the files.
fn diagnostics(status: &PlanStatus, files: &ProposedFiles) -> Diagnostics {
    let failure = conditions::find(&status.conditions, ConditionType::Computed);
    let failure = failure.filter(|computed| computed.status == "False").map(|computed| {
        let reason = computed.reason.parse().unwrap_or(Reason::OperationFailed);
        Diagnostic::general(reason, "the controller could not compute the Plan").because(computed.message.clone())
    });
    let (_, published) = published::read(status);
    let published = published.into_iter().map(|diagnostic| {
        let source = diagnostic.source.as_ref().and_then(|source| files.place(source.line));
        Diagnostic { source, ..diagnostic }
    });
    let not_shown = published::not_shown(status)
        .into_iter()
        .map(|what| Diagnostic { severity: Severity::Warning, ..Diagnostic::general(Reason::NotSelected, what) });
    files.problems.iter().cloned().chain(failure).chain(published).chain(not_shown).collect()
}

fn print(
    request: &PreviewRequest,
    status: PlanStatus,
    diagnostics: Diagnostics,
    console: Console,
) -> anyhow::Result<Exit> {
    let Ok((status, _)) = provable(&PlanSpec::default(), published::unpack(status)) else {
        let message = "the Plan of the preview shows other changes than those of its digests, so someone other than the \
                       controller has written its status";
        let hint = "find who may write it: only the controller needs the right to update `plans/status`";
        return Err(Failure::hinted(message, hint));
    };
    let (changes, _) = published::read(&status);
    let (approvals, guarded) = (approval_manifests(&status.approvals)?, published::guarded_changes(&status));
    let graph: PlanGraph = status.graph.unwrap_or_default();
    let planned = PlanResult::of_changes(changes, diagnostics);
    match request.output {
        PlanFormat::Text => {
            show::plan(&planned, Detail { full: request.full }, console)?;
            let count = usize::try_from(guarded).unwrap_or_default();
            if count > 0 {
                let verb = if count == 1 { "needs" } else { "need" };
                console.notice(&format!(
                    "{} {verb} an approval. `-o approval` prints a manifest that approves exactly these.",
                    counted(count, "change")
                ));
            }
        }
        PlanFormat::Approval => {
            console.problems(&problems::collect(planned.plan.changes(), &planned.diagnostics));
            console.result(|out| out.write_all(approvals.as_bytes()))?;
        }
        PlanFormat::Json => console.result(|out| show::json(out, &planned, &PublishedJson(&graph)))?,
        PlanFormat::Markdown => {
            show::markdown(&planned, &graph, console)?;
            if !approvals.is_empty() {
                let heading = "\nThese changes wait until a user approves them, or until this manifest is applied:";
                let text = format!("{heading}\n\n```yaml\n{approvals}```\n");
                console.result(|out| out.write_all(text.as_bytes()))?;
            }
        }
    }
    Ok(Exit::of(planned.has_errors(), planned.has_changes(), request.detailed_exitcode))
}

/// Plans that approve these changes, as YAML documents.
fn approval_manifests(approvals: &[RequiredApproval]) -> anyhow::Result<String> {
    let mut text = String::new();
    for approval in approvals {
        let mut manifest = serde_json::json!({
            "apiVersion": API_VERSION,
            "kind": PLAN_KIND,
            "metadata": {
                "name": format!("approved-{}", approval.plan_name()),
                "labels": { (PlanUse::LABEL): PlanUse::Approval.as_str() },
            },
            "spec": { "digest": approval.digest, "approved": true },
        });
        text.push_str("---\n");
        let is_small =
            published::size(&approval.changes) <= MAX_PLAN_CHANGES && approval.changes.len() <= PlanSpec::MAX_CHANGES;
        if is_small && !approval.changes.is_empty() {
            manifest["spec"]["changes"] = serde_json::to_value(&approval.changes)?;
        } else {
            text.push_str("# The changes do not fit into a Plan: the digest approves them if all are due together.\n");
        }
        text.push_str(serde_saphyr::to_string(&manifest)?.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn refused(error: kube::Error, namespace: &str) -> anyhow::Error {
    let hint = match &error {
        kube::Error::Api(status) if status.is_not_found() => {
            "the cluster has no Plans: install this version of Purlin, or its CRDs (`purlin crds | kubectl apply -f -`)"
                .to_owned()
        }
        kube::Error::Api(status) if status.is_forbidden() && !status.message.contains("(hint: ") => format!(
            "a preview needs a Role with the verbs create, get and watch on plans.purlin.dev in the namespace \
             `{namespace}`"
        ),
        _ => return error.into(),
    };
    Failure::hinted(request_error(&error), hint)
}

fn too_late(name: &str, namespace: &str, timeout: Duration) -> anyhow::Error {
    let message = format!("the controller has not computed the Plan `{name}` within {} seconds", timeout.as_secs());
    let hint = format!("check that the controller runs; `kubectl -n {namespace} get pplan {name}` shows the Plan");
    Failure::hinted(message, hint)
}

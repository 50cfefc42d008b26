//! Sends a sequence of requests to the real server and to the simulated one, and reports where the responses differ.

use std::time::Duration;

use apiserver::{Forbidden, Server, ServerResponse};
use bytes::Bytes;
use http::{Method, Request, header};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use similar::TextDiff;

use super::normal::Names;
use crate::installation::{LIMIT, exclusive, plane};

/// The time of the first request to the simulated server. Each further request is one second later.
const BEGIN: i64 = 1_800_000_000;

/// One request.
#[derive(Clone)]
pub(super) struct Step {
    method: Method,
    path: String,
    query: Vec<String>,
    content_type: &'static str,
    body: Value,
    metadata_only: bool,
    user: Option<&'static str>,
    watches: bool,
    code_only: bool,
    waits_for_deletion: bool,
}

impl Step {
    pub(super) fn of(method: Method, path: &str, body: Value) -> Self {
        Self {
            method,
            path: path.to_owned(),
            query: Vec::new(),
            content_type: "application/json",
            body,
            metadata_only: false,
            user: None,
            watches: false,
            code_only: false,
            waits_for_deletion: false,
        }
    }

    /// Adds query parameters.
    pub(super) fn query(mut self, query: &str) -> Self {
        self.query.push(query.to_owned());
        self
    }

    pub(super) fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// Impersonates a user.
    pub(super) fn by(self, user: &'static str) -> Self {
        Self { user: Some(user), ..self }
    }

    /// Compares only the codes, because another client writes to the real object at the same time.
    pub(super) fn code_only(self) -> Self {
        Self { code_only: true, ..self }
    }

    fn request(&self, names: &Names) -> Request<Bytes> {
        let mut uri = self.path.clone();
        if !self.query.is_empty() {
            uri = format!("{uri}?{}", self.query.join("&"));
        }
        let accept = match (self.metadata_only, self.lists()) {
            (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            _ => "application/json",
        };
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(names.fill(&uri))
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, self.content_type)
            .header(header::USER_AGENT, "simulated/1");
        if let Some(user) = self.user {
            request = request.header("Impersonate-User", names.fill(user));
        }
        let body = if self.body.is_null() { String::new() } else { names.fill(&self.body.to_string()) };
        request.body(Bytes::from(body)).expect("a request")
    }

    fn lists(&self) -> bool {
        self.method == Method::GET && !self.watches && self.path.ends_with('s')
    }
}

pub(super) fn get(path: &str) -> Step {
    Step::of(Method::GET, path, Value::Null)
}

pub(super) fn post(path: &str, body: Value) -> Step {
    Step::of(Method::POST, path, body)
}

pub(super) fn put(path: &str, body: Value) -> Step {
    Step::of(Method::PUT, path, body)
}

pub(super) fn delete(path: &str, options: Value) -> Step {
    Step::of(Method::DELETE, path, options)
}

pub(super) fn merge(path: &str, body: Value) -> Step {
    Step { content_type: "application/merge-patch+json", ..Step::of(Method::PATCH, path, body) }
}

pub(super) fn json_patch(path: &str, body: Value) -> Step {
    Step { content_type: "application/json-patch+json", ..Step::of(Method::PATCH, path, body) }
}

pub(super) fn apply(path: &str, manager: &str, force: bool, body: Value) -> Step {
    let step = Step { content_type: "application/apply-patch+yaml", ..Step::of(Method::PATCH, path, body) };
    step.query(&format!("fieldManager={manager}&force={force}"))
}

/// Receives the events of a watch for one second.
pub(super) fn watch(path: &str, query: &str) -> Step {
    let step = Step { watches: true, ..get(path) };
    step.query("watch=true&timeoutSeconds=1").query(query)
}

/// Waits until the object no longer exists.
pub(super) fn wait_deleted(path: &str) -> Step {
    Step { waits_for_deletion: true, ..get(path) }
}

/// Sends `steps` to both servers, in a new namespace.
///
/// # Panics
/// If any response differs, with all differences.
pub(super) fn play(prefix: &str, steps: &[Step]) {
    // No controller may change the compared objects.
    let _guard = exclusive();
    let plane = plane();
    let namespace = plane.namespace(&format!("simulated-{prefix}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut differences = Vec::new();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a config");
        let client = Client::try_from(config).expect("a client");
        let mut simulated = Simulated::new(&namespace);
        let (mut real_names, mut our_names) = (Names::new(&namespace), Names::new(&namespace));
        for (number, step) in steps.iter().enumerate() {
            if step.waits_for_deletion {
                until_gone(&client, &real_names.fill(&step.path)).await;
                simulated.delete_dependents_and_namespaces();
                continue;
            }
            let (code, bodies) = send(&client, step.request(&real_names)).await;
            let real = real_names.normal(code, bodies, step.watches);
            let (code, bodies) = simulated.send(step.request(&our_names));
            let ours = our_names.normal(code, bodies, step.watches);
            let same = if step.code_only { real["code"] == ours["code"] } else { real == ours };
            if !same {
                let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
                let diff = TextDiff::from_lines(pretty(&real).as_str(), pretty(&ours).as_str())
                    .unified_diff()
                    .context_radius(2)
                    .header("real", "simulated")
                    .to_string();
                let what = format!("{number}: {} {}?{}", step.method, step.path, step.query.join("&"));
                let body: String = step.body.to_string().chars().take(300).collect();
                differences.push(format!("step {what}\n  {body}\n{diff}"));
            }
        }
    });
    assert!(differences.is_empty(), "{} responses differ\n\n{}", differences.len(), differences.join("\n"));
}

async fn send(client: &Client, request: Request<Bytes>) -> (u16, Vec<Value>) {
    let response = client.send(request.map(Body::from)).await.expect("a response");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a complete body");
    (code, values(&bytes))
}

/// The JSON documents of a body, or the body as a string.
fn values(bytes: &[u8]) -> Vec<Value> {
    let lines: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    lines.unwrap_or_else(|_| vec![String::from_utf8_lossy(bytes).trim().into()])
}

async fn until_gone(client: &Client, path: &str) {
    let end = tokio::time::Instant::now() + LIMIT;
    loop {
        let request = Request::get(path).body(Bytes::new()).expect("a request");
        if send(client, request).await.0 == 404 {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "{path} still exists");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The simulated server and its clock.
struct Simulated {
    server: Server,
    second: i64,
}

impl Simulated {
    fn new(namespace: &str) -> Self {
        let mut simulated = Self { server: Server::new(jiff::Timestamp::UNIX_EPOCH), second: BEGIN };
        let now = simulated.now();
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        simulated.server.insert(now, object);
        let unprivileged = format!("system:serviceaccount:{namespace}:unprivileged");
        simulated.server.access.forbid(&unprivileged, Forbidden::everything());
        // Compacted, like etcd, so that old versions are expired.
        let version = simulated.server.version();
        simulated.server.compact(version - 1);
        simulated
    }

    fn now(&mut self) -> jiff::Timestamp {
        self.second += 1;
        jiff::Timestamp::from_second(self.second).expect("a time")
    }

    fn send(&mut self, request: Request<Bytes>) -> (u16, Vec<Value>) {
        let now = self.now();
        match self.server.respond(now, &request) {
            ServerResponse::Full(response) => (response.status().as_u16(), values(response.body())),
            ServerResponse::Watch(spec) => {
                let mut lines: Vec<_> = spec.initial.iter().map(|event| spec.line(event)).collect();
                match self.server.check_version(spec.from) {
                    Some(refusal) => lines.push(apiserver::WatchSpec::error(&refusal)),
                    None => {
                        let events = self.server.events(&spec, spec.from).expect("a version that is not compacted");
                        lines.extend(events.iter().map(|event| spec.line(event)));
                    }
                }
                (200, lines.iter().flat_map(|line| values(line)).collect())
            }
        }
    }

    fn delete_dependents_and_namespaces(&mut self) {
        let now = self.now();
        while self.server.tick_namespaces(now, usize::MAX, |_| {}) || self.server.tick_garbage(now) {}
    }
}

//! The HTTP server of the page and of its data.
//!
//! The files of the page are public. Everything else needs the token of a user in the header `Authorization`, which a page
//! of another site cannot send. No cookie is used.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::page::{FILES, File, POLICY};
use super::{Backend, Current, Opened, Refusal, decision};

/// The maximum size of a request in bytes: a decision has a few hundred.
const MAX_BODY: usize = 16 * 1024;

/// Who may use the server.
pub struct Server {
    backend: Arc<dyn Backend>,
    /// The values of the header `Host` that are served; `None`: all. A page of another site can make its own name point to
    /// this computer, but then the header has that name.
    hosts: Option<Vec<String>>,
}

impl Server {
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, hosts: None }
    }

    /// Serves only requests to these hosts, such as `127.0.0.1:8080`.
    #[must_use]
    pub fn only_for_hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// The routes below `/ui/`.
    pub fn router(self) -> Router {
        let shared = Arc::new(self);
        let mut router = Router::new()
            .route("/ui", get(|| async { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "ui/")]) }))
            .route("/ui/api/sign-in", get(sign_in))
            .route("/ui/api/about", get(about))
            .route("/ui/api/graph", get(graph))
            .route("/ui/api/object", get(object))
            .route("/ui/api/plan", get(plan))
            .route("/ui/api/decision", post(decide));
        for file in FILES {
            router = router.route(&format!("/ui/{}", file.path), get(move || async move { page(file) }));
        }
        router.layer(middleware::from_fn_with_state(Arc::clone(&shared), guard)).with_state(shared)
    }

    /// The session of the token. Only the backend limits requests: a wrong token must take no place of a right one.
    async fn opened(&self, headers: &HeaderMap) -> Result<Opened, Refusal> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|given| given.strip_prefix("Bearer ")).map(str::trim).unwrap_or_default();
        if token.is_empty() {
            return Err(Refusal::new(401, "a token is needed"));
        }
        self.backend.open(token).await
    }
}

type Shared = State<Arc<Server>>;

/// Refuses other hosts, and adds the headers that protect the page.
async fn guard(State(server): Shared, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_served = server.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|known| known == host));
    let mut response = match is_served {
        false => Refusal::new(403, format!("the host `{host}` is not served here")).into_response(),
        true => next.run(request).await,
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn page(file: &'static File) -> Response {
    ([(header::CONTENT_TYPE, file.content_type)], file.text).into_response()
}

async fn sign_in(State(server): Shared) -> Response {
    json(&serde_json::json!({ "how": server.backend.sign_in() }))
}

async fn about(State(server): Shared, headers: HeaderMap) -> Result<Response, Refusal> {
    let opened = server.opened(&headers).await?;
    Ok(json(&opened.session.about().await?))
}

async fn graph(State(server): Shared, request: Request) -> Result<Response, Refusal> {
    let opened = server.opened(request.headers()).await?;
    let namespace = parameter(&request, "namespace")?;
    let seen = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let seen = seen.map(|tag| tag.trim_matches('"').to_owned());
    match opened.session.graph(&namespace, seen.as_deref()).await? {
        Current::Unchanged => Ok(StatusCode::NOT_MODIFIED.into_response()),
        Current::Changed { version, snapshot } => {
            let mut response = json(&*snapshot);
            let tag = HeaderValue::from_str(&format!("\"{version}\""));
            response.headers_mut().extend(tag.ok().map(|tag| (header::ETAG, tag)));
            Ok(response)
        }
    }
}

async fn object(State(server): Shared, request: Request) -> Result<Response, Refusal> {
    let opened = server.opened(request.headers()).await?;
    let (namespace, name) = (parameter(&request, "namespace")?, parameter(&request, "name")?);
    Ok(json(&opened.session.object(&namespace, &name).await?))
}

async fn plan(State(server): Shared, request: Request) -> Result<Response, Refusal> {
    let opened = server.opened(request.headers()).await?;
    let (namespace, name) = (parameter(&request, "namespace")?, parameter(&request, "name")?);
    Ok(json(&opened.session.plan(&namespace, &name).await?))
}

async fn decide(State(server): Shared, request: Request) -> Result<Response, Refusal> {
    let opened = server.opened(request.headers()).await?;
    let body: Body = request.into_body();
    let body = to_bytes(body, MAX_BODY).await.map_err(malformed)?;
    let decision: decision::Request = serde_json::from_slice(&body).map_err(malformed)?;
    Ok(json(&serde_json::json!({ "message": opened.session.decide(&decision).await? })))
}

fn malformed(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(400, format!("not a decision: {error}"))
}

/// A parameter of the query. Sessions check what becomes a part of a path.
fn parameter(request: &Request, name: &str) -> Result<String, Refusal> {
    let query = request.uri().query().unwrap_or_default();
    let pair = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
    let value = pair.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty());
    value.ok_or_else(|| Refusal::new(400, format!("the parameter `{name}` is missing")))
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Refusal::new(500, error.to_string()).into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let body = serde_json::json!({ "error": self.message }).to_string();
        (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

#[cfg(test)]
mod tests;

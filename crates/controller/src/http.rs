//! The HTTP server of `/metrics`, `/healthz` and `/readyz`, and of the live view below `/ui/`.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use tokio::runtime::Handle;
use tower::ServiceExt as _;

use super::metrics::Metrics;
use process::{HttpLimits, Readiness, Shutdown, serve_http};

#[derive(Clone)]
struct ServerState {
    metrics: Metrics,
    readiness: Readiness,
}

/// Binds the address and logs it (the port may have been 0).
///
/// # Errors
///
/// When the address is in use or not available.
pub async fn bind(address: SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics and health");
    Ok(listener)
}

/// Serves until `ended`. Metrics and readiness stay available while a shutdown waits for running calls.
pub async fn serve(
    listener: tokio::net::TcpListener,
    metrics: Metrics,
    readiness: Readiness,
    ui: Option<Router>,
    ended: Shutdown,
) {
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(show_readiness))
        .with_state(ServerState { metrics, readiness })
        .merge(ui.unwrap_or_default());
    serve_http(listener, router, HttpLimits::default(), ended).await;
}

/// Answers the requests of a router on another runtime: work for users must not delay health checks and the Lease.
pub fn on_runtime(router: Router, runtime: Handle) -> Router {
    Router::new()
        .route("/ui", any(forward))
        .route("/ui/{*path}", any(forward))
        .route("/ui/", any(forward))
        .with_state((router, runtime))
}

async fn forward(State((router, runtime)): State<(Router, Handle)>, request: Request) -> Response {
    match runtime.spawn(router.oneshot(request)).await {
        Ok(Ok(response)) => response,
        // The handler panicked, which the log has, or the controller is shutting down.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn show_metrics(State(shown): State<ServerState>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], shown.metrics.render())
}

async fn show_readiness(State(shown): State<ServerState>) -> impl IntoResponse {
    match shown.readiness.problem() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem),
    }
}

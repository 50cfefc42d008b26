//! The HTTP server of `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use super::metrics::Metrics;
use crate::process::{Readiness, Shutdown};

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
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: tokio::net::TcpListener,
    metrics: Metrics,
    readiness: Readiness,
    ended: Shutdown,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(show_readiness))
        .with_state(ServerState { metrics, readiness });
    axum::serve(listener, router).with_graceful_shutdown(async move { ended.triggered().await }).await
}

async fn show_metrics(State(shown): State<ServerState>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], shown.metrics.render())
}

async fn show_readiness(State(shown): State<ServerState>) -> impl IntoResponse {
    if shown.readiness.is_ready() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let missing = shown.readiness.closed_gates().join(", ");
    (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for the first response of: {missing}\n"))
}

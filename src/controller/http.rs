//! `/metrics`, `/healthz` and `/readyz`.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use super::metrics::Metrics;
use crate::process::{Readiness, Shutdown};

#[derive(Clone)]
struct Shown {
    metrics: Metrics,
    readiness: Readiness,
}

/// Binds the address, and says in the log which one it is (the port may have been 0).
///
/// # Errors
///
/// When the address is taken or not ours.
pub async fn bind(address: SocketAddr) -> std::io::Result<tokio::net::TcpListener> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics and health");
    Ok(listener)
}

/// Serves until `ended`; readiness and metrics are wanted while running calls are awaited, too.
///
/// # Errors
///
/// When the listener breaks.
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
        .with_state(Shown { metrics, readiness });
    axum::serve(listener, router).with_graceful_shutdown(async move { ended.triggered().await }).await
}

async fn show_metrics(State(shown): State<Shown>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], shown.metrics.render())
}

async fn show_readiness(State(shown): State<Shown>) -> impl IntoResponse {
    if shown.readiness.is_ready() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let missing = shown.readiness.missing().join(", ");
    (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for the first answer of: {missing}\n"))
}

//! Errors of requests to the API server, in words for users and logs.

use std::error::Error;

use kube::client::ClientBuilder;
use kube::runtime::watcher;
use kube::{Client, Config};
use tower::BoxError;
use tower::util::MapErrLayer;

/// A failed connection, with the address that no error of the layers below has.
#[derive(Debug, thiserror::Error)]
#[error("{server}")]
struct Unreachable {
    server: String,
    source: BoxError,
}

/// A client of an API server, whose failed connections name the address of the server.
///
/// # Errors
/// If the configuration cannot be used.
pub fn client(config: Config) -> kube::Result<Client> {
    let server = config.cluster_url.to_string();
    let layer = MapErrLayer::new(move |source: BoxError| named(source, &server));
    Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
}

fn named(source: BoxError, server: &str) -> BoxError {
    // `kube` recognizes its own errors and those of `hyper` by their type.
    let is_known = source.is::<kube::Error>() || source.is::<hyper::Error>();
    if is_known { source } else { Box::new(Unreachable { server: server.trim_end_matches('/').to_owned(), source }) }
}

/// Of a response only the message, which `kube` repeats in the format of Rust. Of a failed connection the cause.
pub fn request_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Service(failure) => match failure.source() {
            Some(_) => format!("the API server does not respond: {}", connection_error(error)),
            None => failure.to_string(),
        },
        other => other.to_string(),
    }
}

/// As [`request_error`], for a watch.
pub fn watch_error(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(failure)
        | watcher::Error::WatchStartFailed(failure)
        | watcher::Error::WatchFailed(failure) => request_error(failure),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// The status code of an answer; `None` without one.
pub fn error_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether an error of a watch means that the server does not let this client watch: it must poll instead.
pub fn is_watch_refused(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(failure)
        | watcher::Error::WatchStartFailed(failure)
        | watcher::Error::WatchFailed(failure) => error_code(failure),
        watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::NoResourceVersion => None,
    };
    code.is_some_and(is_refusal)
}

/// Whether a code means that this client may not list or watch.
pub fn is_refusal(code: u16) -> bool {
    matches!(code, 401 | 403 | 405)
}

/// The address of the server, if it is known, and the innermost cause of a failed connection. The layers around it only
/// name themselves.
pub fn connection_error(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    let mut server = None;
    while let Some(cause) = innermost.source() {
        server = cause.downcast_ref::<Unreachable>().or(server);
        innermost = cause;
    }
    server.map_or_else(|| innermost.to_string(), |server| format!("{server}: {innermost}"))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Layer(#[source] std::io::Error);

    #[test]
    fn the_message_of_a_response_is_shown_once() {
        let status = Status { message: "you may not".to_owned(), code: 403, ..Status::default() };
        assert_eq!(request_error(&kube::Error::Api(status.clone().boxed())), "you may not");
        assert_eq!(watch_error(&watcher::Error::WatchError(status.boxed())), "you may not");
    }

    fn refused() -> kube::Error {
        kube::Error::Service(Box::new(Layer(std::io::Error::other("connection refused"))))
    }

    #[test]
    fn a_failed_connection_names_its_server_and_its_cause_only() {
        assert_eq!(request_error(&refused()), "the API server does not respond: connection refused");
        let watch = watch_error(&watcher::Error::WatchStartFailed(refused()));
        assert_eq!(watch, "the API server does not respond: connection refused");
        let layered = named(Box::new(Layer(std::io::Error::other("connection refused"))), "https://10.0.0.1:6443/");
        assert_eq!(
            request_error(&kube::Error::Service(layered)),
            "the API server does not respond: https://10.0.0.1:6443: connection refused"
        );
        assert_eq!(
            request_error(&kube::Error::Service("another replica was faster".into())),
            "another replica was faster"
        );
    }
}

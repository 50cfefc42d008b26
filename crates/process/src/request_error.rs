//! Errors of requests to the API server, in words for users and logs.

use std::error::Error;

use kube::runtime::watcher;

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

/// The innermost cause of a failed connection. The layers around it only name themselves.
pub fn connection_error(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
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

    #[test]
    fn a_failed_connection_names_its_cause_only() {
        let refused = || kube::Error::Service(Box::new(Layer(std::io::Error::other("connection refused"))));
        assert_eq!(request_error(&refused()), "the API server does not respond: connection refused");
        let watch = watch_error(&watcher::Error::WatchStartFailed(refused()));
        assert_eq!(watch, "the API server does not respond: connection refused");
        assert_eq!(
            request_error(&kube::Error::Service("another replica was faster".into())),
            "another replica was faster"
        );
    }
}

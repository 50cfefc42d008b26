//! A client of the API server that measures its requests.

use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

use super::metrics::RequestMetrics;

/// A client that shares the connections of `client`. Clients that act as a tenant are derived from it and are measured
/// as well.
pub fn observed(client: &Client, metrics: &RequestMetrics) -> Client {
    let (inner, metrics) = (client.clone(), metrics.clone());
    let measured = tower::service_fn(move |request: http::Request<Body>| {
        let (client, metrics) = (inner.clone(), metrics.clone());
        let (method, resource) = (method(&request), resource(request.uri().path()));
        async move {
            let began = Instant::now();
            let response = client.send(request).await;
            let code = response.as_ref().ok().map(|response| response.status().as_u16());
            metrics.ended(method, resource, code, began.elapsed());
            response
        }
    });
    Client::new(measured, client.default_namespace().to_owned())
}

/// The method of a request, where `GET` excludes watches.
pub(crate) fn method<B>(request: &http::Request<B>) -> &'static str {
    match request.method().as_str() {
        "GET" if is_watch(request) => "WATCH",
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

fn is_watch<B>(request: &http::Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

/// The kinds that Purlin itself reads and writes. All others are those of users, of which there can be many.
const RESOURCES: &[&str] = &[
    "modules",
    "resources",
    "datasources",
    "providerconfigs",
    "providers",
    "secrets",
    "configmaps",
    "events",
    "leases",
    "namespaces",
    "pods",
    "jobs",
    "customresourcedefinitions",
];

/// The kind of a request: `resources`, `resources/status`, `discovery` or `other`.
fn resource(path: &str) -> &'static str {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let versions = match segments.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return "other",
    };
    let mut segments = segments.skip(versions).peekable();
    let Some(mut kind) = segments.next() else { return "discovery" };
    let mut name = segments.next();
    if kind == "namespaces" && segments.peek().is_some() {
        kind = segments.next().unwrap_or_default();
        name = segments.next();
    }
    match (kind, name.and(segments.next())) {
        ("resources", Some("status")) => "resources/status",
        ("modules", Some("status")) => "modules/status",
        ("datasources", Some("status")) => "datasources/status",
        ("providerconfigs", Some("status")) => "providerconfigs/status",
        ("providers", Some("status")) => "providers/status",
        _ => RESOURCES.iter().find(|known| **known == kind).copied().unwrap_or("other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_request_names_its_kind() {
        for (path, kind) in [
            ("/api/v1/secrets", "secrets"),
            ("/api/v1/namespaces/purlin-system/secrets/a", "secrets"),
            ("/api/v1/namespaces/shop", "namespaces"),
            ("/api/v1/namespaces", "namespaces"),
            ("/apis/purlin.dev/v1alpha1/namespaces/shop/resources/a/status", "resources/status"),
            ("/apis/purlin.dev/v1alpha1/namespaces/shop/resources/status", "resources"),
            ("/apis/purlin.dev/v1alpha1/resources", "resources"),
            ("/apis/example.com/v1/namespaces/shop/widgets/a", "other"),
            ("/apis/apps/v1", "discovery"),
            ("/api/v1", "discovery"),
            ("/version", "other"),
        ] {
            assert_eq!(resource(path), kind, "{path}");
        }
    }

    #[test]
    fn watches_and_lists_are_distinguished() {
        let request = |uri: &str| method(&http::Request::get(uri).body(()).unwrap());
        assert_eq!(request("/api/v1/secrets?labelSelector=a&watch=true"), "WATCH");
        assert_eq!(request("/api/v1/secrets?labelSelector=watch%3Dtrue"), "GET");
    }
}

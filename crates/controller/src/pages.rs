//! Lists whose pages have a limited size in bytes.
//!
//! The API server limits only the number of objects in a page. Tenants decide how large these are: 500 Resources can
//! have 700 MiB, which would end the process. So a page that is too large is requested again with fewer objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

use super::observed_client::method;
use process::lock;

/// The maximum size of a page with more than one object in bytes: about 20 of the largest objects.
const MAX_PAGE: usize = 32 * 1024 * 1024;

/// By how much a page becomes smaller or larger.
const STEP: usize = 5;

/// A client whose lists have pages of a limited size. It shares the connections of `client`. Clients that act as a
/// tenant are derived from it and have the limit as well.
pub fn limited(client: &Client) -> Client {
    limited_to(MAX_PAGE, client)
}

fn limited_to(bytes: usize, client: &Client) -> Client {
    let lists = Arc::new(Lists { client: client.clone(), bytes, reduced: Mutex::default() });
    let service = tower::service_fn(move |request| {
        let lists = lists.clone();
        async move { lists.send(request).await }
    });
    Client::new(service, client.default_namespace().to_owned())
}

struct Lists {
    client: Client,
    /// The maximum size of a page.
    bytes: usize,
    /// The number of objects in the next page of a list whose last one was reduced, by path.
    reduced: Mutex<HashMap<String, usize>>,
}

impl Lists {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(list) = List::of(&request) else { return Ok(self.client.send(request).await?) };
        let (head, _) = request.into_parts();
        let reduced = lock(&self.reduced).remove(head.uri.path()).filter(|_| list.is_continued);
        let mut limit = reduced.map_or(list.limit, |reduced| reduced.min(list.limit));
        loop {
            let mut head = head.clone();
            head.uri = with_limit(head.uri, limit)?;
            let path = head.uri.path().to_owned();
            let (response, page) = self.client.send(Request::from_parts(head, Body::empty())).await?.into_parts();
            // Nothing is smaller than a page with one object.
            let bytes = if limit == 1 { usize::MAX } else { self.bytes };
            match Limited::new(page, bytes).collect().await {
                Ok(page) => {
                    let page = page.to_bytes();
                    let next = if page.len() < self.bytes / STEP { limit * STEP } else { limit };
                    if next < list.limit {
                        lock(&self.reduced).insert(path, next);
                    }
                    return Ok(Response::from_parts(response, page.into()));
                }
                Err(error) if error.is::<LengthLimitError>() => limit = (limit / STEP).max(1),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The request of a page.
struct List {
    /// The maximum number of objects.
    limit: usize,
    /// It is not the first page.
    is_continued: bool,
}

impl List {
    fn of<B>(request: &Request<B>) -> Option<Self> {
        let query = request.uri().query().filter(|_| method(request) == "GET")?;
        let limit = parameter(query, "limit=")?.parse().ok().filter(|limit| *limit > 1)?;
        Some(Self { limit, is_continued: parameter(query, "continue=").is_some() })
    }
}

fn parameter<'a>(query: &'a str, prefix: &str) -> Option<&'a str> {
    query.split('&').find_map(|part| part.strip_prefix(prefix))
}

fn with_limit(uri: Uri, limit: usize) -> Result<Uri, http::Error> {
    let query: Vec<String> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .map(|part| if part.starts_with("limit=") { format!("limit={limit}") } else { part.to_owned() })
        .collect();
    let path = PathAndQuery::try_from(format!("{}?{}", uri.path(), query.join("&")))?;
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(path);
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::ListParams;
    use serde_json::json;

    use super::*;

    type Requests = Arc<Mutex<Vec<String>>>;

    /// A server of objects of these sizes in bytes, and the queries that it receives.
    fn server(sizes: Vec<usize>) -> (Client, Requests) {
        let requests = Requests::default();
        let received = requests.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let page = page(&sizes, &query);
            lock(&received).push(query);
            async move { Ok::<_, BoxError>(Response::new(Body::from(page))) }
        });
        (Client::new(service, "shop"), requests)
    }

    fn page(sizes: &[usize], query: &str) -> Vec<u8> {
        let parameters = query.split('&').filter_map(|part| part.split_once('='));
        let parameters: HashMap<&str, usize> = parameters.map(|(key, value)| (key, value.parse().unwrap())).collect();
        let from = parameters.get("continue").copied().unwrap_or_default();
        let to = sizes.len().min(from + parameters["limit"]);
        let item = |at: usize| json!({"metadata": {"name": at.to_string()}, "data": {"text": "x".repeat(sizes[at])}});
        let items: Vec<_> = (from..to).map(item).collect();
        let next = if to < sizes.len() { to.to_string() } else { String::new() };
        json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": items}).to_string().into_bytes()
    }

    /// Reads objects of these sizes in pages of at most `limit`. Returns their names and the limits of the requests.
    async fn read(sizes: Vec<usize>, limit: u32) -> (Vec<String>, Vec<String>) {
        let (client, requests) = server(sizes);
        let api: Api<ConfigMap> = Api::namespaced(limited_to(10_000, &client), "shop");
        let mut page = ListParams::default().limit(limit);
        let mut names = Vec::new();
        loop {
            let list = api.list(&page).await.unwrap();
            assert!(list.items.len() <= 1 || serde_json::to_vec(&list.items).unwrap().len() < 10_000);
            names.extend(list.items.into_iter().filter_map(|object| object.metadata.name));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        let limit = |query: &String| query.split('&').find(|part| part.starts_with("limit=")).unwrap().to_owned();
        let limits = lock(&requests).iter().map(limit).collect();
        (names, limits)
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| at.to_string()).collect()
    }

    #[tokio::test]
    async fn pages_of_small_objects_stay_as_they_are() {
        assert_eq!(read(vec![10; 120], 50).await, (names(120), vec!["limit=50".to_owned(); 3]));
    }

    #[tokio::test]
    async fn a_page_that_is_too_large_is_requested_again_with_fewer_objects() {
        let (found, limits) = read(vec![2_000; 12], 500).await;
        assert_eq!(found, names(12));
        assert_eq!(limits, ["limit=500", "limit=100", "limit=20", "limit=4", "limit=4", "limit=4"]);
    }

    #[tokio::test]
    async fn the_pages_after_large_objects_grow_again() {
        let (found, limits) = read([vec![2_000; 8], vec![10; 100]].concat(), 100).await;
        assert_eq!(found, names(108));
        assert_eq!(limits, ["limit=100", "limit=20", "limit=4", "limit=4", "limit=4", "limit=20", "limit=100"]);
    }

    #[tokio::test]
    async fn an_object_that_is_larger_than_a_page_is_read_alone() {
        assert_eq!(read(vec![10, 50_000, 10], 3).await.0, names(3));
    }

    #[tokio::test]
    async fn a_new_list_begins_with_whole_pages() {
        let (client, requests) = server(vec![2_000; 12]);
        let api: Api<ConfigMap> = Api::namespaced(limited_to(10_000, &client), "shop");
        for _ in 0..2 {
            api.list(&ListParams::default().limit(20)).await.unwrap();
        }
        let limits: Vec<String> = lock(&requests).iter().map(|query| query.trim_matches('&').to_owned()).collect();
        assert_eq!(limits, ["limit=20", "limit=4", "limit=20", "limit=4"]);
    }

    #[test]
    fn only_lists_are_limited() {
        let is_list = |method: http::Method, uri: &str| {
            List::of(&Request::builder().method(method).uri(uri).body(()).unwrap()).is_some()
        };
        assert!(is_list(http::Method::GET, "/api/v1/secrets?labelSelector=a&limit=500"));
        assert!(!is_list(http::Method::GET, "/api/v1/secrets?limit=500&watch=true"));
        assert!(!is_list(http::Method::GET, "/api/v1/secrets/a"));
        assert!(!is_list(http::Method::DELETE, "/api/v1/secrets?limit=500"));
    }
}

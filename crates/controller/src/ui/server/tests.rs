use axum::body::to_bytes;
use axum::http::Method;
use futures::future::{BoxFuture, FutureExt as _};
use tower::ServiceExt as _;

use super::*;
use crate::ui::snapshot::Snapshot;
use crate::ui::{About, Detail, PlanDetail, Session};

/// One user with the token `right`, whose graph has the version `7`.
struct Fake;

impl Backend for Fake {
    fn sign_in(&self) -> &'static str {
        "with a token"
    }

    fn open<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Opened, Refusal>> {
        let opened = match token {
            "right" => Ok(Opened { session: Arc::new(Self), permit: None }),
            _ => Err(Refusal::new(401, "wrong")),
        };
        async move { opened }.boxed()
    }
}

impl Session for Fake {
    fn about(&self) -> BoxFuture<'_, Result<About, Refusal>> {
        async { Ok(About::default()) }.boxed()
    }

    fn graph<'a>(&'a self, namespace: &'a str, seen: Option<&'a str>) -> BoxFuture<'a, Result<Current, Refusal>> {
        let snapshot = Arc::new(Snapshot { namespace: namespace.to_owned(), ..Snapshot::default() });
        let current = match seen {
            Some("7") => Current::Unchanged,
            _ => Current::Changed { version: "7".to_owned(), snapshot },
        };
        async move { Ok(current) }.boxed()
    }

    fn object<'a>(&'a self, _: &'a str, name: &'a str) -> BoxFuture<'a, Result<Detail, Refusal>> {
        async move { Err(Refusal::new(404, format!("no {name}"))) }.boxed()
    }

    fn plan<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<PlanDetail, Refusal>> {
        async { Err(Refusal::new(403, "forbidden")) }.boxed()
    }

    fn decide<'a>(&'a self, request: &'a decision::Request) -> BoxFuture<'a, Result<String, Refusal>> {
        async move { Ok(request.decision.done(&request.plan)) }.boxed()
    }
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

async fn send(server: Server, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = axum::http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = server.router().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    Answer { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
}

async fn get_with(path: &str, headers: &[(&str, &str)]) -> Answer {
    send(Server::new(Arc::new(Fake)), Method::GET, path, headers, "").await
}

const RIGHT: (&str, &str) = ("authorization", "Bearer right");

#[tokio::test]
async fn only_the_files_of_the_page_are_public() {
    for file in FILES {
        let answer = get_with(&format!("/ui/{}", file.path), &[]).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, file.text), "{}", file.path);
        assert_eq!(answer.headers["content-security-policy"], POLICY);
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    for path in ["about", "graph?namespace=a", "object?namespace=a&name=b", "plan?namespace=a&name=b"] {
        for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("cookie", "token=right")]] {
            let answer = get_with(&format!("/ui/api/{path}"), headers).await;
            assert_eq!(answer.status, 401, "{path}");
            assert_eq!(answer.headers["cache-control"], "no-store");
        }
    }
    let body = r#"{"namespace":"a","plan":"p","uid":"u","decision":"approve"}"#;
    let answer = send(Server::new(Arc::new(Fake)), Method::POST, "/ui/api/decision", &[], body).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_graph_is_sent_only_if_it_has_changed() {
    let first = get_with("/ui/api/graph?namespace=my%2Dshop", &[RIGHT]).await;
    assert_eq!((first.status, &first.headers["etag"]), (200, &HeaderValue::from_static("\"7\"")));
    assert!(first.body.contains(r#""namespace":"my-shop""#), "{}", first.body);
    let again = get_with("/ui/api/graph?namespace=my-shop", &[RIGHT, ("if-none-match", "\"7\"")]).await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

#[tokio::test]
async fn errors_have_their_status_and_a_message() {
    let missing = get_with("/ui/api/object?namespace=a&name=b", &[RIGHT]).await;
    assert_eq!((missing.status, missing.body.as_str()), (404, r#"{"error":"no b"}"#));
    let forbidden = get_with("/ui/api/plan?namespace=a&name=b", &[RIGHT]).await;
    assert_eq!(forbidden.status, 403);
    let incomplete = get_with("/ui/api/object?namespace=a", &[RIGHT]).await;
    assert_eq!((incomplete.status, incomplete.body.as_str()), (400, r#"{"error":"the parameter `name` is missing"}"#));
}

#[tokio::test]
async fn a_decision_has_a_known_form() {
    let decide =
        async |body: &str| send(Server::new(Arc::new(Fake)), Method::POST, "/ui/api/decision", &[RIGHT], body).await;
    let done = decide(r#"{"namespace":"a","plan":"p","uid":"u","decision":"approve"}"#).await;
    assert_eq!((done.status, done.body.as_str()), (200, r#"{"message":"The changes of `p` are approved"}"#));
    for body in ["", "{}", r#"{"namespace":"a","plan":"p","uid":"u","decision":"delete"}"#, &"x".repeat(MAX_BODY + 1)] {
        assert_eq!(decide(body).await.status, 400, "{} bytes", body.len());
    }
}

#[tokio::test]
async fn a_name_that_points_to_this_computer_is_refused() {
    let local = || Server::new(Arc::new(Fake)).only_for_hosts(vec!["127.0.0.1:80".to_owned()]);
    let status = async |headers: &[(&str, &str)]| send(local(), Method::GET, "/ui/", headers, "").await.status;
    assert_eq!(status(&[("host", "127.0.0.1:80")]).await, 200);
    assert_eq!(status(&[("host", "evil.example:80")]).await, 403);
    assert_eq!(status(&[]).await, 403);
}

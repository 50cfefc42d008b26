use http::{Request, Response};
use serde_json::json;

use super::*;

/// An API server that knows the user of each token `USER/ANYTHING`, and never answers about the token `slow`.
fn users() -> Users {
    let answer = |request: Request<Body>| async move {
        let token = request.headers()[AUTHORIZATION].to_str().unwrap().trim_start_matches("Bearer ");
        let Some((user, _)) = token.split_once('/') else { return std::future::pending().await };
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
            "status": {"userInfo": {"username": user}},
        });
        Ok::<_, std::convert::Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
    };
    Users::new(Client::new(tower::service_fn(answer), "default"), "purlin-system")
}

/// The status of a refusal, or 200.
async fn status(users: &Users, token: &str) -> u16 {
    users.open(token).await.err().map_or(200, |refusal| refusal.status)
}

#[tokio::test]
async fn no_namespace_can_take_the_sessions_of_the_others() {
    let users = users();
    for number in 0..MAX_OF_OWNER {
        let token = format!("system:serviceaccount:shop:account-{}/{number}", number % 3);
        assert_eq!(status(&users, &token).await, 200);
    }
    assert_eq!(status(&users, "system:serviceaccount:shop:another/x").await, 429);
    assert_eq!(status(&users, "system:serviceaccount:shop:account-0/0").await, 200, "an open session");
    for user in ["system:serviceaccount:shop-2:account", "jane", "joe"] {
        assert_eq!(status(&users, &format!("{user}/x")).await, 200, "{user}");
    }
}

#[tokio::test]
async fn the_sessions_of_an_owner_share_its_watches() {
    let users = users();
    let mut kept = Vec::new();
    let mut watch = |token: &str, namespace: &str| {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let session = Arc::clone(&lock(&users.sessions)[&digest].session);
        let watched = session.watch(namespace).map_err(|refusal| refusal.status).map(|watch| kept.push(watch));
        watched.err().unwrap_or(200)
    };
    for token in ["jane/1", "jane/2", "jane/3", "joe/1"] {
        assert_eq!(status(&users, token).await, 200);
    }
    for (token, namespace) in
        ["jane/1", "jane/2"].into_iter().flat_map(|token| ["a", "b", "c", "d"].map(|one| (token, one)))
    {
        assert_eq!(watch(token, namespace), 200, "{token} {namespace}");
    }
    assert_eq!(watch("jane/3", "a"), 503);
    assert_eq!(watch("joe/1", "a"), 200);
}

#[tokio::test]
async fn a_session_has_a_limit_of_requests_of_its_own() {
    let users = users();
    let mut running = Vec::new();
    for _ in 0..MAX_REQUESTS {
        running.push(users.open("jane/1").await.ok().unwrap());
    }
    assert_eq!(status(&users, "jane/1").await, 429);
    assert_eq!(status(&users, "joe/1").await, 200);
    running.pop();
    assert_eq!(status(&users, "jane/1").await, 200);
}

#[tokio::test(start_paused = true)]
async fn requests_with_wrong_tokens_do_not_keep_out_open_sessions() {
    let users = Arc::new(users());
    assert_eq!(status(&users, "jane/1").await, 200);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..MAX_WAITING {
        let users = Arc::clone(&users);
        waiting.spawn(async move { status(&users, "slow").await });
    }
    tokio::task::yield_now().await;
    assert_eq!(status(&users, "slow").await, 503, "only so many wait");
    assert_eq!(status(&users, "jane/1").await, 200);
    assert!(waiting.join_all().await.iter().all(|status| *status == 503));
    assert_eq!(status(&users, "joe/1").await, 200);
}

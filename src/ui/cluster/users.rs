//! The sessions of the users of the controller's port. A request has the token of its user, and the API server receives
//! exactly this token: the page has no rights of its own, and the controller's rights are not used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use kube::Client;
use kube::client::Body;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::ClusterSession;
use crate::process::lock;
use crate::ui::{Backend, Refusal, Session};

/// How many users can look at the same time. Each needs watches and the memory of its graphs.
const MAX_USERS: usize = 32;
/// How many namespaces all users together can look at, and how many tokens are checked at the same time: the memory and the
/// requests of this process are for its work.
const MAX_WATCHES: usize = 32;
const MAX_CHECKS: usize = 8;
/// A session that was not used for this long is closed.
const IDLE: Duration = Duration::from_mins(2);

struct Open {
    session: Arc<ClusterSession>,
    used: Instant,
}

/// The sessions by the digest of the token.
pub struct Users {
    /// A client without credentials.
    client: Client,
    records: Arc<str>,
    sessions: Mutex<BTreeMap<[u8; 32], Open>>,
    places: Arc<Semaphore>,
    checks: Semaphore,
}

impl Users {
    /// `client` must have no credentials. `records`: the namespace of the controller.
    pub fn new(client: Client, records: &str) -> Self {
        let (places, checks) = (Arc::new(Semaphore::new(MAX_WATCHES)), Semaphore::new(MAX_CHECKS));
        Self { client, records: records.into(), sessions: Mutex::default(), places, checks }
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Arc<ClusterSession>> {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, open| open.used.elapsed() < IDLE);
        let open = sessions.get_mut(digest)?;
        open.used = Instant::now();
        Some(Arc::clone(&open.session))
    }

    /// Opens a session for a token that the API server accepts.
    async fn accept(&self, token: &str, digest: [u8; 32]) -> Result<Arc<ClusterSession>, Refusal> {
        let wrong = || Refusal::new(401, "the API server does not accept the token");
        let client = with_token(&self.client, token).ok_or_else(wrong)?;
        let session = ClusterSession::new(client, &self.records, "default").with_places(Arc::clone(&self.places));
        let session = Arc::new(session);
        let _permit = self.checks.acquire().await;
        session.user().await.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 401 => wrong(),
            _ => error.into(),
        })?;
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MAX_USERS {
            return Err(Refusal::new(
                503,
                "too many users look at the same time (hint: use `purlin ui` on your computer)",
            ));
        }
        let open = Open { session: Arc::clone(&session), used: Instant::now() };
        sessions.insert(digest, open);
        Ok(session)
    }
}

impl Backend for Users {
    fn sign_in(&self) -> &'static str {
        "Enter a token of the API server, for example of `kubectl create token NAME`. The page can see and do what its user \
         can, and forgets it when the tab is closed."
    }

    fn open<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Arc<dyn Session>, Refusal>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        async move {
            let session = match self.known(&digest) {
                Some(session) => session,
                None => self.accept(token, digest).await?,
            };
            Ok(session as Arc<dyn Session>)
        }
        .boxed()
    }
}

/// A client that shares the connections of `client`, and sends this token. `None` if it cannot be a header.
fn with_token(client: &Client, token: &str) -> Option<Client> {
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    let inner = client.clone();
    let authorized = tower::service_fn(move |mut request: http::Request<Body>| {
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        let client = inner.clone();
        async move { client.send(request).await }
    });
    Some(Client::new(authorized, client.default_namespace().to_owned()))
}

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
use crate::ui::{Backend, Opened, Refusal, Session};
use process::lock;

/// How many sessions and watched namespaces there can be: the memory and the requests of this process are for its work.
const MAX_SESSIONS: usize = 32;
const MAX_WATCHES: usize = 32;
/// How many of them one owner can have, so that nothing that an owner does keeps the others out.
const MAX_OF_OWNER: usize = 8;
/// How many requests of a session are answered at the same time: some of them wait for a change.
const MAX_REQUESTS: usize = 16;
/// How many tokens are checked at the same time, and how many requests wait for it.
const MAX_CHECKS: usize = 8;
const MAX_WAITING: usize = 64;
/// How long a request waits for the check of its token.
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// A session that was not used for this long is closed.
const IDLE: Duration = Duration::from_mins(2);

struct Open {
    session: Arc<ClusterSession>,
    owner: String,
    /// Limits the watches of the owner.
    places: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    used: Instant,
}

impl Open {
    fn admit(&mut self) -> Result<Opened, Refusal> {
        self.used = Instant::now();
        let permit = Arc::clone(&self.requests).try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::new(429, "too many requests with this token at the same time"))?;
        Ok(Opened { session: Arc::clone(&self.session) as Arc<dyn Session>, permit: Some(permit) })
    }
}

/// The sessions by the digest of the token.
pub struct Users {
    /// A client without credentials.
    client: Client,
    records: Arc<str>,
    sessions: Mutex<BTreeMap<[u8; 32], Open>>,
    places: Arc<Semaphore>,
    checks: Semaphore,
    waiting: Semaphore,
}

impl Users {
    /// `client` must have no credentials. `records`: the namespace of the controller.
    pub fn new(client: Client, records: &str) -> Self {
        Self {
            client,
            records: records.into(),
            sessions: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_WATCHES)),
            checks: Semaphore::new(MAX_CHECKS),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// The session of a token that has one.
    fn known(&self, digest: &[u8; 32]) -> Option<Result<Opened, Refusal>> {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, open| open.used.elapsed() < IDLE);
        sessions.get_mut(digest).map(Open::admit)
    }

    /// Opens a session for a token that the API server accepts.
    async fn accept(&self, token: &str, digest: [u8; 32]) -> Result<Opened, Refusal> {
        let (session, owner) = self.check(token).await?;
        let mut sessions = lock(&self.sessions);
        // Another request with the token may have been faster.
        if let Some(open) = sessions.get_mut(&digest) {
            return open.admit();
        }
        let of_owner: Vec<&Open> = sessions.values().filter(|open| open.owner == owner).collect();
        if of_owner.len() >= MAX_OF_OWNER {
            let hint = "close some pages, and wait two minutes";
            return Err(Refusal::new(429, format!("`{owner}` has too many sessions at the same time (hint: {hint})")));
        }
        if sessions.len() >= MAX_SESSIONS {
            let hint = "use `purlin ui` on your computer";
            return Err(Refusal::new(503, format!("too many users look at the same time (hint: {hint})")));
        }
        let places = of_owner.first().map(|open| Arc::clone(&open.places));
        let places = places.unwrap_or_else(|| Arc::new(Semaphore::new(MAX_OF_OWNER)));
        let session = Arc::new(session.with_places(vec![Arc::clone(&self.places), Arc::clone(&places)]));
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        let mut open = Open { session, owner, places, requests, used: Instant::now() };
        let opened = open.admit();
        sessions.insert(digest, open);
        opened
    }

    /// The session of a token that the API server accepts, and its owner.
    async fn check(&self, token: &str) -> Result<(ClusterSession, String), Refusal> {
        let _waiting = self.waiting.try_acquire().map_err(|_| too_many_checks())?;
        let client = with_token(&self.client, token).ok_or_else(wrong_token)?;
        let session = ClusterSession::new(client, &self.records, "default");
        let checked = async {
            let _check = self.checks.acquire().await;
            session.user().await.map(|user| owner(user).to_owned())
        };
        let owner = tokio::time::timeout(CHECK_LIMIT, checked).await.map_err(|_| too_many_checks())?;
        let owner = owner.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 401 => wrong_token(),
            _ => error.into(),
        })?;
        Ok((session, owner))
    }
}

fn wrong_token() -> Refusal {
    Refusal::new(401, "the API server does not accept the token")
}

fn too_many_checks() -> Refusal {
    Refusal::new(503, "too many tokens are checked at the same time (hint: try again)")
}

/// Whose limits a user counts against. A user who can create one ServiceAccount in a namespace can create many.
fn owner(user: &str) -> &str {
    const ACCOUNT: &str = "system:serviceaccount:";
    let namespace = user.strip_prefix(ACCOUNT).and_then(|account| account.split(':').next());
    namespace.map_or(user, |namespace| &user[..ACCOUNT.len() + namespace.len()])
}

impl Backend for Users {
    fn sign_in(&self) -> &'static str {
        "Enter a token of the API server, for example of `kubectl create token NAME`. The page can see and do what its user \
         can, and forgets it when the tab is closed."
    }

    fn open<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Opened, Refusal>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        async move {
            match self.known(&digest) {
                Some(opened) => opened,
                None => self.accept(token, digest).await,
            }
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

#[cfg(test)]
mod tests;

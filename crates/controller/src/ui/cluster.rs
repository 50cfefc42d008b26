//! The view of a cluster with the rights of one user. Every request uses the client of the user, so the API server decides
//! what is shown; nothing is shown of what the user may not read, and the page says so.

mod detail;
mod rights;
mod users;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Client};
use tokio::sync::{OnceCell, Semaphore};

use self::rights::{Rights, RightsCache};
use self::watch::NamespaceWatch;
use super::{About, Current, Detail, LONGEST_WAIT, PlanDetail, Refusal, Session, decision};
use api::{PlanObject, RawObject};
use model::kube_names::is_name;
use process::lock;

pub use users::Users;

/// How long changes are collected before they are sent: a plan changes many objects at the same time.
const COLLECT: Duration = Duration::from_millis(150);
/// How many namespaces one user can look at. Each needs the memory of its graph.
const MAX_NAMESPACES: usize = 4;
/// How many namespaces are offered.
const MAX_LISTED: u32 = 1000;
/// The field manager of a decision on the page.
const FIELD_MANAGER: &str = "purlin-ui";

/// The session of one user.
pub struct ClusterSession {
    client: Client,
    /// The namespace of the controller, with the records.
    records: Arc<str>,
    default_namespace: String,
    user: OnceCell<String>,
    rights: RightsCache,
    watches: Mutex<BTreeMap<String, Arc<NamespaceWatch>>>,
    /// Each limits the watches, also those of other sessions.
    places: Vec<Arc<Semaphore>>,
}

impl ClusterSession {
    /// `client` has the credentials of the user. `records`: the namespace of the controller.
    pub fn new(client: Client, records: &str, default_namespace: &str) -> Self {
        Self {
            client,
            records: records.into(),
            default_namespace: default_namespace.to_owned(),
            user: OnceCell::new(),
            rights: RightsCache::default(),
            watches: Mutex::default(),
            places: Vec::new(),
        }
    }

    /// With limits of watches that other sessions have too.
    #[must_use]
    pub fn with_places(self, places: Vec<Arc<Semaphore>>) -> Self {
        Self { places, ..self }
    }

    /// The name of the user.
    ///
    /// # Errors
    /// When the API server does not accept the credentials.
    pub async fn user(&self) -> Result<&str, kube::Error> {
        Ok(self.user.get_or_try_init(|| decision::user(self.client.clone())).await?)
    }

    /// The rights of the user, who may list the Resources of the namespace.
    async fn rights(&self, namespace: &str) -> Result<Rights, Refusal> {
        require_name("namespace", namespace)?;
        let rights = self.rights.get(&self.client, namespace).await?;
        match rights.resources {
            true if !rights.exists => Err(Refusal::new(404, format!("there is no namespace `{namespace}`"))),
            true => Ok(rights),
            false => Err(Refusal::new(403, format!("you may not list Resources in the namespace `{namespace}`"))),
        }
    }

    /// The watch of a namespace, which must be one that the user may list. It ends when it has not been used for a while.
    fn watch(&self, namespace: &str) -> Result<Arc<NamespaceWatch>, Refusal> {
        let mut watches = lock(&self.watches);
        watches.retain(|_, watch| !watch.has_ended());
        if let Some(watch) = watches.get(namespace) {
            watch.used();
            return Ok(Arc::clone(watch));
        }
        if watches.len() >= MAX_NAMESPACES {
            let message = format!("{MAX_NAMESPACES} namespaces are open already (hint: close some, and wait a minute)");
            return Err(Refusal::new(429, message));
        }
        let places = self.places.iter().map(|places| Arc::clone(places).try_acquire_owned());
        let places = places.collect::<Result<Vec<_>, _>>().map_err(|_| {
            let hint = "wait a minute, or use `purlin ui` on your computer";
            Refusal::new(503, format!("too many namespaces are open at the same time (hint: {hint})"))
        })?;
        let watch = Arc::new(NamespaceWatch::start(&self.client, namespace, places));
        watches.insert(namespace.to_owned(), Arc::clone(&watch));
        Ok(watch)
    }

    async fn current(&self, namespace: &str, seen: Option<&str>) -> Result<Current, Refusal> {
        self.rights(namespace).await?;
        let watch = self.watch(namespace)?;
        let changed = async {
            watch.changed_from(seen).await;
            tokio::time::sleep(COLLECT).await;
        };
        let has_changed = tokio::time::timeout(LONGEST_WAIT, changed).await.is_ok();
        watch.used();
        // A right may have been withdrawn in the meantime.
        let rights = self.rights(namespace).await?;
        match has_changed || !watch.is_version_for(seen, rights) {
            true => Ok(watch.current(namespace, rights)),
            false => Ok(Current::Unchanged),
        }
    }

    async fn all_namespaces(&self) -> Option<Vec<String>> {
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let list = api.list_metadata(&ListParams::default().limit(MAX_LISTED)).await.ok()?;
        Some(list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect())
    }

    async fn decided(&self, request: &decision::Request) -> Result<String, Refusal> {
        let decision::Request { namespace, plan: name, uid, decision } = request;
        require_name("namespace", namespace)?;
        require_name("Plan", name)?;
        let plans: Api<RawObject<PlanObject>> = Api::namespaced(self.client.clone(), namespace);
        let plan = plans.get(name).await?.plan().map_err(kube::Error::SerdeError)?;
        if plan.metadata.uid.as_deref() != Some(uid) {
            return Err(Refusal::new(409, format!("`{name}` is another Plan now (hint: look at it again)")));
        }
        if plan.spec.digest.is_none() {
            return Err(Refusal::new(409, format!("`{name}` is a preview, which changes nothing")));
        }
        if let Some(why) = decision::undecidable(&plan, *decision) {
            return Err(Refusal::new(409, why));
        }
        if let Some((why, hint)) = decision::unseen(&plan, *decision, namespace) {
            return Err(Refusal::new(409, format!("{why} (hint: {hint})")));
        }
        let user = self.user().await.ok().map(str::to_owned);
        match decision::write(&plans, &plan, *decision, user, FIELD_MANAGER).await {
            Ok(()) => Ok(format!("{}.", decision.done(name))),
            Err(error) => {
                let hint = decision::hint(&error, namespace).map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
                let refusal = Refusal::from(error);
                Err(Refusal { message: format!("{}{hint}", refusal.message), ..refusal })
            }
        }
    }
}

impl Session for ClusterSession {
    fn about(&self) -> BoxFuture<'_, Result<About, Refusal>> {
        async move {
            let user = self.user().await?.to_owned();
            let namespaces = self.all_namespaces().await;
            Ok(About {
                version: env!("CARGO_PKG_VERSION"),
                target: "cluster".to_owned(),
                user,
                namespaces: namespaces.unwrap_or_default(),
                default_namespace: self.default_namespace.clone(),
                any_namespace: true,
            })
        }
        .boxed()
    }

    fn graph<'a>(&'a self, namespace: &'a str, seen: Option<&'a str>) -> BoxFuture<'a, Result<Current, Refusal>> {
        self.current(namespace, seen).boxed()
    }

    fn object<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Result<Detail, Refusal>> {
        async move {
            require_name("namespace", namespace)?;
            require_name("object", name)?;
            let plans = lock(&self.watches).get(namespace).map(|watch| watch.plans_of(name)).unwrap_or_default();
            let reader = detail::Reader { client: &self.client, records: &self.records, namespace };
            reader.object(name, &plans).await
        }
        .boxed()
    }

    fn plan<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Result<PlanDetail, Refusal>> {
        async move {
            require_name("namespace", namespace)?;
            require_name("Plan", name)?;
            detail::Reader { client: &self.client, records: &self.records, namespace }.plan(name).await
        }
        .boxed()
    }

    fn decide<'a>(&'a self, request: &'a decision::Request) -> BoxFuture<'a, Result<String, Refusal>> {
        self.decided(request).boxed()
    }
}

/// Names become parts of paths: none may lead to another path.
fn require_name(what: &str, name: &str) -> Result<(), Refusal> {
    match is_name(name) {
        true => Ok(()),
        false => Err(Refusal::new(400, format!("`{name}` is not the name of a {what}"))),
    }
}

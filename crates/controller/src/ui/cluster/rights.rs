//! What a user may do in a namespace, as the API server says. The watches of a user go on after a right was withdrawn, so
//! the rights are checked again before their results are shown.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use api::GROUP;
use process::lock;

/// How long an answer counts: a withdrawn right has this effect at the latest.
const VALID: Duration = Duration::from_secs(10);

/// The rights in one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether there is a namespace of this name, as far as the user may know.
    pub exists: bool,
    /// To list Resources. Without it, nothing is shown.
    pub resources: bool,
    pub data_sources: bool,
    pub plans: bool,
    /// To approve and reject Plans.
    pub decide: bool,
}

impl Rights {
    /// A number that differs for other rights.
    pub fn bits(self) -> u8 {
        let rights = [self.resources, self.data_sources, self.plans, self.decide];
        rights.into_iter().fold(0, |bits, right| bits << 1 | u8::from(right))
    }
}

/// The last answers.
#[derive(Default)]
pub struct RightsCache(Mutex<BTreeMap<String, (Instant, Rights)>>);

impl RightsCache {
    /// The rights in a namespace.
    ///
    /// # Errors
    /// When the API server does not accept the credentials, or does not answer.
    pub async fn get(&self, client: &Client, namespace: &str) -> Result<Rights, kube::Error> {
        let now = Instant::now();
        {
            let mut known = lock(&self.0);
            known.retain(|_, (at, _)| now.saturating_duration_since(*at) < VALID);
            if let Some((_, rights)) = known.get(namespace) {
                return Ok(*rights);
            }
        }
        let (exists, resources, data_sources, plans, decide) = tokio::try_join!(
            exists(client, namespace),
            review(client, namespace, "list", "resources"),
            review(client, namespace, "list", "datasources"),
            review(client, namespace, "list", "plans"),
            review(client, namespace, "approve", "plans"),
        )?;
        let rights = Rights { exists, resources, data_sources, plans, decide };
        lock(&self.0).insert(namespace.to_owned(), (now, rights));
        Ok(rights)
    }
}

/// Whether there is a namespace of this name. Also true if the user may not read it.
async fn exists(client: &Client, name: &str) -> Result<bool, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_metadata_opt(name).await {
        Ok(metadata) => Ok(metadata.is_some()),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(true),
        Err(error) => Err(error),
    }
}

async fn review(client: &Client, namespace: &str, verb: &str, resource: &str) -> Result<bool, kube::Error> {
    let attributes = ResourceAttributes {
        group: Some(GROUP.to_owned()),
        namespace: Some(namespace.to_owned()),
        resource: Some(resource.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let question = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

//! Creates the Pod of a provider, waits until it runs, and starts the provider in it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use http::Method;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::manifest::{CONTROLLER, PORT, PodPlan, RULES, SELECTOR};
use super::pod_host::PodHost;
use super::pod_state::{self, PodState};
use super::{PodRequest, REQUEST_LIMIT, RunnerPods, StartState};
use crate::kubernetes_object::api_error::{self, ErrorContext, RequestError};
use crate::kubernetes_object::server::{Call, Caller, METADATA_LIST};
use crate::kubernetes_object::wait::ObjectRef;
use model::text::hex;
use model::{DriverError, ErrorKind};
use tfprovider::plugin::remote::{ControllerKeys, RemoteStart, generate_keys};
use tfprovider::plugin::{Client, PluginError, PoolKey, StartError};

/// The Pods whose containers do not run. The kubelet of an unknown one may still run them.
const NOT_RUNNING: &str = "status.phase%21%3DRunning%2Cstatus.phase%21%3DUnknown";

/// How many Pods are listed at the same time.
const PAGE: usize = 20;

/// The longest name of a configuration in the name of a Pod, which is also a host name.
const MAX_NAME: usize = 40;

impl RunnerPods {
    /// Creates the Pod and the Secret with its keys.
    pub(crate) async fn create(
        self: &Arc<Self>,
        key: &PoolKey,
        request: &PodRequest,
    ) -> Result<(Arc<PodHost>, ControllerKeys), PluginError> {
        let creator = match &*request.runner.creator {
            "" => self.settings.default_account.clone(),
            _ => request.runner.creator.clone(),
        };
        let name = self.pod_name(key, &request.configuration);
        let plan = PodPlan {
            namespace: &key.namespace,
            name: &name,
            controller: &self.settings.controller,
            configuration: &request.configuration,
            image: self
                .settings
                .image
                .as_deref()
                .ok_or_else(|| request.start_error(StartError::Runner(NO_IMAGE.to_owned())))?,
            hash: &request.hash,
            creator: &creator,
            runner: &request.runner,
        };
        self.refuse_own_account(&plan).map_err(|why| request.start_error(why))?;
        let caller = Caller::ServiceAccount { namespace: &key.namespace, name: &creator };
        let pods = format!("/api/v1/namespaces/{}/pods", key.namespace);
        let (runner_keys, keys) = generate_keys().map_err(|why| request.start_error(why))?;
        let created = self.post(caller, &pods, plan.pod()).await;
        let pod = match created {
            Ok(pod) => pod,
            // Its Roles may have been deleted before.
            Err(_) if self.is_terminating(&key.namespace).await => {
                let namespace = &key.namespace;
                let why =
                    format!("the namespace `{namespace}` is being deleted and accepts no Pods (hint: {LAST_WAY})");
                return Err(request.start_error(StartError::Runner(why)));
            }
            Err(error) => return Err(request.start_error(refused(&error, &create_context(&plan, "Pod", "pods")))),
        };
        let host = Arc::new(PodHost {
            pods: Arc::clone(self),
            namespace: key.namespace.clone().into(),
            name: name.clone(),
            uid: pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            creator: creator.clone(),
        });
        let secrets = format!("/api/v1/namespaces/{}/secrets", key.namespace);
        if let Err(error) = self.post(caller, &secrets, plan.secret(&host.uid, &runner_keys)).await {
            host.delete().await;
            return Err(request.start_error(refused(&error, &create_context(&plan, "Secret", "secrets"))));
        }
        tracing::info!(namespace = &*key.namespace, pod = name, provider = request.launch.name, "created a Pod");
        self.delete_others(caller, &pods).await;
        Ok((host, keys))
    }

    /// Waits until the Pod runs, and starts the provider in it. `progress` says what it waits for.
    pub(super) async fn connect(
        &self,
        host: &Arc<PodHost>,
        request: &PodRequest,
        keys: &ControllerKeys,
        progress: &watch::Sender<StartState>,
    ) -> Result<(Client, BoxFuture<'static, ()>), PluginError> {
        let collection = host.collection();
        let place = ObjectRef { caller: host.caller(), collection: &collection, name: &host.name };
        let judge = &mut |pod: Option<&Json>| match pod_state::judge(host.own(pod)) {
            PodState::Waiting(why) => {
                progress.send_replace(StartState::Waiting(format!("{}: {why}", host.title())));
                None
            }
            PodState::Running(address) => Some(Ok(address)),
            PodState::Ended(how) => Some(Err(how)),
        };
        let address = match self.server.get(&place, self.server.after(REQUEST_LIMIT)).await {
            Ok(pod) => self.server.wait_for(&place, pod, jiff::Timestamp::MAX, judge).await,
            Err(error) => Err(error),
        };
        let address = address
            .unwrap_or_else(|error| Err(format!("cannot be read: {}", line(&error))))
            .map_err(|why| request.start_error(StartError::Runner(format!("{} {why}", host.title()))))?;
        progress.send_replace(StartState::Waiting(format!("{}: starting the provider", host.title())));
        let remote = RemoteStart {
            address: SocketAddr::new(address, PORT),
            keys,
            package: &request.package,
            environment: request.environment.clone(),
            memory: request.memory,
        };
        Client::start_remote(&request.launch, &remote, host.clone()).await
    }

    async fn post(&self, caller: Caller<'_>, collection: &str, manifest: Json) -> Result<Json, RequestError> {
        let request = Call {
            method: Method::POST,
            path: collection.to_owned(),
            content_type: "application/json",
            accept: "application/json",
            body: Some(manifest.clone()),
            // The name is used once, so a second create is rejected.
            repeatable: true,
        };
        match self.server.call(caller, &request, self.server.after(REQUEST_LIMIT)).await {
            Ok(answer) => Ok(answer.body),
            // The response to the first attempt was lost.
            Err(RequestError::Api(error)) if error.code == 409 => {
                let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
                let place = ObjectRef { caller, collection, name };
                let created = self.server.get(&place, self.server.after(REQUEST_LIMIT)).await?;
                created.ok_or(RequestError::Api(error))
            }
            Err(error) => Err(error),
        }
    }

    /// A name that no other Pod has.
    fn pod_name(&self, key: &PoolKey, configuration: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.settings.controller.as_bytes());
        hasher.update(self.next.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        hasher.update(key.configuration);
        let digest = hex(&hasher.finalize()[..5]);
        let configuration: String = configuration.chars().take(MAX_NAME).collect();
        format!("purlin-{}-{digest}", configuration.trim_end_matches('-'))
    }

    /// Rejects a Pod with the rights of the controller.
    fn refuse_own_account(&self, plan: &PodPlan<'_>) -> Result<(), StartError> {
        let Some((namespace, name)) = &self.settings.own_account else { return Ok(()) };
        if **namespace != *plan.namespace || (**name != *plan.account() && **name != *plan.creator) {
            return Ok(());
        }
        let why = format!("its Pod would have the service account `{name}` of the controller");
        let hint = "name another service account in spec.runner.serviceAccountName";
        Err(StartError::Runner(format!("{why} (hint: {hint})")))
    }

    /// Deletes the Pods that other processes have left behind, and that run no provider. A provider that still runs may
    /// belong to a process that is cut off, and ends without its controller.
    async fn delete_others(self: &Arc<Self>, caller: Caller<'_>, pods: &str) {
        let Caller::ServiceAccount { namespace, name: creator } = caller else { return };
        // Any user of the namespace can create Pods with these labels, as many and as large as its quota allows.
        let selected = format!("labelSelector={SELECTOR}&fieldSelector={NOT_RUNNING}&limit={PAGE}");
        let until = self.server.after(REQUEST_LIMIT);
        let mut next = String::new();
        loop {
            let list = Call { accept: METADATA_LIST, ..Call::get(format!("{pods}?{selected}{next}")) };
            let Ok(page) = self.server.call(caller, &list, until).await else { return };
            for pod in page.body["items"].as_array().into_iter().flatten() {
                let metadata = &pod["metadata"];
                let is_ours = metadata["labels"][CONTROLLER] == *self.settings.controller;
                if is_ours || !metadata["deletionTimestamp"].is_null() {
                    continue;
                }
                let host = PodHost {
                    pods: Arc::clone(self),
                    namespace: namespace.into(),
                    name: metadata["name"].as_str().unwrap_or_default().to_owned(),
                    uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
                    creator: creator.into(),
                };
                host.delete().await;
            }
            match page.next_page() {
                Some(token) => next = format!("&continue={token}"),
                None => return,
            }
        }
    }
}

const LAST_WAY: &str = "set `runner: {kind: InProcess}` in the ProviderConfig, if its configuration has the credentials; next \
                        time, delete the Resources before the namespace";

const NO_IMAGE: &str =
    "the controller does not know its image (hint: set the flag --runner-image to the image of the controller)";

fn create_context<'a>(plan: &PodPlan<'a>, kind: &str, resource: &str) -> ErrorContext<'a> {
    ErrorContext {
        verb: "create",
        object: format!("the {kind} {}/{}", plan.namespace, plan.name),
        resource: resource.to_owned(),
        service_account: plan.creator,
        namespace: plan.namespace,
        object_namespace: plan.namespace.to_owned(),
        sensitive: false,
    }
}

/// The error of a request, with the rights that it needs.
fn refused(error: &RequestError, attempt: &ErrorContext<'_>) -> StartError {
    let DriverError { kind, message, hint, .. } = api_error::to_driver_error(error, attempt);
    if kind == ErrorKind::Forbidden {
        let account = attempt.service_account;
        let hint = format!("bind a Role with the rules {RULES} to the service account `{account}`");
        return StartError::Forbidden(format!("{message} (hint: {hint})"));
    }
    match hint {
        Some(hint) => StartError::Runner(format!("{message} (hint: {hint})")),
        None => StartError::Runner(message),
    }
}

fn line(error: &RequestError) -> String {
    match error {
        RequestError::Api(error) => error.message.split_whitespace().collect::<Vec<_>>().join(" "),
        RequestError::NoCluster(why) | RequestError::Unreachable(why) => why.clone(),
        RequestError::Timeout => "no response in time".to_owned(),
    }
}

#[cfg(test)]
mod tests;

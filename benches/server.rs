//! Access to the API server as an administrator.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Config};
use serde_json::Value;

use crate::controlplane::ControlPlane;

/// The number of concurrent requests when the limits are measured and objects are created.
pub(crate) const CLIENTS: usize = 48;

/// The API server, with the account of an administrator.
pub(crate) struct Server<'p> {
    pub(crate) plane: &'p ControlPlane,
    pub(crate) client: Client,
}

impl<'p> Server<'p> {
    pub(crate) async fn new(plane: &'p ControlPlane) -> Self {
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Self { plane, client: Client::try_from(config.expect("a configuration")).expect("a client") }
    }

    pub(crate) fn resources(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("purlin.dev", "v1alpha1", "Resource"));
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }

    pub(crate) fn secrets(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }

    pub(crate) fn config_maps(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }

    pub(crate) async fn create(&self, namespace: &str, manifests: Vec<Value>) {
        let api = self.resources(namespace);
        let objects = manifests.into_iter().map(|manifest| serde_json::from_value(manifest).expect("an object"));
        let created = stream::iter(objects).map(|object: DynamicObject| {
            let api = api.clone();
            async move { api.create(&PostParams::default(), &object).await.map(drop) }
        });
        created.buffer_unordered(CLIENTS).try_collect::<()>().await.expect("created Resources");
    }
}

//! Executes the commands for a `ProviderConfig`: configures its provider, and writes its status and finalizers.

use std::sync::Arc;

use kube::Api;
use kube::api::{Patch, PatchParams};

use crate::context::Context;
use crate::namespaces::NamespaceHandle;
use crate::watch;
use api::{ProviderConfigStatus, RawObject};
use engine::load::Interner;
use model::ProviderUse;
use process::request_error;
use runtime::reconcile::index::{Event, ProviderConfigView};
use runtime::reconcile::{ConfigurationCheck, Signal};

/// Configures the provider. `keep`: whether its process then waits for objects.
pub async fn try_provider(
    context: Arc<Context>,
    shared: Arc<NamespaceHandle>,
    name: Arc<str>,
    used: Arc<ProviderUse>,
    keep: bool,
) -> Signal {
    let Some(providers) = context.engine.drivers.providers() else { return Signal::Wake };
    let trial = match providers.configure(shared.name(), &used, keep).await {
        Ok(warnings) => {
            let version = providers.info(&used.provider).and_then(|facts| facts.version);
            ConfigurationCheck::accepted(version, &warnings)
        }
        Err(error) => ConfigurationCheck::Rejected(error.line()),
    };
    Signal::ProviderConfigured(name, used, trial)
}

pub async fn write(
    context: Arc<Context>,
    shared: Arc<NamespaceHandle>,
    view: ProviderConfigView,
    status: ProviderConfigStatus,
    finalizers: Option<Vec<String>>,
) -> Signal {
    let namespace = shared.name();
    let api: Api<RawObject<api::ProviderConfig>> = Api::namespaced(context.client.clone(), namespace);
    let written = patch(&api, &view, &status, finalizers).await;
    let done = match written {
        Ok(object) => {
            let observed = watch::observe_provider_config(&object, &context.accounts, &mut Interner::default());
            // If the object no longer exists, the watch reports that.
            if object.metadata.deletion_timestamp.is_none() || !observed.meta.finalizers.is_empty() {
                context.namespaces.apply(namespace, Event::ProviderConfigApplied(observed));
            }
            true
        }
        // It was deleted, which the watch reports. If its namespace is missing, it exists and cannot be written.
        Err(kube::Error::Api(error)) if error.code == 404 => false,
        Err(error) => {
            let (name, error) = (&*view.name, request_error(&error));
            tracing::warn!(%namespace, name, error, "could not write a ProviderConfig; retrying");
            false
        }
    };
    Signal::ProviderConfigWritten(view.name, done)
}

/// Writes the status, and then the finalizers if they change.
async fn patch(
    api: &Api<RawObject<api::ProviderConfig>>,
    view: &ProviderConfigView,
    status: &ProviderConfigStatus,
    finalizers: Option<Vec<String>>,
) -> Result<RawObject<api::ProviderConfig>, kube::Error> {
    let params = PatchParams::default();
    // A merge patch removes only fields that it names.
    let said = serde_json::json!({
        "metadata": { "uid": view.meta.uid },
        "status": {
            "observedGeneration": status.observed_generation,
            "conditions": status.conditions,
            "provider": status.provider,
            "version": status.version,
            "users": status.users,
        },
    });
    let status_differs = *status != view.meta.status;
    let Some(finalizers) = finalizers else {
        return api.patch_status(&view.name, &params, &Patch::Merge(said)).await;
    };
    let written =
        if status_differs { Some(api.patch_status(&view.name, &params, &Patch::Merge(said)).await?) } else { None };
    let version = match &written {
        Some(object) => object.metadata.resource_version.clone(),
        None => Some(view.meta.version.0.to_string()),
    };
    let marks = serde_json::json!({
        "metadata": { "uid": view.meta.uid, "resourceVersion": version, "finalizers": finalizers },
    });
    api.patch(&view.name, &params, &Patch::Merge(marks)).await
}

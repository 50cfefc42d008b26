//! What is done about a `ProviderConfig`: its provider is configured, and its status and finalizers are written.

use std::sync::Arc;

use kube::Api;
use kube::api::{Patch, PatchParams};

use crate::api::{self, ProviderConfigStatus};
use crate::controller::context::Context;
use crate::controller::watch;
use crate::controller::world::Shared;
use crate::load::Interner;
use crate::model::ProviderUse;
use crate::reconcile::index::{Event, SettingsView};
use crate::reconcile::{Happened, Trial};

/// Configures the provider, which is also ready for objects from then on.
pub(super) async fn try_provider(context: Arc<Context>, name: Arc<str>, used: Arc<ProviderUse>) -> Happened {
    let Some(providers) = context.engine.drivers.providers() else { return Happened::Nothing };
    let trial = match providers.configure(&used).await {
        Ok(warnings) => {
            let version = providers.facts(&used.provider).and_then(|facts| facts.version);
            Trial::accepted(version, &warnings)
        }
        Err(error) => Trial::Refused(error.line()),
    };
    Happened::ProviderTried(name, used, trial)
}

/// Writes status and finalizers.
pub(super) async fn write(
    context: Arc<Context>,
    shared: Arc<Shared>,
    view: SettingsView,
    status: ProviderConfigStatus,
    finalizers: Option<Vec<String>>,
) -> Happened {
    let namespace = shared.name();
    let api: Api<api::ProviderConfig> = Api::namespaced(context.client.clone(), namespace);
    let written = patch(&api, &view, &status, finalizers).await;
    context.metrics.wrote("status", written.is_ok());
    let done = match written {
        Ok(object) => {
            let account = &context.default_service_account;
            let observed = watch::observe_settings(&object, account, &mut Interner::default());
            // Should it be gone by now, the watch has said so, or is about to.
            if object.metadata.deletion_timestamp.is_none() || !observed.meta.finalizers.is_empty() {
                context.world.apply(namespace, Event::ProviderConfigApplied(observed));
            }
            true
        }
        // It is gone.
        Err(kube::Error::Api(error)) if error.code == 404 => true,
        Err(error) => {
            let name = &*view.name;
            tracing::warn!(%namespace, name, %error, "a ProviderConfig could not be written; it is tried again");
            false
        }
    };
    Happened::ProviderConfigWritten(view.name, done)
}

/// Writes the status, and then the finalizers if they are to be others.
async fn patch(
    api: &Api<api::ProviderConfig>,
    view: &SettingsView,
    status: &ProviderConfigStatus,
    finalizers: Option<Vec<String>>,
) -> Result<api::ProviderConfig, kube::Error> {
    let params = PatchParams::default();
    // Fields that the new status no longer has are removed only when they are named.
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

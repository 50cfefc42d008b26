//! Provider configurations. No provider process is started: the scripted driver receives the configuration.

use serde_json::{Value, json};

use super::play::{Play, plain, thing};

/// Creates a Provider, and a ProviderConfig that reads a Secret and references the object `a`.
fn configure(play: &Play) {
    play.put_object(json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Provider", "metadata": { "name": "scripted" },
        "spec": { "source": "example.com/test/scripted", "version": "1.0.0" },
    }));
    token(play, "t0");
    let inputs = json!([{ "name": "token", "secretKeyRef": { "name": "login", "key": "token" } }]);
    let config = json!({ "endpoint": "${a.value}", "token": "${inputs.token}" });
    let spec = json!({ "provider": { "name": "scripted" }, "config": config, "inputs": inputs });
    play.write("purlin.dev/v1alpha1", "ProviderConfig", "own", &json!({ "spec": spec }));
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &configured("v0"));
}

fn token(play: &Play, token: &str) {
    play.write("v1", "Secret", "login", &json!({ "stringData": { "token": token } }));
}

fn configured(value: &str) -> Value {
    thing(value, "f0", json!({ "providerConfigRef": { "name": "own" } }))
}

/// The Secret of a ProviderConfig changes, then the object that it references. `b` is updated with the new
/// configuration only.
pub(super) async fn settings_change(play: &Play) {
    configure(play);
    play.given().await;
    token(play, "t1");
    play.until_up_to_date().await;
    play.apply("a", &plain("v1", "f0"));
    play.apply("b", &configured("v1"));
    play.until_called("update b at v1").await;
    play.ends(&["a v1 f0", "b v1 f0"]).await;
    play.was_never_called("update b at v0");
}

/// A ProviderConfig is deleted after its last object is destroyed.
pub(super) async fn settings_deleted_first(play: &Play) {
    configure(play);
    play.given().await;
    play.delete_object("purlin.dev/v1alpha1", "ProviderConfig", "own");
    play.delete("a");
    play.until_says("a", "Synced", "InUse").await;
    play.delete("b");
    play.until("the ProviderConfig is deleted", || play.provider_config("own").is_none()).await;
    play.ends(&[]).await;
}

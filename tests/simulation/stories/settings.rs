//! Settings of providers. No program is started: the driver of the service outside takes them.

use serde_json::{Value, json};

use super::play::{Play, plain, thing};

/// A Provider, and settings of it that read a Secret and the object `a`.
fn configure(play: &Play) {
    play.put_there(json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "Provider", "metadata": { "name": "scripted" },
        "spec": { "source": "example.com/test/scripted", "version": "1.0.0" },
    }));
    token(play, "t0");
    let inputs = json!([{ "name": "token", "secretKeyRef": { "name": "login", "key": "token" } }]);
    let config = json!({ "endpoint": "${a.value}", "token": "${inputs.token}" });
    let spec = json!({ "provider": { "name": "scripted" }, "config": config, "inputs": inputs });
    play.write("purlin.dev/v1alpha1", "ProviderConfig", "own", &json!({ "spec": spec }));
    play.apply("a", &plain("v0", "f0"));
    play.apply("b", &under("v0"));
}

fn token(play: &Play, token: &str) {
    play.write("v1", "Secret", "login", &json!({ "stringData": { "token": token } }));
}

fn under(value: &str) -> Value {
    thing(value, "f0", json!({ "providerConfigRef": { "name": "own" } }))
}

/// What the settings read changes, then what they refer to. What is under them is changed under the new ones only.
pub(super) async fn settings_change(play: &Play) {
    configure(play);
    play.given().await;
    token(play, "t1");
    play.settled().await;
    play.apply("a", &plain("v1", "f0"));
    play.apply("b", &under("v1"));
    play.until_called("update b at v1").await;
    play.ends(&["a v1 f0", "b v1 f0"]).await;
    play.was_never_called("update b at v0");
}

/// Settings stay until the last object under them has gone.
pub(super) async fn settings_deleted_first(play: &Play) {
    configure(play);
    play.given().await;
    play.take_away("purlin.dev/v1alpha1", "ProviderConfig", "own");
    play.delete("a");
    play.until_says("a", "Synced", "StillUsed").await;
    play.delete("b");
    play.until("the settings are gone", || play.settings("own").is_none()).await;
    play.ends(&[]).await;
}

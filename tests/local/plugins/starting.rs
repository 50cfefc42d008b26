//! Start and exit of providers: the handshake, TLS, programs that are not providers, and cleanup.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use purlin::plugin::{Client, Protocol};
use purlin::schema::Nesting;

use super::{gone, launch, nothing, of, started};

#[tokio::test]
async fn a_real_provider_returns_its_schema_over_mutual_tls() {
    let client = started("random").await;
    assert_eq!(client.protocol(), Protocol::V5);
    let (schema, said) = client.schema().await.unwrap();
    assert!(said.is_empty(), "{said:?}");
    assert!(schema.capabilities.plan_destroy);
    let pet = schema.resource("random_pet").unwrap().unwrap();
    let keepers = &pet.block.attributes()["keepers"];
    assert!(keepers.optional && !keepers.computed);
    assert_eq!(keepers.ty().to_json(), r#"["map","string"]"#);
    assert_eq!(schema.resource("random_nothing").unwrap(), None);
    assert_eq!(client.configure(nothing()).await.unwrap(), []);
    client.close().await;
    assert!(!client.is_alive());
}

#[tokio::test]
async fn nested_blocks_are_decoded() {
    let client = started("tls").await;
    let (schema, _) = client.schema().await.unwrap();
    let request = schema.resource("tls_cert_request").unwrap().unwrap();
    assert_eq!(request.block.blocks()["subject"].nesting, Nesting::List);
    assert!(schema.provider().unwrap().block.blocks().contains_key("proxy"));
    client.close().await;
}

#[tokio::test]
async fn a_provider_also_serves_without_tls() {
    let mut launch = launch("random");
    launch.tls = false;
    let client = Client::start(&launch).await.unwrap();
    assert!(client.schema().await.unwrap().0.resource_types().any(|name| name == "random_id"));
    client.close().await;
}

async fn start_error(program: &Path) -> String {
    let mut launch = of("odd", program);
    // Much longer than any of these programs needs to fail.
    launch.limits.start = Duration::from_mins(1);
    Client::start(&launch).await.err().expect("the program is not a provider").to_string()
}

pub(super) fn script(directory: &Path, text: &str) -> std::path::PathBuf {
    let path = directory.join("provider");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn a_program_that_is_not_a_provider_is_rejected_with_its_output() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        ("echo hello", "the provider odd did not start: it is not a provider plugin: it wrote `hello`"),
        ("echo 'usage: odd' >&2; exit 3", "it exited before the handshake: exit status: 3: usage: odd"),
        (
            "echo '1|4|unix|/nowhere|grpc'; sleep 60",
            "it uses version 4 of the provider protocol, but Purlin supports only versions 5 and 6",
        ),
        ("echo '1|5|unix|/nowhere'; sleep 60", "it uses net/rpc, but Purlin supports only gRPC"),
        ("echo '1|5|unix|/nowhere|grpc'; sleep 60", "it does not use TLS"),
        ("echo 'panic: no luck' >&2; exit 2", "exit status: 2: panic: no luck"),
    ];
    for (text, expected) in cases {
        let error = start_error(&script(directory.path(), text)).await;
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(start_error(Path::new("/nowhere/odd")).await.contains("/nowhere/odd cannot be executed: No such file"));
    let text = directory.path().join("text");
    fs::write(&text, "hello").unwrap();
    assert!(start_error(&text).await.contains("it is not executable"));
    assert!(start_error(directory.path()).await.contains("it is not a regular file"));
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    // The system runs a text file as a script.
    assert!(start_error(&text).await.contains("it exited before the handshake: exit status: 127: "));
}

#[tokio::test]
async fn a_silent_program_is_killed_at_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = of("odd", script(directory.path(), "echo $$ > \"$OUT\"; exec cat /dev/zero > /dev/null"));
    let out = directory.path().join("pid");
    launch.environment.insert("OUT".into(), out.to_str().unwrap().into());
    launch.runtime_dir = directory.path().join("run");
    fs::create_dir(&launch.runtime_dir).unwrap();
    launch.limits.start = Duration::from_secs(2);
    let error = Client::start(&launch).await.err().unwrap().to_string();
    assert_eq!(error, "the provider odd did not start: it did not complete the handshake within 2 s");
    assert_eq!(fs::read_dir(&launch.runtime_dir).unwrap().count(), 0, "its directory is removed");
    gone(fs::read_to_string(out).unwrap().trim().parse().unwrap()).await;
}

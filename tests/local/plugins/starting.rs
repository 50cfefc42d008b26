//! Start and end: the handshake, TLS, what is no plugin, and that nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use purlin::plugin::schema::Nesting;
use purlin::plugin::{Client, Protocol};

use super::{gone, launch, nothing, of, started};

#[tokio::test]
async fn a_real_provider_tells_its_schema_over_mutual_tls() {
    let client = started("random").await;
    assert_eq!(client.protocol(), Protocol::V5);
    let (schema, said) = client.schema().await.unwrap();
    assert!(said.is_empty(), "{said:?}");
    assert!(schema.capabilities.plan_destroy);
    let pet = schema.resource("random_pet").unwrap().unwrap();
    let keepers = pet.block.attributes.iter().find(|attribute| attribute.name == "keepers").unwrap();
    assert!(keepers.optional && !keepers.computed);
    assert_eq!(keepers.r#type, br#"["map","string"]"#);
    assert_eq!(schema.resource("random_nothing").unwrap(), None);
    assert_eq!(client.configure(nothing()).await.unwrap(), []);
    client.close().await;
    assert!(!client.is_alive());
}

#[tokio::test]
async fn a_provider_with_nested_blocks_is_understood() {
    let client = started("tls").await;
    let (schema, _) = client.schema().await.unwrap();
    let request = schema.resource("tls_cert_request").unwrap().unwrap();
    let subject = request.block.blocks.iter().find(|block| block.name == "subject").unwrap();
    assert_eq!(subject.nesting, Nesting::List);
    assert!(schema.provider().unwrap().block.blocks.iter().any(|block| block.name == "proxy"));
    client.close().await;
}

#[tokio::test]
async fn without_tls_a_provider_serves_as_well() {
    let mut launch = launch("random");
    launch.tls = false;
    let client = Client::start(&launch).await.unwrap();
    assert!(client.schema().await.unwrap().0.resource_types().any(|name| name == "random_id"));
    client.close().await;
}

async fn refusal(program: &Path) -> String {
    let mut launch = of("odd", program);
    // Far longer than any of these programs needs to do its wrong thing.
    launch.limits.start = Duration::from_mins(1);
    Client::start(&launch).await.err().expect("it is no provider").to_string()
}

pub(super) fn script(folder: &Path, text: &str) -> std::path::PathBuf {
    let path = folder.join("provider");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn what_is_no_provider_is_refused_with_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("echo hello", "the provider odd did not start: it is no provider plugin: it wrote `hello`"),
        ("echo 'usage: odd' >&2; exit 3", "it ended without a handshake: exit status: 3: usage: odd"),
        (
            "echo '1|4|unix|/nowhere|grpc'; sleep 60",
            "it speaks version 4 of the provider protocol, Purlin speaks 5 and 6",
        ),
        ("echo '1|5|unix|/nowhere'; sleep 60", "it speaks net/rpc, Purlin speaks gRPC"),
        ("echo '1|5|unix|/nowhere|grpc'; sleep 60", "it does not speak TLS"),
        ("echo 'panic: no luck' >&2; exit 2", "exit status: 2: panic: no luck"),
    ];
    for (text, expected) in cases {
        let told = refusal(&script(folder.path(), text)).await;
        assert!(told.contains(expected), "{text}: {told}");
    }
    assert!(refusal(Path::new("/nowhere/odd")).await.contains("/nowhere/odd cannot be executed: No such file"));
    let text = folder.path().join("text");
    fs::write(&text, "hello").unwrap();
    assert!(refusal(&text).await.contains("it is not executable"));
    assert!(refusal(folder.path()).await.contains("it is no file"));
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    // The system takes a text for a script.
    assert!(refusal(&text).await.contains("it ended without a handshake: exit status: 127: "));
}

#[tokio::test]
async fn a_program_that_stays_silent_is_ended_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut launch = of("odd", script(folder.path(), "echo $$ > \"$OUT\"; exec cat /dev/zero > /dev/null"));
    let out = folder.path().join("pid");
    launch.environment.insert("OUT".into(), out.to_str().unwrap().into());
    launch.runtime_folder = folder.path().join("run");
    fs::create_dir(&launch.runtime_folder).unwrap();
    launch.limits.start = Duration::from_secs(2);
    let told = Client::start(&launch).await.err().unwrap().to_string();
    assert_eq!(told, "the provider odd did not start: it did not tell its address within 2 s");
    assert_eq!(fs::read_dir(&launch.runtime_folder).unwrap().count(), 0, "its folder is gone");
    gone(fs::read_to_string(out).unwrap().trim().parse().unwrap()).await;
}

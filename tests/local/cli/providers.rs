//! Real providers, from manifests to files on disk.

use std::fs;

use super::sandbox::Sandbox;
use crate::providers;

/// The example with the providers that the test suite builds.
fn example() -> Sandbox {
    let sandbox = Sandbox::from_example("providers");
    install(&sandbox, &["random", "tls", "local", "time"]);
    sandbox
}

/// Writes manifests for the providers of the test suite.
fn install(sandbox: &Sandbox, names: &[&str]) {
    let document = |name: &&str| {
        let program = providers::program(name);
        let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata:";
        format!("{head} {{ name: {name} }}\nspec: {{ package: {{ path: '{}' }} }}\n", program.display())
    };
    sandbox.write("files/providers.yaml", &names.iter().map(document).collect::<String>());
}

/// The finished steps, in order.
fn finished(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let events = sandbox.events(arguments);
    let ended = events.iter().filter(|event| event["event"] == "finished");
    let failed: Vec<_> = events.iter().filter(|event| event["event"] == "failed").collect();
    assert!(failed.is_empty(), "{failed:?}");
    ended.map(|event| event["node"].as_str().unwrap().to_owned()).collect()
}

const APPLY: &[&str] = &["apply", "-f", "files", "--yes", "-o", "json"];

fn actions(sandbox: &Sandbox) -> Vec<String> {
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
    let describe = |change: &serde_json::Value| {
        let order = change["order"].as_str().map_or_else(String::new, |order| format!(" {order}"));
        format!("{} {}{order}", change["address"].as_str().unwrap(), change["action"].as_str().unwrap())
    };
    changes.map(describe).collect()
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    let Ok(entries) = fs::read_dir(sandbox.path("site")) else { return Vec::new() };
    entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_provider_example_works() {
    let sandbox = example();
    // Dependents of new objects are planned with them, and no changes are left after the apply.
    assert_eq!(actions(&sandbox).len(), 5);
    assert_eq!(finished(&sandbox, APPLY).len(), 5);
    assert_eq!(actions(&sandbox), [""; 0]);
    let first = files(&sandbox);
    assert!(matches!(&first[..], [text] if text.starts_with("-----BEGIN CERTIFICATE-----")), "{first:?}");

    // The new key is created before the old one is destroyed, because the certificate depends on it.
    let site = fs::read_to_string(sandbox.path("files/site.yaml")).unwrap();
    sandbox.write("files/site.yaml", &site.replace("generation: \"1\"", "generation: \"2\""));
    assert_eq!(
        actions(&sandbox),
        [
            "certificate Replace CreateFirst",
            "key Replace CreateFirst",
            "rotation Replace CreateFirst",
            "settings Replace DestroyFirst"
        ]
    );
    let done = finished(&sandbox, APPLY);
    let at =
        |node: &str| done.iter().position(|one| one.starts_with(node)).unwrap_or_else(|| panic!("{node}: {done:?}"));
    assert!(at("key create") < at("certificate create"));
    assert!(at("certificate create") < at("certificate destroy"));
    assert!(at("certificate destroy") < at("key destroy"));
    assert_eq!(actions(&sandbox), [""; 0]);
    let second = files(&sandbox);
    assert!(second.len() == 1 && second != first, "{second:?}");

    // The file is deleted outside of Purlin.
    fs::remove_dir_all(sandbox.path("site")).unwrap();
    assert_eq!(actions(&sandbox), ["settings Create"]);
    finished(&sandbox, APPLY);
    assert_eq!(files(&sandbox), second);

    // Secrets are masked.
    let key = sandbox.ok(&["state", "show", "key", "-f", "files"]);
    assert!(!key.contains("PRIVATE KEY") && key.contains("sensitive"), "{key}");

    sandbox.ok(&["destroy", "-f", "files", "--yes"]);
    assert_eq!(files(&sandbox), [""; 0]);
    assert_eq!(sandbox.recorded(), [""; 0]);
}

#[test]
fn errors_name_the_field_and_block_only_their_object() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["random"]);
    let resource = |name: &str, spec: &str| {
        format!("---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec: {spec}\n")
    };
    let resources = [
        resource("good", "{ type: random_pet, config: {} }"),
        resource("misspelt", "{ type: random_pet, config: { lenght: 2 } }"),
        resource("mistyped", "{ type: random_pet, config: { length: many } }"),
        resource("missing", "{ type: random_shuffle, config: {} }"),
        resource("refused", "{ type: random_password, config: { length: 0 } }"),
        resource("computed", "{ type: random_pet, config: { id: x } }"),
        resource("no-type", "{ type: random_cat, config: {} }"),
        resource("no-provider", "{ type: cloud_disk, config: {} }"),
        resource("no-config", "{ type: random_pet, providerConfigRef: { name: absent }, config: {} }"),
        resource("set-up", "{ type: random_pet, providerConfigRef: { name: odd }, config: {} }"),
        "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: odd }\nspec: { provider: { name: random }, config: { region: x } }\n".to_owned(),
        resource("absent", "{ type: absent_thing, config: {} }"),
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: absent }\nspec: { package: { path: nowhere } }\n".to_owned(),
        resource("foreign", "{ type: shell_script, config: {} }"),
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: shell }\nspec: { package: { path: /bin/true } }\n".to_owned(),
    ];
    sandbox.write("files/all.yaml", &resources.concat());
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["good"]);
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let diagnostics: Vec<String> = plan["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}: {}\n", one["address"].as_str().unwrap_or("-"), one["summary"].as_str().unwrap()))
        .collect();
    let directory = sandbox.path("files").display().to_string();
    let diagnostics = diagnostics.concat().replace(&directory, "FILES");
    expect_test::expect![[r#"
        absent: the provider `absent` cannot be used: the program of the provider `absent` is not available: spec.package.path: files/nowhere: No such file or directory (os error 2)
        computed: spec.config.id: is computed by the provider and cannot be set
        foreign: the provider `shell` cannot be used: the provider shell did not start: it exited before the handshake: exit status: 0
        missing: spec.config.input: is required, but not set
        misspelt: spec.config.lenght: is not an attribute of this type
        mistyped: spec.config.length: must be a number, not a string
        no-config: the provider `absent` cannot be used: the program of the provider `absent` is not available: spec.package.path: files/nowhere: No such file or directory (os error 2)
        no-provider: spec.type: no provider serves the type `cloud_disk`
        no-type: spec.type: the provider `random` has no type `random_cat`
        refused: spec.config.length: Invalid Attribute Value: Attribute length value must be at least 1, got: 0
        set-up: the provider configuration `odd` is not valid: spec.config.region: unsupported argument
    "#]].assert_eq(&diagnostics);
}

#[test]
fn validate_reports_errors_without_configuring_providers() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["random", "corner"]);
    let resource = |name: &str, spec: &str| {
        format!("---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n{spec}\n")
    };
    // This provider rejects its configuration, but `validate` does not configure it.
    let configuration = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: corner }\n\
                    spec: { provider: { name: corner }, config: { fail: true } }\n";
    sandbox
        .write("files/good.yaml", &(resource("good", "  type: corner_thing\n  config: { name: x }") + configuration));
    sandbox.ok(&["validate", "-f", "files"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files"]).code, Some(1));
    let bad = [
        resource("misspelt", "  type: random_pet\n  config:\n    lenght: 2"),
        resource("mistyped", "  type: random_pet\n  config:\n    length: many"),
        resource("missing", "  type: random_shuffle\n  config: {}"),
        resource("refused", "  type: random_password\n  config:\n    length: 0"),
        resource("no-type", "  type: random_cat\n  config: {}"),
        resource("no-provider", "  type: cloud_disk\n  config: {}"),
        resource("typo", "  type: random_ids\n  config: {}"),
        resource("own-typo", "  type: terraform_dat\n  config: {}"),
        resource("late", "  type: random_pet\n  config:\n    prefix: ${good.id}\n    length: ${good.id + 1}"),
    ];
    sandbox.write("files/bad.yaml", &bad.concat());
    let ran = sandbox.run(&["validate", "-f", "files"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    expect_test::expect![[r#"
        error: files/bad.yaml:23: missing: spec.config.input: is required, but not set
        error: files/bad.yaml:8: misspelt: spec.config.lenght: is not an attribute of this type
        hint: did you mean `length`?
        error: files/bad.yaml:16: mistyped: spec.config.length: must be a number, not a string
        error: files/bad.yaml:44: no-provider: spec.type: no provider serves the type `cloud_disk`
        hint: add a Provider named `cloud`, or name a ProviderConfig in `spec.providerConfigRef`
        error: files/bad.yaml:37: no-type: spec.type: the provider `random` has no type `random_cat`
        hint: run `purlin provider schema random` to list its types
        error: files/bad.yaml:58: own-typo: spec.type: no provider serves the type `terraform_dat`
        hint: did you mean `terraform_data`?
        error: files/bad.yaml:31: refused: spec.config.length: Invalid Attribute Value: Attribute length value must be at least 1, got: 0
        error: files/bad.yaml:51: typo: spec.type: the provider `random` has no type `random_ids`
        hint: did you mean `random_id`?
    "#]].assert_eq(&ran.stderr);
    assert!(!sandbox.path("purlin.db").exists());
}

#[test]
fn plans_are_reused_until_a_refresh_is_due() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner"]);
    let world = sandbox.path("world");
    fs::create_dir(&world).unwrap();
    // Each plan of the object creates a file.
    fs::write(world.join("release"), "").unwrap();
    let planned = || fs::remove_file(world.join("started")).is_ok();
    let configuration = format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: corner }}\n\
         spec: {{ provider: {{ name: corner }}, config: {{ folder: '{}' }} }}\n",
        world.display()
    );
    let write = |text: &str| {
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: it }\nspec:\n";
        let spec = format!("  type: corner_trouble\n  config: {{ text: {text}, on_plan: slow }}\n");
        sandbox.write("files/it.yaml", &format!("{head}{spec}{configuration}"));
    };
    let plan = |flag: &str| {
        let plan = sandbox.json(&["plan", "-f", "files", flag, "-o", "json"]);
        plan["changes"][0]["action"].as_str().unwrap().to_owned()
    };
    write("one");
    assert_eq!(finished(&sandbox, APPLY), ["it create"]);
    assert!(planned());
    assert_eq!(plan("--refresh=due"), "NoOp");
    assert!(!planned(), "the plan is reused");
    assert_eq!(plan("--refresh=none"), "NoOp");
    assert!(planned());
    write("two");
    assert_eq!(plan("--refresh=due"), "Update");
    assert!(planned());
    assert_eq!(finished(&sandbox, &["apply", "-f", "files", "--refresh=due", "--yes", "-o", "json"]), ["it update"]);
    assert!(planned());
    assert_eq!(plan("--refresh=due"), "NoOp");
    assert!(!planned());
    assert_eq!(plan("--refresh=all"), "NoOp");
    assert!(planned());
}

fn document(kind: &str, name: &str, body: &str) -> String {
    let api = if kind == "Secret" { "v1" } else { "purlin.dev/v1alpha1" };
    format!("---\napiVersion: {api}\nkind: {kind}\nmetadata: {{ name: {name} }}\n{body}\n")
}

#[test]
fn changed_write_only_arguments_are_sent_and_not_stored() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner"]);
    let inputs = "inputs: [{ name: s, secretKeyRef: { name: login, key: s } }]";
    let write = |secret: &str| {
        let text = [
            document("Secret", "login", &format!("stringData: {{ s: {secret} }}")),
            document(
                "Resource",
                "account",
                &format!("spec: {{ type: corner_thing, config: {{ name: a, secret_wo: '${{inputs.s}}' }}, {inputs} }}"),
            ),
            document("Resource", "plain", "spec: { type: corner_thing, config: { name: b } }"),
        ];
        sandbox.write("files/objects.yaml", &text.concat());
    };
    write("canary-one");
    assert_eq!(finished(&sandbox, APPLY).len(), 2);
    assert_eq!(actions(&sandbox), [""; 0]);
    // A refresh does not change it.
    assert_eq!(finished(&sandbox, APPLY), [""; 0]);
    write("canary-two");
    let plan = sandbox.ok(&["plan", "-f", "files"]);
    assert!(plan.contains("a write-only argument changed") && !plan.contains("canary"), "{plan}");
    assert_eq!(actions(&sandbox), ["account Update"]);
    assert_eq!(finished(&sandbox, APPLY), ["account update"]);
    assert_eq!(actions(&sandbox), [""; 0]);
    // The provider also receives a new value, and the removal of the value.
    let text = fs::read_to_string(sandbox.path("files/objects.yaml")).unwrap();
    sandbox.write("files/objects.yaml", &text.replace("secret_wo: '${inputs.s}'", "text: x"));
    assert_eq!(actions(&sandbox), ["account Update"]);
    let records = fs::read(sandbox.path("purlin.db")).unwrap();
    assert!(!records.windows(6).any(|window| window == b"canary"));
}

#[test]
fn provider_errors_contain_no_secret_configuration() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner"]);
    let inputs = "inputs: [{ name: s, secretKeyRef: { name: login, key: s } }]";
    let text = [
        document("Secret", "login", "stringData: { s: canary-setting }"),
        // The error of the provider contains the path.
        document(
            "ProviderConfig",
            "corner",
            &format!("spec: {{ config: {{ folder: '/nowhere/${{inputs.s}}' }}, {inputs} }}"),
        ),
        document("Resource", "thing", "spec: { type: corner_thing, config: { name: a } }"),
        // The error of the provider contains the configured message.
        document(
            "ProviderConfig",
            "odd",
            &format!(
                "spec: {{ provider: {{ name: corner }}, config: {{ fail: 'not with ${{inputs.s}}' }}, {inputs} }}"
            ),
        ),
        document(
            "Resource",
            "odd",
            "spec: { type: corner_thing, providerConfigRef: { name: odd }, config: { name: a } }",
        ),
    ];
    sandbox.write("files/objects.yaml", &text.concat());
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    let output = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(1), "{output}");
    assert!(output.contains("open (sensitive)/") && output.contains("is refused: (sensitive)"), "{output}");
    assert!(!output.contains("canary"), "{output}");
}

#[test]
fn provider_configuration_can_depend_on_objects() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner", "random"]);
    let directory = sandbox.path("world");
    fs::create_dir(&directory).unwrap();
    let config = format!("spec: {{ config: {{ folder: '{}', secret: '${{password.result}}' }} }}", directory.display());
    let text = [
        document("ProviderConfig", "corner", &config),
        document("Resource", "password", "spec: { type: random_password, config: { length: 20 } }"),
        document("Resource", "thing", "spec: { type: corner_thing, config: { name: a, text: b } }"),
    ];
    sandbox.write("files/objects.yaml", &text.concat());
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("waits for the configuration of its provider `corner`"),
        "{ran:?}"
    );
    assert_eq!(sandbox.recorded(), ["password"]);
    assert_eq!(finished(&sandbox, APPLY), ["thing create"]);
    assert_eq!(actions(&sandbox), [""; 0]);
    let destroyed = finished(&sandbox, &["destroy", "-f", "files", "--yes", "-o", "json"]);
    assert_eq!(destroyed, ["thing destroy", "password destroy"]);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn objects_with_equal_ids_are_distinct_but_not_imported_twice() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["random", "local"]);
    let resource = |name: &str, spec: &str| {
        format!("---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec: {spec}\n")
    };
    let file =
        |name: &str| resource(name, &format!("{{ type: local_file, config: {{ filename: {name}, content: x }} }}"));
    let password = |name: &str| resource(name, "{ type: random_password, config: { length: 9 } }");
    let import = |name: &str| resource(name, "{ type: random_id, config: { byte_length: 4 }, import: { id: AQIDBA } }");
    let all = [file("a"), file("b"), password("c"), password("d"), import("e")];
    sandbox.write("files/all.yaml", &all.concat());
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(actions(&sandbox), [""; 0]);
    sandbox.write("files/more.yaml", &import("f"));
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("the object is already managed by `e`"), "{ran:?}");
}

#[test]
fn an_imported_manifest_contains_the_required_arguments() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["random"]);
    for (name, id, type_name) in [("token", "AQIDBA", "random_id"), ("word", "abc-very-Secret_12", "random_password")] {
        let path = format!("files/{name}.yaml");
        sandbox.ok(&["import", name, id, "-f", "files", "--type", type_name, "--out", &path]);
    }
    let token = fs::read_to_string(sandbox.path("files/token.yaml")).unwrap();
    assert!(token.contains("byte_length: 4") && !token.contains("hex") && !token.contains("b64"), "{token}");
    let word = fs::read_to_string(sandbox.path("files/word.yaml")).unwrap();
    assert!(word.contains("length: 18") && !word.contains("result") && !word.contains("bcrypt"), "{word}");
    assert_eq!(sandbox.recorded(), [""; 0]);
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let changes: Vec<_> =
        plan["changes"].as_array().unwrap().iter().map(|one| (&one["action"], &one["reason"])).collect();
    assert_eq!(changes, [(&"Record".into(), &"imported".into()), (&"Record".into(), &"imported".into())], "{plan}");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["token", "word"]);
    assert_eq!(actions(&sandbox), [""; 0]);
}

#[test]
fn an_object_is_imported_by_its_identity() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner"]);
    let world = sandbox.path("world");
    fs::create_dir(&world).unwrap();
    let configuration = format!("spec: {{ config: {{ folder: '{}' }} }}", world.display());
    sandbox.write("files/settings.yaml", &document("ProviderConfig", "corner", &configuration));
    let write = |import: &str| {
        let spec = format!("spec: {{ type: corner_identified, config: {{ region: north, name: x }}{import} }}");
        sandbox.write("files/it.yaml", &document("Resource", "it", &spec));
    };
    write("");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.ok(&["state", "rm", "it", "--yes"]);
    // With `spec.import`, whose errors name the field.
    let bad = [
        ("{ id: a, identity: { name: x } }", "spec.import: `id` and `identity` are mutually exclusive"),
        ("{ identity: {} }", "spec.import.identity: must be a non-empty map without expressions"),
        ("{ identity: { name: '${x.id}' } }", "spec.import.identity"),
        ("{ identity: { nam: x } }", "the identity is not valid"),
    ];
    for (import, expected) in bad {
        write(&format!(", import: {import}"));
        let ran = sandbox.run(&["plan", "-f", "files"]);
        assert!(ran.code == Some(1) && format!("{}{}", ran.stdout, ran.stderr).contains(expected), "{import}: {ran:?}");
    }
    write(", import: { identity: { region: north, name: x } }");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_eq!((&plan["changes"][0]["action"], &plan["changes"][0]["reason"]), (&"Record".into(), &"imported".into()));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(actions(&sandbox), [""; 0]);
    sandbox.ok(&["state", "rm", "it", "--yes"]);
    // With `purlin import`, with and without a manifest.
    let identity = r#"{"region": "north", "name": "x"}"#;
    let text = sandbox.ok(&["import", "new", "--identity", identity, "-f", "files", "--type", "corner_identified"]);
    assert!(text.contains("identity:") && text.contains("region: north"), "{text}");
    sandbox.ok(&["import", "it", "--identity", identity, "-f", "files"]);
    assert_eq!(actions(&sandbox), [""; 0]);
    let ran = sandbox.run(&["import", "note", "--identity", identity, "-f", "files", "--type", "terraform_data"]);
    assert!(ran.one_error().contains("objects of the type `terraform_data` have no identity"), "{ran:?}");
}

#[test]
fn data_sources_are_read_after_their_dependencies() {
    let sandbox = Sandbox::new();
    install(&sandbox, &["corner"]);
    let world = sandbox.path("world");
    fs::create_dir(&world).unwrap();
    let config = format!("spec: {{ provider: {{ name: corner }}, config: {{ folder: '{}' }} }}", world.display());
    let write = |text: &str, lookup: &str| {
        let documents = [
            document("ProviderConfig", "corner", &config),
            document("Resource", "it", &format!("spec: {{ type: corner_trouble, config: {{ text: {text} }} }}")),
            document("DataSource", "found", &format!("spec: {{ type: corner_lookup, config: {{ id: '{lookup}' }} }}")),
            document("Resource", "copy", "spec: { type: terraform_data, config: { input: '${data.found.text}' } }"),
            document("Resource", "other", "spec: { type: terraform_data, config: { input: 1 } }"),
        ];
        sandbox.write("files/it.yaml", &documents.concat());
    };
    let copied = || {
        let rows = sandbox.json(&["state", "show", "copy", "-o", "json"]);
        rows["objects"][0]["values"]["output"].as_str().unwrap().to_owned()
    };
    write("one", "${it.id}");
    let mut ended = finished(&sandbox, APPLY);
    ended.retain(|step| step != "other create");
    assert_eq!(ended, ["it create", "data.found read", "copy create"]);
    assert_eq!(copied(), "one");
    assert_eq!(actions(&sandbox), [""; 0]);
    write("two", "${it.id}");
    assert_eq!(finished(&sandbox, APPLY), ["it update", "data.found read", "copy update"]);
    assert_eq!(copied(), "two");
    write("two", "nowhere");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let mut diagnostics = plan["diagnostics"].as_array().unwrap().iter();
    let diagnostic = diagnostics.find(|found| found["address"] == "data.found").unwrap();
    assert!(diagnostic["detail"].as_str().unwrap().contains("There is no such object: nowhere"), "{diagnostic}");
    assert!(diagnostic["summary"].as_str().unwrap().starts_with("spec.config.id: "), "{diagnostic}");
    let action = |address: &str| {
        let changes = plan["changes"].as_array().unwrap();
        changes.iter().find(|change| change["address"] == address).unwrap()["action"].clone()
    };
    assert_eq!((action("copy"), action("it"), action("other")), ("Blocked".into(), "NoOp".into(), "NoOp".into()));
}

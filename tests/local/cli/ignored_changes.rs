//! `lifecycle.ignoreChanges` with providers.

use expect_test::expect;

use super::provider_sandbox::ProviderSandbox;

/// Replaces all Resources by one, with a type, a configuration and ignored paths.
fn thing(bench: &ProviderSandbox, type_name: &str, config: &str, ignored: &str) {
    let spec = format!("type: {type_name}, config: {{ {config} }}, lifecycle: {{ ignoreChanges: [{ignored}] }}");
    bench.resources(&[("thing", &spec)]);
}

/// The planned changes of the object, and the errors.
fn planned(bench: &ProviderSandbox) -> Vec<String> {
    let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let texts = |list: &str, field: &str| -> Vec<String> {
        plan[list].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
    };
    let mut planned = texts("changes", "action");
    planned.retain(|action| action != "NoOp" && action != "Record");
    planned.extend(texts("diagnostics", "summary"));
    planned
}

#[test]
fn a_value_that_a_legacy_provider_hashes_is_not_hashed_again() {
    let bench = ProviderSandbox::new("legacy");
    let made = "text: t, user_data: a, note: n";
    thing(&bench, "legacy_hashed", made, "user_data, note");
    bench.apply();
    for ignored in ["user_data, note", "all"] {
        for config in [made, "text: t, user_data: b, note: m", "text: t"] {
            thing(&bench, "legacy_hashed", config, ignored);
            assert_eq!(planned(&bench), [""; 0], "{config}, ignored: {ignored}");
        }
    }
    let id = bench.id_of("t");
    thing(&bench, "legacy_hashed", "text: u, user_data: b, note: m", "user_data, note");
    assert_eq!(planned(&bench), ["Update"]);
    bench.apply();
    assert_eq!(bench.id_of("u"), id);
    assert_eq!(planned(&bench), [""; 0]);
    // What is not ignored is changed.
    thing(&bench, "legacy_hashed", "text: u, user_data: b, note: m", "note");
    assert_eq!(planned(&bench), ["Replace"]);
}

#[test]
fn an_ignored_write_only_argument_is_sent_with_the_create_only() {
    let bench = ProviderSandbox::new("corner");
    thing(&bench, "corner_thing", "name: n, text: t, secret_wo: abc", "secret_wo");
    bench.apply();
    for ignored in ["secret_wo", "all"] {
        for secret in ["secret_wo: abc", "secret_wo: other", ""] {
            thing(&bench, "corner_thing", &format!("name: n, text: t, {secret}"), ignored);
            assert_eq!(planned(&bench), [""; 0], "{secret}, ignored: {ignored}");
        }
    }
    let shown = bench.sandbox.ok(&["state", "show", "thing", "-f", "files", "-o", "json"]);
    assert!(shown.contains("\"secret_length\":3"), "{shown}");
    thing(&bench, "corner_thing", "name: n, text: u, secret_wo: other", "secret_wo");
    assert_eq!(planned(&bench), ["Update"]);
    bench.apply();
    assert_eq!(planned(&bench), [""; 0]);
    // The object is compared with the last value that was not ignored.
    for (secret, actions) in [("abc", &[][..]), ("other", &["Update"])] {
        thing(&bench, "corner_thing", &format!("name: n, text: u, secret_wo: {secret}"), "text");
        assert_eq!(planned(&bench), actions, "{secret}");
    }
}

#[test]
fn a_block_or_map_that_loses_its_only_key_is_kept() {
    let bench = ProviderSandbox::new("corner");
    let tags = "'tags[\"Owner\"]'";
    for (before, after) in [("tags: {}", "tags: { Owner: x }"), ("text: t", "text: t, tags: { Owner: x }")] {
        thing(&bench, "corner_thing", &format!("name: n, {before}"), tags);
        bench.apply();
        thing(&bench, "corner_thing", &format!("name: n, {after}"), tags);
        assert_eq!(planned(&bench), [""; 0], "{after}");
    }
    // An attribute that is a list, and that the object does not have, is new.
    thing(&bench, "corner_thing", "name: n, text: t, many: [{ key: k }]", "'many[0].key'");
    assert_eq!(planned(&bench), ["Update"]);
    let bench = ProviderSandbox::new("legacy");
    let labels = "'metadata[0].labels'";
    thing(&bench, "legacy_nested", "metadata: [{}]", labels);
    bench.apply();
    thing(&bench, "legacy_nested", "metadata: [{ labels: { a: b } }]", labels);
    assert_eq!(planned(&bench), [""; 0]);
}

#[test]
fn paths_are_checked_against_the_schema_of_the_provider() {
    let bench = ProviderSandbox::new("legacy");
    let config = "name: n, unordered: [{ key: b, value: '1' }, { key: a, value: '2' }], many: [{ key: k }], \
                  as_attribute: [{ key: z, value: w, port: 1 }]";
    let paths = "'many[0].value', 'tags[\"x\"]', tags.y, 'one[0]', 'timeouts.create'";
    thing(&bench, "legacy_thing", config, paths);
    bench.apply();
    assert_eq!(planned(&bench), [""; 0]);
    let paths = "'unordered[0].value', 'many[0].valeu', many.value, 'tags[0]', name.x, nmae";
    thing(&bench, "legacy_thing", config, paths);
    expect![[r#"
        Blocked
        spec.lifecycle.ignoreChanges[0]: `unordered[0].value` does not exist: `unordered` is a set, whose items have neither an index nor a key
        spec.lifecycle.ignoreChanges[1]: `many[0].valeu` does not exist: `many[0]` is an object without this attribute
        spec.lifecycle.ignoreChanges[2]: `many.value` does not exist: `many` is a list, whose items have an index
        spec.lifecycle.ignoreChanges[3]: `tags[0]` does not exist: `tags` is a map, whose items have a key
        spec.lifecycle.ignoreChanges[4]: `name.x` does not exist: `name` is a single value
        spec.lifecycle.ignoreChanges[5]: `nmae` is not an attribute of this type"#]]
    .assert_eq(&planned(&bench).join("\n"));
    let bench = ProviderSandbox::new("corner");
    let paths = "'any.deep[0]', one.key, 'by_key[\"a b\"].key', 'rule[1].value'";
    thing(&bench, "corner_thing", "name: n, any: { deep: [1] }", paths);
    assert_eq!(planned(&bench), ["Create"]);
    thing(&bench, "corner_thing", "name: n", "'unordered[0]', 'names[0]', one.x, 'one[0]', 'many[0][\"key\"].x'");
    expect![[r#"
        Blocked
        spec.lifecycle.ignoreChanges[0]: `unordered[0]` does not exist: `unordered` is a set, whose items have neither an index nor a key
        spec.lifecycle.ignoreChanges[1]: `names[0]` does not exist: `names` is a set, whose items have neither an index nor a key
        spec.lifecycle.ignoreChanges[2]: `one.x` does not exist: `one` is an object without this attribute
        spec.lifecycle.ignoreChanges[3]: `one[0]` does not exist: `one` is an object without this attribute
        spec.lifecycle.ignoreChanges[4]: `many[0].key.x` does not exist: `many[0].key` is a single value"#]]
    .assert_eq(&planned(&bench).join("\n"));
}

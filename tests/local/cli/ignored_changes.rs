//! `lifecycle.ignoreChanges` with providers.

use super::provider_sandbox::ProviderSandbox;

/// Replaces all Resources by one, with a type, a configuration and ignored paths.
fn thing(bench: &ProviderSandbox, type_name: &str, config: &str, ignored: &str) {
    let spec = format!("type: {type_name}, config: {{ {config} }}, lifecycle: {{ ignoreChanges: [{ignored}] }}");
    bench.resources(&[("thing", &spec)]);
}

/// The planned actions, and the errors.
fn planned(bench: &ProviderSandbox) -> Vec<String> {
    let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    let errors = plan["diagnostics"].as_array().unwrap().iter();
    let errors = errors.map(|error| format!("{} (hint: {})", text(&error["summary"]), text(&error["hint"])));
    let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
    changes.map(|change| text(&change["action"])).chain(errors).collect()
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

//! Values from ConfigMaps and Secrets in the directory.

use super::sandbox::{Sandbox, fenced_blocks};

fn reading(inputs: &str, value: &str) -> String {
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: app }}\nspec:\n  type: terraform_data\n  \
         inputs: {inputs}\n  config: {{ input: \"{value}\" }}\n"
    )
}

#[test]
fn the_documented_example_works() {
    let text = include_str!("../../../docs/inputs.md");
    let sandbox = Sandbox::new();
    sandbox.write("files/app.yaml", fenced_blocks(text, "yaml")[0]);
    let shown = sandbox.ok(&["plan", "-f", "files"]);
    assert!(shown.contains(fenced_blocks(text, "text")[0]), "{shown}");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let values = &sandbox.json(&["state", "show", "app", "-o", "json"])["objects"][0]["values"];
    assert_eq!(values["input"]["url"], "https://shop.example/");
    assert_eq!(values["input"]["login"], serde_json::json!({"sensitive": true}));
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "no changes are left");
}

#[test]
fn each_error_names_its_place() {
    let cases = [
        (
            "[{ name: a-b, configMapKeyRef: { name: c, key: k } }]",
            "spec.inputs[0].name: `a-b` is not a valid input name",
        ),
        ("[{ name: a }]", "spec.inputs[0]: the input has no source"),
        (
            "[{ name: a, configMapKeyRef: { name: c, key: k }, secretKeyRef: { name: c, key: k } }]",
            "spec.inputs[0]: the input has two sources",
        ),
        (
            "[{ name: a, configMapKeyRef: { name: c } }]",
            "spec.inputs[0].configMapKeyRef.key: required field is missing",
        ),
        ("[{ name: a, secretKeyRef: { name: c, key: k, kye: 1 } }]", "spec.inputs[0].secretKeyRef.kye: unknown field"),
        (
            "[{ name: a, secretKeyRef: { name: c, key: k } }, { name: a, secretKeyRef: { name: c, key: l } }]",
            "spec.inputs[1].name: duplicate input `a`",
        ),
        ("{ a: 1 }", "spec.inputs: expected a list, found a map"),
    ];
    for (inputs, expected) in cases {
        let sandbox = Sandbox::new();
        sandbox.write("files/app.yaml", &reading(inputs, "x"));
        let ran = sandbox.run(&["validate", "-f", "files"]);
        assert!(ran.one_error().contains(expected), "{inputs}: {ran:?}");
    }
}

#[test]
fn an_input_that_is_not_declared_is_an_error_where_it_is_read() {
    let sandbox = Sandbox::new();
    let declared = "[{ name: domain, configMapKeyRef: { name: site, key: domain } }]";
    sandbox.write("files/app.yaml", &reading(declared, "https://${inputs.domian}/"));
    let ran = sandbox.run(&["validate", "-f", "files"]);
    assert!(
        ran.one_error().contains("files/app.yaml:7: app: spec.config.input: there is no input `domian`"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("hint: did you mean `domain`?"), "{ran:?}");
    sandbox.write("files/app.yaml", &format!("{}  count: \"${{int(inputs.n)}}\"\n", reading(declared, "x")));
    let ran = sandbox.run(&["validate", "-f", "files"]);
    assert!(ran.one_error().contains("spec.count: there is no input `n`"), "{ran:?}");
}

#[test]
fn validate_needs_no_values() {
    // The manifests may be for a cluster that has the Secret.
    let sandbox = Sandbox::new();
    let declared = "[{ name: password, secretKeyRef: { name: login, key: password } }]";
    sandbox.write("files/app.yaml", &reading(declared, "${inputs.password.size() > 8}"));
    let number = "[{ name: n, configMapKeyRef: { name: site, key: n } }]";
    let family = reading(number, "${count.index}").replace("name: app", "name: family");
    sandbox.write("files/family.yaml", &format!("{family}  count: \"${{int(inputs.n)}}\"\n"));
    sandbox.ok(&["validate", "-f", "files"]);
}

#[test]
fn an_invalid_secret_key_blocks_only_its_dependents() {
    let sandbox = Sandbox::new();
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: { name: login }\ndata: { bad: '%', good: Z29vZA== }\n";
    let other = reading("[{ name: a, secretKeyRef: { name: login, key: good } }]", "${inputs.a}");
    let bad = reading("[{ name: a, secretKeyRef: { name: login, key: bad } }]", "${inputs.a}").replace("app", "bad");
    sandbox.write("files/app.yaml", &format!("{other}---\n{bad}{secret}"));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    let errors = ran.errors();
    assert!(errors[0].contains("files/app.yaml:20: data.bad: the value is not valid base64"), "{ran:?}");
    assert!(ran.stderr.contains("hint: write plain text under `stringData`"), "{ran:?}");
    assert!(errors[1].contains("bad: spec.inputs[0]: Secret `login` has no key `bad`"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app"]);
}

//! The content of bodies by a schema.

use hcl::{AttributeSchema, Body, Diagnostic, FileId, Schema, Source};

fn body(text: &str) -> Body {
    hcl::parse_body(Source::new(FileId(0), "main.tf", text)).value
}

fn schema() -> Schema {
    let mut schema = Schema::new(&["count", "tags"], &[("lifecycle", &[]), ("provisioner", &["type"])]);
    schema.attributes.push(AttributeSchema { name: "source".to_owned(), required: true });
    schema
}

fn texts(diagnostics: &[Diagnostic]) -> Vec<String> {
    let text = |found: &Diagnostic| match &found.hint {
        Some(hint) => format!("{}: {} ({hint})", found.summary, found.detail),
        None => format!("{}: {}", found.summary, found.detail),
    };
    diagnostics.iter().map(text).collect()
}

#[test]
fn what_the_schema_does_not_have_is_refused_with_a_hint() {
    let text =
        "source = 1\ncuont = 1\nlifecycle = {}\ntags {\n}\nlifecicle {\n}\nprovisioner {\n}\nlifecycle \"a\" {\n}\n";
    let (content, diagnostics) = body(text).content(&schema());
    assert_eq!(content.attributes.len(), 1);
    assert!(content.blocks.is_empty());
    assert_eq!(
        texts(&diagnostics),
        [
            "Missing type for provisioner: A `provisioner` block has one label: type.",
            "Extraneous label for lifecycle: A `lifecycle` block has no labels.",
            "Unsupported argument: No argument named `cuont` is expected here. (did you mean `count`?)",
            "Unsupported argument: No argument named `lifecycle` is expected here. (`lifecycle` is a block: remove the equals sign)",
            "Unsupported block type: No block of type `tags` is expected here. (`tags` is an argument: write an equals sign after it)",
            "Unsupported block type: No block of type `lifecicle` is expected here. (did you mean `lifecycle`?)",
        ]
    );
}

#[test]
fn the_rest_of_a_body_is_a_body() {
    let (content, rest, diagnostics) = body("a = 1\ncount = 2\nb {\n}\nlifecycle {\n}\n").partial_content(&schema());
    assert_eq!(texts(&diagnostics), ["Missing required argument: The argument `source` has to be set."]);
    assert!(content.attribute("count").is_some() && content.blocks_of("lifecycle").count() == 1);
    assert!(rest.attribute("a").is_some() && rest.blocks_of("b").count() == 1);
    assert_eq!((rest.attributes.len(), rest.blocks.len()), (1, 1));
}

#[test]
fn a_rest_in_json_syntax_has_no_property_twice() {
    let text = r#"{"count": 1, "//": "a comment", "ami": "x", "lifecycle": [{}, {}]}"#;
    let json = hcl::parse_json(Source::new(FileId(0), "main.tf.json", text)).value;
    let (content, rest, _) = json.partial_content(&schema());
    assert_eq!((content.attributes.len(), content.blocks.len()), (1, 2));
    let (attributes, diagnostics) = rest.clone().just_attributes();
    assert_eq!((attributes.len(), attributes[0].name.text.as_str(), diagnostics.len()), (1, "ami", 0));
    let (_, diagnostics) = rest.content(&Schema::new(&["ammi"], &[]));
    assert_eq!(
        texts(&diagnostics),
        ["Extraneous JSON object property: No argument or block named `ami` is expected here. (did you mean `ammi`?)"]
    );
}

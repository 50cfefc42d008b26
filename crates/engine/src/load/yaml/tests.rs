use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

fn show(tree: &Tree) -> String {
    match &tree.node {
        Node::Null => "null".to_owned(),
        Node::Bool(bool) => bool.to_string(),
        Node::Number(number) => number.to_string(),
        Node::String(text) => format!("{text:?}"),
        Node::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Node::Map(entries) => {
            let entries = entries.iter().map(|e| format!("{}@{}: {}", e.key, e.line, show(&e.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
fn check(text: &str, expected: Expect) {
    let (documents, fault) = read(text, 1, &mut Interner::default());
    let mut shown = String::new();
    for document in documents {
        writeln!(shown, "{}", show(&document.tree)).unwrap();
        for fault in &document.errors {
            writeln!(shown, "error {}: {}", fault.line, fault.what).unwrap();
        }
        for fault in &document.warnings {
            writeln!(shown, "warning {}: {}", fault.line, fault.what).unwrap();
        }
    }
    if let Some(fault) = fault {
        writeln!(shown, "fatal {}: {}", fault.line, fault.what).unwrap();
    }
    expected.assert_eq(&shown);
}

#[test]
fn scalars_follow_the_core_schema() {
    check(
        "[1, -2, +3, 1.5, .5, 1e3, 0x1F, 0o17, 1.2.3, 1-2, true, ~, '', \"1\", a, 12345678901234567890, !!str 1, -, e]",
        expect![[r#"
            fatal 1: plain scalar cannot start with '-' followed by ,[]{}
        "#]],
    );
}

#[test]
fn differences_from_kubectl_are_reported() {
    check(
        "a: yes\nb: 0644\n",
        expect![[r#"
            {a@1: "yes", b@2: 644}
            warning 1: `yes` is a boolean for kubectl (YAML 1.1), but not for Purlin (YAML 1.2)
            warning 2: `0644` is an octal number for kubectl (YAML 1.1), but not for Purlin (YAML 1.2)
        "#]],
    );
}

#[test]
fn a_key_given_twice_is_an_error() {
    check(
        "a: 1\nb: 2\na: 3\n",
        expect![[r#"
            {a@1: 1, b@2: 2}
            error 3: duplicate key `a`, first set on line 1
        "#]],
    );
}

#[test]
fn aliases_and_merge_keys_are_expanded() {
    check(
        "base: &b {x: 1, y: 2}\nc: *b\nd:\n  <<: *b\n  y: 3\n",
        expect![[r#"
        {base@1: {x@1: 1, y@1: 2}, c@2: {x@1: 1, y@1: 2}, d@3: {y@5: 3, x@1: 1}}
    "#]],
    );
}

#[test]
fn aliases_cannot_fill_the_memory() {
    let mut text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for n in 1..20 {
        let before = format!("*a{}, ", n - 1).repeat(9);
        writeln!(text, "a{n}: &a{n} [{before}1]").unwrap();
    }
    check(
        &text,
        expect![[r#"
            fatal 6: the aliases of this document expand to more than 100000 values
        "#]],
    );
}

#[test]
fn a_document_that_cannot_be_read_has_its_line() {
    check(
        "a: 1\n---\nb: [1\nc: 2\n",
        expect![[r#"
        {a@1: 1}
        fatal 4: illegal placement of ':' indicator
    "#]],
    );
}

#[test]
fn json_is_yaml() {
    check(
        "{\"a\": [1, {\"b\": \"\\u00e9\"}],\n\t\"c\": null}",
        expect![[r#"
        {a@1: [1, {b@1: "é"}], c@2: null}
    "#]],
    );
}

fn document(depth: u32) -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let scalar = prop_oneof![
        "[a-z0-9$.{}: #'\"-]{0,8}",
        "[0-9.+-]{1,4}",
        Just("yes".to_owned()),
        Just("${a.b + 'c'}".to_owned()),
        Just("'a b'".to_owned()),
        Just("\"x: y\"".to_owned()),
        Just("[a, 1, 'b']".to_owned()),
        Just("{a: 1, b: x}".to_owned()),
        Just("[]".to_owned()),
        Just("|\n  text".to_owned()),
    ];
    let indent = |text: &str| format!("\n{text}").replace('\n', "\n  ");
    scalar.prop_recursive(depth, 24, 4, move |inner| {
        let entry = ("[a-d]", inner.clone()).prop_map(move |(key, value)| {
            if value.contains(['\n', '-']) { format!("{key}:{}", indent(&value)) } else { format!("{key}: {value}") }
        });
        let item = inner.prop_map(|value| format!("- {}", value.replace('\n', "\n  ")));
        let gap = prop_oneof![5 => Just("\n"), 1 => Just("\n# c\n"), 1 => Just(" # c\n"), 1 => Just("\n\n")];
        prop_oneof![
            (proptest::collection::vec(entry, 1..4), gap.clone()).prop_map(|(all, gap)| all.join(gap)),
            (proptest::collection::vec(item, 1..4), gap).prop_map(|(all, gap)| all.join(gap)),
        ]
    })
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(4000))]
    #[test]
    fn the_simple_reader_agrees_with_the_parser(text in document(4)) {
        let interner = &mut Interner::default();
        if let Some(simple) = simple::read(&text, 1, interner) {
            let (documents, fault) = parse(&text, 1, interner, false);
            proptest::prop_assert_eq!(fault, None);
            proptest::prop_assert_eq!(documents.len(), 1);
            proptest::prop_assert_eq!(&simple.tree, &documents[0].tree);
            proptest::prop_assert_eq!(&simple.warnings, &documents[0].warnings);
            proptest::prop_assert!(documents[0].errors.is_empty());
        }
    }
}

#[test]
fn a_usual_manifest_is_simple() {
    let text = "---\n# a comment\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: web\nspec:\n  type: t\n  \
                dependsOn:\n  - name: a\n  - name: b\n  config:\n    x: ${a.b.c}\n    y: \"${a.id}\"\n    z: [a, b]\n    l:\n      - 1\n      - k: v\n        w: 2\n";
    let interner = &mut Interner::default();
    let simple = simple::read(text, 7, interner).expect("it is simple");
    assert_eq!(simple.tree, parse(text, 7, interner, false).0[0].tree);
}

#[test]
fn an_expression_in_a_map_of_braces_stands_in_quotes() {
    let hint = |text: &str| read(text, 1, &mut Interner::default()).1.and_then(|fault| fault.hint).unwrap_or_default();
    assert!(hint("spec: { a: 1, b: ${c.id} }\n").contains("put expressions in quotes"));
    assert_eq!(hint("spec: { a: 1, b: c } }\n"), "");
}

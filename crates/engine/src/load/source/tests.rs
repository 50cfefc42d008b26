use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

const HEAD: &str = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\n";

/// Formats the loaded config: instances with their problems, read errors and warnings.
fn show(loaded: &LoadedSource) -> String {
    let mut shown = format!("namespace {}\n", loaded.config.namespace);
    for instance in loaded.config.instances.values() {
        writeln!(shown, "{} {}", instance.address, instance.type_name).unwrap();
        for problem in &instance.problems {
            writeln!(shown, "  {problem}").unwrap();
        }
    }
    for problem in &loaded.config.incomplete {
        writeln!(shown, "incomplete: {problem}").unwrap();
    }
    for problem in &loaded.diagnostics {
        writeln!(shown, "{:?}: {problem}", problem.severity).unwrap();
    }
    shown
}

#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
fn check(texts: &[&str], expected: Expect) {
    let names = ["a.yaml", "b.yaml"];
    let texts: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().copied()).collect();
    expected.assert_eq(&show(&read_strings(&texts)));
}

#[test]
fn every_document_is_read() {
    let a = format!(
        "# comment\n---\n{HEAD}metadata: {{name: web, namespace: shop}}\nspec: {{type: t}}\n---\n---\n\
         {HEAD}metadata: {{name: db}}\nspec:\n  type: t\n"
    );
    let b = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "c"}, "spec": {"type": "t"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]}"#;
    check(
        &[&a, b],
        expect![[r#"
        namespace shop
        c t
        db t
        web t
    "#]],
    );
}

#[test]
fn a_namespace_document_sets_ns() {
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{team: blue}}}}\n---\n\
         {HEAD}metadata: {{name: a}}\nspec: {{type: t}}\n"
    );
    let loaded = read_strings(&[("a.yaml", &text)]);
    assert_eq!(loaded.config.namespace.as_ref(), "shop");
    assert_eq!(loaded.namespace.to_json().to_string(), r#"{"annotations":{},"labels":{"team":"blue"},"name":"shop"}"#);
}

#[test]
fn an_unknown_field_has_its_line_and_a_suggestion() {
    check(
        &[&format!(
            "{HEAD}metadata: {{name: a, lables: {{}}}}\nspec:\n  typ: t\n  dependson: []\n  type: t\n  lifecycle:\n    prevent: 1\n\
             extra: 1\n"
        )],
        expect![[r#"
            namespace default
            a t
              a.yaml:3: a: metadata.lables: unknown field (hint: did you mean `labels`?)
              a.yaml:5: a: spec.typ: unknown field (hint: did you mean `type`?)
              a.yaml:6: a: spec.dependson: unknown field (hint: did you mean `dependsOn`?)
              a.yaml:9: a: spec.lifecycle.prevent: unknown field (hint: known fields are createBeforeDestroy, ignoreChanges, postconditions, preconditions, preventDestroy, replaceTriggeredBy)
              a.yaml:10: a: extra: unknown field (hint: known fields are apiVersion, kind, metadata, spec, status)
            incomplete: a.yaml:3: a: metadata.lables: unknown field (hint: did you mean `labels`?)
        "#]],
    );
}

#[test]
fn a_field_of_the_wrong_type_has_its_line() {
    check(
        &[&format!(
            "{HEAD}metadata:\n  name: a\n  labels: {{x: 1}}\nspec:\n  type: 7\n  config: [1]\n  suspend: yes\n  lifecycle:\n    \
             createBeforeDestroy: 'true'\n  deletionPolicy: orphan\n  timeouts: {{create: 30}}\n  dependsOn: [x, {{nam: y}}]\n"
        )],
        expect![[r#"
            namespace default
            a 
              a.yaml:9: a: `yes` is a boolean for kubectl (YAML 1.1), but not for Purlin (YAML 1.2) (hint: write `true` or `false`, or quote it if it is a string)
              a.yaml:5: a: metadata.labels.x: expected a string, found a number (hint: quote it)
              a.yaml:7: a: spec.type: expected a string, found a number (hint: quote it)
              a.yaml:8: a: spec.config: expected a map, found a list
              a.yaml:9: a: spec.suspend: expected true or false, found a string (hint: write `true` or `false` without quotes)
              a.yaml:11: a: spec.lifecycle.createBeforeDestroy: expected true or false, found a string (hint: write `true` or `false` without quotes)
              a.yaml:12: a: spec.deletionPolicy: must be `Delete` or `Orphan`, not `orphan` (hint: did you mean `Orphan`?)
              a.yaml:13: a: spec.timeouts.create: expected a string, found a number (hint: quote it)
              a.yaml:14: a: spec.dependsOn[0]: expected a map with `name`, found a string (hint: write `name: x`)
              a.yaml:14: a: spec.dependsOn[1].nam: unknown field (hint: did you mean `name`?)
        "#]],
    );
}

#[test]
fn a_bad_value_has_its_line() {
    check(
        &[&format!(
            "{HEAD}metadata: {{name: Web_1}}\n---\n\
             {HEAD}metadata: {{name: b}}\nspec:\n  type: t\n  type: u\n  config:\n    x: |\n      one\n      ${{b.id}}\n    y: ${{count.index}}\n  \
             timeouts:\n    read: 0s\n"
        )],
        expect![[r#"
            namespace default
            Web_1 
              a.yaml:3: Web_1: metadata.name: `Web_1` is not a valid DNS label (hint: use at most 63 lowercase letters, digits and `-`, starting and ending with a letter or digit)
              a.yaml:1: Web_1: spec.type: the type is missing (hint: set it to a resource type, such as `terraform_data`)
            b t
              a.yaml:10: b: duplicate key `type`, first set on line 9
              a.yaml:17: b: spec.timeouts.read: `0s` is not a positive duration (hint: write it as `30m` or `1h30m`)
              a.yaml:15: b: spec.config.y: `${count.index}` at column 1: `count` is not available here: it exists only in a Resource with `count` (hint: set `count` on the Resource)
              a.yaml:12: b: spec.config.x: `b` references itself (hint: an object can reference only other objects)
            incomplete: a.yaml:3: Web_1: metadata.name: `Web_1` is not a valid DNS label (hint: use at most 63 lowercase letters, digits and `-`, starting and ending with a letter or digit)
        "#]],
    );
}

#[test]
fn a_duplicate_name_reports_both_places() {
    let text = format!("{HEAD}metadata: {{name: a}}\nspec: {{type: t}}\n");
    check(
        &[&text, &format!("\n\n{text}")],
        expect![[r#"
            namespace default
            a t
              b.yaml:5: a: metadata.name: the name is used in a.yaml:3 and in b.yaml:5 (hint: names must be unique in a namespace; rename one of them)
        "#]],
    );
}

#[test]
fn documents_with_different_namespaces_are_an_error() {
    let text = |name: &str, namespace: &str| {
        format!("{HEAD}metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{type: t}}\n")
    };
    check(
        &[&text("a", "one"), &text("b", "two")],
        expect![[r#"
            namespace one
            a t
            b t
              b.yaml:3: b: metadata.namespace: the namespace is `two`, but `one` in earlier documents (hint: use a separate directory and state file for each namespace)
        "#]],
    );
}

#[test]
fn an_unreadable_document_makes_the_source_incomplete() {
    check(
        &[&format!(
            "{HEAD}metadata: {{name: a}}\nspec: {{type: [}}\n---\n{HEAD}metadata: {{name: b}}\nspec: {{type: t}}\n---\n\
             kind: Resource\n---\nmetadata: {{name: c}}\n---\njust text\n---\n{HEAD}spec: {{}}\n"
        )],
        expect![[r#"
            namespace default
            b t
            incomplete: a.yaml:4: mismatched bracket '[' closed by '}'
            incomplete: a.yaml:11: the Resource has no name (hint: set `metadata.name`)
            incomplete: a.yaml:13: the document has no `kind` (hint: set `apiVersion` and `kind`)
            incomplete: a.yaml:15: the document has no `kind` (hint: set `apiVersion` and `kind`)
            incomplete: a.yaml:17: the Resource has no name (hint: set `metadata.name`)
        "#]],
    );
}

#[test]
fn an_invalid_document_with_a_name_counts_as_present() {
    check(
        &["apiVersion: purlin.dev/v2\nkind: Resource\nmetadata: {name: a}\n---\n\
           apiVersion: purlin.dev/v1alpha1\nkind: Resouce\nmetadata: {name: b}\nspec: {type: t}\n---\n\
           kind: Resource\nmetadata: {name: c}\nspec: {type: t}\n"],
        expect![[r#"
            namespace default
            a 
              a.yaml:1: a: apiVersion: `purlin.dev/v2` is not supported (hint: write `apiVersion: purlin.dev/v1alpha1`)
              a.yaml:1: a: spec.type: the type is missing (hint: set it to a resource type, such as `terraform_data`)
            b t
              a.yaml:6: b: kind: unknown kind `Resouce` (hint: write `kind: Resource`)
            c t
              a.yaml:10: c: apiVersion: required field is missing (hint: write `apiVersion: purlin.dev/v1alpha1`)
        "#]],
    );
}

#[test]
fn other_kinds_are_ignored_with_a_warning_and_an_empty_source_is_incomplete() {
    check(
        &["apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"],
        expect![[r#"
            namespace default
            Warning: a.yaml:1: apps/v1 Deployment is ignored (hint: Purlin reads only its own kinds, ConfigMap, Secret and Namespace)
        "#]],
    );
}

#[test]
fn each_resource_has_its_file_and_a_source_without_resources_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(path("sub/below")).unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    for (name, resource) in [("a.yaml", "a"), ("sub/below/b.yaml", "b")] {
        let text = format!("{HEAD}metadata: {{name: {resource}}}\nspec: {{type: t}}\n");
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let paths = SourcePaths::new(&path("purlin.db"), &path("published"));
    let files = |loaded: &LoadedSource| {
        loaded
            .config
            .instances
            .values()
            .map(|instance| format!("{}: {:?}", instance.address, instance.source_file))
            .collect::<Vec<_>>()
    };
    let empty = |loaded: &LoadedSource| loaded.given.iter().map(|given| given.is_empty).collect::<Vec<_>>();
    let loaded = read(&[dir.path().to_owned(), path("sub"), path("empty")], &paths);
    assert_eq!(files(&loaded), [r#"a: Some("a.yaml")"#, r#"b: Some("sub/below/b.yaml")"#]);
    assert_eq!((empty(&loaded), loaded.config.incomplete.len()), (vec![false, false, true], 0));
    let again = read(&[path("sub/.."), path("empty")], &paths);
    assert_eq!((again.digest, files(&again)), (loaded.digest, files(&loaded)));
    let missing = read(&[path("missing.yaml"), path("empty")], &paths);
    assert_eq!((empty(&missing), missing.config.incomplete.len()), (vec![false, false], 1));
    assert!(missing.given[0].missing.is_some() && missing.given[1].missing.is_none());
}

#[test]
fn many_documents_are_read_in_parallel_with_their_lines() {
    let text: String = (0..2000)
        .map(|n| {
            let config = format!("{{a: \"${{n{}.id}}\", b: \"${{+}}\"}}", (n + 1) % 2000);
            format!("---\n{HEAD}metadata: {{name: n{n}}}\nspec:\n  type: t\n  config: {config}\n")
        })
        .collect();
    let loaded = read_strings(&[("a.yaml", &text)]);
    assert_eq!((loaded.config.instances.len(), loaded.config.incomplete.len()), (2000, 0));
    for instance in loaded.config.instances.values() {
        let n: usize = instance.address.name()[1..].parse().unwrap();
        let lines = (instance.source.as_ref().unwrap().line, instance.problems[0].source.as_ref().unwrap().line);
        assert_eq!(lines, (2 + n * 7, 7 + n * 7));
    }
}

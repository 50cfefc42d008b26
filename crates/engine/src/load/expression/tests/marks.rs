//! Marks follow the paths that an expression reads, through loops and indexes.

use proptest::prelude::*;

use super::*;

fn family() -> Objects {
    Objects(serde_json::json!({
        "db": [
            {"id": "a", "size": 1, "password": {"(sensitive)": "SECRET"}, "tags": {"team": "blue"}},
            {"id": "b", "size": 2, "password": null, "tags": {"team": "red", "later": "(unknown)"}},
        ],
        "by-key": {
            "x": {"id": "1", "password": {"(sensitive)": "SECRET"}, "address": "(unknown)"},
            "y": {"id": "2", "password": {"(sensitive)": "OTHER"}, "address": "(unknown)"},
        },
    }))
}

#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
fn check_family(texts: &[&str], expected: Expect) {
    let mut lines = String::new();
    for text in texts {
        let result = match parse(text).0.evaluate(&family()) {
            Ok(value) => show(&value),
            Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        };
        lines.push_str(&format!("{text}  =>  {result}\n"));
    }
    expected.assert_eq(&lines);
}

#[test]
fn an_attribute_that_is_not_sensitive_stays_so_in_a_family() {
    check_family(
        &[
            "${db.map(d, d.id)}",
            "${db[0].id}",
            "${db[0].id + '!'}",
            "${db.map(d, d.id).join(',')}",
            "${db.filter(d, d.size > 1).map(d, d.id)}",
            "${db.filter(d, d.size > 1)[0].id}",
            "${db.map(d, d.size > 1, d.tags.team)}",
            "${db.map(d, d)[1].id}",
            "${db.map(d, d.tags)[0].team}",
            "${db.exists(d, d.id == 'a')}",
            "${db.all(d, d.size > 0)}",
            "${db.exists_one(d, d.tags.team == 'red')}",
            "${db[db.size() - 1].id}",
            "${db.map(d, d.?id.orValue('none'))}",
            "${(db.exists(d, d.size > 5) ? db[0] : db[1]).id}",
            "${by_key.map(k, by_key[k].id)}",
            "${by_key.map(k, k)}",
            "${by_key.filter(k, by_key[k].id == '2')}",
            "${'x' in by_key}",
            "${db.map(d, db.filter(e, e.size > d.size).map(e, e.id))}",
        ],
        expect![[r#"
            ${db.map(d, d.id)}  =>  ["a", "b"]
            ${db[0].id}  =>  "a"
            ${db[0].id + '!'}  =>  "a!"
            ${db.map(d, d.id).join(',')}  =>  "a,b"
            ${db.filter(d, d.size > 1).map(d, d.id)}  =>  ["b"]
            ${db.filter(d, d.size > 1)[0].id}  =>  "b"
            ${db.map(d, d.size > 1, d.tags.team)}  =>  ["red"]
            ${db.map(d, d)[1].id}  =>  "b"
            ${db.map(d, d.tags)[0].team}  =>  "blue"
            ${db.exists(d, d.id == 'a')}  =>  true
            ${db.all(d, d.size > 0)}  =>  true
            ${db.exists_one(d, d.tags.team == 'red')}  =>  true
            ${db[db.size() - 1].id}  =>  "b"
            ${db.map(d, d.?id.orValue('none'))}  =>  ["a", "b"]
            ${(db.exists(d, d.size > 5) ? db[0] : db[1]).id}  =>  "b"
            ${by_key.map(k, by_key[k].id)}  =>  ["1", "2"]
            ${by_key.map(k, k)}  =>  ["x", "y"]
            ${by_key.filter(k, by_key[k].id == '2')}  =>  ["y"]
            ${'x' in by_key}  =>  true
            ${db.map(d, db.filter(e, e.size > d.size).map(e, e.id))}  =>  [["b"], []]
        "#]],
    );
}

#[test]
fn what_depends_on_a_secret_or_unknown_value_is_marked() {
    check_family(
        &[
            "${db.map(d, d.password)}",
            "${db.map(d, d)}",
            "${db}",
            "${db.filter(d, d.password == 'SECRET').map(d, d.id)}",
            "${db.exists(d, d.password == 'SECRET')}",
            "${db.map(d, d.password == null ? d.id : 'x')}",
            "${size(db.filter(d, d.password != null))}",
            "${db[db[0].password == 'SECRET' ? 0 : 1].id}",
            "${db.map(d, has(d.password))}",
            "${size(db.filter(d, has(d.tags.later)))}",
            "${db[1] in db}",
            "${db.map(d, string(d.tags))}",
            "${db[1].tags.map(k, db[1].tags[k])}",
            "${by_key.map(k, by_key[k].address)}",
            "${by_key.map(k, by_key[k])}",
            "${(by_key.x.password == 'SECRET' ? db : db).map(d, d.id)}",
        ],
        expect![[r#"
            ${db.map(d, d.password)}  =>  (sensitive ["SECRET", null])
            ${db.map(d, d)}  =>  (sensitive (unknown))
            ${db}  =>  [{id: "a", password: (sensitive "SECRET"), size: 1, tags: {team: "blue"}}, {id: "b", password: null, size: 2, tags: {later: (unknown), team: "red"}}]
            ${db.filter(d, d.password == 'SECRET').map(d, d.id)}  =>  (sensitive ["a"])
            ${db.exists(d, d.password == 'SECRET')}  =>  (sensitive true)
            ${db.map(d, d.password == null ? d.id : 'x')}  =>  (sensitive ["x", "b"])
            ${size(db.filter(d, d.password != null))}  =>  (sensitive 1)
            ${db[db[0].password == 'SECRET' ? 0 : 1].id}  =>  (sensitive "a")
            ${db.map(d, has(d.password))}  =>  (sensitive [true, true])
            ${size(db.filter(d, has(d.tags.later)))}  =>  (unknown)
            ${db[1] in db}  =>  (sensitive (unknown))
            ${db.map(d, string(d.tags))}  =>  (unknown)
            ${db[1].tags.map(k, db[1].tags[k])}  =>  (unknown)
            ${by_key.map(k, by_key[k].address)}  =>  (unknown)
            ${by_key.map(k, by_key[k])}  =>  (sensitive (unknown))
            ${(by_key.x.password == 'SECRET' ? db : db).map(d, d.id)}  =>  (sensitive ["a", "b"])
        "#]],
    );
}

/// An expression over the objects of [`world`], with these variables for items.
fn expression(depth: u32) -> BoxedStrategy<String> {
    let path = prop_oneof![
        Just("db"),
        Just("by_key"),
        Just("one"),
        Just("x"),
        Just("y"),
        Just("x.secret"),
        Just("x.open"),
        Just("y.open"),
        Just("x.deep"),
        Just("x.deep.secret"),
        Just("db[0].open"),
        Just("db[1].secret"),
        Just("by_key.a.open"),
        Just("one.secret"),
        Just("one.list"),
        Just("one.number"),
        Just("by_key[x].open"),
        Just("has(x.secret)"),
        Just("x.?secret.orValue('none')"),
        Just("'s1'"),
        Just("0"),
        Just("true"),
    ];
    let leaf = path.prop_map(str::to_owned).boxed();
    leaf.prop_recursive(depth, 40, 3, |inner| {
        let list = prop_oneof![3 => Just("db".to_owned()), 1 => Just("by_key".to_owned()), 2 => inner.clone()];
        let variable = prop_oneof![Just("x"), Just("y")];
        let macro_name = prop_oneof![Just("map"), Just("filter"), Just("exists"), Just("all"), Just("exists_one")];
        prop_oneof![
            4 => (list.clone(), macro_name, variable.clone(), inner.clone())
                .prop_map(|(list, name, variable, body)| format!("{list}.{name}({variable}, {body})")),
            2 => (list.clone(), variable, inner.clone(), inner.clone())
                .prop_map(|(list, variable, filter, body)| format!("{list}.map({variable}, {filter} == true, {body})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} == {other})")),
            2 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(condition, one, other)| format!("({condition} == 's1' ? {one} : {other})")),
            2 => (list.clone(), inner.clone()).prop_map(|(list, key)| format!("{list}[{key}]")),
            1 => (inner.clone(), Just(".open")).prop_map(|(operand, name)| format!("{operand}{name}")),
            1 => (inner.clone(), Just(".deep.open")).prop_map(|(operand, name)| format!("{operand}{name}")),
            1 => list.clone().prop_map(|list| format!("{list}[0].open")),
            1 => list.clone().prop_map(|list| format!("size({list})")),
            1 => (inner.clone(), list).prop_map(|(searched, list)| format!("({searched} in {list})")),
            1 => inner.clone().prop_map(|item| format!("[{item}]")),
            1 => inner.prop_map(|item| format!("{{'k': {item}}}")),
        ]
    })
    .boxed()
}

/// Each secret is `secret`. `x` and `y` exist only in loops.
fn world(secret: &serde_json::Value) -> Objects {
    let item =
        |open: &str| serde_json::json!({"open": open, "secret": secret, "deep": {"open": open, "secret": secret}});
    Objects(serde_json::json!({
        "db": [item("s1"), item("two"), {"open": "s1", "secret": null, "deep": {"open": 1, "secret": 2}}],
        "by-key": {"a": item("a"), "b": item("b")},
        "one": {"secret": secret, "list": [secret, "s1"], "number": 1},
    }))
}

/// The result without what is hidden.
fn visible(value: &Value) -> Value {
    match value {
        Value::Sensitive(_) => Value::from("hidden"),
        Value::List(items) => Value::list(items.iter().map(visible)),
        Value::Map(map) => Value::map(map.iter().map(|(key, item)| (key.clone(), visible(item)))),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A result without marks says nothing about the secrets: it is the same for all of them.
    #[test]
    fn a_result_that_differs_with_a_secret_is_marked(text in expression(4)) {
        let template = parse(&format!("${{{text}}}")).0;
        let evaluate = |secret: serde_json::Value| template.evaluate(&world(&serde_json::json!({"(sensitive)": secret})));
        let texts = ["s1", "s2", "two"].map(|text| evaluate(text.into()));
        // Errors show types.
        let others = [serde_json::json!(["s1"]), serde_json::json!(1)].map(evaluate);
        let results: Vec<_> = texts.into_iter().chain(others.into_iter().flatten().map(Ok)).collect();
        let is_marked = results.iter().any(|result| match result {
            Ok(value) => value.has_sensitive(),
            Err(problems) => problems[0].message().contains("reads a sensitive value"),
        });
        let shown = results.iter().map(|result| match result {
            Ok(value) => show(&visible(value)),
            // Whether the evaluation of sensitive values failed is known.
            Err(_) if is_marked => show(&Value::from("hidden")),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        });
        let shown: Vec<String> = shown.collect();
        prop_assert!(shown.iter().all(|other| *other == shown[0]), "{text}: {shown:?}");
    }

    /// A result that is known although it reads unknown values stays the same when they are known.
    #[test]
    fn a_known_result_does_not_depend_on_unknown_values(text in expression(4)) {
        let template = parse(&format!("${{{text}}}")).0;
        let Ok(early) = template.evaluate(&world(&serde_json::json!("(unknown)"))) else { return Ok(()) };
        if !early.has_unknown() {
            for later in [serde_json::json!("s1"), serde_json::json!("s2"), serde_json::json!({"open": "s1"})] {
                prop_assert_eq!(template.evaluate(&world(&later)), Ok(early.clone()), "{}", text);
            }
        }
    }
}

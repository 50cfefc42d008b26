mod terraform;

mod limits;
mod marks;

use expect_test::{Expect, expect};

use super::*;
use crate::load::Reference;
use model::{InstanceKey, Number};

/// Objects and a namespace, as JSON with marks: `"(unknown)"` and `{"(sensitive)": …}`.
struct Objects(serde_json::Value);

fn marked(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::String(text) if text == "(unknown)" => Value::Unknown,
        Json::Array(items) => Value::list(items.iter().map(marked)),
        Json::Object(map) => match map.get("(sensitive)") {
            Some(inner) => marked(inner).into_sensitive(),
            None => Value::map(map.iter().map(|(key, item)| (key.as_str(), marked(item)))),
        },
        other => Value::from_json(other.clone()),
    }
}

impl Scope for Objects {
    fn object(&self, address: &Address) -> Option<Value> {
        let single = address.key == InstanceKey::None;
        self.0.get(&**address.name()).filter(|_| single).map(marked)
    }

    fn namespace(&self) -> Value {
        marked(
            &serde_json::json!({"name": "shop", "labels": {"team": "blue", "app.kubernetes.io/name": "x"}, "annotations": {}}),
        )
    }
}

fn objects() -> Objects {
    Objects(serde_json::json!({
        "app-key": {"id": "k1", "bits": 2048, "pem": {"(sensitive)": "SECRET"}, "tags": {"Owner": "ann", "a b": "c"},
            "list": [{"x": "one"}, {"x": "two"}], "absent": null, "ratio": 1.5, "empty": []},
        "new": {"id": "(unknown)", "name": "n", "items": ["a", "(unknown)"]},
        "later": "(unknown)",
        "secret": {"(sensitive)": {"password": "hunter2", "items": ["p"]}},
        "import": {"id": "reserved"},
        "zones": {"names": ["b", "a", "c"], "map": {"z": 1, "a": 2, "m": 3}},
    }))
}

fn show(value: &Value) -> String {
    match value {
        Value::Unknown => "(unknown)".to_owned(),
        Value::Sensitive(inner) => format!("(sensitive {})", show(inner)),
        Value::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            format!("{{{}}}", map.iter().map(|(k, v)| format!("{k}: {}", show(v))).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::Null => "null".to_owned(),
    }
}

fn parse(text: &str) -> (Template, Vec<Reference>, Diagnostics) {
    Template::parse_json(&serde_json::json!(text), &Path::default().name("spec").name("config").name("a"), &[])
}

fn evaluate(text: &str) -> String {
    let (template, _, problems) = parse(text);
    if let Some(problem) = problems.first() {
        return format!("{problem}");
    }
    match template.evaluate(&objects()) {
        Ok(value) => show(&value),
        Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

/// One line for each expression with its result.
#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values")]
fn check(texts: &[&str], expected: Expect) {
    let lines: Vec<String> = texts.iter().map(|text| format!("{text}  =>  {}\n", evaluate(text))).collect();
    expected.assert_eq(&lines.concat());
}

/// One object whose attribute is a number.
struct Big(Number);
impl Scope for Big {
    fn object(&self, address: &Address) -> Option<Value> {
        let single = address.key == InstanceKey::None;
        single.then(|| Value::map([("n", Value::Number(self.0.clone()))]))
    }
    fn namespace(&self) -> Value {
        Value::Null
    }
}

#[test]
fn a_plain_path_returns_its_value_unchanged() {
    check(
        &[
            "${app_key.id}",
            "${ app_key.bits }",
            "${app_key.list[1].x}",
            "${app_key.tags[\"a b\"]}",
            "${app_key.tags['Owner']}",
            "${resources[\"app-key\"].id}",
            "${resources['import'].id}",
            "${ns.name}",
            "${ns.labels[\"app.kubernetes.io/name\"]}",
            "${app_key.pem}",
            "${new}",
            "${new.items}",
            "${new.items[1]}",
            "${later.any.thing}",
            "${secret.password}",
            "${app_key.absent}",
        ],
        expect![[r#"
            ${app_key.id}  =>  "k1"
            ${ app_key.bits }  =>  2048
            ${app_key.list[1].x}  =>  "two"
            ${app_key.tags["a b"]}  =>  "c"
            ${app_key.tags['Owner']}  =>  "ann"
            ${resources["app-key"].id}  =>  "k1"
            ${resources['import'].id}  =>  "reserved"
            ${ns.name}  =>  "shop"
            ${ns.labels["app.kubernetes.io/name"]}  =>  "x"
            ${app_key.pem}  =>  (sensitive "SECRET")
            ${new}  =>  {id: (unknown), items: ["a", (unknown)], name: "n"}
            ${new.items}  =>  ["a", (unknown)]
            ${new.items[1]}  =>  (unknown)
            ${later.any.thing}  =>  (unknown)
            ${secret.password}  =>  (sensitive "hunter2")
            ${app_key.absent}  =>  null
        "#]],
    );
    let big = Number::parse("123456789012345678901234567890").unwrap();
    assert_eq!(parse("${a.n}").0.evaluate(&Big(big.clone())), Ok(Value::Number(big.clone())));
    assert_eq!(parse("n=${a.n}").0.evaluate(&Big(big)), Ok("n=123456789012345678901234567890".into()));
}

#[test]
fn strings_and_other_expressions() {
    check(
        &[
            "plain",
            "$${app_key.id}",
            "a $${b} ${app_key.id}!",
            "${app_key.bits}-${app_key.ratio}-${true}",
            "${app_key.bits + 1}",
            "${app_key.bits / 1000.0}",
            "${{'a': app_key.id, 'b': [1, 2.0, null]}}",
            "${app_key.list.map(i, i.x)}",
            "${app_key.list.filter(i, i.x == 'two')[0].x}",
            "${has(app_key.tags.Owner)} ${has(app_key.nothing)}",
            "${app_key.?nothing.orValue('x')}",
            "${app_key.?tags.?Owner.orValue('x')}",
            "${app_key.?nothing}",
            "${resources['app-key'].?nothing.orValue(1)}",
            "${app_key.tags[?'Owner'].hasValue()}",
            "${has(app_key.nothing) ? app_key.nothing : 'none'}",
            "${app_key.absent == null}",
            "${zones.map.map(k, k)}",
            "${zones.map}",
            "${[1, 2, 3].exists(app_key, app_key == 2)}",
            "${ns.name + '/' + app_key.id}",
            "${type(app_key.id) == string}",
            "${b'abc'}",
        ],
        expect![[r#"
            plain  =>  "plain"
            $${app_key.id}  =>  "${app_key.id}"
            a $${b} ${app_key.id}!  =>  "a ${b} k1!"
            ${app_key.bits}-${app_key.ratio}-${true}  =>  "2048-1.5-true"
            ${app_key.bits + 1}  =>  2049
            ${app_key.bits / 1000.0}  =>  `${app_key.bits / 1000.0}` at column 1: `/` cannot be applied to (int, double) (hint: convert both to the same type: `double(x)`)
            ${{'a': app_key.id, 'b': [1, 2.0, null]}}  =>  {a: "k1", b: [1, 2, null]}
            ${app_key.list.map(i, i.x)}  =>  ["one", "two"]
            ${app_key.list.filter(i, i.x == 'two')[0].x}  =>  "two"
            ${has(app_key.tags.Owner)} ${has(app_key.nothing)}  =>  "true false"
            ${app_key.?nothing.orValue('x')}  =>  "x"
            ${app_key.?tags.?Owner.orValue('x')}  =>  "ann"
            ${app_key.?nothing}  =>  null
            ${resources['app-key'].?nothing.orValue(1)}  =>  1
            ${app_key.tags[?'Owner'].hasValue()}  =>  true
            ${has(app_key.nothing) ? app_key.nothing : 'none'}  =>  "none"
            ${app_key.absent == null}  =>  true
            ${zones.map.map(k, k)}  =>  ["a", "m", "z"]
            ${zones.map}  =>  {a: 2, m: 3, z: 1}
            ${[1, 2, 3].exists(app_key, app_key == 2)}  =>  true
            ${ns.name + '/' + app_key.id}  =>  "shop/k1"
            ${type(app_key.id) == string}  =>  true
            ${b'abc'}  =>  "abc"
        "#]],
    );
}

#[test]
fn marks_are_checked_before_the_evaluation() {
    check(
        &[
            "${new.id + 'x'}",
            "id ${new.id}",
            "${new.name + 'x'}",
            "${true ? 'a' : new.id}",
            "${size(new.items)}",
            "${new.items.size()}",
            "${size(new.id)}",
            "${new.map(k, k)}",
            "${'id' in new}",
            "${new.items.map(i, 1)}",
            "${new.all(k, new[k] != 1)}",
            "${new.items}${size(new.items)}",
            "${[1].map(i, new)}",
            "${app_key.pem + 'x'}",
            "x ${app_key.pem}",
            "${false ? app_key.pem : 'open'}",
            "${secret.items[0] + new.id}",
            "${size(secret.items)}",
            "${secret.items.map(i, i + '!')}",
            "${has(new.id)}",
            "${later.?x.orValue(1)}",
            "${{'a': new.name}}",
            "${has(secret.no)}",
            "${secret.?no.orValue(1)}",
        ],
        expect![[r#"
            ${new.id + 'x'}  =>  (unknown)
            id ${new.id}  =>  (unknown)
            ${new.name + 'x'}  =>  "nx"
            ${true ? 'a' : new.id}  =>  (unknown)
            ${size(new.items)}  =>  2
            ${new.items.size()}  =>  2
            ${size(new.id)}  =>  (unknown)
            ${new.map(k, k)}  =>  ["id", "items", "name"]
            ${'id' in new}  =>  true
            ${new.items.map(i, 1)}  =>  [1, 1]
            ${new.all(k, new[k] != 1)}  =>  (unknown)
            ${new.items}${size(new.items)}  =>  `${new.items}` at column 1: the value is a list, which cannot be part of a string (hint: use `json.marshal` to convert it to a string)
            ${[1].map(i, new)}  =>  (unknown)
            ${app_key.pem + 'x'}  =>  (sensitive "SECRETx")
            x ${app_key.pem}  =>  (sensitive "x SECRET")
            ${false ? app_key.pem : 'open'}  =>  (sensitive "open")
            ${secret.items[0] + new.id}  =>  (sensitive (unknown))
            ${size(secret.items)}  =>  (sensitive 1)
            ${secret.items.map(i, i + '!')}  =>  (sensitive ["p!"])
            ${has(new.id)}  =>  (unknown)
            ${later.?x.orValue(1)}  =>  (unknown)
            ${{'a': new.name}}  =>  {a: "n"}
            ${has(secret.no)}  =>  (sensitive false)
            ${secret.?no.orValue(1)}  =>  (sensitive 1)
        "#]],
    );
}

#[test]
fn errors_are_one_line_and_show_no_sensitive_value() {
    check(
        &[
            "${app_key.idd}",
            "${app_key.id.x}",
            "${app_key.absent.x}",
            "${app_key.list[7]}",
            "${app_key.tags[0]}",
            "${absent.id}",
            "${absent.id + 'x'}",
            "${app_key.idd + 'x'}",
            "${app_key.bits + app_key.id}",
            "${app_key.list[0].y}",
            "${1 / 0}",
            "${[1][5]}",
            "a ${app_key.list}",
            "a ${app_key.absent}",
            "${secret.password + 1}",
            "${int(secret.password)}",
            "${secret.nothing}",
            "${secret.nothing + 'x'}",
            "${{secret.password: 1}[secret.items[0]]}",
            "${string}",
            "${lists.range(5000000)}",
            "${'%.999999999f'.format([1.0])}",
            "${int('x')}",
            "${9223372036854775807 + 1}",
            "${[1, 'a'].join()}",
            "${10.0 / 3}",
            "${app_key.bits * app_key.ratio}",
            "${1u + 1}",
            "${1.5 < app_key.tags}",
            "${app_key.tags + {'b': 1}}",
            "${[1] + 2}",
            "${true + 'x'}",
        ],
        expect![[r#"
            ${app_key.idd}  =>  `${app_key.idd}` at column 1: `app_key` has no attribute `idd` (hint: available attributes are absent, bits, empty, id, list, pem, ratio, tags)
            ${app_key.id.x}  =>  `${app_key.id.x}` at column 1: `app_key.id` is a string, which has no attribute `x`
            ${app_key.absent.x}  =>  `${app_key.absent.x}` at column 1: `app_key.absent` is null, so `app_key.absent.x` does not exist
            ${app_key.list[7]}  =>  `${app_key.list[7]}` at column 1: `app_key.list` has 2 items, so index 7 is out of range
            ${app_key.tags[0]}  =>  `${app_key.tags[0]}` at column 1: `app_key.tags` is a map, which has no item 0
            ${absent.id}  =>  `${absent.id}` at column 1: there is no Resource `absent`
            ${absent.id + 'x'}  =>  `${absent.id + 'x'}` at column 1: there is no Resource `absent`
            ${app_key.idd + 'x'}  =>  `${app_key.idd + 'x'}` at column 1: `app_key` has no attribute `idd` (hint: available attributes are absent, bits, empty, id, list, pem, ratio, tags)
            ${app_key.bits + app_key.id}  =>  `${app_key.bits + app_key.id}` at column 1: `+` cannot be applied to (int, string) (hint: convert both to strings with `string(x)`, or to numbers with `int(x)`)
            ${app_key.list[0].y}  =>  `${app_key.list[0].y}` at column 1: `app_key.list[0]` has no attribute `y` (hint: available attributes are x)
            ${1 / 0}  =>  `${1 / 0}` at column 1: division by zero
            ${[1][5]}  =>  `${[1][5]}` at column 1: the list index is out of range
            a ${app_key.list}  =>  `${app_key.list}` at column 3: the value is a list, which cannot be part of a string (hint: use `json.marshal` to convert it to a string)
            a ${app_key.absent}  =>  `${app_key.absent}` at column 3: the value is null, which cannot be part of a string (hint: use `orValue` or `? :` to replace null)
            ${secret.password + 1}  =>  `${secret.password + 1}` at column 1: the evaluation failed: the cause is hidden because the expression reads a sensitive value
            ${int(secret.password)}  =>  `${int(secret.password)}` at column 1: the evaluation failed: the cause is hidden because the expression reads a sensitive value
            ${secret.nothing}  =>  `${secret.nothing}` at column 1: `secret` has no attribute `nothing`
            ${secret.nothing + 'x'}  =>  `${secret.nothing + 'x'}` at column 1: `secret` has no attribute `nothing`
            ${{secret.password: 1}[secret.items[0]]}  =>  `${{secret.password: 1}[secret.items[0]]}` at column 1: the evaluation failed: the cause is hidden because the expression reads a sensitive value
            ${string}  =>  "string"
            ${lists.range(5000000)}  =>  `${lists.range(5000000)}` at column 1: `lists.range`: size 5000000 exceeds maximum allowed (1000000)
            ${'%.999999999f'.format([1.0])}  =>  `${'%.999999999f'.format([1.0])}` at column 1: `format`: the precision can have at most two digits
            ${int('x')}  =>  `${int('x')}` at column 1: `int`: string parse error: invalid digit found in string
            ${9223372036854775807 + 1}  =>  `${9223372036854775807 + 1}` at column 1: the result does not fit in 64 bits
            ${[1, 'a'].join()}  =>  `${[1, 'a'].join()}` at column 1: `join`: every list item must be a string
            ${10.0 / 3}  =>  `${10.0 / 3}` at column 1: `/` cannot be applied to (double, int) (hint: convert both to the same type: `double(x)`)
            ${app_key.bits * app_key.ratio}  =>  `${app_key.bits * app_key.ratio}` at column 1: `*` cannot be applied to (int, double) (hint: convert both to the same type: `double(x)`)
            ${1u + 1}  =>  `${1u + 1}` at column 1: `+` cannot be applied to (uint, int) (hint: convert both to the same type: `int(x)`)
            ${1.5 < app_key.tags}  =>  `${1.5 < app_key.tags}` at column 1: `<` cannot be applied to (double, map)
            ${app_key.tags + {'b': 1}}  =>  `${app_key.tags + {'b': 1}}` at column 1: `+` cannot be applied to (map, map) (hint: write one map with the keys of both: `{"a": object.a, "b": other.b}`)
            ${[1] + 2}  =>  `${[1] + 2}` at column 1: `+` cannot be applied to (list, int) (hint: write a list with one item as `[x]`)
            ${true + 'x'}  =>  `${true + 'x'}` at column 1: `+` cannot be applied to (bool, string) (hint: convert both to strings with `string(x)`)
        "#]],
    );
}

#[test]
fn errors_are_found_before_the_evaluation() {
    check(
        &[
            "${",
            "a ${b",
            "${}",
            "${ }",
            "${a +}",
            "x ${a b}",
            "${a..b}",
            "${self.id}",
            "${count.index + 1}",
            "${data.ami.id}",
            "${inputs.domain}",
            "${each.key}",
            "${import.id}",
            "${namespace.name}",
            "${x + import.id}",
            "${string.id}",
            "${math}",
            "${resources}",
            "${resources[0]}",
            "${resources[a.b].id}",
            "${resources['A_b'].id}",
            "${Foo.id}",
            "${_x.id}",
            "${lowerascii('A')}",
            "${'A'.lowerascii()}",
            "${now()}",
            "${math.random()}",
            "${Foo{a: 1}}",
            "${'a'.b(c}",
        ],
        expect![[r#"
            ${  =>  spec.config.a: the expression at column 1 has no closing `}` (hint: write `$${` for a literal `${`)
            a ${b  =>  spec.config.a: the expression at column 3 has no closing `}` (hint: write `$${` for a literal `${`)
            ${}  =>  spec.config.a: `${}` at column 1: the expression is empty (hint: write `$${` for a literal `${`)
            ${ }  =>  spec.config.a: `${}` at column 1: the expression is empty (hint: write `$${` for a literal `${`)
            ${a +}  =>  spec.config.a: `${a +}` at column 6: mismatched input '<EOF>' expecting expression
            x ${a b}  =>  spec.config.a: `${a b}` at column 7: mismatched input 'b' expecting <EOF>
            ${a..b}  =>  spec.config.a: `${a..b}` at column 5: expected identifier after '.'
            ${self.id}  =>  spec.config.a: `${self.id}` at column 1: `self` is not available here: it is the object after a change, which is not known here (hint: use it in postconditions, hooks and `publish`)
            ${count.index + 1}  =>  spec.config.a: `${count.index + 1}` at column 1: `count` is not available here: it exists only in a Resource with `count` (hint: set `count` on the Resource)
            ${data.ami.id}  =>  `${data.ami.id}` at column 1: there is no DataSource `ami`
            ${inputs.domain}  =>  spec.config.a: `${inputs.domain}` at column 1: `inputs` is reserved: it is not available here; expressions can reference Resources by name, `data`, `modules`, `ns` and `resources` (hint: to reference a Resource with this name, write `resources["inputs"]`)
            ${each.key}  =>  spec.config.a: `${each.key}` at column 1: `each` is not available here: it exists only in a Resource with `forEach` (hint: set `forEach` on the Resource)
            ${import.id}  =>  spec.config.a: `${import.id}` at column 1: `import` is reserved: it has a special meaning in expressions (hint: to reference a Resource with this name, write `resources["import"]`)
            ${namespace.name}  =>  spec.config.a: `${namespace.name}` at column 1: `namespace` is reserved: it has a special meaning in expressions (hint: to reference a Resource with this name, write `resources["namespace"]`)
            ${x + import.id}  =>  spec.config.a: `${x + import.id}` at column 1: `import` is reserved: it has a special meaning in expressions (hint: to reference a Resource with this name, write `resources["import"]`)
            ${string.id}  =>  spec.config.a: `${string.id}` at column 1: `string` is reserved: it has a special meaning in expressions (hint: to reference a Resource with this name, write `resources["string"]`)
            ${math}  =>  spec.config.a: `${math}` at column 1: `math` is reserved: it has a special meaning in expressions (hint: to reference a Resource with this name, write `resources["math"]`)
            ${resources}  =>  spec.config.a: `${resources}` at column 1: `resources` requires the name of a Resource, such as `resources["app-key"]`: dependencies must be known before evaluation
            ${resources[0]}  =>  spec.config.a: `${resources[0]}` at column 1: `resources` requires the name of a Resource, such as `resources["app-key"]`: dependencies must be known before evaluation
            ${resources[a.b].id}  =>  spec.config.a: `${resources[a.b].id}` at column 1: `resources` requires the name of a Resource, such as `resources["app-key"]`: dependencies must be known before evaluation
            ${resources['A_b'].id}  =>  spec.config.a: `${resources['A_b'].id}` at column 1: `A_b` is not a valid Resource name (hint: names consist of lowercase letters, digits and `-`; expressions write `-` as `_`)
            ${Foo.id}  =>  spec.config.a: `${Foo.id}` at column 1: `Foo` is not a valid object name (hint: names consist of lowercase letters, digits and `-`; expressions write `-` as `_`)
            ${_x.id}  =>  spec.config.a: `${_x.id}` at column 1: `_x` is not a valid object name (hint: names consist of lowercase letters, digits and `-`; expressions write `-` as `_`)
            ${lowerascii('A')}  =>  spec.config.a: `${lowerascii('A')}` at column 1: there is no function `lowerascii` (hint: did you mean `lowerAscii`?)
            ${'A'.lowerascii()}  =>  spec.config.a: `${'A'.lowerascii()}` at column 1: there is no function `lowerascii` (hint: did you mean `lowerAscii`?)
            ${now()}  =>  spec.config.a: `${now()}` at column 1: there is no function `now` (hint: expressions are CEL: they have operators, macros such as `map`, and functions such as `size` and `string`)
            ${math.random()}  =>  spec.config.a: `${math.random()}` at column 1: there is no function `math.random` (hint: did you mean `math.round`?)
            ${Foo{a: 1}}  =>  spec.config.a: `${Foo{a: 1}}` at column 1: there is no type `Foo` (hint: write the keys of a map in quotes: `{"key": value}`)
            ${'a'.b(c}  =>  spec.config.a: `${'a'.b(c}` at column 10: mismatched input <EOF> expecting ')'
        "#]],
    );
}

#[test]
fn references_are_the_free_paths_of_the_tree() {
    let references = |text: &str| {
        let (_, references, problems) = parse(text);
        assert_eq!(problems, []);
        // Each instance has a separate reference if the object is a family.
        let mut lines: Vec<String> = references.into_iter().map(|r| format!("{}@{}", r.target, r.at)).collect();
        lines.dedup();
        lines.join(" ")
    };
    for (text, expected) in [
        ("${a.id}", "a@spec.config.a"),
        ("${a.id}${a.name}${b_c}", "a@spec.config.a b-c@spec.config.a"),
        ("${[1].map(a, a + b.x)}", "b@spec.config.a"),
        ("${a.list.filter(x, x in b.list).map(y, y + c.d)}", "a@spec.config.a b@spec.config.a c@spec.config.a"),
        ("${has(a.b) && a.?c.orValue(d.e)}", "a@spec.config.a d@spec.config.a"),
        ("${ns.name} ${resources['x-y'].id}", "x-y@spec.config.a"),
        ("${math.greatest(a.n, 1, b.n)}", "a@spec.config.a b@spec.config.a"),
        ("${{a.k: b.v}}", "a@spec.config.a b@spec.config.a"),
        ("$${a.id}", ""),
    ] {
        assert_eq!(references(text), expected, "{text}");
    }
}

#[test]
fn functions_behave_as_in_cel() {
    check(
        &[
            "${'a,b'.split(',')}",
            "${['a','b'].join('-')}",
            "${['a','b'].join()}",
            "${'a-b-c'.replace('-', '_')}",
            "${'a-b-c'.replace('-', '_', 1)}",
            "${'AbC'.lowerAscii()} ${'AbC'.upperAscii()} [${'  a '.trim()}]",
            "${'hello'.substring(1, 3)}",
            "${'hello'.indexOf('l')} ${'hello'.lastIndexOf('l')}",
            "${'%s-%d-%.2f'.format(['a', 7, 1.5])}",
            "${base64.encode('hi')}",
            "${base64.encode(b'hi')}",
            "${base64.decode('aGk=')}",
            "${string(base64.decode('aGk='))}",
            "${json.marshal({'b': [1, true], 'a': null})}",
            "${json.unmarshal('{\"a\": [1, 2.5]}').a[1]}",
            "${math.greatest(1, 3, 2)} ${math.least([4, 2])} ${math.greatest(1, 2)}",
            "${math.abs(-2)} ${math.ceil(1.2)} ${math.floor(1.8)}",
            "${lists.range(3)}",
            "${[3, 1, 3].distinct().sort()}",
            "${[[1], [2, [3]]].flatten()}",
            "${[1, 2].reverse()}",
            "${[1, 2].first().orValue(0)} ${[1, 2].last()} ${[].first().orValue(9)}",
            "${'abc'.matches('^a.c$')}",
            "${size('abc')}",
            "${'abc'.charAt(1)}",
            "${[1,2,3].slice(0, 2)}",
            "${'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')}",
            "${int('7') + int(1.9)} ${double('1.5')} ${string(1.0)} ${string(2)}",
            "${'abc'.reverse()}",
            "${optional.of(1).value()}",
            "${strings.quote('a\"b')}",
        ],
        expect![[r#"
            ${'a,b'.split(',')}  =>  ["a", "b"]
            ${['a','b'].join('-')}  =>  "a-b"
            ${['a','b'].join()}  =>  "ab"
            ${'a-b-c'.replace('-', '_')}  =>  "a_b_c"
            ${'a-b-c'.replace('-', '_', 1)}  =>  "a_b-c"
            ${'AbC'.lowerAscii()} ${'AbC'.upperAscii()} [${'  a '.trim()}]  =>  "abc ABC [a]"
            ${'hello'.substring(1, 3)}  =>  "el"
            ${'hello'.indexOf('l')} ${'hello'.lastIndexOf('l')}  =>  "2 3"
            ${'%s-%d-%.2f'.format(['a', 7, 1.5])}  =>  "a-7-1.50"
            ${base64.encode('hi')}  =>  "aGk="
            ${base64.encode(b'hi')}  =>  "aGk="
            ${base64.decode('aGk=')}  =>  "hi"
            ${string(base64.decode('aGk='))}  =>  "hi"
            ${json.marshal({'b': [1, true], 'a': null})}  =>  "{\"a\":null,\"b\":[1,true]}"
            ${json.unmarshal('{"a": [1, 2.5]}').a[1]}  =>  2.5
            ${math.greatest(1, 3, 2)} ${math.least([4, 2])} ${math.greatest(1, 2)}  =>  "3 2 2"
            ${math.abs(-2)} ${math.ceil(1.2)} ${math.floor(1.8)}  =>  "2 2 1"
            ${lists.range(3)}  =>  [0, 1, 2]
            ${[3, 1, 3].distinct().sort()}  =>  [1, 3]
            ${[[1], [2, [3]]].flatten()}  =>  [1, 2, [3]]
            ${[1, 2].reverse()}  =>  [2, 1]
            ${[1, 2].first().orValue(0)} ${[1, 2].last()} ${[].first().orValue(9)}  =>  "1 2 9"
            ${'abc'.matches('^a.c$')}  =>  true
            ${size('abc')}  =>  3
            ${'abc'.charAt(1)}  =>  "b"
            ${[1,2,3].slice(0, 2)}  =>  [1, 2]
            ${'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')}  =>  true
            ${int('7') + int(1.9)} ${double('1.5')} ${string(1.0)} ${string(2)}  =>  "8 1.5 1 2"
            ${'abc'.reverse()}  =>  "cba"
            ${optional.of(1).value()}  =>  1
            ${strings.quote('a"b')}  =>  "\"a\\\"b\""
        "#]],
    );
}

#[test]
fn a_failed_expression_reports_its_path() {
    let json = serde_json::json!({"a": ["${app_key.id}", {"b c": "${app_key.no}"}], "d": "${absent.x}"});
    let (template, _, problems) = Template::parse_json(&json, &Path::default(), &[]);
    assert_eq!(problems, []);
    let problems = template.evaluate(&objects()).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| problem.path.as_ref().unwrap().to_string()).collect();
    assert_eq!(places, [r#"a[1]["b c"]"#, "d"]);
}

/// Every `expression` → `result` line of the user documentation.
#[test]
fn the_examples_of_the_documentation_are_correct() {
    let text =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/expressions.md"))
            .unwrap();
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with("| `") && line.contains('$')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let expression = cells[0].replace("\\|", "|");
        assert_eq!(evaluate(&expression), cells[1], "{expression}");
        checked += 1;
    }
    assert!(checked > 30, "only {checked} examples found");
}

#[test]
fn a_variable_is_available_only_in_its_place() {
    struct Instance;
    impl Scope for Instance {
        fn object(&self, _: &Address) -> Option<Value> {
            None
        }

        fn namespace(&self) -> Value {
            Value::Null
        }

        fn variable(&self, variable: Variable) -> Option<Value> {
            (variable == Variable::Each).then(|| Value::map([("key", Value::from("blue"))]))
        }
    }
    let evaluate = |text: &str| {
        let variables = &[Variable::Each, Variable::Count];
        let (template, references, problems) =
            Template::parse_json(&serde_json::json!(text), &Path::default().name("command"), variables);
        assert_eq!(references, []);
        match problems.first() {
            Some(problem) => problem.to_string(),
            None => template.evaluate(&Instance).map_or_else(|problems| problems[0].to_string(), |value| show(&value)),
        }
    };
    assert_eq!(evaluate("${each.key}"), r#""blue""#);
    assert_eq!(evaluate("${each.key + '!'} it is"), r#""blue! it is""#);
    assert_eq!(evaluate("${count.index}"), "`${count.index}` at column 1: `count` is not available here");
    assert_eq!(
        evaluate("a ${self.id}"),
        "command: `${self.id}` at column 3: `self` is not available here: it is the object after a change, which is not known here (hint: use it in postconditions, hooks and `publish`)"
    );
}

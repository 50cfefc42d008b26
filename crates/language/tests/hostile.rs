//! What no configuration has in earnest: it ends in an error, without a panic, much time or much memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Mark, Number, Type, Value};
use hcl::{FileId, Source};
use language::{Budget, NoFiles, Scope, evaluate, functions};

/// The summary of the first problem of an expression.
fn problem(source: &str) -> Option<String> {
    let budget = Budget::new(1_000_000, 64 << 20);
    let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
    let parsed = hcl::parse_expression(Source::new(FileId(0), "", source));
    assert!(parsed.diagnostics.is_empty(), "{source}: {:?}", parsed.diagnostics);
    let evaluated = evaluate(&parsed.value, &BTreeMap::<Arc<str>, Value>::new(), &scope);
    evaluated.diagnostics.first().map(|diagnostic| format!("{}: {}", diagnostic.summary, diagnostic.detail))
}

/// `start`, doubled by `double` again and again.
fn doubled(start: &str, double: &str, times: usize, end: &str) -> String {
    let mut source = end.replace("LAST", &format!("v{times}"));
    for level in (0..times).rev() {
        let body = double.replace("VALUE", &format!("v{level}"));
        source = format!("[for v{} in [{body}] : {source}][0]", level + 1);
    }
    format!("[for v0 in [{start}] : {source}][0]")
}

#[test]
fn what_grows_without_end_is_stopped() {
    for source in [
        doubled("\"x\"", "\"${VALUE}${VALUE}\"", 60, "LAST"),
        doubled("[1]", "[VALUE, VALUE]", 60, "jsonencode(LAST)"),
        doubled("[1]", "[VALUE, VALUE]", 60, "LAST == LAST"),
        doubled("[1]", "[VALUE, VALUE]", 60, "flatten(LAST)"),
        doubled("[1, 2]", "concat(VALUE, VALUE)", 60, "LAST"),
        doubled("[1, 2]", "setproduct(VALUE, VALUE)", 20, "LAST"),
        doubled("\"x\"", "format(\"%s%s\", VALUE, VALUE)", 60, "LAST"),
        doubled("\"x\"", "replace(VALUE, \"x\", \"xx\")", 60, "LAST"),
        doubled("10", "VALUE * VALUE", 60, "LAST"),
        "format(\"%999999999d\", 1)".to_owned(),
        "indent(999999999999, \"a\\nb\")".to_owned(),
        "templatestring(\"$${templatestring(t, {t = t})}\", {t = \"$${templatestring(t, {t = t})}\"})".to_owned(),
        "regex(\"(((((a{100}){100}){100}){100}){100})\", \"a\")".to_owned(),
        "yamldecode(\"a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\\n\
         d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\\n\
         g: [*f,*f,*f,*f,*f,*f,*f,*f]\")"
            .to_owned(),
    ] {
        let shown = &source[..source.len().min(60)];
        assert!(problem(&source).is_some(), "{shown} has a value");
    }
}

#[test]
fn deep_expressions_fit_a_small_stack() {
    let chain = format!("1{}", " + 1".repeat(900));
    let nested = format!("{}1{}", "(".repeat(150), ")".repeat(150));
    let lists = format!("{}1{}", "[".repeat(150), "]".repeat(150));
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let run = thread.spawn(move || [chain, nested, lists].map(|source| problem(&source)));
    assert_eq!(run.map(|thread| thread.join().map_err(|_| ())).ok(), Some(Ok([None, None, None])));
}

fn samples() -> Vec<Value> {
    let number = |text: &str| Value::number(Number::parse(text).unwrap_or(Number::ZERO));
    vec![
        Value::null(Type::Dynamic),
        Value::null(Type::String),
        Value::DYNAMIC,
        Value::unknown(Type::String),
        Value::unknown(Type::list(Type::String)),
        Value::unknown(Type::map(Type::Dynamic)),
        Value::TRUE,
        number("0"),
        number("-3"),
        number("2.5"),
        number("1e300"),
        Value::number(Number::INFINITY),
        Value::string(""),
        Value::string("a,b"),
        Value::string("10.0.0.0/8"),
        Value::string("{\"a\": [1, null]}"),
        Value::string("[é%5d\u{1F468}"),
        Value::string("2020-02-29T00:00:00Z"),
        Value::string("secret").with_mark(Mark::Sensitive),
        Value::tuple([]),
        Value::tuple([Value::int(1), Value::null(Type::Dynamic), Value::DYNAMIC]),
        Value::list(Type::String, [Value::string("a"), Value::unknown(Type::String)]),
        Value::set(Type::Number, [Value::int(1), Value::int(2)]),
        Value::map(Type::String, [("a", Value::string("x").with_mark(Mark::Ephemeral))]),
        Value::object([("a", Value::int(1)), ("b", Value::DYNAMIC)]),
        Value::object::<&str>([]),
    ]
}

#[test]
fn no_arguments_make_a_function_panic() {
    let samples = samples();
    for function in functions::all() {
        let call = |arguments: &[Value]| {
            let budget = Budget::new(100_000, 16 << 20);
            let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
            let _ = function.call(arguments, &scope);
        };
        let most = if function.rest.is_some() { 3 } else { function.parameters.len() };
        call(&[]);
        for a in &samples {
            call(std::slice::from_ref(a));
            for b in &samples {
                call(&[a.clone(), b.clone()]);
                for c in samples.iter().filter(|_| most == 3) {
                    call(&[a.clone(), b.clone(), c.clone()]);
                }
            }
        }
    }
}

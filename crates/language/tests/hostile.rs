//! What no configuration has in earnest: it ends in an error, without a panic, much time or much memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Mark, Number, Type, Value};
use hcl::{FileId, Source};
use language::{Budget, NoFiles, Scope, evaluate, functions};
use proptest::collection::vec;
use proptest::prelude::proptest;
use proptest::sample::select;

/// The summary of the first problem of an expression.
fn problem(source: &str) -> Option<String> {
    let budget = Budget::new(1_000_000, 64 << 20);
    let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
    let parsed = hcl::parse_expression(Source::new(FileId(0), "", source));
    let refused = parsed.diagnostics.first().map(|problem| &*problem.summary);
    assert!(refused.is_none_or(|summary| summary == "Invalid number literal"), "{source}: {refused:?}");
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

/// Each ends, with a value or an error. With a time or a depth without bound, the test would not.
#[test]
fn what_is_large_ends() {
    let deep = |open: &str, middle: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        format!("{open}{middle}{close}").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    };
    let long = "9".repeat(100_000);
    let numbers = "join(\",\", [for i in range(1000) : join(\",\", range(i, i + 20))])";
    for source in [
        "1e999999999".to_owned(),
        "1e-999999999".to_owned(),
        "tonumber(\"1e999999999\")".to_owned(),
        "jsondecode(\"1e999999999\")".to_owned(),
        "yamldecode(\"a: 1e999999999\")".to_owned(),
        "pow(10, 99999)".to_owned(),
        "1e30000 * 1e30000 % 7".to_owned(),
        "1e30000 % 1e-30000".to_owned(),
        "1 / 1e30000 + 1e30000".to_owned(),
        format!("{long} * {long} % 7"),
        format!("parseint(\"{long}\", 10)"),
        format!("tonumber(\"{long}.{long}e5\")"),
        "format(\"%.999999999f\", 1)".to_owned(),
        "format(\"%99999999s\", 1)".to_owned(),
        "format(\"%[999999999]d\", 1)".to_owned(),
        "range(1e30)".to_owned(),
        "range(0, 1e-30000, 1e-30001)".to_owned(),
        "chunklist(range(1000), 1e30)".to_owned(),
        "setproduct(range(1000), range(1000), range(1000), range(1000))".to_owned(),
        "substr(\"abc\", -1e30, 1e30)".to_owned(),
        "element([1, 2], 1e300)".to_owned(),
        "cidrhost(\"::/0\", 1e300)".to_owned(),
        "cidrsubnet(\"10.0.0.0/8\", -1e300, 1)".to_owned(),
        "timeadd(\"2020-02-29T00:00:00Z\", \"99999999999999999h\")".to_owned(),
        format!("jsondecode(\"{}\")", deep("[", "", "]")),
        format!("jsondecode(\"{}\")", deep("{\"a\":", "1", "}")),
        format!("yamldecode(\"{}\")", deep("[", "", "]")),
        format!("yamldecode(\"{}\")", deep("- ", "1", "")),
        format!("yamldecode(\"{}\")", deep("? ", "1", "")),
        format!("templatestring(\"{}\", {{}})", deep("$${", "1", "}")),
        format!("regex(\"{}\", \"a\")", deep("(", "a", ")")),
        format!("regexall(\"(a*)*b\", \"{}\")", "a".repeat(100_000)),
        format!("regexall(\"(.*)(.*)(.*)x\", {numbers})"),
        format!("replace({numbers}, \"/(.*),(.*)/\", \"$2$1$2\")"),
        format!("split(\"\", {numbers})"),
        format!("distinct(split(\",\", {numbers}))"),
        format!("setunion(split(\",\", {numbers}), split(\",\", {numbers}))"),
        format!("matchkeys(split(\",\", {numbers}), split(\",\", {numbers}), split(\",\", {numbers}))"),
        format!("csvdecode(\"a\\n${{replace({numbers}, \",\", \"\\n\")}}\")"),
        format!("title(strrev(base64decode(base64encode(urlencode({numbers})))))"),
        format!("trim({numbers}, {numbers})"),
        format!("indent(1000, replace({numbers}, \",\", \"\\n\"))"),
        format!("formatdate(\"{}\", \"2020-02-29T00:00:00Z\")", "Y".repeat(100_000)),
    ] {
        let _ = problem(&source);
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

/// Pieces that mean something in a language that a function reads.
const PIECES: [&str; 60] = [
    "a",
    "é",
    "e\u{301}",
    "👩‍👩‍👧",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    "-",
    "+",
    ".",
    ",",
    ":",
    ";",
    "0",
    "1",
    "9",
    "10",
    "255",
    "/",
    "//",
    "%",
    "%s",
    "%5.2d",
    "%[2]",
    "%#v",
    "*",
    "**",
    "?",
    "!",
    "!!",
    "|",
    ">",
    "&a",
    "*a",
    "<<",
    "(",
    ")",
    "(?P<n>",
    "[",
    "]",
    "[^",
    "{",
    "}",
    "{2,}",
    "\\",
    "\\d",
    "\\p{L}",
    "\"",
    "'",
    "${",
    "%{",
    "Z",
    "T",
    "YYYY",
    "2020-02-29T12:30:45Z",
    "=",
    "#",
];

/// What reads a text, with the other arguments that let it.
const READERS: [&str; 22] = [
    "regex(text, \"ab1\")",
    "regexall(text, \"ab1\")",
    "replace(text, \"/(.)/\", text)",
    "replace(\"ab1\", text, text)",
    "format(text, 1, \"a\", [])",
    "formatlist(text, [1, 2], \"a\")",
    "formatdate(text, \"2020-02-29T12:30:45Z\")",
    "formatdate(\"hh\", text)",
    "timeadd(\"2020-02-29T12:30:45Z\", text)",
    "timecmp(text, text)",
    "jsondecode(text)",
    "yamldecode(text)",
    "yamldecode(yamlencode({a = [text]})).a[0] == text",
    "csvdecode(text)",
    "templatestring(text, {a = 1})",
    "cidrsubnets(text, 1, 2)",
    "[cidrcontains(text, text), cidrhost(text, -1)]",
    "[parseint(text, 62), tonumber(text)]",
    "[base64decode(text), base64gunzip(text)]",
    "[urldecode(text), textdecodebase64(text, text)]",
    "[title(text), indent(3, text), substr(text, 1, 2), sort(split(text, text))]",
    "fileset(text, text)",
];

proptest! {
    #[test]
    fn no_text_makes_a_function_panic(pieces in vec(select(&PIECES[..]), 0..30)) {
        let variables = BTreeMap::from([(Arc::from("text"), Value::string(&pieces.concat()))]);
        for reader in READERS {
            let budget = Budget::new(100_000, 16 << 20);
            let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
            let parsed = hcl::parse_expression(Source::new(FileId(0), "", reader));
            assert!(parsed.diagnostics.is_empty(), "{reader}: {:?}", parsed.diagnostics);
            let evaluated = evaluate(&parsed.value, &variables, &scope);
            assert!(!evaluated.diagnostics.is_empty() || evaluated.value.as_bool() != Some(false), "{reader}");
        }
    }
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

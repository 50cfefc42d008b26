//! Any text is parsed in bounded time, without a panic, and without a deep stack.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]

use hcl::{Expr, ExprKind, FileId, MAX_HEIGHT, Source, parse_body, parse_expression, parse_json, parse_template};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, proptest};
use proptest::sample::select;

/// Pieces that mean something to the lexer, so that random texts reach the parser.
const PIECES: [&str; 66] = [
    "a",
    "b1",
    "for",
    "in",
    "if",
    "else",
    "endif",
    "endfor",
    "null",
    "true",
    "1",
    "1.5e3",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\"",
    "\\",
    "\\u00e9",
    "${",
    "%{",
    "~}",
    "}",
    "{",
    "[",
    "]",
    "(",
    ")",
    ",",
    ".",
    "...",
    "=",
    "==",
    "=>",
    ":",
    "::",
    "?",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "&&",
    "||",
    "<",
    ">=",
    "#",
    "//",
    "/*",
    "*/",
    "<<E\n",
    "<<-E\n",
    "\nE\n",
    "$",
    "$${",
    "%%{",
    "é",
    "e\u{301}",
    "👩‍👩‍👧",
    "\u{feff}",
    "\0",
    "'",
    "`",
    ";",
];

fn source(text: impl Into<Vec<u8>>) -> Source {
    Source::new(FileId(0), "a.tf", text)
}

/// Parses a text in every way, and looks at all of what comes of it.
fn parse_all(text: &[u8]) {
    let body = parse_body(source(text));
    body.diagnostics.iter().for_each(|diagnostic| assert!(!diagnostic.display(&body.source).to_string().is_empty()));
    body.value.attributes.iter().for_each(|attribute| look_at(&attribute.value));
    let values = body.value.attributes.iter().map(|attribute| &attribute.value);
    assert!(!body.diagnostics.is_empty() || !values.clone().any(is_invalid), "an error that is not reported");
    for parsed in [parse_expression(source(text)), parse_template(source(text))] {
        look_at(&parsed.value);
        assert!(!parsed.diagnostics.is_empty() || !is_invalid(&parsed.value), "an error that is not reported");
    }
    let json = parse_json(source(text));
    json.diagnostics.iter().for_each(|diagnostic| assert!(!diagnostic.display(&json.source).to_string().is_empty()));
    hcl::parse_partial_traversal(source(text));
    let formatted = hcl::format(&String::from_utf8_lossy(text));
    assert!(formatted.len() >= text.iter().filter(|byte| byte.is_ascii_alphanumeric()).count());
}

fn look_at(expr: &Expr) {
    assert!(expr.height() <= MAX_HEIGHT + 1);
    expr.references();
}

fn is_invalid(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Invalid);
    expr.for_each_child(&mut |child| found |= is_invalid(child));
    found
}

proptest! {
    #[test]
    fn pieces_cause_no_panic(pieces in vec(select(&PIECES[..]), 0..60)) {
        parse_all(pieces.concat().as_bytes());
    }

    #[test]
    fn bytes_cause_no_panic(bytes in vec(any::<u8>(), 0..80)) {
        parse_all(&bytes);
    }

    #[test]
    fn texts_in_strings_cause_no_panic(text in select(&PIECES[..]).prop_flat_map(|piece| (0..2000usize).prop_map(move |count| piece.repeat(count)))) {
        parse_all(text.as_bytes());
    }
}

/// The stack of a thread that a program starts without a size of its own is 2 MiB.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn nesting_is_refused_in_time() {
    let opened = [
        "(",
        "[",
        "{a=",
        "f(",
        "-",
        "!",
        "a?",
        "a?b:",
        "[for a in ",
        "{for a in b:",
        "\"${",
        "\"%{if ",
        "a[",
        "a[*]",
        "a+(",
        "a*(b+(",
        "<<E\n${",
        "a||b&&c==d<e+f*(",
        "%{if a}",
        "%{for a in b}",
        "a.*",
        "a+",
        "a[0][b]",
        "{(",
        "[[{a=\"${f(",
        "b {\n",
        "a {\n b=[\n",
    ];
    on_a_small_stack(move || {
        for piece in opened {
            let text = piece.repeat(3000);
            parse_all(text.as_bytes());
            parse_all(format!("a = {text}").as_bytes());
        }
    });
}

#[test]
fn json_nesting_is_refused() {
    on_a_small_stack(|| {
        for piece in ["[", "{\"a\":", "[{\"a\":"] {
            let parsed = parse_json(source(piece.repeat(100_000)));
            assert_eq!(parsed.diagnostics[0].summary, "Nested too deeply");
        }
    });
}

#[test]
fn what_is_allowed_needs_little_stack() {
    on_a_small_stack(|| {
        let nested = format!("{}1{}", "[{a = (f(".repeat(40), "))}]".repeat(40));
        assert!(parse_expression(source(nested)).diagnostics.is_empty());
        let chain = format!("a{}", " || b".repeat(900));
        assert!(parse_expression(source(chain)).diagnostics.is_empty());
    });
}

/// Nothing is parsed again for each bracket, line or error: with a time that grows faster than the text, this would not end.
#[test]
fn long_texts_are_parsed() {
    let pieces = [
        "a = 1\n",
        "a{b=1 2\n",
        "a = [\nb = {\n",
        "\"\n",
        "a = \"${f(\"\n",
        "é",
        "a = é.é é\n",
        "/*",
        "<<E\n",
        "$",
        "%{ if a }\n",
        "1.",
        "a,",
        "}\n",
        "#\n",
        "a = <<E\n${\n",
        "\\",
        "a b \"c\" {\n",
        "a = [\n  1 2\n",
        "x = {\n\"\\",
        "\n",
        "=}",
        "]=}",
        "a=}",
    ];
    for piece in pieces {
        parse_body(source(piece.repeat(200_000)));
    }
    for (first, second) in
        [("(", "]"), ("[", ")\n"), ("\"${", "]"), ("a{b=", "]\n"), ("<<E\n${", "]"), ("a = [\n", "} = 1\n")]
    {
        parse_body(source(format!("a = {}{}", first.repeat(200_000), second.repeat(200_000))));
    }
}

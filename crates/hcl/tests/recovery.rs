//! All errors of a file are reported at once, and none that is a consequence of another.

use expect_test::{Expect, expect};
use hcl::{FileId, Source};

fn source(text: &str) -> Source {
    Source::new(FileId(0), "main.tf", text)
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    let parsed = hcl::parse_body(source(text));
    let line = |diagnostic: &hcl::Diagnostic| {
        let place = parsed.source.position(diagnostic.range.start);
        let hint = diagnostic.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        format!("{place} {}: {}{hint}\n", diagnostic.summary, diagnostic.detail)
    };
    expected.assert_eq(&parsed.diagnostics.iter().map(line).collect::<Vec<_>>().concat());
}

#[test]
fn every_item_reports_its_first_error() {
    check(
        "resource \"a\" \"b\" {\n  x = [1, 2\n  y = \"unclosed\n  z = \"${foo(1\"\n  ok = 1\n}\n\nvariable \"v\" {\n  type = list(string\n  \
         default = { a = 1, b 2 }\n  foo.bar = 1\n  x: 2\n}\noutput \"o\" {\n  value = 1 +\n  other = 'single'\n  a = 1,\n  a = 2\n}\n",
        expect![[r#"
            3,3 Missing item separator: A comma is expected between the items of a list.
            3,16 Invalid multi-line string: A quoted string ends on the line on which it begins. (write the line break as `\n`, or use a heredoc: `<<EOT`)
            4,15 Missing argument separator: A comma is expected between the arguments of a function.
            4,16 Invalid multi-line string: A quoted string ends on the line on which it begins. (write the line break as `\n`, or use a heredoc: `<<EOT`)
            10,3 Missing argument separator: A comma is expected between the arguments of a function.
            10,24 Missing key/value separator: An equals sign is expected between the key and the value.
            11,3 Argument or block definition required: An argument (`name = value`) or a block (`name { ... }`) is expected here. (the name of an argument has no dots in it)
            15,14 Invalid expression: A value is expected here. (write the value on the same line, or enclose it in parentheses)
            16,11 Invalid character: A single quote encloses no strings. (use double quotes)
            17,8 Unexpected comma: A line break is expected after an argument. (remove the comma)
            18,3 Attribute redefined: `a` was set on line 17 already. An argument is set once.
        "#]],
    );
}

#[test]
fn blocks_that_are_not_closed_are_one_error() {
    check(
        "a {\n  b {\n    c {\n      d = 1\n",
        expect![[r#"
        3,7 Unclosed configuration block: The block is not closed before the file ends. A brace inside it may be the one that is missing.
    "#]],
    );
    check(
        "a {\n  b = [\n    1 2\n  ]\n  c = {\n    d = 1\n",
        expect![[r#"
            3,7 Missing item separator: A comma is expected between the items of a list.
            5,7 Unterminated object constructor expression: The brace is not closed before the file ends.
        "#]],
    );
}

#[test]
fn what_follows_a_broken_template_is_read_again() {
    check(
        "a = \"${f(\\\",\\\", b)}\"\nc = \"d\"\ne = f(]\n",
        expect![[r#"
        1,10 Invalid character: A backslash has no meaning outside of a text in quotes. (inside `${ }`, write quotes without a backslash before them)
        3,7 Invalid expression: A value is expected here.
    "#]],
    );
    check(
        "a = <<EOT\n  text\nb = 1\n",
        expect![[r#"
            4,1 Unterminated template string: The string that starts on line 1 has no end. (the end of a heredoc is its marker, alone on a line, and a line break)
        "#]],
    );
}

#[test]
fn blocks_on_one_line() {
    check(
        "a { b = 1 c = 2 }\na { b = 1, c = 2 }\na { b {} }\na { b = 1\n}\n",
        expect![[r#"
            1,11 Invalid single-argument block definition: A block with an argument on the line of its opening brace ends on that line. (put each argument on a line of its own)
            2,10 Invalid single-argument block definition: A block with an argument on the line of its opening brace ends on that line. (put each argument on a line of its own)
            3,5 Argument definition required: A block on one line has one argument and no blocks. (put each item on a line of its own)
            4,10 Invalid single-argument block definition: A block with an argument on the line of its opening brace ends on that line. (put each argument on a line of its own)
        "#]],
    );
    check(
        "a \"b\" = 1\na\n{\n}\na {} b {}\n\"a\" = 1\n",
        expect![[r#"
        1,7 Invalid block definition: `a` has a label, as a block has, and an equals sign, as an argument has. (remove the equals sign, or the label)
        2,1 Argument or block definition required: An argument (`name = value`) or a block (`name { ... }`) is expected here.
        5,6 Missing newline: A line break is expected after a block.
        6,1 Invalid argument name: The name of an argument is not quoted.
    "#]],
    );
}

#[test]
fn a_file_that_is_no_text_is_one_error() {
    check(
        "a = 1\n\u{1}\u{2}\u{3}\nb c\u{4}\n",
        expect![[r#"
            2,1 Invalid character: This character has no meaning here.
            3,4 Invalid character: This character has no meaning here.
        "#]],
    );
    let parsed = hcl::parse_body(Source::new(FileId(0), "a.tf", b"a = \"\xff\"\nb = \"\xfe\"\n".to_vec()));
    assert_eq!(parsed.diagnostics.len(), 1);
    assert_eq!(parsed.diagnostics[0].summary, "Invalid character encoding");
}

#[test]
fn what_is_right_is_kept() {
    let parsed = hcl::parse_body(source("a = 1 2\nb = 3\nc {\n  d = [\n  e = 4\n}\nf = 5\n"));
    let names: Vec<&str> = parsed.value.attributes.iter().map(|attribute| attribute.name.text.as_str()).collect();
    assert_eq!(names, ["a", "b", "f"]);
    assert!(parsed.value.blocks[0].body.attribute("e").is_some());
}

#[test]
fn a_diagnostic_shows_its_line() {
    let parsed = hcl::parse_body(source("a = \"ä\" b\n"));
    expect![[r#"
        Error: Missing newline
         --> main.tf:1:9
          |
        1 | a = "ä" b
          |         ^
        A line break is expected after an argument."#]]
    .assert_eq(&parsed.diagnostics[0].display(&parsed.source).to_string());
}

#[test]
fn json_errors_show_their_place() {
    let parsed = hcl::parse_json(Source::new(FileId(0), "main.tf.json", "{\n  \"a\": 1,\n}\n"));
    expect![[r#"
        Error: Trailing comma in object
         --> main.tf.json:2:9
          |
        2 |   "a": 1,
          |         ^
        The last element of an object has no comma after it."#]]
    .assert_eq(&parsed.diagnostics[0].display(&parsed.source).to_string());
}

#[test]
fn a_template_in_a_json_string_has_its_place_in_the_file() {
    let parsed = hcl::parse_json_expression(Source::new(FileId(0), "a.json", "{\"a\": \"b ${c.d}\"}"));
    let references = parsed.value.references();
    assert_eq!(parsed.source.slice(references[0].range), "c.d");
}

#[test]
fn a_file_that_is_too_large_is_one_error() {
    let text = vec![b'#'; hcl::MAX_LEN + 1];
    let native = hcl::parse_body(Source::new(FileId(0), "main.tf", text.clone())).diagnostics;
    let json = hcl::parse_json(Source::new(FileId(0), "main.tf.json", text)).diagnostics;
    for diagnostics in [native, json] {
        assert_eq!(diagnostics.iter().map(|found| found.summary.as_str()).collect::<Vec<_>>(), ["File too large"]);
    }
}

#[test]
fn the_number_of_errors_is_bounded() {
    assert_eq!(hcl::parse_body(source(&"a = \n".repeat(5000))).diagnostics.len(), 100);
    assert_eq!(hcl::parse_body(source(&format!("a = \"{}\"\n", "\\q".repeat(5000)))).diagnostics.len(), 100);
}

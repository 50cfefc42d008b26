//! Replays what `hashicorp/hcl` makes of some 5,000 texts: the same tree with the same places, or an error at the same
//! place; and the same format. The program that wrote them is in tests/vectors/hcl.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]

#[path = "support/dump.rs"]
mod dump;

use std::io::{BufRead, BufReader};

use dump::Dump;
use flate2::read::GzDecoder;
use hcl::{Diagnostic, FileId, Parsed, Source};
use serde_json::Value;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/hcl/vectors.jsonl.gz");

struct Outcome {
    dump: String,
    diagnostics: Vec<Diagnostic>,
}

fn outcome<T>(parsed: Parsed<T>, write: impl FnOnce(&mut Dump<'_>, T) -> Vec<Diagnostic>) -> Outcome {
    let Parsed { value, mut diagnostics, source } = parsed;
    let mut dump = Dump::new(&source);
    if diagnostics.is_empty() {
        diagnostics = write(&mut dump, value);
    }
    diagnostics.sort_by_key(|diagnostic| (diagnostic.range.start, diagnostic.range.end));
    Outcome { dump: dump.finish(), diagnostics }
}

#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the path of a method is not general over the lifetime of the dump"
)]
fn parse(mode: &str, bytes: Vec<u8>) -> Outcome {
    let source = Source::new(FileId(0), "", bytes);
    match mode {
        "body" => outcome(hcl::parse_body(source), |dump, body| {
            dump.body(&body);
            Vec::new()
        }),
        "expression" | "template" => {
            let parsed = if mode == "template" { hcl::parse_template(source) } else { hcl::parse_expression(source) };
            outcome(parsed, |dump, expr| {
                dump.expression(&expr);
                dump.references(&expr);
                Vec::new()
            })
        }
        "json" => outcome(hcl::parse_json(source), |dump, body| dump.json(body)),
        _ => {
            let partial = mode == "partial";
            let parsed = if partial { hcl::parse_partial_traversal(source) } else { hcl::parse_traversal(source) };
            outcome(parsed, |dump, traversal| {
                dump.traversal(&traversal.expect("a traversal without problems"));
                Vec::new()
            })
        }
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit =
        |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|d| *d == c);
    let digits: Vec<u32> = text.bytes().filter_map(digit).map(|digit| digit as u32).collect();
    let group = |group: &[u32]| {
        let bits = group.iter().enumerate().map(|(at, digit)| digit << (18 - 6 * at)).sum::<u32>();
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

/// What differs between a vector and what is made of it here.
fn difference(vector: &Value) -> Option<String> {
    let mode = vector["mode"].as_str().unwrap();
    let bytes = match vector["base64"].as_str() {
        Some(text) => base64(text),
        None => vector["text"].as_str().unwrap().as_bytes().to_vec(),
    };
    let shown = format!("{mode} {:?}", String::from_utf8_lossy(&bytes));
    let Outcome { dump, diagnostics } = parse(mode, bytes);
    let errors = vector["errors"].as_array().map(|errors| errors.iter().filter_map(Value::as_u64).collect::<Vec<_>>());
    // Upstream reports no block that is not closed once there is another error, and its recovery differs: where the
    // indentation misleads the one here, there is an error before the one of upstream.
    let first = diagnostics.iter().find(|found| found.summary != UNCLOSED).or(diagnostics.first());
    let is_found = |errors: &[u64]| diagnostics.iter().any(|found| errors.contains(&u64::from(found.range.start)));
    if let Some(format) = vector["format"].as_str().filter(|_| errors.is_none()) {
        let formatted = hcl::format(vector["text"].as_str().unwrap());
        if formatted != format {
            return Some(format!("{shown}\n  format {format:?}\n         {formatted:?}"));
        }
    }
    match (errors, first) {
        (None, None) if vector["dump"] == dump.as_str() => None,
        (None, None) => Some(format!("{shown}\n  tree {}\n       {dump}", vector["dump"].as_str().unwrap_or_default())),
        (Some(errors), Some(_)) if is_found(&errors) => None,
        (Some(_), Some(first)) if mode == "json" || ELSEWHERE.contains(&first.summary.as_str()) => None,
        (errors, _) => Some(format!("{shown}\n  errors {errors:?}, here {diagnostics:?}")),
    }
}

const UNCLOSED: &str = "Unclosed configuration block";

/// Errors with another place than upstream's, which is that of a token that was read later, of the star before it, or of
/// another of several broken bytes. A bracket that is not closed is reported where it is opened. In JSON syntax, errors inside of strings have no place that could be compared.
const ELSEWHERE: [&str; 8] = [
    "Missing close bracket on index",
    "Missing close bracket on splat index",
    "Invalid legacy index syntax",
    "Invalid attribute name",
    "Invalid character encoding",
    "Unterminated tuple constructor expression",
    "Unterminated object constructor expression",
    "Unterminated function call",
];

#[test]
fn trees_and_errors_are_those_of_upstream() {
    let reader = BufReader::new(GzDecoder::new(std::fs::File::open(VECTORS).unwrap()));
    let vectors: Vec<Value> = reader.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(vectors.len() > 5000);
    let differences: Vec<String> = vectors.iter().filter_map(difference).collect();
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {} differ:\n{shown}", differences.len(), vectors.len());
}

//! Reads paths from the standard input and writes the dump of each file, as the program in tests/vectors/hcl does.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for comparisons by hand")]

#[path = "../tests/support/dump.rs"]
mod dump;

use hcl::{FileId, Parsed, Source};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let paths: Vec<String> = std::io::stdin().lines().map(Result::unwrap).collect();
    if mode == "speed" {
        return speed(&paths);
    }
    if mode.starts_with("format") {
        return paths.iter().for_each(|path| format(path, &mode));
    }
    for path in paths {
        let source = Source::new(FileId(0), "", std::fs::read(&path).unwrap());
        let (text, error) = dump(&path, source);
        let error = error.map_or("[]".to_owned(), |(start, end)| format!("[{start} {end}]"));
        println!("{path} {error}\n{text}");
    }
}

fn format(path: &str, mode: &str) {
    let bytes = std::fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let formatted = match mode {
        "format" => hcl::format(&text),
        _ => hcl::format_configuration(Source::new(FileId(0), "", bytes)).unwrap_or(text),
    };
    println!("== {path}\n{formatted}");
}

fn dump(path: &str, source: Source) -> (String, Option<(u32, u32)>) {
    let extension = std::path::Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let (text, mut diagnostics) = if extension == "json" {
        let Parsed { value, mut diagnostics, source } = hcl::parse_json(source);
        let mut dump = dump::Dump::new(&source);
        if diagnostics.is_empty() {
            diagnostics.extend(dump.json(value));
        }
        (dump.finish(), diagnostics)
    } else if extension.ends_with("tpl") {
        let Parsed { value, diagnostics, source } = hcl::parse_template(source);
        let mut dump = dump::Dump::new(&source);
        dump.expression(&value);
        dump.references(&value);
        (dump.finish(), diagnostics)
    } else {
        let Parsed { value, diagnostics, source } = hcl::parse_body(source);
        let mut dump = dump::Dump::new(&source);
        dump.body(&value);
        (dump.finish(), diagnostics)
    };
    diagnostics.sort_by_key(|diagnostic| (diagnostic.range.start, diagnostic.range.end));
    let error = diagnostics.first().map(|diagnostic| (diagnostic.range.start, diagnostic.range.end));
    (if error.is_some() { String::new() } else { text }, error)
}

#[expect(clippy::cast_precision_loss, reason = "a speed for a person to read")]
fn speed(paths: &[String]) {
    let texts: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let size = texts.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begin = std::time::Instant::now();
        for text in &texts {
            std::hint::black_box(hcl::parse_body(Source::new(FileId(0), "", text.as_slice())));
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{} files, {size:.1} MB, {:.1} MB/s", paths.len(), size / best);
}

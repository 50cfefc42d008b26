//! Reads paths from the standard input and prints the problems of each file.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for use by hand")]

use hcl::{FileId, Source};

fn main() {
    for path in std::io::stdin().lines() {
        let path = path.unwrap();
        let parsed = hcl::parse_body(Source::new(FileId(0), path.as_str(), std::fs::read(&path).unwrap()));
        for diagnostic in &parsed.diagnostics {
            println!("{}\n", diagnostic.display(&parsed.source));
        }
    }
}

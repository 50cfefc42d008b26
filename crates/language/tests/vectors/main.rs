//! Replays what OpenTofu made of calls and expressions, recorded by the Go program in `tests/vectors/language`.

#![expect(clippy::unwrap_used, reason = "a recording that cannot be read is a failure")]

mod calls;
mod constraints;
mod directory;
mod encoding;
mod excuses;
mod expressions;
mod operations;

use std::io::Read;
use std::path::PathBuf;

/// Where the recorded lines and the files for file functions are.
fn recorded() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/language")
}

/// The lines of a recording.
fn lines(name: &str) -> String {
    let bytes = std::fs::read(recorded().join(name)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    text
}

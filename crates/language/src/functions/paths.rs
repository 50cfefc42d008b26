//! Paths, with `/` between their parts.

use super::call::Call;
use super::parameter::string;
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::Value;

pub const FUNCTIONS: &[Function] = &[
    function("abspath", |call| Ok(Value::string(&call.scope.files.absolute(call.text(0)))))
        .takes(&[string("path")])
        .gives(Accepts::String)
        .says("A path as an absolute one.", "abspath(\"/a/../b\")", "\"/b\""),
    function("basename", |call| Ok(Value::string(base(call.text(0)))))
        .takes(&[string("path")])
        .gives(Accepts::String)
        .says("The last part of a path.", "basename(\"foo/bar/baz.txt\")", "\"baz.txt\""),
    function("dirname", |call| Ok(Value::string(&directory(call.text(0)))))
        .takes(&[string("path")])
        .gives(Accepts::String)
        .says("A path without its last part.", "dirname(\"foo/bar/baz.txt\")", "\"foo/bar\""),
    function("pathexpand", pathexpand).takes(&[string("path")]).gives(Accepts::String).says(
        "A path with the home directory in place of a leading `~`.",
        "pathexpand(\"a/b\")",
        "\"a/b\"",
    ),
];

fn base(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        _ if path.is_empty() => ".",
        _ if trimmed.is_empty() => "/",
        last => last.unwrap_or(trimmed),
    }
}

fn directory(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |at| at + 1)])
}

/// The shortest path that means the same, without reading the file system: without `.`, without empty parts, and with `..` at
/// its beginning only.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

fn pathexpand(call: &Call<'_>) -> Result<Value, Failure> {
    expanded(call, call.text(0)).map(|path| Value::string(&path))
}

pub fn expanded(call: &Call<'_>, path: &str) -> Result<String, Failure> {
    let Some(rest) = path.strip_prefix('~') else { return Ok(path.to_owned()) };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(Failure::of(0, "the home directory of another user cannot be used"));
    }
    let home = call.scope.files.home().ok_or_else(|| Failure::of(0, "there is no home directory here"))?;
    Ok(clean(&format!("{home}{rest}")))
}

//! Files of the module.

use globset::{GlobBuilder, GlobMatcher};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::call::{Call, shown};
use super::digests::hex;
use super::encodings::to_base64;
use super::parameter::{Parameter, string};
use super::paths::{clean, expanded};
use super::{Accepts, Function, function};
use crate::cty::{Marks, Type, Value};
use crate::{Failure, FileError};

const PATH: &[Parameter] = &[string("path").marked()];
const PLAIN_PATH: &[Parameter] = &[string("path")];

pub const FUNCTIONS: &[Function] = &[
    function("file", file).takes(PATH).gives(Accepts::String).says(
        "The content of a file in UTF-8.",
        "file(\"hello.txt\")",
        "\"Hello\"",
    ),
    function("filebase64", filebase64).takes(PATH).gives(Accepts::String).says(
        "The content of a file, in Base64.",
        "filebase64(\"hello.txt\")",
        "\"SGVsbG8=\"",
    ),
    function("filebase64sha256", |call| digest(call, |bytes| to_base64(&Sha256::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says(
            "The SHA-256 digest of a file, in Base64.",
            "filebase64sha256(\"hello.txt\")",
            "\"GF+NsyJx/iX1Yab8k4suJkMG7DBO2lGAB9F2SCY4GWk=\"",
        ),
    function("filebase64sha512", |call| digest(call, |bytes| to_base64(&Sha512::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says(
            "The SHA-512 digest of a file, in Base64.",
            "filebase64sha512(\"hello.txt\") == base64sha512(\"Hello\")",
            "true",
        ),
    function("fileexists", fileexists).takes(PATH).gives(Accepts::Bool).says(
        "Whether there is a file.",
        "fileexists(\"hello.txt\")",
        "true",
    ),
    function("filemd5", |call| digest(call, |bytes| hex(&Md5::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says("The MD5 digest of a file.", "filemd5(\"hello.txt\")", "\"8b1a9953c4611296a827abf8c47804d7\""),
    function("fileset", fileset)
        .takes(&[string("path").marked(), string("pattern").marked()])
        .gives(Accepts::SetOfStrings)
        .says(
            "The files below a directory whose paths match a pattern.",
            "fileset(\".\", \"*.txt\")",
            "[\"hello.txt\"]",
        ),
    function("filesha1", |call| digest(call, |bytes| hex(&Sha1::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says("The SHA-1 digest of a file.", "filesha1(\"hello.txt\")", "\"f7ff9e8b7bb2e09b70935a5d785e0cc5d9d0abf0\""),
    function("filesha256", |call| digest(call, |bytes| hex(&Sha256::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says(
            "The SHA-256 digest of a file.",
            "filesha256(\"hello.txt\")",
            "\"185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969\"",
        ),
    function("filesha512", |call| digest(call, |bytes| hex(&Sha512::digest(bytes))))
        .takes(PLAIN_PATH)
        .gives(Accepts::String)
        .says("The SHA-512 digest of a file.", "filesha512(\"hello.txt\") == sha512(\"Hello\")", "true"),
];

/// Reads the file that an argument names. The path is shown only if it is not marked.
pub fn read(call: &Call<'_>, path: &str, marks: &Marks) -> Result<Vec<u8>, Failure> {
    let bytes = call.scope.files.read(&expanded(call, path)?).map_err(|error| problem(path, marks, error))?;
    call.scope.budget.hold(bytes.len())?;
    Ok(bytes)
}

fn problem(path: &str, marks: &Marks, error: FileError) -> Failure {
    let path = shown(path, marks);
    Failure::of(
        0,
        match error {
            FileError::Missing => format!(
                "there is no file {path}; only files of the configuration can be read, not those that a resource makes"
            ),
            FileError::Directory => format!("{path} is a directory"),
            FileError::Outside => format!("{path} is outside of the module"),
            FileError::TooLarge => format!("{path} is too large"),
            FileError::Unreadable => format!("{path} cannot be read"),
        },
    )
}

fn file(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let path = call.plain(0, &mut marks);
    let path = path.as_str().unwrap_or_default();
    let text = String::from_utf8(read(call, path, &marks)?)
        .map_err(|_| Failure::of(0, format!("{} is not UTF-8; use filebase64", shown(path, &marks))))?;
    Ok(Value::string(&text).with_marks(&marks))
}

fn filebase64(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let path = call.plain(0, &mut marks);
    let bytes = read(call, path.as_str().unwrap_or_default(), &marks)?;
    Ok(Value::string(&to_base64(&bytes)).with_marks(&marks))
}

fn digest(call: &Call<'_>, digest: fn(&[u8]) -> String) -> Result<Value, Failure> {
    Ok(Value::string(&digest(&read(call, call.text(0), &Marks::NONE)?)))
}

fn fileexists(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let path = call.plain(0, &mut marks);
    let path = path.as_str().unwrap_or_default();
    match call.scope.files.read(&expanded(call, path)?) {
        Ok(_) | Err(FileError::TooLarge) => Ok(Value::TRUE.with_marks(&marks)),
        Err(FileError::Missing) => Ok(Value::FALSE.with_marks(&marks)),
        Err(error) => Err(problem(path, &marks, error)),
    }
}

fn fileset(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let (path, pattern) = (call.plain(0, &mut marks), call.plain(1, &mut marks));
    let (path, pattern) = (path.as_str().unwrap_or_default(), clean(pattern.as_str().unwrap_or_default()));
    // A pattern may lead out of the directory; its results then begin in the same way.
    let ups = pattern.split('/').take_while(|part| *part == "..").count();
    let up = "../".repeat(ups);
    let matcher =
        glob(&pattern[up.len().min(pattern.len())..]).ok_or_else(|| Failure::of(1, "the pattern is invalid"))?;
    let start = if path.is_empty() { "." } else { path };
    let files = match call.scope.files.list(&clean(&format!("{start}/{up}"))) {
        Ok(files) => files,
        Err(FileError::Missing) => Vec::new(),
        Err(error) => return Err(problem(path, &marks, error)),
    };
    call.scope.budget.step(files.len() as u64)?;
    let found = files.iter().filter(|file| matcher.is_match(file)).map(|file| Value::string(&format!("{up}{file}")));
    Ok(Value::set(Type::String, found).with_marks(&marks))
}

/// `*` and `?` stay within a part of a path, `**` does not; `{a,b}` and `[abc]` are alternatives.
fn glob(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(glob.compile_matcher())
}

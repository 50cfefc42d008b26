//! Base64, gzip, character sets and URLs.

use std::io::Read;

use ::base64::Engine;
use ::base64::alphabet::STANDARD as ALPHABET;
use ::base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use encoding_rs::Encoding;
use flate2::read::MultiGzDecoder;

use super::call::{Call, shown};
use super::parameter::string;
use super::{Accepts, Function, function, gzip};
use crate::cty::{Marks, Value};
use crate::{Failure, Scope};

pub const FUNCTIONS: &[Function] = &[
    function("base64decode", base64decode).takes(&[string("str").marked()]).gives(Accepts::String).says(
        "The UTF-8 text that Base64 stands for.",
        "base64decode(\"SGVsbG8=\")",
        "\"Hello\"",
    ),
    function("base64encode", base64encode).takes(&[string("str")]).gives(Accepts::String).says(
        "The Base64 of a text in UTF-8.",
        "base64encode(\"Hello\")",
        "\"SGVsbG8=\"",
    ),
    function("base64gunzip", base64gunzip).takes(&[string("str").marked()]).gives(Accepts::String).says(
        "The text that gzip in Base64 stands for.",
        "base64gunzip(base64gzip(\"Hello\"))",
        "\"Hello\"",
    ),
    function("base64gzip", base64gzip).takes(&[string("str")]).gives(Accepts::String).says(
        "The Base64 of a text compressed with gzip.",
        "base64gunzip(base64gzip(\"Hello\"))",
        "\"Hello\"",
    ),
    function("textdecodebase64", textdecodebase64)
        .takes(&[string("source"), string("encoding")])
        .gives(Accepts::String)
        .says(
            "The text that Base64 stands for in a character encoding.",
            "textdecodebase64(\"SABlAGwAbABvAA==\", \"UTF-16LE\")",
            "\"Hello\"",
        ),
    function("textencodebase64", textencodebase64)
        .takes(&[string("string"), string("encoding")])
        .gives(Accepts::String)
        .says(
            "The Base64 of a text in a character encoding.",
            "textencodebase64(\"Hello\", \"UTF-16LE\")",
            "\"SABlAGwAbABvAA==\"",
        ),
    function("urldecode", urldecode).takes(&[string("str")]).gives(Accepts::String).says(
        "The text that a URL-encoded text stands for.",
        "urldecode(\"Hello%2C+World\")",
        "\"Hello, World\"",
    ),
    function("urlencode", urlencode).takes(&[string("str")]).gives(Accepts::String).says(
        "A text in the encoding of a URL's query.",
        "urlencode(\"Hello, World\")",
        "\"Hello%2C+World\"",
    ),
];

/// As upstream, bits after the last byte may be anything, and line breaks anywhere are ignored.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

pub fn base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    LENIENT.decode(text).ok()
}

pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn base64encode(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(Value::string(&to_base64(call.text(0).as_bytes())))
}

fn base64decode(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let text = call.plain(0, &mut marks);
    let text = text.as_str().unwrap_or_default();
    let bytes = base64(text).ok_or_else(|| Failure::of(0, format!("{} is not valid Base64", shown(text, &marks))))?;
    let decoded = String::from_utf8(bytes).map_err(|_| Failure::of(0, "the decoded text is not UTF-8"))?;
    Ok(Value::string(&decoded).with_marks(&marks))
}

fn base64gzip(call: &Call<'_>) -> Result<Value, Failure> {
    // About what compression takes.
    call.scope.budget.step(call.text(0).len() as u64 / 16)?;
    Ok(Value::string(&to_base64(&gzip::compress(call.text(0).as_bytes()))))
}

fn base64gunzip(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let text = call.plain(0, &mut marks);
    let text = text.as_str().unwrap_or_default();
    let bytes = base64(text).ok_or_else(|| Failure::of(0, format!("{} is not valid Base64", shown(text, &marks))))?;
    let decoded = gunzipped(&bytes, call.scope)?;
    Ok(Value::string(&String::from_utf8_lossy(&decoded)).with_marks(&marks))
}

/// A few bytes can stand for gigabytes, so each part is paid for before the next is read.
fn gunzipped(bytes: &[u8], scope: &Scope<'_>) -> Result<Vec<u8>, Failure> {
    let mut gzip = MultiGzDecoder::new(bytes);
    let (mut decoded, mut part) = (Vec::new(), [0; 8192]);
    loop {
        match gzip.read(&mut part) {
            Ok(0) => return Ok(decoded),
            Ok(count) => {
                scope.budget.hold(count)?;
                decoded.extend_from_slice(&part[..count]);
            }
            Err(_) => return Err(Failure::of(0, "the data is not valid gzip")),
        }
    }
}

/// The encodings that are not those of the web under these names, and the others.
enum Charset {
    Utf16 {
        little: bool,
        mark: bool,
    },
    /// Bytes below a limit are the first characters of Unicode.
    Direct {
        limit: u32,
    },
    Web(&'static Encoding),
}

fn charset(name: &str) -> Result<Charset, Failure> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "UTF-16LE" => Charset::Utf16 { little: true, mark: false },
        "UTF-16BE" => Charset::Utf16 { little: false, mark: false },
        "UTF-16" => Charset::Utf16 { little: false, mark: true },
        "US-ASCII" | "ASCII" => Charset::Direct { limit: 0x80 },
        "ISO-8859-1" | "LATIN1" | "ISO_8859-1" => Charset::Direct { limit: 0x100 },
        _ => match Encoding::for_label(name.as_bytes()) {
            Some(encoding) => Charset::Web(encoding),
            None => return Err(Failure::of(1, format!("\"{name}\" is not a supported character encoding"))),
        },
    })
}

fn textencodebase64(call: &Call<'_>) -> Result<Value, Failure> {
    let (text, name) = (call.text(0), call.text(1));
    let bytes = match charset(name)? {
        Charset::Utf16 { little, mark } => {
            let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            Some(units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect())
        }
        Charset::Direct { limit } => {
            text.chars().map(|letter| u8::try_from(letter).ok().filter(|_| u32::from(letter) < limit)).collect()
        }
        Charset::Web(encoding) => {
            let (bytes, _, has_unmappable) = encoding.encode(text);
            (!has_unmappable).then(|| bytes.into_owned())
        }
    };
    let bytes: Vec<u8> =
        bytes.ok_or_else(|| Failure::of(0, format!("the text has characters that {name} does not have")))?;
    Ok(Value::string(&to_base64(&bytes)))
}

fn textdecodebase64(call: &Call<'_>) -> Result<Value, Failure> {
    let name = call.text(1);
    let charset = charset(name)?;
    let bytes = base64(call.text(0)).ok_or_else(|| Failure::of(0, "the source is not valid Base64"))?;
    let text = match charset {
        Charset::Utf16 { little, mark } => decoded_utf16(&bytes, little, mark),
        Charset::Direct { limit } => {
            bytes.iter().map(|byte| Some(char::from(*byte)).filter(|_| u32::from(*byte) < limit)).collect()
        }
        Charset::Web(encoding) => {
            encoding.decode_without_bom_handling_and_without_replacement(&bytes).map(std::borrow::Cow::into_owned)
        }
    };
    match text {
        Some(text) if !text.contains('\u{fffd}') => Ok(Value::string(&text)),
        _ => Err(Failure::of(0, format!("the source has bytes that mean nothing in {name}"))),
    }
}

fn decoded_utf16(bytes: &[u8], little: bool, mark: bool) -> Option<String> {
    let (little, bytes) = match bytes {
        [0xff, 0xfe, rest @ ..] if mark => (true, rest),
        [0xfe, 0xff, rest @ ..] if mark => (false, rest),
        _ if mark => return None,
        _ => (little, bytes),
    };
    if bytes.len() % 2 == 1 {
        return None;
    }
    let units = bytes.chunks(2).map(|pair| {
        let pair = [pair[0], pair[1]];
        if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
    });
    String::from_utf16(&units.collect::<Vec<_>>()).ok()
}

fn urlencode(call: &Call<'_>) -> Result<Value, Failure> {
    let mut out = String::new();
    for byte in call.text(0).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(Value::string(&out))
}

fn urldecode(call: &Call<'_>) -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    let mut rest = call.text(0).bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let [high, low] = [rest.next(), rest.next()].map(|byte| char::from(byte?).to_digit(16));
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(Failure::of(0, "a `%` must be followed by two hexadecimal digits"));
                };
                bytes.push((16 * high + low) as u8);
            }
            _ => bytes.push(byte),
        }
    }
    Ok(Value::string(&String::from_utf8_lossy(&bytes)))
}

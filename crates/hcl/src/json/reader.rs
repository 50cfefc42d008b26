//! Text in JSON, values out. The first error ends it.

use crate::diagnostic::{Diagnostic, too_long};
use crate::parser::MAX_NESTING;
use crate::source::{Range, Source};
use crate::tree::{JsonValue, JsonValueKind, Name, Property};

type Result<T> = std::result::Result<T, Diagnostic>;

/// Reads a text that is one value.
pub fn read(source: &Source) -> Result<JsonValue> {
    if let Some(diagnostic) = too_long(source) {
        return Err(diagnostic);
    }
    let mut reader = Reader { source, text: source.text(), at: 0, nesting: 0 };
    let value = reader.value()?;
    reader.skip_space();
    if reader.at < reader.text.len() {
        return Err(reader.error("Extraneous data after value", "The file ends after its one JSON value."));
    }
    Ok(value)
}

struct Reader<'a> {
    source: &'a Source,
    text: &'a str,
    at: usize,
    nesting: u16,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn range(&self, start: usize, end: usize) -> Range {
        Range { file: self.source.id(), start: start as u32, end: end as u32 }
    }

    /// An error at the next character.
    fn error(&self, summary: &str, detail: &str) -> Diagnostic {
        let len = self.rest().chars().next().map_or(0, char::len_utf8);
        Diagnostic::new(summary, detail, self.range(self.at, self.at + len))
    }

    fn value(&mut self) -> Result<JsonValue> {
        let next = self.peek();
        let start = self.at;
        let kind = match next {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => JsonValueKind::String(self.string()?),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.keyword()?,
            None => return Err(self.error("Missing value", "The file ends where a value is expected.")),
            Some(_) => {
                let detail = "An object, an array, a string, a number, `true`, `false` or `null` is expected here.";
                return Err(self.error("Missing JSON value", detail));
            }
        };
        Ok(JsonValue { range: self.range(start, self.at), kind })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<JsonValueKind>) -> Result<JsonValueKind> {
        if self.nesting >= MAX_NESTING {
            let detail = format!("There are more than {MAX_NESTING} objects and arrays inside each other.");
            return Err(self.error("Nested too deeply", &detail));
        }
        self.nesting += 1;
        self.at += 1;
        let value = read(self);
        self.nesting -= 1;
        value
    }

    fn object(&mut self) -> Result<JsonValueKind> {
        let open = self.at - 1;
        let mut properties = Vec::new();
        if self.read_if(b'}') {
            return Ok(JsonValueKind::Object(properties));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(
                    self.error("Invalid object property name", "The name of a property is expected here, in quotes.")
                );
            }
            let start = self.at;
            let text = self.string()?;
            let name = Name { text, range: self.range(start, self.at) };
            if !self.read_if(b':') {
                let error =
                    self.error("Missing property value colon", "A colon is expected after the name of a property.");
                let equals = self.peek() == Some(b'=');
                return Err(if equals { error.hint("in JSON syntax, write `:` for `=`") } else { error });
            }
            let value = self.value()?;
            properties.push(Property { name, value });
            if self.ends(open, b'}', "object")? {
                return Ok(JsonValueKind::Object(properties));
            }
        }
    }

    fn array(&mut self) -> Result<JsonValueKind> {
        let open = self.at - 1;
        let mut values = Vec::new();
        if self.read_if(b']') {
            return Ok(JsonValueKind::Array(values));
        }
        loop {
            values.push(self.value()?);
            if self.ends(open, b']', "array")? {
                return Ok(JsonValueKind::Array(values));
            }
        }
    }

    fn read_if(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Reads what follows an element: its closing bracket, or a comma.
    fn ends(&mut self, open: usize, close: u8, what: &str) -> Result<bool> {
        if self.read_if(close) {
            return Ok(true);
        }
        if self.peek().is_none() {
            let detail = format!("The {what} is not closed before the file ends.");
            return Err(Diagnostic::new(format!("Unclosed {what}"), detail, self.range(open, open + 1)));
        }
        let comma = self.at;
        if !self.read_if(b',') {
            let detail = format!("A comma or the end of the {what} is expected here.");
            return Err(self.error("Missing comma", &detail));
        }
        if self.peek() == Some(close) {
            let detail = format!("The last element of an {what} has no comma after it.");
            return Err(Diagnostic::new(format!("Trailing comma in {what}"), detail, self.range(comma, comma + 1)));
        }
        Ok(false)
    }

    fn keyword(&mut self) -> Result<JsonValueKind> {
        let rest = self.rest();
        let len = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'_').count();
        let kind = match &rest[..len] {
            "null" => JsonValueKind::Null,
            "true" => JsonValueKind::Bool(true),
            "false" => JsonValueKind::Bool(false),
            word => {
                let detail = format!("`{word}` is no value in JSON: text is in quotes.");
                return Err(Diagnostic::new("Invalid JSON keyword", detail, self.range(self.at, self.at + len)));
            }
        };
        self.at += len;
        Ok(kind)
    }

    fn number(&mut self) -> Result<JsonValueKind> {
        let rest = self.rest();
        let len = rest.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
        let text = &rest[..len];
        if !is_number(text) {
            let range = self.range(self.at, self.at + len);
            return Err(Diagnostic::new("Invalid JSON number", "This is no number as JSON has them.", range));
        }
        self.at += len;
        Ok(JsonValueKind::Number(text.to_owned()))
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let len = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=31)).unwrap_or(rest.len());
            text.push_str(&rest[..len]);
            self.at += len;
            match rest.as_bytes().get(len) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) if self.source.broken().binary_search(&(self.at as u32)).is_ok() => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.at += 1;
                }
                _ => {
                    let range = self.range(start, self.at);
                    return Err(Diagnostic::new(
                        "Invalid JSON string",
                        "The closing quote is missing on this line.",
                        range,
                    ));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let rest = self.rest();
        let c = match rest.as_bytes().get(1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
            Some(b'u') => {
                let (c, len) = unicode(rest).ok_or_else(|| self.invalid_escape())?;
                self.at += len;
                return Ok(c);
            }
            _ => return Err(self.invalid_escape()),
        };
        self.at += 2;
        Ok(c)
    }

    fn invalid_escape(&self) -> Diagnostic {
        let detail = "The escapes are \\n, \\r, \\t, \\b, \\f, \\\", \\\\, \\/ and \\uNNNN.";
        Diagnostic::new("Invalid JSON string", detail, self.range(self.at, self.at + 1))
    }
}

/// Reads `\uNNNN`, or two of them that stand for one character. Half of a pair stands for no character.
fn unicode(text: &str) -> Option<(char, usize)> {
    let first = code_unit(text)?;
    let pair = text.get(6..).and_then(code_unit).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match (char::from_u32(u32::from(first)), pair) {
        (Some(c), _) => Some((c, 6)),
        (None, Some(c)) => Some((c, 12)),
        (None, None) => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
    u16::from_str_radix(digits, 16).ok()
}

/// An optional sign, digits without a leading zero, and optional digits after a point and in an exponent.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    are_digits(whole) && !leading_zero && are_digits(fraction) && are_digits(exponent)
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

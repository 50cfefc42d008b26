//! A JSON reader that keeps all digits of numbers and enforces limits on depth and size.

use std::borrow::Cow;

use crate::Error;
use crate::limits::Limits;

#[derive(Clone)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    limits: Limits,
}

/// A string, number or boolean.
pub enum Scalar<'a> {
    String(Cow<'a, str>),
    /// The digits as written.
    Number(&'a str),
    Bool(bool),
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, limits: Limits::default() }
    }

    /// Runs `read` for one element, one level deeper. Fails when a limit is exceeded.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.limits.enter()?;
        let result = read(self);
        self.limits.leave();
        result
    }

    /// Adds the elements that a clone of this reader has read.
    pub fn add_elements(&mut self, copy: &Self) {
        self.limits.add_elements(copy.limits);
    }

    /// Fails unless the whole text has been read.
    pub fn expect_end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed()),
        }
    }

    /// Returns the next byte after whitespace without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed(&self) -> Error {
        Error::new(format!("malformed JSON at byte {}", self.at))
    }

    /// Consumes `wanted` if it is next.
    fn eat(&mut self, wanted: u8) -> bool {
        let comes = self.peek() == Some(wanted);
        self.at += usize::from(comes);
        comes
    }

    /// Consumes the word if it is next.
    fn eat_word(&mut self, word: &str) -> bool {
        self.peek();
        let comes = self.text[self.at..].starts_with(word);
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// Consumes a null if it is next.
    pub fn null(&mut self) -> Result<bool, Error> {
        match self.peek() {
            Some(b'n') if self.eat_word("null") => Ok(true),
            Some(b'n') | None => Err(self.malformed()),
            Some(_) => Ok(false),
        }
    }

    /// Reads a string, number or boolean. Returns `None`, and consumes nothing, if an array or object is next.
    pub fn scalar(&mut self) -> Result<Option<Scalar<'a>>, Error> {
        Ok(Some(match self.peek() {
            Some(b'"') => Scalar::String(self.string()?),
            Some(b't') if self.eat_word("true") => Scalar::Bool(true),
            Some(b'f') if self.eat_word("false") => Scalar::Bool(false),
            Some(b'-' | b'0'..=b'9') => Scalar::Number(self.number()?),
            Some(b'[' | b'{') => return Ok(None),
            _ => return Err(self.malformed()),
        }))
    }

    pub fn is_array(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    fn number(&mut self) -> Result<&'a str, Error> {
        let rest = &self.text[self.at..];
        let length =
            rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count();
        let written = &rest[..length];
        if !is_number(written) {
            return Err(self.malformed());
        }
        self.at += written.len();
        Ok(written)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let mut has_escapes = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            has_escapes |= escaped || byte < b' ';
            closes
        });
        let literal = &rest[..end.ok_or_else(|| self.malformed())? + 2];
        let string = if has_escapes {
            Cow::Owned(serde_json::from_str(literal).map_err(|_| self.malformed())?)
        } else {
            Cow::Borrowed(&literal[1..literal.len() - 1])
        };
        self.at += literal.len();
        Ok(string)
    }

    /// Reads an array; `read` reads each item.
    pub fn items(
        &mut self,
        required: &dyn Fn() -> Error,
        mut read: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.sequence([b'[', b']'], required, |reader| read(reader))
    }

    /// Reads an object; `read` receives each key and reads its value.
    pub fn entries(
        &mut self,
        required: &dyn Fn() -> Error,
        mut read: impl FnMut(&mut Self, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.sequence([b'{', b'}'], required, |reader| {
            if reader.peek() != Some(b'"') {
                return Err(reader.malformed());
            }
            let key = reader.string()?;
            if !reader.eat(b':') {
                return Err(reader.malformed());
            }
            read(reader, &key)
        })
    }

    fn sequence(
        &mut self,
        [open, close]: [u8; 2],
        required: &dyn Fn() -> Error,
        mut read: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.eat(open) {
            return Err(required());
        }
        if self.eat(close) {
            return Ok(());
        }
        loop {
            read(self)?;
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.malformed());
            }
        }
    }

    /// Skips the next value.
    pub fn skip(&mut self) -> Result<(), Error> {
        self.deeper(|reader| match reader.peek() {
            Some(b'[') => reader.items(&malformed, Self::skip),
            Some(b'{') => reader.entries(&malformed, |reader, _| reader.skip()),
            _ if reader.null()? => Ok(()),
            _ => reader.scalar().map(drop),
        })
    }

    /// Skips the next value and returns its text.
    pub fn skip_raw(&mut self) -> Result<&'a str, Error> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }
}

/// The error of a missing array or object where the reader has already seen one.
pub fn malformed() -> Error {
    Error::new("malformed JSON")
}

/// Whether the text follows JSON's number syntax.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

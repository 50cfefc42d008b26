//! Numbers that keep all digits of whole numbers and decimals of any size.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Parses a number of bytes as Kubernetes writes it. `None` if it is not valid.
pub fn quantity(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// A number without loss of digits.
#[derive(Clone, Debug)]
pub enum Number {
    /// A whole number that fits 64 bits.
    Int(i64),
    /// A finite number that `f64` represents without loss of digits.
    Float(f64),
    /// The digits of every other number.
    Decimal(Arc<str>),
}

impl Number {
    /// Parses a JSON number. Returns `None` for other strings.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(int) = text.parse::<i64>() {
            return Some(Self::Int(int));
        }
        let digits = text.bytes().any(|b| b.is_ascii_digit());
        let valid = digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        if !valid {
            return None;
        }
        let float = text.parse::<f64>().ok()?;
        let significant = text.bytes().take_while(|b| !matches!(b, b'e' | b'E')).filter(u8::is_ascii_digit).count();
        // An f64 keeps every decimal of up to 15 significant digits, and some longer fractions.
        let survives = significant <= 15 || text.contains('.') && float.to_string() == text;
        if float.is_finite() && survives {
            return Some(Self::from(float));
        }
        Some(Self::Decimal(as_json(text).into()))
    }

    /// Converts to `serde_json`, where a `Decimal` becomes a string unless it fits into a `u64`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Int(int) => (*int).into(),
            Self::Float(float) => (*float).into(),
            Self::Decimal(text) => text.parse::<u64>().map_or_else(|_| (&**text).into(), Into::into),
        }
    }
}

/// Returns digits in JSON syntax: without leading zeros, and with digits on both sides of the point.
fn as_json(text: &str) -> String {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_at(unsigned.find(['e', 'E']).unwrap_or(unsigned.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}{exponent}")
}

impl From<i64> for Number {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<f64> for Number {
    fn from(float: f64) -> Self {
        // 2^53: an f64 represents all smaller whole numbers exactly.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        if float.fract() == 0.0 && float.abs() < EXACT { Self::Int(float as i64) } else { Self::Float(float) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => write!(f, "{int}"),
            Self::Float(float) => write!(f, "{float}"),
            Self::Decimal(text) => f.write_str(text),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b) == Ordering::Equal,
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Number {}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(int) => serializer.serialize_i64(*int),
            Self::Float(float) => serializer.serialize_f64(*float),
            // JSON text keeps the digits. A `serde_json::Value` would round them.
            Self::Decimal(text) => match RawValue::from_string(text.to_string()) {
                Ok(digits) => digits.serialize(serializer),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_keeps_all_digits() {
        for text in ["-123456789012345678901234567890", "0.12345678901234567890123", "18446744073709551616", "1e400"] {
            let number = Number::parse(text).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), text);
            assert_eq!(number.to_json(), serde_json::json!(text), "a `serde_json::Value` holds a string");
        }
        assert_eq!(Number::parse("18446744073709551615").unwrap().to_json(), serde_json::json!(u64::MAX));
    }

    #[test]
    fn numbers_keep_their_digits() {
        for text in ["0", "-7", "9223372036854775807", "9223372036854775808", "0.1", "3.141592653589793238", "1.5"] {
            assert_eq!(Number::parse(text).map(|n| n.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Number::parse("0.30000000000000004"), Some(Number::from(0.1 + 0.2)));
        assert_eq!(Number::parse("2.0"), Some(Number::Int(2)));
        assert_eq!(Number::parse("1e3"), Some(Number::Int(1000)));
        for (given, kept) in [
            ("00123456789012345678901", "123456789012345678901"),
            ("-.1234567890123456789", "-0.1234567890123456789"),
            ("1234567890123456789.e1", "1234567890123456789e1"),
        ] {
            assert_eq!(Number::parse(given).map(|n| n.to_string()).as_deref(), Some(kept));
        }
        assert!(Number::parse("-").is_none() && Number::parse("abc").is_none());
    }
}

//! Numbers that keep what they were given: whole numbers of any size and decimals never lose digits.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A number. `Int` when it is whole and fits, `Float` when its shortest decimal form is exact as `f64`,
/// otherwise the digits as they were written.
#[derive(Clone, Debug)]
pub enum Number {
    /// A whole number that fits 64 bits.
    Int(i64),
    /// A finite number that an `f64` prints back as it was written.
    Float(f64),
    /// The decimal text of every other number.
    Decimal(Arc<str>),
}

impl Number {
    /// Reads a JSON number. Gives `None` for text that is no JSON number.
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
        // Every decimal of up to 15 significant digits survives the way through an f64; longer fractions may.
        let survives = significant <= 15 || text.contains('.') && float.to_string() == text;
        if float.is_finite() && survives {
            return Some(Self::from(float));
        }
        Some(Self::Decimal(text.into()))
    }
}

impl From<i64> for Number {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<f64> for Number {
    fn from(float: f64) -> Self {
        // 2^53 bounds the whole numbers that every f64 holds exactly.
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
            // JSON output of an exact decimal: as a number where the writer keeps digits, else as text.
            Self::Decimal(text) => match text.parse::<u64>() {
                Ok(unsigned) => serializer.serialize_u64(unsigned),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for text in ["0", "-7", "9223372036854775807", "9223372036854775808", "0.1", "3.141592653589793238", "1.5"] {
            assert_eq!(Number::parse(text).map(|n| n.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Number::parse("0.30000000000000004"), Some(Number::from(0.1 + 0.2)));
        assert_eq!(Number::parse("2.0"), Some(Number::Int(2)));
        assert_eq!(Number::parse("1e3"), Some(Number::Int(1000)));
        assert!(Number::parse("-").is_none() && Number::parse("abc").is_none());
    }
}

//! Decimal numbers of any size and precision.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The maximum number of digits before and after the point: an `f64` never needs more than 1,100. Without a limit, a
/// number such as `1e999999999` would take a gigabyte.
const MAX_DIGITS: usize = 4096;

/// A decimal number. As in go-cty, two numbers are equal if their shortest round-trip representations are equal: the
/// `f64` nearest to 0.1 equals 0.1.
#[derive(Clone, Debug)]
pub enum Decimal {
    /// Every integer that fits 64 bits.
    Int(i64),
    /// A finite number with a fraction that came from an `f64` or is exactly representable as one.
    Float(f64),
    /// Every other number: digits with at most one point, without an exponent, redundant zeros or `+`.
    Digits(Arc<str>),
}

impl Decimal {
    /// Parses digits with an optional sign, point and exponent. Returns `None` for any other string, and for more than
    /// 4,096 digits.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(int) = text.parse::<i64>() {
            return Some(Self::Int(int));
        }
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !all_digits || whole.len() + fraction.len() == 0 || mantissa.len() > MAX_DIGITS {
            return None;
        }
        let point = signed(whole.len()) + i64::from(exponent);
        Self::from_digits(negative, &format!("{whole}{fraction}"), point)
    }

    /// Returns the number with the given digits and the point after the first `point` of them.
    fn from_digits(negative: bool, digits: &str, point: i64) -> Option<Self> {
        let significant = digits.trim_start_matches('0');
        let point = point - signed(digits.len() - significant.len());
        let significant = significant.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Self::Int(0));
        }
        let zeros =
            |count: i64| usize::try_from(count).ok().filter(|count| *count <= MAX_DIGITS).map(|n| "0".repeat(n));
        let length = signed(significant.len());
        let unsigned = if point >= length {
            format!("{significant}{}", zeros(point - length)?)
        } else if point > 0 {
            let (whole, fraction) = significant.split_at(usize::try_from(point).ok()?);
            format!("{whole}.{fraction}")
        } else {
            format!("0.{}{significant}", zeros(-point)?)
        };
        let text = if negative { format!("-{unsigned}") } else { unsigned };
        if let Ok(int) = text.parse::<i64>() {
            return Some(Self::Int(int));
        }
        Some(exact_float(&text).map_or_else(|| Self::Digits(text.into()), Self::Float))
    }

    /// Returns `None` for infinity and NaN.
    pub fn from_f64(float: f64) -> Option<Self> {
        // 2^63: a whole f64 of at least this size does not fit an i64.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 64 bits")]
        match float {
            _ if !float.is_finite() => None,
            _ if float.fract() != 0.0 => Some(Self::Float(float)),
            _ if float.abs() < LIMIT => Some(Self::Int(float as i64)),
            _ => Self::parse(&float.to_string()),
        }
    }

    /// Formats the number with at most ten significant digits, like `%.10g` in C and Go.
    pub(super) fn to_ten_digits(&self) -> String {
        let text = self.to_string();
        let (sign, unsigned) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let skipped = digits.len() - significant.len();
        let (rounded, carried) = round_digits(significant, 10);
        let mantissa = rounded.trim_end_matches('0');
        let point = signed(whole.len()) - signed(skipped) + i64::from(carried);
        if mantissa.is_empty() {
            return "0".to_owned();
        }
        let length = signed(mantissa.len());
        let most = if length < 10 && length >= point { length } else { 10 };
        if point - 1 < -4 || point > most {
            let (first, rest) = mantissa.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let exponent = point - 1;
            let mark = if exponent < 0 { '-' } else { '+' };
            return format!("{sign}{first}{dot}{rest}e{mark}{:02}", exponent.abs());
        }
        match Self::from_digits(false, mantissa, point) {
            Some(plain) => format!("{sign}{plain}"),
            None => text,
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Rounds half up to the first `count` digits. Also returns whether that added a digit in front.
fn round_digits(digits: &str, count: usize) -> (String, bool) {
    if digits.len() <= count {
        return (digits.to_owned(), false);
    }
    let mut kept: Vec<u8> = digits.as_bytes()[..count].to_vec();
    if digits.as_bytes()[count] < b'5' {
        return (digits[..count].to_owned(), false);
    }
    for digit in kept.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return (kept.into_iter().map(char::from).collect(), false);
        }
        *digit = b'0';
    }
    (format!("1{}", "0".repeat(count)), true)
}

/// Returns the `f64` that exactly equals a canonical number with a fraction, if there is one.
fn exact_float(text: &str) -> Option<f64> {
    let (_, fraction) = text.split_once('.')?;
    let float: f64 = text.parse().ok()?;
    if !float.is_normal() {
        return None;
    }
    let bits = float.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).ok()? - 1075;
    let mantissa = bits & ((1 << 52) - 1) | (1 << 52);
    // An odd number divided by 2^k has exactly k decimals, so a number with another count of decimals is different.
    let binary_places = -(exponent + i64::from(mantissa.trailing_zeros()));
    let exact = signed(fraction.len()) == binary_places && format!("{float:.*}", fraction.len()) == text;
    exact.then_some(float)
}

impl From<i64> for Decimal {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u64> for Decimal {
    fn from(int: u64) -> Self {
        i64::try_from(int).map_or_else(|_| Self::Digits(int.to_string().into()), Self::Int)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => write!(f, "{int}"),
            Self::Float(float) => write!(f, "{float}"),
            Self::Digits(text) => f.write_str(text),
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Digits(a), Self::Digits(b)) => a == b,
            (Self::Float(float), Self::Digits(text)) | (Self::Digits(text), Self::Float(float)) => {
                float.to_string() == **text
            }
            _ => false,
        }
    }
}

impl Eq for Decimal {}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Self::Int(a), Self::Int(b)) = (self, other) {
            return a.cmp(b);
        }
        let (a, b) = (self.to_string(), other.to_string());
        match (a.strip_prefix('-'), b.strip_prefix('-')) {
            (None, None) => compare_unsigned(&a, &b),
            (Some(a), Some(b)) => compare_unsigned(b, a),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn compare_unsigned(a: &str, b: &str) -> Ordering {
    let (whole_a, fraction_a) = a.split_once('.').unwrap_or((a, ""));
    let (whole_b, fraction_b) = b.split_once('.').unwrap_or((b, ""));
    (whole_a.len(), whole_a, fraction_a).cmp(&(whole_b.len(), whole_b, fraction_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(written: &str) -> Option<String> {
        Decimal::parse(written).map(|number| number.to_string())
    }

    #[test]
    fn every_notation_has_one_canonical_form() {
        for (written, canonical) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("007", "7"),
            ("1e3", "1000"),
            ("1.50", "1.5"),
            ("+.5", "0.5"),
            ("5.", "5"),
            ("12.5e-3", "0.0125"),
            ("9223372036854775808", "9223372036854775808"),
            ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
            ("-1E+30", "-1000000000000000000000000000000"),
        ] {
            assert_eq!(text(written).as_deref(), Some(canonical), "{written}");
        }
        for refused in ["", "-", ".", "e5", "1e", "0x10", "1_000", "Inf", "NaN", "1e999999999", "1e-999999999", " 1"] {
            assert_eq!(text(refused), None, "{refused}");
        }
    }

    #[test]
    fn only_exactly_representable_numbers_become_floats() {
        let float = |text: &str| matches!(Decimal::parse(text), Some(Decimal::Float(_)));
        assert!(
            float("0.5") && float("-1234.0625") && float("0.1000000000000000055511151231257827021181583404541015625")
        );
        assert!(!float("0.1") && !float("0.3") && !float("12345678901234567.5"));
        assert_eq!(Decimal::from_f64(1e15), Some(Decimal::Int(1_000_000_000_000_000)));
        assert_eq!(Decimal::from_f64(f64::NAN), None);
        assert_eq!(Decimal::from_f64(f64::INFINITY), None);
    }

    #[test]
    fn numbers_are_equal_by_their_shortest_form() {
        assert_eq!(Decimal::from_f64(0.1), Decimal::parse("0.1"));
        assert_eq!(Decimal::from_f64(1e30), Decimal::parse("1e30"));
        assert_ne!(Decimal::from_f64(0.1), Decimal::parse("0.10000000000000001"));
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ordered = ["-1e20", "-2.5", "-2.25", "-1", "0", "0.1", "0.11", "0.2", "1", "10", "9.3e18", "1e20"];
        let numbers: Vec<_> = ordered.iter().map(|text| Decimal::parse(text).unwrap()).collect();
        assert!(numbers.is_sorted());
    }

    #[test]
    fn ten_digits_are_written_as_go_does() {
        for (number, expected) in [
            ("0", "0"),
            ("100", "100"),
            ("-12.5", "-12.5"),
            ("12345678901", "1.23456789e+10"),
            ("1e20", "1e+20"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("0.12345678916", "0.1234567892"),
            ("9999999999.9", "1e+10"),
            ("1234567890", "1234567890"),
        ] {
            assert_eq!(Decimal::parse(number).unwrap().to_ten_digits(), expected, "{number}");
        }
    }
}

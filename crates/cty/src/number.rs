//! Numbers: binary floating point with a precision of up to 512 bits and rounding to nearest even, as Go's `big.Float`.
//!
//! The precision is a property of each number: a literal has 512 bits, the length of a list 64, the result of a
//! logarithm 53. A result has the larger precision of its operands, so it decides which digits a quotient has.
mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The precision of literals and of numbers that come from strings.
const LITERAL: u32 = 512;
const INTEGER: u32 = 64;
const FLOAT: u32 = 53;

/// Exponents of two beyond this are refused. `1e20000` is within it; without a limit a few characters of source would
/// take gigabytes.
const MAX_EXPONENT: i64 = 1 << 17;

/// A finite number or an infinity. `-0` does not exist.
#[derive(Clone, Debug)]
pub struct Number {
    precision: u32,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// Every integer that fits.
    Int(i64),
    Finite(Arc<Finite>),
    Infinite {
        negative: bool,
    },
}

/// `mantissa * 2^exponent`; the mantissa is odd.
#[derive(Debug)]
struct Finite {
    negative: bool,
    mantissa: BigUint,
    exponent: i64,
}

impl Number {
    pub const ZERO: Self = Self { precision: INTEGER, form: Form::Int(0) };
    pub const INFINITY: Self = Self { precision: INTEGER, form: Form::Infinite { negative: false } };
    pub const NEGATIVE_INFINITY: Self = Self { precision: INTEGER, form: Form::Infinite { negative: true } };

    /// Parses digits with an optional sign, point and exponent, or `Inf`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(int) = text.parse::<i64>() {
            return Some(Self { precision: LITERAL, form: Form::Int(int) });
        }
        decimal::parse(text)
    }

    /// Like [`Self::parse`], without infinities.
    pub fn parse_finite(text: &str) -> Option<Self> {
        Self::parse(text).filter(|number| !number.is_infinite())
    }

    /// `None` for a float that is not a number.
    pub fn from_f64(float: f64) -> Option<Self> {
        if float.is_nan() {
            return None;
        }
        if float.is_infinite() {
            return Some(if float < 0.0 { Self::NEGATIVE_INFINITY } else { Self::INFINITY });
        }
        let bits = float.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = match (bits >> 52) & 0x7ff {
            0 => (fraction, -1074),
            exponent => (fraction | (1 << 52), i64::try_from(exponent).ok()? - 1075),
        };
        Self::rounded(float < 0.0, BigUint::from(mantissa), exponent, false, FLOAT)
    }

    pub fn from_bigint(int: &BigInt) -> Self {
        let precision = u32::try_from(int.bits()).unwrap_or(u32::MAX).max(INTEGER);
        Self::rounded(int.is_negative(), int.magnitude().clone(), 0, false, precision).unwrap_or(Self::INFINITY)
    }

    /// An integer with the precision of a literal, as when it is read from digits.
    fn from_bigint_512(int: &BigInt) -> Self {
        Self::rounded(int.is_negative(), int.magnitude().clone(), 0, false, LITERAL).unwrap_or(Self::INFINITY)
    }

    /// The number `mantissa * 2^exponent`, rounded. `sticky` says that the exact value is a little further from zero.
    fn rounded(negative: bool, mut mantissa: BigUint, mut exponent: i64, sticky: bool, precision: u32) -> Option<Self> {
        let excess = mantissa.bits().saturating_sub(u64::from(precision));
        if excess > 0 {
            let half = BigUint::one() << (excess - 1);
            let rest = &mantissa & ((BigUint::one() << excess) - 1u32);
            mantissa >>= excess;
            exponent += i64::try_from(excess).ok()?;
            let up = match rest.cmp(&half) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => sticky || mantissa.bit(0),
            };
            if up {
                mantissa += 1u32;
            }
        }
        let Some(zeros) = mantissa.trailing_zeros() else {
            return Some(Self { precision, form: Form::Int(0) });
        };
        mantissa >>= zeros;
        exponent += i64::try_from(zeros).ok()?;
        if exponent.abs() > MAX_EXPONENT {
            return None;
        }
        let fits = (0..=63).contains(&exponent) && mantissa.bits() + exponent.unsigned_abs() <= 63;
        let form = match mantissa.to_i64() {
            Some(int) if fits => Form::Int(if negative { -(int << exponent) } else { int << exponent }),
            _ => Form::Finite(Arc::new(Finite { negative, mantissa, exponent })),
        };
        Some(Self { precision, form })
    }

    /// Sign, mantissa and exponent. `None` for an infinity.
    fn parts(&self) -> Option<(bool, BigUint, i64)> {
        match &self.form {
            Form::Int(int) => Some((*int < 0, BigUint::from(int.unsigned_abs()), 0)),
            Form::Finite(finite) => Some((finite.negative, finite.mantissa.clone(), finite.exponent)),
            Form::Infinite { .. } => None,
        }
    }

    /// Two numbers as integers over the same power of two.
    fn aligned(&self, other: &Self) -> Option<(BigInt, BigInt, i64)> {
        let ((a_negative, a, a_exponent), (b_negative, b, b_exponent)) = (self.parts()?, other.parts()?);
        let exponent = a_exponent.min(b_exponent);
        let a = a << u64::try_from(a_exponent - exponent).ok()?;
        let b = b << u64::try_from(b_exponent - exponent).ok()?;
        let signed =
            |negative, magnitude| BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude);
        Some((signed(a_negative, a), signed(b_negative, b), exponent))
    }

    fn infinity(negative: bool) -> Self {
        if negative { Self::NEGATIVE_INFINITY } else { Self::INFINITY }
    }

    pub fn is_infinite(&self) -> bool {
        matches!(self.form, Form::Infinite { .. })
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        match &self.form {
            Form::Int(int) => int.signum(),
            Form::Finite(finite) if finite.negative => -1,
            Form::Infinite { negative: true } => -1,
            _ => 1,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    pub fn is_integer(&self) -> bool {
        match &self.form {
            Form::Int(_) => true,
            Form::Finite(finite) => finite.exponent >= 0,
            Form::Infinite { .. } => false,
        }
    }

    /// The number, if it is an integer of 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        match &self.form {
            Form::Int(int) => Some(*int),
            Form::Finite(_) if self.is_integer() => self.truncated()?.to_i64(),
            _ => None,
        }
    }

    pub fn to_usize(&self) -> Option<usize> {
        self.to_i64().and_then(|int| usize::try_from(int).ok())
    }

    /// The integer part. `None` for an infinity.
    pub fn truncated(&self) -> Option<BigInt> {
        let (negative, mantissa, exponent) = self.parts()?;
        let magnitude =
            if exponent >= 0 { mantissa << exponent.unsigned_abs() } else { mantissa >> exponent.unsigned_abs() };
        Some(BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude))
    }

    pub fn to_f64(&self) -> f64 {
        match &self.form {
            // Rounded to the nearest, as the cast does.
            #[expect(clippy::cast_precision_loss, reason = "the nearest float is wanted")]
            Form::Int(int) => *int as f64,
            Form::Infinite { negative } => {
                if *negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Form::Finite(_) => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The number as a float, if it has a fraction and is exactly that float.
    pub fn to_exact_fraction(&self) -> Option<f64> {
        let Form::Finite(finite) = &self.form else { return None };
        let top = finite.exponent + i64::try_from(finite.mantissa.bits()).ok()?;
        if finite.exponent >= 0 || finite.mantissa.bits() > 53 || top < -1021 {
            return None;
        }
        // In two steps, because the power itself may be too small for a float. Every product is exact.
        let exponent = i32::try_from(finite.exponent).ok()?;
        let half = exponent / 2;
        let float = finite.mantissa.to_f64()? * 2f64.powi(half) * 2f64.powi(exponent - half);
        Some(if finite.negative { -float } else { float })
    }

    /// The largest integer that is not above the number.
    #[must_use]
    pub fn floor(&self) -> Self {
        match self.truncated() {
            Some(int) if !self.is_integer() && self.signum() < 0 => Self::from_bigint(&(int - 1)),
            Some(int) => Self::from_bigint(&int),
            None => self.clone(),
        }
    }

    #[must_use]
    pub fn ceil(&self) -> Self {
        match self.truncated() {
            Some(int) if !self.is_integer() && self.signum() > 0 => Self::from_bigint(&(int + 1)),
            Some(int) => Self::from_bigint(&int),
            None => self.clone(),
        }
    }

    #[must_use]
    pub fn negated(&self) -> Self {
        let form = match &self.form {
            Form::Int(int) => match int.checked_neg() {
                Some(negated) => Form::Int(negated),
                None => return self.subtracted_from_zero(),
            },
            Form::Finite(finite) => Form::Finite(Arc::new(Finite {
                negative: !finite.negative,
                mantissa: finite.mantissa.clone(),
                exponent: finite.exponent,
            })),
            Form::Infinite { negative } => Form::Infinite { negative: !negative },
        };
        Self { precision: self.precision, form }
    }

    fn subtracted_from_zero(&self) -> Self {
        let (negative, mantissa, exponent) = self.parts().unwrap_or_default();
        Self::rounded(!negative, mantissa, exponent, false, self.precision).unwrap_or(Self::INFINITY)
    }

    #[must_use]
    pub fn absolute(&self) -> Self {
        if self.signum() < 0 { self.negated() } else { self.clone() }
    }

    /// `None` when the result is not a number or too large.
    pub fn add(&self, other: &Self) -> Option<Self> {
        let precision = self.precision.max(other.precision);
        if let (Form::Int(a), Form::Int(b)) = (&self.form, &other.form)
            && let Some(sum) = a.checked_add(*b)
        {
            return Some(Self { precision, form: Form::Int(sum) });
        }
        match (&self.form, &other.form) {
            (Form::Infinite { negative: a }, Form::Infinite { negative: b }) => (a == b).then(|| self.clone()),
            (Form::Infinite { .. }, _) => Some(self.clone()),
            (_, Form::Infinite { .. }) => Some(other.clone()),
            _ => {
                let (a, b, exponent) = self.aligned(other)?;
                let sum = a + b;
                Self::rounded(sum.is_negative(), sum.magnitude().clone(), exponent, false, precision)
            }
        }
    }

    pub fn subtract(&self, other: &Self) -> Option<Self> {
        self.add(&other.negated())
    }

    /// The product, with as many bits as it needs up to 512.
    pub fn multiply(&self, other: &Self) -> Option<Self> {
        let precision = self.precision.max(other.precision);
        if let (Form::Int(a), Form::Int(b)) = (&self.form, &other.form)
            && let Some(product) = a.checked_mul(*b)
        {
            return Some(Self { precision, form: Form::Int(product) });
        }
        if self.is_infinite() || other.is_infinite() {
            let sign = self.signum() * other.signum();
            return (sign != 0).then(|| Self::infinity(sign < 0));
        }
        let ((a_negative, a, a_exponent), (b_negative, b, b_exponent)) = (self.parts()?, other.parts()?);
        let exact = Self::rounded(a_negative != b_negative, a * b, a_exponent + b_exponent, false, LITERAL)?;
        Some(Self { precision: precision.max(exact.minimum_precision()), form: exact.form })
    }

    /// Whether the shortest digits are all digits: those of an integer below the limit of its precision.
    fn has_all_digits(&self) -> bool {
        match &self.form {
            Form::Int(int) => self.precision >= INTEGER || int.unsigned_abs() >> self.precision == 0,
            _ => false,
        }
    }

    fn minimum_precision(&self) -> u32 {
        match &self.form {
            Form::Finite(finite) => u32::try_from(finite.mantissa.bits()).unwrap_or(LITERAL),
            Form::Int(_) => INTEGER,
            Form::Infinite { .. } => 0,
        }
    }

    /// The quotient; a number divided by zero is an infinity.
    pub fn divide(&self, other: &Self) -> Option<Self> {
        let precision = self.precision.max(other.precision);
        let negative = (self.signum() < 0) != (other.signum() < 0);
        match (self.parts(), other.parts()) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::infinity(negative)),
            (Some(_), None) => Some(Self::ZERO),
            (Some(_), Some((_, divisor, _))) if divisor.is_zero() => {
                (!self.is_zero()).then(|| Self::infinity(negative))
            }
            (Some((_, dividend, a_exponent)), Some((_, divisor, b_exponent))) => {
                // Two bits more than wanted, and the remainder as the sticky bit, round correctly.
                let shift = (u64::from(precision) + 2 + divisor.bits()).saturating_sub(dividend.bits());
                let (quotient, rest) = (dividend << shift).div_rem(&divisor);
                let sticky = !rest.is_zero();
                // The sticky bit stands below the quotient: one more bit keeps a tie apart from it.
                let quotient = (quotient << 1u32) + u32::from(sticky);
                let exponent = a_exponent - b_exponent - i64::try_from(shift).ok()? - 1;
                Self::rounded(negative, quotient, exponent, sticky, precision)
            }
        }
    }

    /// The remainder of a division that rounds toward zero. The number itself if the divisor is zero.
    pub fn remainder(&self, other: &Self) -> Option<Self> {
        if let (Form::Int(a), Form::Int(b)) = (&self.form, &other.form)
            && *b != 0
        {
            return Some(Self { precision: self.precision.max(other.precision), form: Form::Int(a.wrapping_rem(*b)) });
        }
        if other.is_zero() {
            return Some(self.clone());
        }
        let whole = Self::from_bigint_512(&self.divide(other)?.truncated()?);
        self.subtract(&other.multiply(&whole)?)
    }

    /// The value rounded to ten digits as C's `%.10g`, by which sets order what has no order of its own.
    pub(crate) fn to_ten_digits(&self) -> String {
        decimal::ten_digits(self)
    }

    /// The exact value with `digits` digits after the point, rounded half to even.
    pub fn to_fixed(&self, digits: usize) -> String {
        decimal::fixed(self, digits)
    }

    /// The exact value in scientific notation with `digits` digits after the point, or as many as needed.
    pub fn to_scientific(&self, digits: Option<usize>) -> String {
        decimal::scientific(self, digits)
    }

    /// The shorter of plain and scientific notation, as C's `%g`.
    pub fn to_general(&self, digits: Option<usize>) -> String {
        decimal::general(self, digits)
    }
}

/// The shortest digits that give this number back at its precision.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Int(int) if self.has_all_digits() => write!(f, "{int}"),
            Form::Infinite { negative } => f.write_str(if *negative { "-Inf" } else { "+Inf" }),
            Form::Int(_) | Form::Finite(_) => f.write_str(&decimal::shortest(self)),
        }
    }
}

/// Integers are equal by value. Fractions are equal if their shortest digits are: 0.1 + 0.2 equals 0.3.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            (Form::Int(a), Form::Int(b)) => a == b,
            (Form::Infinite { negative: a }, Form::Infinite { negative: b }) => a == b,
            (Form::Finite(a), Form::Finite(b)) => {
                a.negative == b.negative
                    && ((a.exponent == b.exponent && a.mantissa == b.mantissa)
                        || (a.exponent < 0 && b.exponent < 0 && self.to_string() == other.to_string()))
            }
            _ => false,
        }
    }
}

impl Eq for Number {}

impl Number {
    /// The order of the exact values.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (&self.form, &other.form) {
            (Form::Int(a), Form::Int(b)) => a.cmp(b),
            (Form::Infinite { negative: a }, Form::Infinite { negative: b }) => b.cmp(a),
            (Form::Infinite { negative }, _) => {
                if *negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, Form::Infinite { negative }) => {
                if *negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            _ => self.aligned(other).map_or(Ordering::Equal, |(a, b, _)| a.cmp(&b)),
        }
    }
}

impl From<i64> for Number {
    fn from(int: i64) -> Self {
        Self { precision: INTEGER, form: Form::Int(int) }
    }
}

impl From<usize> for Number {
    fn from(int: usize) -> Self {
        i64::try_from(int).map_or(Self::INFINITY, Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn arithmetic_gives_the_digits_of_a_512_bit_float() {
        let third = number("1").divide(&number("3")).unwrap();
        assert_eq!(third.to_string(), format!("0.{}5", "3".repeat(154)));
        assert_eq!(number("0.1").add(&number("0.2")).unwrap().to_string(), "0.3");
        assert_eq!(number("0.1").add(&number("0.2")), Some(number("0.3")));
        assert_eq!(number("1e200").to_string(), format!("1{}", "0".repeat(200)));
        assert_eq!(number("-7.5").remainder(&number("2")).unwrap().to_string(), "-1.5");
        assert_eq!(Number::from(1i64).divide(&Number::from(3i64)).unwrap().to_string(), "0.33333333333333333334");
    }

    #[test]
    fn notations_are_those_of_go() {
        assert_eq!(Number::from_f64(0.1).unwrap().to_string(), "0.1");
        assert_eq!(Number::from_f64(877_331_222_483_667_712.0).unwrap().to_string(), "877331222483667700");
        assert_eq!(number("9223372036854775808").to_string(), "9223372036854775808");
        assert_eq!(number("0.00001").to_ten_digits(), "1e-05");
        assert_eq!(number("12345678901").to_ten_digits(), "1.23456789e+10");
        assert_eq!(number("2.5").to_fixed(0), "2");
        assert_eq!(number("1234.5678").to_scientific(Some(2)), "1.23e+03");
        assert_eq!(number("1e21").to_general(None), "1e+21");
    }

    #[test]
    fn only_exactly_representable_fractions_are_floats() {
        for text in ["0.5", "-1234.0625", "0.1000000000000000055511151231257827021181583404541015625"] {
            let float: f64 = text.parse().unwrap();
            assert_eq!(number(text).to_exact_fraction(), Some(float), "{text}");
        }
        for float in [f64::MIN_POSITIVE, 1.5e-300, 0.1, f64::MIN_POSITIVE * 3.0] {
            assert_eq!(Number::from_f64(float).unwrap().to_exact_fraction(), Some(float));
        }
        for text in ["0.1", "0.3", "12345678901234567.5", "1", "9223372036854775808"] {
            assert_eq!(number(text).to_exact_fraction(), None, "{text}");
        }
    }

    #[test]
    fn huge_exponents_are_refused() {
        assert!(Number::parse("1e999999999").is_none() && Number::parse("1e-999999999").is_none());
    }
}

//! Decimal notation of numbers.
#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "digits and exponents are bounded far below the limits of their types"
)]

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Zero};

use super::{LITERAL, Number};

/// Decimal exponents beyond this are refused before any arithmetic.
const MAX_DECIMAL_EXPONENT: i64 = 30_000;

/// `0.d1d2d3... * 10^point`, without zeros at either end.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

pub fn parse(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "Inf" || unsigned == "inf" {
        return Some(Number::infinity(negative));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    if exponent.abs() > MAX_DECIMAL_EXPONENT || digits.len() > MAX_DECIMAL_EXPONENT as usize {
        return None;
    }
    let digits = BigUint::parse_bytes(digits.as_bytes(), 10)?;
    let power = BigUint::from(10u32).pow(u32::try_from(exponent.unsigned_abs()).ok()?);
    if exponent >= 0 {
        return Number::rounded(negative, digits * power, 0, false, LITERAL);
    }
    let shift = (u64::from(LITERAL) + 2 + power.bits()).saturating_sub(digits.bits());
    let (quotient, rest) = (digits << shift).div_rem(&power);
    let sticky = !rest.is_zero();
    let quotient = (quotient << 1u32) + u32::from(sticky);
    Number::rounded(negative, quotient, -i64::try_from(shift).ok()? - 1, sticky, LITERAL)
}

/// The exact decimal digits of `mantissa * 2^exponent`.
fn exact(mantissa: &BigUint, exponent: i64) -> Digits {
    let (scaled, places) = if exponent >= 0 {
        (mantissa << exponent.unsigned_abs(), 0)
    } else {
        (mantissa * BigUint::from(5u32).pow(exponent.unsigned_abs() as u32), -exponent)
    };
    let text = scaled.to_str_radix(10);
    let point = text.len() as i64 - places;
    let mut digits: Vec<u8> = text.into_bytes();
    trim(&mut digits);
    Digits { point: if digits.is_empty() { 0 } else { point }, digits }
}

fn trim(digits: &mut Vec<u8>) {
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
}

fn digits_of(number: &Number) -> (bool, Digits) {
    let (negative, mantissa, exponent) = number.parts().unwrap_or_default();
    (negative, exact(&mantissa, exponent))
}

impl Digits {
    fn at(&self, index: usize) -> u8 {
        self.digits.get(index).copied().unwrap_or(b'0')
    }

    /// Rounds to `count` digits, half to even.
    fn round(&mut self, count: i64) {
        let Ok(count) = usize::try_from(count) else {
            *self = Self { digits: Vec::new(), point: 0 };
            return;
        };
        if count >= self.digits.len() {
            return;
        }
        let half = self.digits[count] == b'5' && count + 1 == self.digits.len();
        let up = if half { count > 0 && (self.digits[count - 1] - b'0') % 2 == 1 } else { self.digits[count] >= b'5' };
        if up { self.round_up(count) } else { self.round_down(count) }
    }

    fn round_down(&mut self, count: usize) {
        self.digits.truncate(count);
        trim(&mut self.digits);
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    fn round_up(&mut self, count: usize) {
        self.digits.truncate(count);
        while self.digits.last() == Some(&b'9') {
            self.digits.pop();
        }
        match self.digits.last_mut() {
            Some(digit) => *digit += 1,
            None => {
                self.digits.push(b'1');
                self.point += 1;
            }
        }
    }

    /// Without an exponent, with `places` digits after the point.
    fn fixed(&self, places: usize) -> String {
        let mut out = String::new();
        for index in 0..self.point.max(0) {
            out.push(char::from(self.at(index as usize)));
        }
        if out.is_empty() {
            out.push('0');
        }
        if places > 0 {
            out.push('.');
            for place in 0..places as i64 {
                out.push(usize::try_from(self.point + place).map_or('0', |index| char::from(self.at(index))));
            }
        }
        out
    }

    fn places(&self) -> usize {
        usize::try_from(self.digits.len() as i64 - self.point).unwrap_or(0)
    }

    fn scientific(&self, places: usize) -> String {
        let mut out = String::from(char::from(self.at(0)));
        if places > 0 {
            out.push('.');
            out.extend((1..=places).map(|index| char::from(self.at(index))));
        }
        let exponent = if self.digits.is_empty() { 0 } else { self.point - 1 };
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("e{sign}{:02}", exponent.abs()));
        out
    }

    /// Rounds to the fewest digits that lie nearer to this number than to its neighbours.
    fn shorten(&mut self, mantissa: &BigUint, exponent: i64, precision: u32) {
        // With one bit more than the precision, the neighbours at half the distance are integers.
        let shift = i64::from(precision) + 1 - mantissa.bits() as i64;
        let scaled = if shift >= 0 { mantissa << shift.unsigned_abs() } else { mantissa >> shift.unsigned_abs() };
        let exponent = exponent - shift;
        let inclusive = !scaled.bit(1);
        let (lower, upper) =
            (exact(&(&scaled - BigUint::one()), exponent), exact(&(&scaled + BigUint::one()), exponent));
        for index in 0..self.digits.len() {
            let (digit, low, high) = (self.digits[index], lower.at(index), upper.at(index));
            let down = low != digit || (inclusive && index + 1 == lower.digits.len());
            let up = digit != high && (inclusive || digit + 1 < high || index + 1 < upper.digits.len());
            match (down, up) {
                (true, true) => return self.round(index as i64 + 1),
                (true, false) => return self.round_down(index + 1),
                (false, true) => return self.round_up(index + 1),
                (false, false) => {}
            }
        }
    }
}

/// Sign and shortest digits.
fn short(number: &Number) -> (bool, Digits) {
    let (negative, mantissa, exponent) = number.parts().unwrap_or_default();
    let mut digits = exact(&mantissa, exponent);
    if !number.has_all_digits() {
        digits.shorten(&mantissa, exponent, number.precision);
    }
    (negative, digits)
}

fn with_sign(negative: bool, unsigned: String) -> String {
    if negative { format!("-{unsigned}") } else { unsigned }
}

pub fn shortest(number: &Number) -> String {
    let (negative, digits) = short(number);
    let places = digits.places();
    with_sign(negative, digits.fixed(places))
}

pub fn fixed(number: &Number, places: usize) -> String {
    if number.is_infinite() {
        return number.to_string();
    }
    let (negative, mut digits) = digits_of(number);
    digits.round(digits.point + places as i64);
    with_sign(negative, digits.fixed(places))
}

pub fn scientific(number: &Number, places: Option<usize>) -> String {
    if number.is_infinite() {
        return number.to_string();
    }
    let Some(places) = places else {
        let (negative, digits) = short(number);
        let places = digits.digits.len().saturating_sub(1);
        return with_sign(negative, digits.scientific(places));
    };
    let (negative, mut digits) = digits_of(number);
    digits.round(places as i64 + 1);
    with_sign(negative, digits.scientific(places))
}

pub fn general(number: &Number, precision: Option<usize>) -> String {
    if number.is_infinite() {
        return number.to_string();
    }
    let (negative, digits) = match precision {
        None => short(number),
        Some(precision) => {
            let (negative, mut digits) = digits_of(number);
            digits.round(precision.max(1) as i64);
            (negative, digits)
        }
    };
    let length = digits.digits.len();
    // With the shortest digits, an exponent is written as if six were asked for.
    let threshold = match precision {
        None => 6,
        Some(precision) if precision.max(1) > length && length as i64 >= digits.point => length as i64,
        Some(precision) => precision.max(1) as i64,
    };
    let exponent = digits.point - 1;
    let text = if !digits.digits.is_empty() && (exponent < -4 || exponent >= threshold) {
        digits.scientific(length.saturating_sub(1))
    } else {
        digits.fixed(digits.places())
    };
    with_sign(negative, text)
}

pub fn ten_digits(number: &Number) -> String {
    general(number, Some(10))
}

//! Powers and logarithms of floats with the rounding of Go's library, so that `ceil(log(8, 2))` is the same number.

/// The natural logarithm: the argument is reduced to a factor near 1, whose logarithm a polynomial gives.
#[expect(clippy::many_single_char_names, reason = "the names of the published algorithm")]
pub fn ln(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const EVEN: [f64; 4] =
        [6.666_666_666_666_735e-1, 2.857_142_874_366_239e-1, 1.818_357_216_161_805e-1, 1.479_819_860_511_658_6e-1];
    const ODD: [f64; 3] = [3.999_999_999_940_942e-1, 2.222_219_843_214_978_4e-1, 1.531_383_769_920_937_3e-1];
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    let (mut factor, mut exponent) = split(x);
    if factor < std::f64::consts::FRAC_1_SQRT_2 {
        factor *= 2.0;
        exponent -= 1;
    }
    let f = factor - 1.0;
    let k = f64::from(exponent);
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let t1 = s2 * (EVEN[0] + s4 * (EVEN[1] + s4 * (EVEN[2] + s4 * EVEN[3])));
    let t2 = s4 * (ODD[0] + s4 * (ODD[1] + s4 * ODD[2]));
    let r = t1 + t2;
    let half = 0.5 * f * f;
    k * LN2_HIGH - ((half - (s * (half + r) + k * LN2_LOW)) - f)
}

/// `x` as a factor from 0.5 up to 1, and a power of two.
fn split(x: f64) -> (f64, i32) {
    let (x, shift) = if x.is_subnormal() { (x * 2f64.powi(52), -52) } else { (x, 0) };
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | (1022 << 52)), exponent + shift)
}

/// The power by repeated squaring of the whole part of the exponent; the rest goes through the logarithm.
pub fn pow(x: f64, y: f64) -> f64 {
    if let Some(special) = special_power(x, y) {
        return special;
    }
    let magnitude = y.abs();
    let (mut whole, mut fraction) = (magnitude.trunc(), magnitude.fract());
    if fraction != 0.0 && x < 0.0 {
        return f64::NAN;
    }
    if whole >= 9.223_372_036_854_776e18 {
        // Every such exponent is even.
        return match (x.abs().total_cmp(&1.0), y > 0.0) {
            (std::cmp::Ordering::Equal, _) => 1.0,
            (std::cmp::Ordering::Less, true) | (std::cmp::Ordering::Greater, false) => 0.0,
            _ => f64::INFINITY,
        };
    }
    let mut result = 1.0;
    let mut exponent: i64 = 0;
    if fraction != 0.0 {
        if fraction > 0.5 {
            fraction -= 1.0;
            whole += 1.0;
        }
        result = (fraction * ln(x)).exp();
    }
    let (mut square, mut step) = split(x);
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let mut rest = whole as i64;
    while rest != 0 {
        if !(-(1 << 12)..=(1 << 12)).contains(&step) {
            // The result is far outside of the range of a float.
            exponent += i64::from(step);
            break;
        }
        if rest & 1 == 1 {
            result *= square;
            exponent += i64::from(step);
        }
        square *= square;
        step <<= 1;
        if square < 0.5 {
            square += square;
            step -= 1;
        }
        rest >>= 1;
    }
    if y < 0.0 {
        result = 1.0 / result;
        exponent = -exponent;
    }
    scaled(result, exponent)
}

fn special_power(x: f64, y: f64) -> Option<f64> {
    match (x, y) {
        (_, 0.0) | (1.0, _) => Some(1.0),
        (x, 1.0) => Some(x),
        _ if x.is_nan() || y.is_nan() => Some(f64::NAN),
        _ if x == 0.0 || x.is_infinite() || y.is_infinite() => Some(x.powf(y)),
        (x, 0.5) => Some(x.sqrt()),
        (x, -0.5) => Some(1.0 / x.sqrt()),
        _ => None,
    }
}

/// `factor * 2^exponent`, in steps that do not leave the range of a float before the end.
fn scaled(factor: f64, exponent: i64) -> f64 {
    let exponent = exponent.clamp(-3000, 3000) as i32;
    let first = exponent.clamp(-1000, 1000);
    let second = (exponent - first).clamp(-1000, 1000);
    factor * 2f64.powi(first) * 2f64.powi(second) * 2f64.powi(exponent - first - second)
}

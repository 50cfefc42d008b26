//! Durations in Go's format: `30m`, `1h30m`, `1.5s`.

use std::time::Duration;

/// Parses a duration. Returns `None` for invalid syntax, for zero, and for more than a century.
pub fn parse(text: &str) -> Option<Duration> {
    const CENTURY: f64 = 100.0 * 366.0 * 86_400.0;
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        if number.starts_with('.') || number.ends_with('.') {
            return None;
        }
        // A unit that is a prefix of another one comes after it.
        let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, seconds) = units.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * seconds;
        rest = &after[unit.len()..];
    }
    (total > 0.0 && total < CENTURY).then(|| Duration::from_secs_f64(total)).filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_format_of_go() {
        for (text, milliseconds) in
            [("30m", 1_800_000), ("1h30m", 5_400_000), ("1.5s", 1500), ("10ms", 10), ("1m1ms", 60_001)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "30", "m", "-1m", "0s", "1.m", "1 m", "1d", "1e3s", "9999999h", "1..5s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

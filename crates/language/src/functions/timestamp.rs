//! Times in RFC 3339, and durations as Go writes them.

use std::fmt;

/// A time with its offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Since 1970 in UTC.
    seconds: i64,
    nanoseconds: u32,
    /// In seconds.
    offset: i64,
}

pub struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    /// From 0 for Sunday.
    pub weekday: usize,
}

/// Reads the parts of a text one after the other.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = self.0[..digits].parse().ok().filter(|_| digits >= least)?;
        self.0 = &self.0[digits..];
        Some(number)
    }

    fn exact(&mut self, digits: usize) -> Option<u32> {
        self.number(digits, digits)
    }

    fn letter(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.strip_prefix(wanted)?;
        Some(())
    }

    /// Digits after a point, as nanoseconds. More than nine are cut.
    fn fraction(&mut self) -> Option<u32> {
        let Some(rest) = self.0.strip_prefix('.') else { return Some(0) };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        self.0 = &rest[digits..];
        format!("{:0<9}", &rest[..digits])[..9].parse().ok()
    }

    fn offset(&mut self) -> Option<i64> {
        if self.letter('Z').is_some() {
            return Some(0);
        }
        let sign = if self.letter('+').is_some() { 1 } else { self.letter('-').map(|()| -1)? };
        let hours = self.exact(2).filter(|hours| *hours <= 24)?;
        self.letter(':')?;
        let minutes = self.exact(2).filter(|minutes| *minutes < 60)?;
        Some(sign * i64::from(hours * 3600 + minutes * 60))
    }

    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// The time of an RFC 3339 text.
pub fn parse(text: &str) -> Option<Timestamp> {
    let mut scanner = Scanner(text);
    let (year, month, day) = date(&mut scanner, 2)?;
    scanner.letter('T')?;
    let (seconds, nanoseconds) = time(&mut scanner, 2)?;
    let offset = scanner.offset()?;
    scanner.end(Timestamp { seconds: days(year, month, day) * 86_400 + seconds - offset, nanoseconds, offset })
}

/// The times that YAML knows: months, days and so on may have one digit, and the time may be missing.
pub fn parse_yaml(text: &str) -> Option<Timestamp> {
    let mut scanner = Scanner(text);
    let (year, month, day) = date(&mut scanner, 1)?;
    let midnight = days(year, month, day) * 86_400;
    if scanner.0.is_empty() {
        return Some(Timestamp { seconds: midnight, nanoseconds: 0, offset: 0 });
    }
    let zoned = scanner.letter('T').or_else(|| scanner.letter('t')).is_some();
    if !zoned {
        scanner.letter(' ')?;
    }
    let (seconds, nanoseconds) = time(&mut scanner, 1)?;
    let offset = if zoned { scanner.offset()? } else { 0 };
    scanner.end(Timestamp { seconds: midnight + seconds - offset, nanoseconds, offset })
}

fn date(scanner: &mut Scanner<'_>, least: usize) -> Option<(i64, u32, u32)> {
    let year = i64::from(scanner.exact(4)?);
    scanner.letter('-')?;
    let month = scanner.number(least, 2).filter(|month| (1..=12).contains(month))?;
    scanner.letter('-')?;
    let day = scanner.number(least, 2).filter(|day| *day >= 1 && *day <= month_length(year, month))?;
    Some((year, month, day))
}

/// Seconds and nanoseconds of a day.
fn time(scanner: &mut Scanner<'_>, least: usize) -> Option<(i64, u32)> {
    let hour = scanner.number(least, 2).filter(|hour| *hour < 24)?;
    scanner.letter(':')?;
    let minute = scanner.number(least, 2).filter(|minute| *minute < 60)?;
    scanner.letter(':')?;
    let second = scanner.number(least, 2).filter(|second| *second < 60)?;
    Some((i64::from(hour * 3600 + minute * 60 + second), scanner.fraction()?))
}

fn month_length(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date of the Gregorian calendar. A year begins in March here, so leap days come last.
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let day_of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let year = year.rem_euclid(400);
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

impl Timestamp {
    #[expect(clippy::cast_sign_loss, reason = "parts of a date and of a day are positive")]
    pub fn civil(self) -> Civil {
        let local = self.seconds + self.offset;
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400) as u32);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
        let month = if month < 10 { month + 3 } else { month - 9 } as u32;
        Civil {
            year: year + era * 400 + i64::from(month <= 2),
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: (days + 4).rem_euclid(7) as usize,
        }
    }

    /// `+02:30`, with the given separator.
    pub fn offset(self, separator: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
    }

    pub fn is_utc(self) -> bool {
        self.offset == 0
    }

    /// In an order of time, whatever the offsets.
    pub fn instant(self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }

    pub fn plus(self, nanoseconds: i64) -> Self {
        let sum = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds) + i128::from(nanoseconds);
        Self {
            seconds: sum.div_euclid(1_000_000_000) as i64,
            nanoseconds: sum.rem_euclid(1_000_000_000) as u32,
            offset: self.offset,
        }
    }
}

/// RFC 3339 without fractions of a second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, .. } = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.is_utc() { f.write_str("Z") } else { f.write_str(&self.offset(":")) }
    }
}

/// Nanoseconds of a duration such as `-1h30m` or `1.5s`.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum: i128 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (whole, fraction) = rest[..number].split_once('.').unwrap_or((&rest[..number], ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        rest = &rest[number..];
        let end = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(rest.len());
        let unit: i128 = match &rest[..end] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[end..];
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
        // Digits beyond a nanosecond of the largest unit mean nothing.
        let fraction = &fraction[..fraction.len().min(17)];
        let scale = 10i128.pow(fraction.len() as u32);
        let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        sum += whole * unit + fraction * unit / scale;
        parts += 1;
    }
    let sum = if negative { -sum } else { sum };
    i64::try_from(sum).ok().filter(|_| parts > 0)
}

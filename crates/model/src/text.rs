//! Text for people. Values, names and messages come from manifests, providers and clusters, and are written to
//! terminals: a control character in them must not move the cursor, and an invisible one must not hide anything.
//!
//! All text output of the command line is written through [`Text`]. JSON output is exact, and is not.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

/// Bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The meaning of a part of a text, which determines its color. Color is never the only indication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Added,
    Changed,
    Removed,
    Faint,
    Strong,
    Error,
    Warning,
    Success,
}

impl Tone {
    /// The parameter of the ANSI sequence.
    fn code(self) -> &'static str {
        match self {
            Self::Added => "32",
            Self::Changed => "33",
            Self::Removed => "31",
            Self::Faint => "2",
            Self::Strong => "1",
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Success => "1;32",
        }
    }
}

/// A text in which only line breaks and the colors of [`Text::tone`] are control characters. Everything else that is
/// written to it is escaped.
#[derive(Clone, Debug)]
pub struct Text {
    color: bool,
    text: String,
}

impl Text {
    /// Returns an empty text. Without `color`, tones have no effect.
    pub fn new(color: bool) -> Self {
        Self { color, text: String::new() }
    }

    /// Appends a part without a tone.
    pub fn put(&mut self, part: impl Display) -> &mut Self {
        // Writing to a `Text` cannot fail; a `Display` of this crate does not either.
        let _ = write!(self, "{part}");
        self
    }

    /// Appends a part with a tone.
    pub fn tone(&mut self, tone: Tone, part: impl Display) -> &mut Self {
        if !self.color {
            return self.put(part);
        }
        self.text.push_str("\u{1b}[");
        self.text.push_str(tone.code());
        self.text.push('m');
        self.put(part);
        self.text.push_str("\u{1b}[0m");
        self
    }

    pub fn end_line(&mut self) -> &mut Self {
        self.text.push('\n');
        self
    }

    /// Appends another text, which is escaped already.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        self.text.push_str(&other.text);
        self
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Removes the contents and keeps the memory, to write many parts one after another.
    pub fn clear(&mut self) {
        self.text.clear();
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.push_str(&escape(part));
        Ok(())
    }
}

/// Replaces control characters other than the line break, and invisible format characters, by escapes such as `\r` and
/// `\u202e`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a `String` cannot fail.
        let _ = match c {
            '\t' => escaped.write_str("\\t"),
            '\r' => escaped.write_str("\\r"),
            c if is_hidden(c) => write!(escaped, "\\u{:04x}", u32::from(c)),
            c => escaped.write_char(c),
        };
    }
    Cow::Owned(escaped)
}

/// Whether a character moves the cursor, changes the direction of the text around it, or is not visible.
fn is_hidden(c: char) -> bool {
    if matches!(c, '\n' | ' '..='~') {
        return false;
    }
    // Controls, the soft hyphen and the byte order mark; then zero-width characters, line separators, and controls of the
    // direction; then annotations, and copies of ASCII that no font shows.
    matches!(c, '\u{0}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a message on one line: drivers and parsers may return several.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return Cow::Borrowed(text.trim());
    }
    Cow::Owned(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; "))
}

/// Splits a message of one line into its text and the hint in parentheses at its end.
pub fn split_hint(message: &str) -> (&str, Option<&str>) {
    match message.strip_suffix(')').and_then(|text| text.rsplit_once(" (hint: ")) {
        Some((text, hint)) => (text, Some(hint)),
        None => (message, None),
    }
}

/// Returns the beginning of a long text with its length: `abc… (12,345 characters)`.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    // A character has at least one byte.
    let count = if text.len() <= most { 0 } else { text.chars().count() };
    if count <= most {
        return Cow::Borrowed(text);
    }
    let start: String = text.chars().take(most).collect();
    Cow::Owned(format!("{start}… ({})", counted(count, "character")))
}

/// Returns a number with its noun: `1 line`, `12,345 lines`.
pub fn counted(count: usize, noun: &str) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let plural = match noun.strip_suffix("ry") {
        _ if count == 1 => noun.to_owned(),
        Some(start) => format!("{start}ries"),
        None => format!("{noun}s"),
    };
    format!("{grouped} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_last_text_in_parentheses() {
        assert_eq!(split_hint("no (hint: yes (or so))"), ("no", Some("yes (or so)")));
        assert_eq!(split_hint("no (at all)"), ("no (at all)", None));
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let cases = [
            ("plain ä 日 😀\nnext", "plain ä 日 😀\nnext"),
            ("\u{1b}[31mred\u{7}", "\\u001b[31mred\\u0007"),
            ("a\tb\rc\u{7f}\u{85}\u{9b}1m", "a\\tb\\rc\\u007f\\u0085\\u009b1m"),
            (
                "exe.\u{202e}gnp\u{2066}x\u{2069}\u{200e}\u{200f}\u{61c}",
                "exe.\\u202egnp\\u2066x\\u2069\\u200e\\u200f\\u061c",
            ),
            ("a\u{200b}b\u{feff}c\u{2028}d\u{e0041}", "a\\u200bb\\ufeffc\\u2028d\\ue0041"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape(text), expected);
            let mut written = Text::new(false);
            written.put(text);
            assert_eq!(written.as_str(), expected);
        }
    }

    #[test]
    fn only_tones_write_color() {
        let mut text = Text::new(true);
        text.tone(Tone::Removed, "a\u{1b}[0mb").put("\u{1b}[1m").end_line();
        assert_eq!(text.as_str(), "\u{1b}[31ma\\u001b[0mb\u{1b}[0m\\u001b[1m\n");
    }

    #[test]
    fn long_texts_are_cut_with_their_length() {
        assert_eq!(cut("äbc", 3), "äbc");
        assert_eq!(cut(&"ä".repeat(12_345), 2), "ää… (12,345 characters)");
        assert_eq!(
            [1, 999, 1000, 1_234_567].map(|count| counted(count, "entry")),
            ["1 entry", "999 entries", "1,000 entries", "1,234,567 entries"]
        );
    }

    #[test]
    fn messages_are_written_on_one_line() {
        assert_eq!(one_line("a\n  b\n\nc"), "a; b; c");
    }
}

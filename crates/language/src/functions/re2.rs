//! Patterns in the syntax of RE2, as Go has it, for the crate `regex`.
//!
//! The two differ in details: `\d`, `\w`, `\s` and `\b` are ASCII in RE2; classes have no set operations there; `{` may be
//! a character; `\Q...\E` quotes; repetition is bounded by 1,000.

use regex::{Regex, RegexBuilder};

/// Compiled programs beyond this size are refused.
const MAX_SIZE: usize = 4 << 20;

/// RE2's own bound of a repetition.
const MAX_REPETITION: u32 = 1000;

pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translation { rest: pattern, out: String::new() }.run()?;
    let regex = RegexBuilder::new(&translated).size_limit(MAX_SIZE).build();
    regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    })
}

struct Translation<'a> {
    rest: &'a str,
    out: String,
}

impl Translation<'_> {
    fn run(mut self) -> Result<String, String> {
        let mut repeated = false;
        while let Some(letter) = self.next() {
            let mut repeats = false;
            match letter {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '{' => match self.repetition()? {
                    true => repeats = true,
                    false => self.out.push_str("\\{"),
                },
                '*' | '+' | '?' => {
                    self.out.push(letter);
                    repeats = true;
                }
                other => self.out.push(other),
            }
            if repeats && repeated {
                return Err("a repetition is repeated".to_owned());
            }
            // `?` after a repetition makes it lazy.
            if repeats && let Some(after) = self.rest.strip_prefix('?') {
                self.rest = after;
                self.out.push('?');
            }
            repeated = repeats;
        }
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(letter) = self.next() else { return Err("it ends with a backslash".to_owned()) };
        match letter {
            'Q' if !in_class => {
                let (quoted, after) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = after;
                self.out.push_str(&regex_syntax::escape(quoted));
            }
            'd' if in_class => self.out.push_str("0-9"),
            'w' if in_class => self.out.push_str("0-9A-Za-z_"),
            's' if in_class => self.out.push_str("\\t\\n\\f\\r "),
            'd' => self.out.push_str("[0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            's' => self.out.push_str("[\\t\\n\\f\\r ]"),
            'D' => self.out.push_str("[^0-9]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'S' => self.out.push_str("[^\\t\\n\\f\\r ]"),
            'b' if !in_class => self.out.push_str("(?-u:\\b)"),
            'B' if !in_class => self.out.push_str("(?-u:\\B)"),
            'C' => return Err("\\C is not supported".to_owned()),
            '0'..='7' => self.octal(letter)?,
            'p' | 'P' | 'x' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'A' | 'z' => {
                self.out.push('\\');
                self.out.push(letter);
                self.braced();
            }
            'E' if !in_class => {}
            other if other.is_ascii_alphanumeric() => return Err(format!("invalid escape \\{other}")),
            other if other.is_ascii() => self.out.push_str(&regex_syntax::escape(other.encode_utf8(&mut [0; 4]))),
            other => return Err(format!("invalid escape \\{other}")),
        }
        Ok(())
    }

    /// What stands in braces after an escape, such as the name of a Unicode class.
    fn braced(&mut self) {
        if self.rest.starts_with('{')
            && let Some(end) = self.rest.find('}')
        {
            self.out.push_str(&self.rest[..=end]);
            self.rest = &self.rest[end + 1..];
        }
    }

    /// Octal digits stand for a character; a single one that is not 0 would be a back reference, which RE2 refuses.
    fn octal(&mut self, first: char) -> Result<(), String> {
        let digits = self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        if first != '0' && digits == 0 {
            return Err(format!("invalid escape \\{first}"));
        }
        let text = format!("{first}{}", &self.rest[..digits]);
        self.rest = &self.rest[digits..];
        let code = u32::from_str_radix(&text, 8).unwrap_or_default();
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        Ok(())
    }

    /// A class up to its bracket. `[`, `&`, `~` and `-` mean nothing special to RE2 where `regex` has set operations.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if let Some(after) = self.rest.strip_prefix('^') {
            self.rest = after;
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(letter) = self.next() else { return Err("a class has no end".to_owned()) };
            match letter {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").unwrap_or_default() + 2;
                    self.out.push('[');
                    self.out.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                '\\' => self.class_escape()?,
                '[' | ']' | '&' | '~' | '#' | ' ' => {
                    self.out.push('\\');
                    self.out.push(letter);
                }
                '-' if first || self.rest.starts_with(']') => self.out.push_str("\\-"),
                other => self.out.push(other),
            }
            first = false;
        }
    }

    fn class_escape(&mut self) -> Result<(), String> {
        match self.rest.chars().next() {
            Some(negated @ ('D' | 'W' | 'S')) => {
                self.rest = &self.rest[1..];
                self.out.push_str(match negated {
                    'D' => "[^0-9]",
                    'W' => "[^0-9A-Za-z_]",
                    _ => "[^\\t\\n\\f\\r ]",
                });
                Ok(())
            }
            _ => self.escape(true),
        }
    }

    /// Reads `n}`, `n,}` or `n,m}` after a brace; anything else is no repetition.
    fn repetition(&mut self) -> Result<bool, String> {
        let Some((bounds, after)) = self.rest.split_once('}') else { return Ok(false) };
        let (least, most) = bounds.split_once(',').unwrap_or((bounds, bounds));
        if !is_number(least) || !(is_number(most) || most.is_empty()) {
            return Ok(false);
        }
        if is_too_large(least) || (!most.is_empty() && is_too_large(most)) {
            return Err(format!("a repetition is larger than {MAX_REPETITION}"));
        }
        self.out.push_str(&format!("{{{bounds}}}"));
        self.rest = after;
        Ok(true)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_too_large(digits: &str) -> bool {
    digits.parse().unwrap_or(u32::MAX) > MAX_REPETITION
}

//! Writes YAML in the form of libyaml's emitter, so that a document is the same text as upstream's.

use crate::cty::{Data, Value};

/// A line is folded at the first space after this column.
const WIDTH: usize = 80;

pub fn document(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), column: 0, indent: -2, whitespace: true, indention: true };
    writer.node(value, Place::Root);
    writer.new_line(0);
    if matches!(value.data(), Data::Null | Data::Bool(_) | Data::Number(_)) {
        // A plain value at the top might go on, so the end is marked.
        writer.out.push_str("...\n");
    }
    writer.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Sequence,
    Mapping,
}

struct Writer {
    out: String,
    column: usize,
    indent: i64,
    /// The last character was white space, or none was written.
    whitespace: bool,
    /// Nothing but indentation and indicators stands in the line.
    indention: bool,
}

impl Writer {
    fn put(&mut self, letter: char) {
        self.out.push(letter);
        self.column = if letter == '\n' { 0 } else { self.column + 1 };
    }

    fn indicator(&mut self, text: &str, needs_space: bool, is_space: bool, keeps_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|letter| self.put(letter));
        self.whitespace = is_space;
        self.indention &= keeps_indention;
    }

    /// Goes to an indentation, in a new line if this one is in use.
    fn new_line(&mut self, indent: i64) {
        let indent = usize::try_from(indent).unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn node(&mut self, value: &Value, place: Place) {
        match value.data() {
            Data::Items(items) if items.is_empty() => self.empty("[", "]"),
            Data::Entries(entries) if entries.is_empty() => self.empty("{", "}"),
            Data::Items(items) => {
                // A sequence in a mapping is not indented, except after `? `.
                let before = self.indent;
                if place != Place::Mapping || self.indention {
                    self.indent += 2;
                }
                for item in items.iter() {
                    self.new_line(self.indent);
                    self.indicator("-", true, false, true);
                    self.node(item, Place::Sequence);
                }
                self.indent = before;
            }
            Data::Entries(entries) => {
                let before = self.indent;
                self.indent += 2;
                for (key, item) in entries {
                    self.new_line(self.indent);
                    self.key(key);
                    self.node(item, Place::Mapping);
                }
                self.indent = before;
            }
            Data::String(text) if text.contains('\n') && fits_block(text) => self.literal(text),
            Data::String(text) => self.quoted(text, true),
            Data::Bool(bool) => self.plain(&bool.to_string()),
            Data::Number(number) => self.plain(&number.to_string()),
            Data::Null | Data::Unknown(_) => self.plain("null"),
        }
    }

    fn empty(&mut self, open: &str, close: &str) {
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    fn plain(&mut self, text: &str) {
        self.indicator(text, true, false, false);
    }

    /// Keys that are long or have several lines are written after `? `.
    fn key(&mut self, key: &str) {
        const LONGEST: usize = 128;
        if key.len() <= LONGEST && !key.contains(is_break) {
            self.quoted(key, false);
            self.indicator(":", false, false, false);
            return;
        }
        self.indicator("?", true, false, true);
        if key.contains('\n') && fits_block(key) {
            self.literal(key);
        } else {
            self.quoted(key, true);
        }
        self.new_line(self.indent);
        self.indicator(":", true, false, true);
    }

    /// The indentation of the lines of a scalar.
    fn inner(&self) -> i64 {
        self.indent.max(0) + 2
    }

    fn quoted(&mut self, text: &str, fold: bool) {
        self.indicator("\"", true, false, false);
        let letters: Vec<char> = text.chars().collect();
        let mut after_space = false;
        for (position, &letter) in letters.iter().enumerate() {
            let middle = position > 0 && position + 1 < letters.len();
            if letter == ' ' && fold && !after_space && self.column > WIDTH && middle {
                let inner = self.inner();
                self.new_line(inner);
                if letters[position + 1] == ' ' {
                    self.put('\\');
                }
                after_space = true;
                continue;
            }
            after_space = letter == ' ';
            self.letter(letter);
        }
        self.indicator("\"", false, false, false);
    }

    fn letter(&mut self, letter: char) {
        if is_printable(letter) && !is_break(letter) && letter != '"' && letter != '\\' {
            self.put(letter);
            return;
        }
        let code = u32::from(letter);
        let escape = match letter {
            '\0' => "0".to_owned(),
            '\u{7}' => "a".to_owned(),
            '\u{8}' => "b".to_owned(),
            '\t' => "t".to_owned(),
            '\n' => "n".to_owned(),
            '\u{b}' => "v".to_owned(),
            '\u{c}' => "f".to_owned(),
            '\r' => "r".to_owned(),
            '\u{1b}' => "e".to_owned(),
            '"' | '\\' => letter.to_string(),
            '\u{85}' => "N".to_owned(),
            '\u{a0}' => "_".to_owned(),
            '\u{2028}' => "L".to_owned(),
            '\u{2029}' => "P".to_owned(),
            _ if code <= 0xff => format!("x{code:02X}"),
            _ if code <= 0xffff => format!("u{code:04X}"),
            _ => format!("U{code:08X}"),
        };
        self.put('\\');
        escape.chars().for_each(|letter| self.put(letter));
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with([' ', '\n']) {
            self.indicator("2", false, false, false);
        }
        let rest = text.strip_suffix('\n');
        match rest {
            None => self.indicator("-", false, false, false),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.indicator("+", false, false, false),
            Some(_) => {}
        }
        self.put('\n');
        self.indention = true;
        self.whitespace = true;
        let inner = self.inner();
        let mut fresh = true;
        for letter in text.chars() {
            if is_break(letter) {
                self.put('\n');
                self.indention = true;
                fresh = true;
            } else {
                if fresh {
                    self.new_line(inner);
                }
                self.put(letter);
                self.indention = false;
                fresh = false;
            }
        }
    }
}

/// Whether a text of several lines can be written as it is.
fn fits_block(text: &str) -> bool {
    let space_before_break = text.contains(" \n");
    !text.ends_with(' ') && !space_before_break && text.chars().all(is_printable)
}

fn is_break(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What libyaml writes as it is.
fn is_printable(letter: char) -> bool {
    matches!(letter, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

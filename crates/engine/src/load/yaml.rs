//! YAML 1.2 (and with it JSON) into trees with their lines.
//!
//! Scalars follow the core schema of YAML 1.2. `kubectl` reads YAML 1.1, where `yes` is a boolean and `0644` an octal
//! number; where the two differ, a warning says so. Anchors, aliases and merge keys work, with a limit on what they
//! expand to. A key given twice is a fault.

mod simple;

use std::collections::BTreeMap;
use std::sync::Arc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};

use super::intern::Interner;
use super::tree::{Entry, Node, Tree};
use model::Number;
use model::unicode::to_nfc;

/// How many values the aliases of one document may stand for together: more than a manifest can be large.
const EXPANSION: usize = 100_000;

/// How deeply values may nest. The API server has no deeper ones in practice, and the stack bears it.
const DEPTH: usize = 100;

/// A problem in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in one line.
    pub what: String,
    /// The next step, if there is one.
    pub hint: Option<String>,
}

impl Fault {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// One document that could be read.
#[derive(Debug)]
pub struct Document {
    pub tree: Tree,
    /// What is wrong with it although it could be read.
    pub errors: Vec<Fault>,
    /// What another reader would understand differently.
    pub warnings: Vec<Fault>,
}

/// Reads every document of a text whose first line is `first_line` of its file. `Err` comes after the documents that
/// could be read.
pub fn read(text: &str, first_line: usize, interner: &mut Interner) -> (Vec<Document>, Option<Fault>) {
    if let Some(document) = simple::read(text, first_line, interner) {
        return (vec![document], None);
    }
    parse(text, first_line, interner, false)
}

/// As [`read`], for a text of another user: without anchors, aliases and merge keys, which can expand to any size, and
/// without duplicate keys, each of which takes the more time the larger the map is.
pub fn read_strictly(text: &str, first_line: usize, interner: &mut Interner) -> (Vec<Document>, Option<Fault>) {
    parse(text, first_line, interner, true)
}

/// The same by the parser, whatever is in the text.
fn parse(text: &str, first_line: usize, interner: &mut Interner, is_strict: bool) -> (Vec<Document>, Option<Fault>) {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = DEPTH;
    options.block_nesting_limit = DEPTH;
    let mut builder = Builder { is_strict, ..Builder::new(first_line - 1, interner) };
    for event in Parser::new_from_str_with_options(text, options) {
        let result = match event {
            Ok((event, span)) => builder.event(event, &span),
            Err(error) => Err(builder.syntax(&error, text)),
        };
        if let Err(fault) = result {
            return (builder.documents, Some(fault));
        }
    }
    (builder.documents, None)
}

enum Frame {
    List { line: usize, anchor: usize, items: Vec<Tree> },
    Map { line: usize, anchor: usize, entries: Vec<Entry>, key: Option<(Arc<str>, usize)>, merged: Vec<Entry> },
}

struct Builder<'a> {
    /// Whether it refuses what takes much memory or time.
    is_strict: bool,
    skipped_lines: usize,
    interner: &'a mut Interner,
    documents: Vec<Document>,
    frames: Vec<Frame>,
    root: Option<Tree>,
    errors: Vec<Fault>,
    warnings: Vec<Fault>,
    anchors: BTreeMap<usize, Tree>,
    expanded: usize,
}

impl<'a> Builder<'a> {
    fn new(skipped_lines: usize, interner: &'a mut Interner) -> Self {
        Self {
            is_strict: false,
            skipped_lines,
            interner,
            documents: Vec::new(),
            frames: Vec::new(),
            root: None,
            errors: Vec::new(),
            warnings: Vec::new(),
            anchors: BTreeMap::new(),
            expanded: 0,
        }
    }

    fn syntax(&self, error: &ScanError, text: &str) -> Fault {
        let line = error.marker().line();
        let fault = Fault::new(self.skipped_lines + line, error.info().replace('\n', " "));
        if error.info().contains("tabs") {
            return fault.hint("indent with spaces");
        }
        // The braces of an expression are those of YAML where a map is written in braces.
        let mut near = text.lines().skip(line.saturating_sub(2)).take(2);
        if near.any(|text| text.contains("${") && text.contains("{ ")) {
            let here = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            let value = here.split_once(": ").map_or("", |(_, value)| value);
            return fault.hint(match value.trim_start().starts_with("${") {
                true => "put an expression that contains `: ` in quotes: `'${...}'`",
                false => "inside `{ ... }` and `[ ... ]`, put expressions in quotes: `\"${...}\"`",
            });
        }
        if error.info().contains("mapping values are not allowed") {
            return fault.hint("put a value that contains `: ` in quotes");
        }
        fault
    }

    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fault> {
        let line = self.skipped_lines + span.start.line();
        self.refuse_anchor(&event, line)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                if let Some(Frame::Map { key: key @ None, .. }) = self.frames.last_mut() {
                    *key = Some((self.interner.get(&to_nfc(&text)), line));
                    if plain && text == "<<" && self.is_strict {
                        return Err(Fault::new(line, "a preview reads no merge keys").hint("write the values out"));
                    }
                    if plain && text == "<<" {
                        // Distinguished from the text "<<" by the sign that no other key has.
                        *key = Some((Arc::from(MERGE), line));
                    }
                    return Ok(());
                }
                let as_text = match tag.as_deref() {
                    Some(tag) if tag.is_yaml_core_schema_tag("str") => true,
                    Some(tag) if tag.core_suffix().is_none() && tag.suffix() != "" => {
                        return Err(Fault::new(line, format!("the tag `{tag}` is not supported")));
                    }
                    _ => !plain,
                };
                let node = if as_text { Node::String(to_nfc(&text)) } else { scalar(&text, line, &mut self.warnings)? };
                self.value(Tree { line, node }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.open(Frame::List { line, anchor, items: Vec::new() }),
            Event::MappingStart(_, anchor, _) => {
                self.open(Frame::Map { line, anchor, entries: Vec::new(), key: None, merged: Vec::new() })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, line),
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.expanded = 0;
                Ok(())
            }
            Event::DocumentEnd => {
                let errors = std::mem::take(&mut self.errors);
                let warnings = std::mem::take(&mut self.warnings);
                if let Some(tree) = self.root.take().filter(|tree| tree.node != Node::Null || !errors.is_empty()) {
                    self.documents.push(Document { tree, errors, warnings });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn refuse_anchor(&self, event: &Event<'_>, line: usize) -> Result<(), Fault> {
        let has_anchor = match event {
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                *anchor != 0
            }
            Event::Alias(_) => true,
            _ => false,
        };
        match has_anchor && self.is_strict {
            true => Err(Fault::new(line, "a preview reads no anchors and aliases").hint("write the values out")),
            false => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), Fault> {
        if let (Some(Frame::Map { key: None, .. }), Frame::List { line, .. } | Frame::Map { line, .. }) =
            (self.frames.last(), &frame)
        {
            return Err(Fault::new(*line, "a key must be a string"));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        match self.frames.pop() {
            Some(Frame::List { line, anchor, items }) => self.value(Tree { line, node: Node::List(items) }, anchor),
            Some(Frame::Map { line, anchor, mut entries, merged, .. }) => {
                self.check_keys(&mut entries)?;
                for entry in merged {
                    if entries.iter().all(|known| known.key != entry.key) {
                        entries.push(entry);
                    }
                }
                self.value(Tree { line, node: Node::Map(entries) }, anchor)
            }
            None => Ok(()),
        }
    }

    /// Puts a finished value where it belongs.
    fn value(&mut self, tree: Tree, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        match self.frames.last_mut() {
            None => self.root = Some(tree),
            Some(Frame::List { items, .. }) => items.push(tree),
            Some(Frame::Map { entries, key, merged, .. }) => match key.take() {
                Some((key, line)) if key.as_ref() == MERGE => merge(merged, tree, line)?,
                Some((key, line)) => entries.push(Entry { key, line, value: tree }),
                None => return Err(Fault::new(tree.line, "a key must be a string")),
            },
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), Fault> {
        let Some(tree) = self.anchors.get(&anchor) else {
            return Err(Fault::new(line, "an alias cannot be used inside its own anchor"));
        };
        self.expanded += size(tree);
        if self.expanded > EXPANSION {
            return Err(Fault::new(
                line,
                format!("the aliases of this document expand to more than {EXPANSION} values"),
            ));
        }
        if let (Some(Frame::Map { key: key @ None, .. }), Node::String(text)) = (self.frames.last_mut(), &tree.node) {
            *key = Some((text.clone(), line));
            return Ok(());
        }
        let copy = tree.clone();
        self.value(copy, 0)
    }

    /// Reports duplicate keys; the first one counts.
    fn check_keys(&mut self, entries: &mut Vec<Entry>) -> Result<(), Fault> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key).then(a.cmp(b)));
        let mut doubles: Vec<usize> =
            order.windows(2).filter(|pair| entries[pair[0]].key == entries[pair[1]].key).map(|pair| pair[1]).collect();
        doubles.sort_unstable();
        if let Some(first) = doubles.first().filter(|_| self.is_strict) {
            let entry = &entries[*first];
            return Err(Fault::new(entry.line, format!("duplicate key `{}`", entry.key)));
        }
        for double in doubles.into_iter().rev() {
            let entry = entries.remove(double);
            let first = entries.iter().find(|known| known.key == entry.key).map_or(0, |known| known.line);
            self.errors
                .push(Fault::new(entry.line, format!("duplicate key `{}`, first set on line {first}", entry.key)));
        }
        Ok(())
    }
}

/// A plain scalar by the core schema.
fn scalar(text: &str, line: usize, warnings: &mut Vec<Fault>) -> Result<Node, Fault> {
    let first = text.as_bytes().first().copied().unwrap_or(b'~');
    Ok(match first {
        b'0'..=b'9' | b'-' | b'+' | b'.' => match number(text) {
            Some(Scalar::Number(number)) => {
                if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
                    let octal = i64::from_str_radix(text, 8).map_or(String::new(), |octal| format!(" or `{octal}`"));
                    let hint =
                        format!("quote it if it is a string, such as a file mode; otherwise write `{number}`{octal}");
                    warnings.push(differs(line, text, "an octal number", hint));
                }
                Node::Number(number)
            }
            Some(Scalar::NotFinite) => {
                return Err(Fault::new(line, format!("`{text}` is not a finite number")));
            }
            None => Node::String(to_nfc(text)),
        },
        _ => match text {
            "" | "~" | "null" | "Null" | "NULL" => Node::Null,
            "true" | "True" | "TRUE" => Node::Bool(true),
            "false" | "False" | "FALSE" => Node::Bool(false),
            "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
                let hint = "write `true` or `false`, or quote it if it is a string";
                warnings.push(differs(line, text, "a boolean", hint.to_owned()));
                Node::String(to_nfc(text))
            }
            _ => Node::String(to_nfc(text)),
        },
    })
}

/// What `kubectl` reads differently.
fn differs(line: usize, text: &str, otherwise: &str, hint: String) -> Fault {
    let what = format!("`{text}` is {otherwise} for kubectl (YAML 1.1), but not for Purlin (YAML 1.2)");
    Fault::new(line, what).hint(hint)
}

/// The merge key, which a quoted `<<` is not.
const MERGE: &str = "\0<<";

fn merge(merged: &mut Vec<Entry>, tree: Tree, line: usize) -> Result<(), Fault> {
    match tree.node {
        // What was merged first wins.
        Node::Map(entries) => {
            for entry in entries {
                if merged.iter().all(|known| known.key != entry.key) {
                    merged.push(entry);
                }
            }
            Ok(())
        }
        Node::List(items) => items.into_iter().try_for_each(|item| merge(merged, item, line)),
        _ => Err(Fault::new(line, "`<<` takes a map or a list of maps")),
    }
}

fn size(tree: &Tree) -> usize {
    1 + match &tree.node {
        Node::List(items) => items.iter().map(size).sum(),
        Node::Map(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
        _ => 0,
    }
}

enum Scalar {
    Number(Number),
    NotFinite,
}

/// The number that a plain scalar is, by the core schema.
fn number(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let ".inf" | ".Inf" | ".INF" = unsigned {
        return Some(Scalar::NotFinite);
    }
    if let ".nan" | ".NaN" | ".NAN" = text {
        return Some(Scalar::NotFinite);
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return i64::from_str_radix(digits, radix).ok().map(|int| Scalar::Number(Number::Int(int)));
        }
    }
    let whole = leading_digits(unsigned);
    let mut rest = &unsigned[whole..];
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        fraction = leading_digits(after);
        rest = &after[fraction..];
    }
    if whole + fraction == 0 {
        return None;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if exponent.is_empty() || leading_digits(exponent) != exponent.len() {
            return None;
        }
    } else if !rest.is_empty() {
        return None;
    }
    Number::parse(text.strip_prefix('+').unwrap_or(text)).map(Scalar::Number)
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests;

//! The YAML that manifests mostly are, read in a fraction of the time that the parser takes.
//!
//! Takes block maps and lists of plain, one-line scalars, quoted ones without escapes, and flat flow collections. Gives
//! exactly the tree that the parser gives, or `None` for everything else: the parser then reads the document, and
//! reports its errors. A test compares the two on random documents.

use super::{DEPTH, Document, Fault, scalar, to_nfc};
use crate::load::intern::Interner;
use crate::load::tree::{Entry, Node, Tree};

/// Reads one document whose first line is `first_line` of its file. `None`: the parser must read it.
pub fn read(text: &str, first_line: usize, interner: &mut Interner) -> Option<Document> {
    let mut lines = Vec::with_capacity(32);
    for (number, line) in text.split('\n').enumerate() {
        if line.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            return None;
        }
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let content = content.trim_end_matches(' ');
        let marker = indent == 0 && (content.starts_with("---") || content.starts_with("..."));
        if content.is_empty() || content.starts_with('#') || (marker && lines.is_empty() && content == "---") {
            continue;
        }
        if marker {
            return None;
        }
        lines.push(Line { number: first_line + number, indent, content });
    }
    let mut reader = Reader { lines, at: 0, interner, warnings: Vec::new() };
    let tree = reader.block(0, 0)?;
    (reader.at == reader.lines.len()).then_some(Document { tree, errors: Vec::new(), warnings: reader.warnings })
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    content: &'a str,
}

struct Reader<'a, 'b> {
    lines: Vec<Line<'a>>,
    at: usize,
    interner: &'b mut Interner,
    warnings: Vec<Fault>,
}

impl<'a> Reader<'a, '_> {
    /// A map or a list that begins at the current line, with that indentation.
    fn block(&mut self, indent: usize, depth: usize) -> Option<Tree> {
        let first = *self.lines.get(self.at)?;
        if first.indent != indent || depth >= DEPTH {
            return None;
        }
        if is_item(first.content) { self.list(first, depth) } else { self.map(first, depth) }
    }

    fn map(&mut self, first: Line<'a>, depth: usize) -> Option<Tree> {
        let mut entries = Vec::with_capacity(8);
        while let Some(line) = self.lines.get(self.at).copied().filter(|line| line.indent >= first.indent) {
            if line.indent > first.indent || is_item(line.content) {
                return None;
            }
            let (key, rest) = key(line.content)?;
            self.at += 1;
            let value = if rest.is_empty() {
                let next = self.lines.get(self.at).copied();
                match next {
                    Some(next) if next.indent > line.indent => self.block(next.indent, depth + 1)?,
                    Some(next) if next.indent == line.indent && is_item(next.content) => self.list(next, depth + 1)?,
                    _ => Tree { line: line.number, node: Node::Null },
                }
            } else {
                self.inline(rest, line)?
            };
            entries.push(Entry { key: self.interner.get(&to_nfc(key)), line: line.number, value });
        }
        has_distinct_keys(&entries).then_some(Tree { line: first.number, node: Node::Map(entries) })
    }

    fn list(&mut self, first: Line<'a>, depth: usize) -> Option<Tree> {
        let mut items = Vec::new();
        while let Some(line) = self.lines.get(self.at).copied().filter(|line| line.indent >= first.indent) {
            if line.indent > first.indent {
                return None;
            }
            // A map's list may stand at the indentation of its key, which the next key ends.
            if !is_item(line.content) {
                break;
            }
            let rest = line.content[1..].trim_start_matches(' ');
            if rest.is_empty() || is_item(rest) {
                return None;
            }
            if key(rest).is_some() {
                // `- key: value` is a map that begins where the key stands.
                let indent = line.indent + line.content.len() - rest.len();
                self.lines[self.at] = Line { number: line.number, indent, content: rest };
                items.push(self.block(indent, depth + 1)?);
            } else {
                self.at += 1;
                items.push(self.inline(rest, line)?);
            }
        }
        Some(Tree { line: first.number, node: Node::List(items) })
    }

    /// A value that stands on the line of its key or dash, and ends there.
    fn inline(&mut self, text: &'a str, line: Line<'a>) -> Option<Tree> {
        if self.lines.get(self.at).is_some_and(|next| next.indent > line.indent) {
            return None;
        }
        let node = match text.as_bytes()[0] {
            quote @ (b'"' | b'\'') => Node::String(to_nfc(quoted(text, quote)?)),
            b'[' => self.flow_list(text.strip_prefix('[')?.strip_suffix(']')?, line.number)?,
            b'{' => self.flow_map(text.strip_prefix('{')?.strip_suffix('}')?, line.number)?,
            b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' | b'#' | b',' | b']' | b'}' | b'?' | b':' => {
                return None;
            }
            b'-' if text.len() == 1 || text.starts_with("- ") => return None,
            _ if text.contains(": ") || text.ends_with(':') || text.contains(" #") => return None,
            _ => scalar(text, line.number, &mut self.warnings).ok()?,
        };
        Some(Tree { line: line.number, node })
    }

    fn flow_list(&mut self, inner: &str, line: usize) -> Option<Node> {
        if inner.trim_matches(' ').is_empty() {
            return Some(Node::List(Vec::new()));
        }
        let items = inner.split(',').map(|item| self.flow_scalar(item, line));
        Some(Node::List(items.collect::<Option<_>>()?))
    }

    fn flow_map(&mut self, inner: &str, line: usize) -> Option<Node> {
        let mut entries = Vec::new();
        if !inner.trim_matches(' ').is_empty() {
            for entry in inner.split(',') {
                let (key, rest) = key(entry.trim_matches(' '))?;
                let value = self.flow_scalar(rest, line)?;
                entries.push(Entry { key: self.interner.get(&to_nfc(key)), line, value });
            }
        }
        has_distinct_keys(&entries).then_some(Node::Map(entries))
    }

    /// A scalar within brackets: only of characters that mean nothing there.
    fn flow_scalar(&mut self, text: &str, line: usize) -> Option<Tree> {
        let text = text.trim_matches(' ');
        let node = match *text.as_bytes().first()? {
            quote @ (b'"' | b'\'') => Node::String(to_nfc(quoted(text, quote)?)),
            b'-' if text.len() == 1 || text.starts_with("- ") => return None,
            _ if text.bytes().all(|b| is_plain(b) || b == b' ') => scalar(text, line, &mut self.warnings).ok()?,
            _ => return None,
        };
        Some(Tree { line, node })
    }
}

fn is_item(content: &str) -> bool {
    content == "-" || content.starts_with("- ")
}

/// A key of plain letters, and what follows its colon.
fn key(content: &str) -> Option<(&str, &str)> {
    let end = content.bytes().position(|b| !is_plain(b))?;
    let rest = content[end..].strip_prefix(':')?;
    let begins_well = content.as_bytes()[0].is_ascii_alphanumeric() || content.starts_with('_');
    let ends_well = rest.is_empty() || rest.starts_with(' ');
    (begins_well && ends_well).then(|| (&content[..end], rest.trim_start_matches(' ')))
}

fn is_plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-')
}

/// A quoted text without escapes that ends where the value ends.
fn quoted(text: &str, quote: u8) -> Option<&str> {
    let quote = char::from(quote);
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains([quote, '\\', ','])).then_some(inner)
}

fn has_distinct_keys(entries: &[Entry]) -> bool {
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}

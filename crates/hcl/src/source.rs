//! Places in files: a range holds byte offsets, and the [`Source`] that was parsed gives their lines and columns.
//!
//! A tree has a range on every node, so ranges are small. Lines and columns are looked up when a person reads them.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

/// The longest file that is read, in bytes. What people and programs write is shorter by far.
pub const MAX_LEN: usize = 64 << 20;

/// The number that the caller gave to a file, to find its [`Source`] again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// A part of a file: byte offsets, the end excluded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Range {
    /// The file.
    pub file: FileId,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Range {
    /// Returns the range from the start of this one to the end of `last`.
    #[must_use]
    pub fn to(self, last: Range) -> Range {
        Range { end: last.end, ..self }
    }

    /// Returns the empty range at the start of this one.
    #[must_use]
    pub fn at_start(self) -> Range {
        Range { end: self.start, ..self }
    }

    /// Returns the empty range at the end of this one.
    #[must_use]
    pub fn at_end(self) -> Range {
        Range { start: self.end, ..self }
    }
}

/// A place as a person reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in grapheme clusters, from 1.
    pub column: u32,
    /// The byte offset, from 0.
    pub byte: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.line, self.column)
    }
}

/// The text of a file, with what is needed to give lines and columns of its offsets.
#[derive(Clone, Debug, Default)]
pub struct Source {
    id: FileId,
    name: String,
    text: String,
    /// Whether the file was longer than `MAX_LEN`, and so was not read.
    too_long: bool,
    /// Offsets at which bytes that are not UTF-8 were replaced, in order.
    broken: Vec<u32>,
    line_starts: Vec<u32>,
    /// Columns at the borders of tokens that are not ASCII, in order: clusters are counted from a border of a token.
    borders: Vec<Border>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Border {
    offset: u32,
    column: u32,
}

/// The byte that stands for one that is not UTF-8. It is of the same length, so offsets stay what they are in the file.
const REPLACEMENT: u8 = 0x1a;

impl Source {
    /// Reads a file. What is not UTF-8 is replaced, and reported when the file is parsed. A file longer than [`MAX_LEN`] is
    /// not read, which is reported as well.
    pub fn new(id: FileId, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let too_long = bytes.len() > MAX_LEN;
        let (text, broken) = decode(if too_long { Vec::new() } else { bytes });
        let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let starts = text.match_indices('\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(bom as u32).chain(starts).collect();
        Self { id, name: name.into(), text, too_long, broken, line_starts, borders: Vec::new() }
    }

    /// The number that the caller gave to the file.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The name of the file, as errors show it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text. Bytes that are not UTF-8 are replaced by the control character "substitute".
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a range; empty if the range is not one of this file.
    pub fn slice(&self, range: Range) -> &str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long
    }

    pub(crate) fn broken(&self) -> &[u32] {
        &self.broken
    }

    /// Returns the line and column of an offset. Columns count grapheme clusters, as `hashicorp/hcl` does.
    pub fn position(&self, offset: u32) -> Position {
        let index = self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let line_start = self.line_starts.get(index).copied().unwrap_or_default();
        let border = self.borders.partition_point(|border| border.offset <= offset).checked_sub(1);
        let border = border.map(|at| self.borders[at]).filter(|border| border.offset > line_start);
        let Border { offset: from, column } = border.unwrap_or(Border { offset: line_start, column: 1 });
        let column = column + self.clusters(from, offset);
        Position { line: index as u32 + 1, column, byte: offset }
    }

    /// Returns the text of a line without its line break; the first line is 1.
    pub fn line(&self, line: u32) -> &str {
        let start = self.line_starts.get((line as usize).saturating_sub(1)).copied().unwrap_or_default() as usize;
        let rest = self.text.get(start..).unwrap_or_default();
        let end = rest.find('\n').unwrap_or(rest.len());
        rest[..end].trim_end_matches('\r')
    }

    /// Records a token that is not ASCII, which starts a count of clusters of its own. Tokens come in order.
    pub(crate) fn add_token(&mut self, start: u32, end: u32) {
        for offset in [start, end] {
            let column = self.position(offset).column;
            self.borders.push(Border { offset, column });
        }
    }

    fn clusters(&self, from: u32, to: u32) -> u32 {
        let text = self.text.get(from as usize..to as usize);
        // An offset inside a character is one of a template within a JSON string: it counts bytes, as hcl's does.
        text.map_or(
            to.saturating_sub(from),
            |text| if text.is_ascii() { text.len() } else { text.graphemes(true).count() } as u32,
        )
    }
}

fn decode(bytes: Vec<u8>) -> (String, Vec<u32>) {
    let mut bytes = match String::from_utf8(bytes) {
        Ok(text) => return (text, Vec::new()),
        Err(error) => error.into_bytes(),
    };
    let mut broken = Vec::new();
    let mut from = 0;
    while let Err(error) = std::str::from_utf8(&bytes[from..]) {
        let start = from + error.valid_up_to();
        from = error.error_len().map_or(bytes.len(), |len| start + len);
        for (offset, byte) in bytes.iter_mut().enumerate().take(from).skip(start) {
            *byte = REPLACEMENT;
            broken.push(offset as u32);
        }
    }
    (String::from_utf8(bytes).unwrap_or_default(), broken)
}

#[cfg(test)]
mod tests {
    use super::{FileId, Source};

    fn at(text: &[u8], offset: u32) -> (u32, u32) {
        let position = Source::new(FileId(0), "a.hcl", text).position(offset);
        (position.line, position.column)
    }

    #[test]
    fn columns_count_clusters() {
        assert_eq!(at("a\nbä = 1".as_bytes(), 6), (2, 4));
        assert_eq!(at("\u{feff}a = 1".as_bytes(), 7), (1, 5));
        assert_eq!(at("e\u{301}x".as_bytes(), 3), (1, 2));
        assert_eq!(at(b"\xff\xfe = 1", 3), (1, 4));
        assert_eq!(at(b"", 0), (1, 1));
    }
}

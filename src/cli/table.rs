//! Tables as `kubectl` prints them: columns padded to their widest cell and separated by three spaces.

use model::Text;
use model::text::{cut, escape, split_hint};

/// Longer cells are cut. JSON output has the whole values.
const MAX_WIDTH: usize = 200;
/// What at least remains of a message with a long hint.
const MIN_TEXT: usize = 100;

#[derive(Debug)]
pub struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(headings: [&'static str; N]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row. Line breaks within a cell become spaces.
    pub fn push(&mut self, row: [String; N]) {
        // Widths are those of the escaped cells.
        self.rows.push(row.map(|cell| escape(&shortened(&cell.replace('\n', " "))).into_owned()));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn write(&self, text: &mut Text) {
        let mut widths = self.headings.map(str::len);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        write_row(text, &self.headings, &widths);
        self.rows.iter().for_each(|row| write_row(text, row, &widths));
    }
}

/// The cell, cut if it is long. The hint of a message stays whole.
fn shortened(cell: &str) -> String {
    match split_hint(cell) {
        (text, Some(hint)) => {
            let most = MAX_WIDTH.saturating_sub(hint.chars().count()).max(MIN_TEXT);
            format!("{} (hint: {hint})", cut(text, most))
        }
        (text, None) => cut(text, MAX_WIDTH).into_owned(),
    }
}

/// The last non-empty cell is not padded, so that no line ends in spaces.
fn write_row(text: &mut Text, row: &[impl AsRef<str>], widths: &[usize]) {
    let last = row.iter().rposition(|cell| !cell.as_ref().is_empty()).unwrap_or(0);
    for (position, (cell, width)) in row.iter().zip(widths).enumerate().take(last + 1) {
        if position < last {
            text.put(format_args!("{:<width$}   ", cell.as_ref()));
        } else {
            text.put(cell.as_ref());
        }
    }
    text.end_line();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_cut() {
        let mut table = Table::new(["ID", "NAME"]);
        table.push(["a\u{1b}[2J".into(), "b".into()]);
        table.push(["x".repeat(1_000), "c".into()]);
        let mut text = Text::new(true);
        table.write(&mut text);
        assert!(text.as_str().contains("a\\u001b[2J ") && text.as_str().contains("x… (1,000 characters)   c\n"));
    }

    #[test]
    fn a_long_message_keeps_its_hint() {
        let hint = format!("(hint: {})", "y".repeat(150));
        let cell = shortened(&format!("{} {hint}", "x".repeat(300)));
        assert_eq!(cell, format!("{}… (300 characters) {hint}", "x".repeat(100)));
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let mut table = Table::new(["NAME", "READY", "MESSAGE"]);
        table.push(["network".into(), "True".into(), String::new()]);
        table.push(["db".into(), "False".into(), "two\nlines".into()]);
        let mut text = Text::new(false);
        table.write(&mut text);
        let expected = "NAME      READY   MESSAGE\nnetwork   True\ndb        False   two lines\n";
        assert_eq!(text.as_str(), expected);
    }
}

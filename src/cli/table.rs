//! Tables as `kubectl` prints them: columns padded to their widest cell and separated by three spaces.

use std::io::{self, Write};

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
        self.rows.push(row.map(|cell| if cell.contains('\n') { cell.replace('\n', " ") } else { cell }));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = self.headings.map(str::len);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        write_row(out, &self.headings, &widths)?;
        self.rows.iter().try_for_each(|row| write_row(out, row, &widths))
    }
}

/// The last non-empty cell is not padded, so that no line ends in spaces.
fn write_row(out: &mut dyn Write, row: &[impl AsRef<str>], widths: &[usize]) -> io::Result<()> {
    let last = row.iter().rposition(|cell| !cell.as_ref().is_empty()).unwrap_or(0);
    for (position, (cell, width)) in row.iter().zip(widths).enumerate().take(last + 1) {
        if position < last {
            write!(out, "{:<width$}   ", cell.as_ref())?;
        } else {
            write!(out, "{}", cell.as_ref())?;
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let mut table = Table::new(["NAME", "READY", "MESSAGE"]);
        table.push(["network".into(), "True".into(), String::new()]);
        table.push(["db".into(), "False".into(), "two\nlines".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "NAME      READY   MESSAGE\nnetwork   True\ndb        False   two lines\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

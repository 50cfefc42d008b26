//! `<<-`: the indentation that all lines share is removed.

use unicode_segmentation::UnicodeSegmentation;

use super::{Part, PartKind};

/// Removes from each line as much white space as the line with the least has. Blank lines do not count, and values do
/// not either: a line that starts with a sequence has no indentation.
pub(super) fn flush(parts: &mut [Part]) {
    let mut least = usize::MAX;
    let mut line_starts = Vec::new();
    let mut at_line_start = true;
    for (index, part) in parts.iter().enumerate() {
        let text = match &part.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        };
        if at_line_start {
            let indented = text.map(|text| (text, text.trim_start()));
            match indented {
                Some((text, "")) if text.ends_with('\n') => {}
                Some((text, rest)) => {
                    least = least.min(text[..text.len() - rest.len()].graphemes(true).count());
                    line_starts.push(index);
                }
                None => least = 0,
            }
        }
        at_line_start = text.is_some_and(|text| text.ends_with('\n'));
    }
    for index in line_starts {
        let part = &mut parts[index];
        if let PartKind::Text(text) = &mut part.kind {
            let len: usize = text.graphemes(true).take(least).map(str::len).sum();
            text.drain(..len);
            part.range.start += len as u32;
        }
    }
}

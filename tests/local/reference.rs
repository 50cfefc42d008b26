//! The reference pages, which are generated from code. `UPDATE_EXPECT=1` writes them.

mod api;
mod argocd;
mod chart;
mod command_line;
pub(crate) mod metrics;
mod reasons;

/// The text of a table cell: one line, without characters that end the cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A sentence ends with a period.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', ')']) { text.to_owned() } else { format!("{text}.") }
}

/// The anchor that GitHub gives to a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

//! Renders a plan as Markdown, for the comment of a pull request: the headline, what is destroyed, a table of all
//! changes, and folded differences.

use super::problems::{self, Problem};
use super::summary::Counts;
use super::{Detail, is_shown, nodes, sentence, symbol, tree};
use model::text::{escape, one_line};
use model::{Action, Change, Diagnostic, Severity, Text};

/// The maximum size of a comment on GitHub in characters is 65,536. GitLab's is larger.
const MAX_SIZE: usize = 65_000;

/// Writes the plan. `graph` is the order of the steps as Mermaid text. If the result is too large for a comment, the
/// graph is omitted, then the differences, then the rows of the table that do not fit.
pub fn markdown<'a>(
    changes: impl IntoIterator<Item = &'a Change> + Clone + 'a,
    diagnostics: &'a [Diagnostic],
    graph: &str,
) -> String {
    let shown: Vec<&Change> = {
        let mut shown: Vec<&Change> = changes.clone().into_iter().filter(|change| is_shown(change)).collect();
        shown.sort_by_key(|change| danger(change));
        shown
    };
    let mut text = format!("### Purlin: {}\n", escaped(&Counts::of(changes.clone(), diagnostics).to_string()));
    write_dangers(&shown, &mut text);
    write_problems(&problems::collect(changes, diagnostics), &mut text);
    write_table(&shown, &mut text);
    let differences: String = shown.iter().map(|change| difference(change)).collect();
    append(&differences, "The differences are too large for a comment.", &mut text);
    if !graph.is_empty() && !shown.is_empty() {
        let order = folded("Order of the steps", &fenced("mermaid", graph));
        append(&order, "The graph of the steps is too large for a comment.", &mut text);
    }
    text
}

fn append(part: &str, instead: &str, text: &mut String) {
    match text.len() + part.len() <= MAX_SIZE {
        true => text.push_str(part),
        false => text.push_str(&format!("\n{instead} `purlin plan` shows it in full.\n")),
    }
}

/// Destroys first, then replacements.
fn danger(change: &Change) -> u8 {
    match change.action {
        Action::Destroy => 0,
        Action::Replace => 1,
        Action::Forget => 2,
        _ => 3,
    }
}

fn write_dangers(shown: &[&Change], text: &mut String) {
    let dangerous: Vec<String> = shown
        .iter()
        .filter(|change| danger(change) < 2)
        .map(|change| format!("> - {} {}\n", code(&name(change)), sentence(change)))
        .collect();
    if !dangerous.is_empty() {
        text.push_str("\n> [!CAUTION]\n> Existing objects are destroyed:\n");
        text.push_str(&limited(&dangerous, "> - "));
    }
}

fn write_problems(problems: &[Problem<'_>], text: &mut String) {
    if problems.is_empty() {
        return;
    }
    text.push('\n');
    let lines: Vec<String> = problems.iter().map(problem).collect();
    text.push_str(&limited(&lines, "- "));
}

fn problem(problem: &Problem<'_>) -> String {
    let severity = match problem.diagnostic.severity {
        Severity::Error => "**Error**",
        Severity::Warning => "Warning",
    };
    let waiting = match problem.waiting.len() {
        0 => String::new(),
        1 => " (1 object waits for this)".to_owned(),
        count => format!(" ({count} objects wait for this)"),
    };
    let others = match problem.others.len() {
        0 => String::new(),
        1 => " (and 1 more object)".to_owned(),
        count => format!(" (and {count} more objects)"),
    };
    format!("- {severity}: {}{others}{waiting}\n", escaped(&problem.diagnostic.to_string()))
}

fn write_table(shown: &[&Change], text: &mut String) {
    if shown.is_empty() {
        return;
    }
    text.push_str("\n| | Object | Type | Change | Reason |\n| --- | --- | --- | --- | --- |\n");
    let rows: Vec<String> = shown.iter().map(|change| table_row(change)).collect();
    text.push_str(&limited(&rows, "| | "));
}

fn table_row(change: &Change) -> String {
    let because = change.because.as_ref().map(ToString::to_string).unwrap_or_default();
    let (object, type_name) = (code(&name(change)), code(&change.type_name));
    let symbol = code(symbol(change).0);
    format!("| {symbol} | {object} | {type_name} | {} | {} |\n", sentence(change), escaped(&because))
}

/// The lines that fit into half of a comment, and how many do not.
fn limited(lines: &[String], prefix: &str) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        if text.len() + line.len() > MAX_SIZE / 3 {
            text.push_str(&format!("{prefix}and {} more\n", lines.len() - number));
            break;
        }
        text.push_str(line);
    }
    text
}

/// The attributes of a change, folded.
fn difference(change: &Change) -> String {
    let nodes = nodes(change, Detail::default());
    if nodes.is_empty() {
        return String::new();
    }
    let mut text = Text::new(false);
    tree::write(&nodes, 0, &mut text);
    let lines: String = text.as_str().lines().map(sign_first).collect();
    let title = format!("{} <code>{}</code> {}", html(symbol(change).0), html(&name(change)), sentence(change));
    folded(&title, &fenced("diff", &lines))
}

/// The line with its sign in the first column, where `diff` expects it. Changed lines have `!`, which is highlighted.
fn sign_first(line: &str) -> String {
    let at = line.len() - line.trim_start().len();
    let sign = match line.as_bytes().get(at..at + 2) {
        Some(b"+ ") => '+',
        Some(b"- ") => '-',
        Some(b"~ ") => '!',
        _ => return format!(" {line}\n"),
    };
    format!("{sign}{} {}\n", &line[..at], &line[at + 1..])
}

fn folded(title: &str, content: &str) -> String {
    format!("\n<details><summary>{title}</summary>\n\n{content}\n</details>\n")
}

/// A block of code whose fence is longer than any in the content.
fn fenced(language: &str, content: &str) -> String {
    let mut fence = "```".to_owned();
    while content.contains(&fence) {
        fence.push('`');
    }
    let end = if content.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{content}{end}{fence}\n")
}

fn name(change: &Change) -> String {
    match change.deposed {
        Some(key) => format!("{} (deposed {key})", change.address),
        None => change.address.to_string(),
    }
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An inline code that cannot end early, and cannot end the cell of a table.
fn code(text: &str) -> String {
    let line = one_line(text);
    let text = escape(&line);
    if !text.is_empty() && text.trim() == text && !text.contains(['`', '|']) {
        return format!("`{text}`");
    }
    let mut entities = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_alphanumeric() || character == ' ' {
            true => entities.push(character),
            false => entities.push_str(&format!("&#{};", u32::from(character))),
        }
    }
    format!("<code>{entities}</code>")
}

/// Text in which no character starts markup, a mention or a link, except that pairs of backticks enclose code.
fn escaped(text: &str) -> String {
    let line = one_line(text);
    let line = escape(&line);
    let parts: Vec<&str> = line.split('`').collect();
    let mut safe = String::with_capacity(line.len());
    for (number, part) in parts.iter().enumerate() {
        match number % 2 == 1 && number + 1 < parts.len() {
            true => safe.push_str(&code(part)),
            false => escape_markup(part, &mut safe),
        }
    }
    safe
}

fn escape_markup(text: &str, safe: &mut String) {
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' => safe.push_str("&#124;"),
            '@' => safe.push_str("&#64;"),
            '\\' | '*' | '_' | '[' | ']' | '#' | '!' | '~' => {
                safe.push('\\');
                safe.push(character);
            }
            other => safe.push(other),
        }
    }
}

#[cfg(test)]
mod tests;

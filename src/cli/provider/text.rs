//! Text for terminals: wrapped lines, and Markdown without its marks.

/// The line width, in columns.
const WIDTH: usize = 100;

/// Wraps and indents text, paragraph by paragraph.
pub fn wrap(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    text.trim().lines().map(|paragraph| wrap_paragraph(paragraph, &margin, &margin)).collect()
}

/// Wraps one paragraph. `first` precedes its first line, and `next` all others.
fn wrap_paragraph(text: &str, first: &str, next: &str) -> String {
    let mut out = first.to_owned();
    let mut column = first.chars().count();
    let mut is_start = true;
    for word in text.split_whitespace() {
        let size = word.chars().count();
        if !is_start && column + 1 + size > WIDTH {
            out.push('\n');
            out.push_str(next);
            column = next.chars().count();
        } else if !is_start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += size;
        is_start = false;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Renders a page of `docs/types` without its title: headings in capitals, the rows of a table as a name and an
/// indented text, and links as their text.
pub fn markdown(page: &str) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut lines = page.lines().filter(|line| !line.starts_with("# ")).peekable();
    while let Some(line) = lines.next() {
        let continues = !line.is_empty() && !line.starts_with(['#', '|', '`']) && !line.starts_with("- ");
        if continues || (line.starts_with('`') && !line.starts_with("```")) {
            paragraph.push(' ');
            paragraph.push_str(line);
            continue;
        }
        out.push_str(&rendered(&std::mem::take(&mut paragraph)));
        if line.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                out.push_str(format!("    {code}").trim_end());
                out.push('\n');
            }
        } else if let Some(heading) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')) {
            out.push_str(&format!("{}\n", heading.to_uppercase()));
            lines.next_if(|line| line.is_empty());
        } else if line.starts_with('|') {
            // The first row of a table is followed by a row of dashes.
            let is_head = lines.peek().is_some_and(|next| next.starts_with("| ---") || next.starts_with("|---"));
            if !is_head && !line.contains("---") {
                out.push_str(&row(line));
            }
        } else if line.starts_with("- ") {
            paragraph.push_str(line);
        } else {
            out.push('\n');
        }
    }
    out.push_str(&rendered(&paragraph));
    format!("{}\n", out.trim_start_matches('\n').trim_end())
}

/// A paragraph or a list item.
fn rendered(paragraph: &str) -> String {
    let text = without_links(paragraph.trim());
    match text.strip_prefix("- ") {
        _ if text.is_empty() => String::new(),
        Some(item) => wrap_paragraph(item, "  - ", "    "),
        None => wrap_paragraph(&text, "  ", "  "),
    }
}

fn row(line: &str) -> String {
    let cells: Vec<&str> = line.trim_matches('|').splitn(2, " | ").map(str::trim).collect();
    let text = cells.get(1).map_or_else(String::new, |text| wrap(&without_links(text), 6));
    format!("  {}\n{text}", cells.first().unwrap_or(&""))
}

/// Replaces `[text](target)` by its text.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link.split_once("](").and_then(|(text, after)| Some((text, after.split_once(')')?.1)));
        match parts.filter(|(text, _)| !text.contains(['[', ']'])) {
            Some((text, after)) => {
                out.push_str(before);
                out.push_str(text);
                rest = after;
            }
            None => {
                out.push_str(before);
                out.push('[');
                rest = link;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_page_is_readable_in_a_terminal() {
        let page = "# `x`\n\nStores [a value](../a.md) `a[0]`\nand nothing.\n\n```yaml\nspec:\n  type: x\n```\n\n## Some arguments\n\n\
                    | Argument | |\n| --- | --- |\n| `input` | Any value. |\n\n- one\n  item\n- two\n";
        expect![[r"
              Stores a value `a[0]` and nothing.

                spec:
                  type: x

            SOME ARGUMENTS
              `input`
                  Any value.

              - one item
              - two
        "]]
        .assert_eq(&markdown(page));
    }

    #[test]
    fn long_lines_are_wrapped() {
        let text = "word ".repeat(40);
        assert!(wrap(&text, 4).lines().all(|line| line.len() <= WIDTH && line.starts_with("    word")));
        assert_eq!(wrap(&text, 4).split_whitespace().count(), 40);
        assert_eq!(wrap("a\nb\n", 2), "  a\n  b\n");
        assert_eq!(wrap("", 2), "");
    }
}

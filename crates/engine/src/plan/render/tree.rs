//! The lines of a change as a tree, which every format for people writes: text here, and other markup elsewhere.

use model::{Text, Tone};

/// Longer names are not padded to.
const MAX_PADDING: usize = 40;

/// Whether a line is added, changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    Added,
    Changed,
    Removed,
}

/// One line, or an opening line with the lines below it and a closing line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub sign: Sign,
    /// The name of an attribute or entry. Items of lists and lines of strings have none.
    pub label: Option<String>,
    pub body: Body,
    /// Remarks at the end of the line.
    pub notes: Vec<&'static str>,
}

/// What follows the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Value(String),
    Block {
        open: String,
        nodes: Vec<Node>,
        /// Empty if there is no closing line.
        close: String,
    },
    /// A remark on a line of its own.
    Comment(String),
}

impl Sign {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::None => " ",
            Self::Added => "+",
            Self::Changed => "~",
            Self::Removed => "-",
        }
    }

    fn tone(self) -> Option<Tone> {
        match self {
            Self::None => None,
            Self::Added => Some(Tone::Added),
            Self::Changed => Some(Tone::Changed),
            Self::Removed => Some(Tone::Removed),
        }
    }
}

impl Node {
    pub fn value(sign: Sign, label: Option<String>, text: impl Into<String>) -> Self {
        Self { sign, label, body: Body::Value(text.into()), notes: Vec::new() }
    }

    pub fn block(sign: Sign, label: Option<String>, (open, close): (&str, &str), nodes: Vec<Self>) -> Self {
        let body = Body::Block { open: open.to_owned(), nodes, close: close.to_owned() };
        Self { sign, label, body, notes: Vec::new() }
    }

    pub fn comment(text: impl Into<String>) -> Self {
        Self { sign: Sign::None, label: None, body: Body::Comment(text.into()), notes: Vec::new() }
    }

    fn label_width(&self) -> usize {
        self.label.as_ref().map_or(0, |label| label.chars().count())
    }

    #[must_use]
    pub fn noted(mut self, notes: Vec<&'static str>) -> Self {
        self.notes = notes;
        self
    }
}

/// Writes nodes, indented by four spaces for each level of `depth`, with the values of neighbors aligned.
pub fn write(nodes: &[Node], depth: usize, text: &mut Text) {
    let widest = nodes.iter().map(Node::label_width).filter(|width| *width <= MAX_PADDING).max().unwrap_or(0);
    let indent = "    ".repeat(depth);
    for node in nodes {
        if node == &Node::value(Sign::None, None, "") {
            // An empty line of a string.
            text.end_line();
            continue;
        }
        text.put(format_args!("  {indent}"));
        match node.sign.tone() {
            Some(tone) => text.tone(tone, node.sign.symbol()),
            None => text.put(node.sign.symbol()),
        };
        text.put(' ');
        if let Some(label) = &node.label {
            let padding = " ".repeat(widest.saturating_sub(node.label_width()));
            text.put(label).put(padding).put(" = ");
        }
        match &node.body {
            Body::Comment(comment) => {
                text.tone(Tone::Faint, format_args!("# {comment}"));
            }
            Body::Value(value) => {
                text.put(value);
            }
            Body::Block { open, .. } => {
                text.put(open);
            }
        }
        for note in &node.notes {
            text.put(' ').tone(Tone::Removed, format_args!("# {note}"));
        }
        text.end_line();
        if let Body::Block { nodes, close, .. } = &node.body {
            write(nodes, depth + 1, text);
            if !close.is_empty() {
                text.put(format_args!("  {indent}  {close}")).end_line();
            }
        }
    }
}

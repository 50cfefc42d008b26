//! The fenced blocks of a page.

use std::path::Path;

/// The part of a page to which a block belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Needs no cluster.
    Files,
    Cluster,
}

pub(super) enum Chunk {
    /// Lines outside of blocks.
    Text(String),
    Fence(Fence),
}

pub(super) struct Fence {
    /// The text after the opening backticks.
    pub(super) info: String,
    pub(super) body: String,
    /// The number of the line of the opening backticks.
    pub(super) line: usize,
    pub(super) part: Part,
    /// The comment in the line before.
    comment: Option<String>,
}

impl Fence {
    /// The rest of the comment before the block, if the comment begins with this.
    pub(super) fn mark(&self, begin: &str) -> Option<&str> {
        self.comment.as_deref()?.strip_prefix(begin)
    }

    /// The directory whose graph the block shows.
    pub(super) fn directory(&self) -> Option<&str> {
        self.mark("graph of ")
    }

    /// The path and content of the file that the block contains.
    pub(super) fn file(&self) -> Option<(&str, &str)> {
        if let Some(name) = self.info.strip_prefix("json ").or_else(|| self.info.strip_prefix("hcl ")) {
            return Some((name, &self.body));
        }
        let first = self.body.lines().next().filter(|_| self.info == "yaml")?;
        let name = first.strip_prefix("# ").filter(|name| !name.contains(' '))?;
        let name = Path::new(name).extension().is_some_and(|extension| extension == "yaml").then_some(name)?;
        Some((name, &self.body))
    }

    pub(super) fn with_body(&self, body: &str) -> String {
        format!("```{}\n{body}```\n", self.info)
    }
}

pub(super) fn parse(text: &str) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut outside = String::new();
    let mut part = Part::Files;
    let mut lines = text.split_inclusive('\n').zip(1..);
    while let Some((line, number)) = lines.next() {
        let trimmed = line.trim_end();
        match trimmed {
            "<!-- cluster -->" => part = Part::Cluster,
            "<!-- files -->" => part = Part::Files,
            _ => {}
        }
        let Some(info) = trimmed.strip_prefix("```") else {
            outside.push_str(line);
            continue;
        };
        let comment = outside.lines().last().and_then(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->"));
        let comment = comment.map(str::to_owned);
        chunks.push(Chunk::Text(std::mem::take(&mut outside)));
        let body = lines.by_ref().map(|(line, _)| line).take_while(|line| line.trim_end() != "```").collect();
        chunks.push(Chunk::Fence(Fence { info: info.to_owned(), body, line: number, part, comment }));
    }
    chunks.push(Chunk::Text(outside));
    chunks
}

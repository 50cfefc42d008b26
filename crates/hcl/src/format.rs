//! Formatting: the white space between tokens, and what `tofu fmt` simplifies besides.
//!
//! A line has up to three cells: what leads, an assignment, and a comment. Cells of lines that follow each other are
//! aligned. A heredoc belongs to the line that it starts on.

mod simplify;
mod spacing;

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::diagnostic::Diagnostic;
use crate::lexer::{Start, lex};
use crate::parser::parse_body;
use crate::source::Source;
use crate::token::TokenKind;

use simplify::simplify;
use spacing::{bracket_change, has_space_between};

/// Formats a text. Only white space changes. The text need not be valid, but what is not is better left as it is.
///
/// ```
/// let text = "locals {\na=1 # one\nbcd   = [ 2,3 ]\n}\n";
/// assert_eq!(hcl::format(text), "locals {\n  a   = 1 # one\n  bcd = [2, 3]\n}\n");
/// ```
pub fn format(text: &str) -> String {
    let mut tokens = tokens(text);
    arrange(&mut tokens);
    write(&tokens)
}

/// Formats a file as `tofu fmt` does. Besides white space, `"${a}"` becomes `a`, labels are quoted, and the types of
/// variables are written as types: `"list"` becomes `list(string)`.
///
/// ```
/// let text = "variable a {\n  type = \"list\"\n  default = \"${[]}\"\n}\n";
/// let source = hcl::Source::new(hcl::FileId(0), "main.tf", text);
/// let formatted = hcl::format_configuration(source).unwrap();
/// assert_eq!(formatted, "variable \"a\" {\n  type    = list(string)\n  default = []\n}\n");
/// ```
pub fn format_configuration(source: Source) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse_body(source);
    if !parsed.diagnostics.is_empty() {
        return Err(parsed.diagnostics);
    }
    let text = parsed.source.text();
    let mut tokens = simplify(tokens(text), &parsed.value);
    arrange(&mut tokens);
    Ok(write(&tokens))
}

/// A token and the number of spaces before it.
#[derive(Clone, Debug)]
struct Piece<'a> {
    kind: TokenKind,
    text: Cow<'a, str>,
    spaces: usize,
    /// The offset in the text; of a piece that was not in it, that of the one before.
    start: u32,
}

fn tokens(text: &str) -> Vec<Piece<'_>> {
    let mut before = 0;
    let pieces = lex(text, Start::Normal).into_iter().map(|token| {
        let spaces = (token.start - before) as usize;
        before = token.end;
        let text = Cow::Borrowed(&text[token.start as usize..token.end as usize]);
        Piece { kind: token.kind, text, spaces, start: token.start }
    });
    pieces.collect()
}

fn write(tokens: &[Piece<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        text.extend(std::iter::repeat_n(' ', token.spaces));
        text.push_str(&token.text);
    }
    text
}

fn arrange(tokens: &mut [Piece<'_>]) {
    let lines = lines(tokens);
    indent(tokens, &lines);
    space(tokens, &lines);
    align(tokens, &lines, |line| (line.lead.start..line.lead.end, line.assign.start..line.assign.end));
    align(tokens, &lines, |line| (line.lead.start..line.assign.end, line.comment.start..line.comment.end));
}

/// The cells of a line, as indexes of tokens. A cell that a line does not have is empty.
struct Line {
    lead: Range<usize>,
    assign: Range<usize>,
    comment: Range<usize>,
}

fn lines(tokens: &[Piece<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (index, token) in tokens.iter().enumerate() {
        let ends = token.kind == TokenKind::EndOfFile;
        let end = if ends { index } else { index + 1 };
        if ends || breaks_line(token) {
            lines.push(line(tokens, start..end));
            start = index + 1;
        }
    }
    lines
}

fn breaks_line(token: &Piece<'_>) -> bool {
    match token.kind {
        TokenKind::Newline => true,
        TokenKind::Comment => token.text.ends_with('\n'),
        _ => false,
    }
}

fn line(tokens: &[Piece<'_>], all: Range<usize>) -> Line {
    let commented = all.len() > 1 && tokens[all.end - 1].kind == TokenKind::Comment;
    let comment = all.end - usize::from(commented)..all.end;
    let code = all.start..comment.start;
    let equals = code.clone().skip(1).find(|index| tokens[*index].kind == TokenKind::Equal);
    // A value that goes on in the next line is not aligned.
    let whole = equals
        .filter(|index| tokens[*index..code.end].iter().map(|token| bracket_change(token.kind)).sum::<i32>() == 0);
    let assign = whole.unwrap_or(code.end)..code.end;
    Line { lead: code.start..assign.start, assign, comment }
}

/// Sets the spaces at the start of each line. Brackets that a line opens indent the next ones by one step, however many
/// they are; the step ends when as many were closed.
fn indent(tokens: &mut [Piece<'_>], lines: &[Line]) {
    let mut opened: Vec<i32> = Vec::new();
    for line in lines.iter().filter(|line| !line.lead.is_empty()) {
        let first = line.lead.start;
        if tokens[first].kind == TokenKind::Newline {
            tokens[first].spaces = 0;
            continue;
        }
        let heredoc = tokens[line.lead.clone()].iter().position(|token| token.kind == TokenKind::OpenHeredoc);
        let lead = first..heredoc.map_or(line.lead.end, |at| first + at);
        let counted = tokens[lead].iter().chain(&tokens[line.assign.clone()]);
        let change: i32 = counted.map(|token| bracket_change(token.kind)).sum();
        let mut closed = -change;
        while closed > 0
            && let Some(last) = opened.last_mut()
        {
            let left = *last - closed;
            closed -= *last;
            *last = left;
            if left <= 0 {
                opened.pop();
            }
        }
        tokens[first].spaces = 2 * opened.len();
        if change > 0 {
            opened.push(change);
        }
    }
}

/// Sets the spaces between the tokens of each cell.
fn space(tokens: &mut [Piece<'_>], lines: &[Line]) {
    for line in lines {
        for cell in [&line.lead, &line.assign] {
            for index in cell.start + 1..cell.end {
                let before = (index >= cell.start + 2).then(|| tokens[index - 2].kind);
                tokens[index].spaces = usize::from(has_space_between(before, &tokens[index - 1], tokens[index].kind));
            }
        }
    }
}

/// Aligns a cell among lines that follow each other and have it. `split` gives what is before the cell, and the cell.
fn align(tokens: &mut [Piece<'_>], lines: &[Line], split: fn(&Line) -> (Range<usize>, Range<usize>)) {
    let chains = lines.chunk_by(|a, b| split(a).1.is_empty() == split(b).1.is_empty());
    for chain in chains.filter(|chain| !split(&chain[0]).1.is_empty()) {
        let widths: Vec<usize> = chain.iter().map(|line| width(&tokens[split(line).0])).collect();
        let widest = widths.iter().max().copied().unwrap_or_default();
        for (line, width) in chain.iter().zip(widths) {
            tokens[split(line).1.start].spaces = widest - width + 1;
        }
    }
}

fn width(tokens: &[Piece<'_>]) -> usize {
    tokens.iter().map(|token| token.spaces + token.text.graphemes(true).count()).sum()
}

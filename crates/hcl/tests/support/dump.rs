//! The tree of a file as text, in the form that the program in tests/vectors/hcl writes.

use std::fmt::Write;

use hcl::{
    Attribute, BlockSchema, Body, Expr, ExprKind, Literal, Name, Range, Schema, Source, Step, Traversal, UnaryOperator,
};

/// Writes a tree with lines and columns of a source.
pub struct Dump<'a> {
    source: &'a Source,
    out: String,
}

impl<'a> Dump<'a> {
    pub fn new(source: &'a Source) -> Self {
        Self { source, out: String::new() }
    }

    pub fn finish(self) -> String {
        self.out
    }

    fn place(&self, range: Range) -> String {
        let (start, end) = (self.source.position(range.start), self.source.position(range.end));
        format!("{}:{}@{}-{}:{}@{}", start.line, start.column, start.byte, end.line, end.column, end.byte)
    }

    fn word(&mut self, word: &str) {
        self.out.push(' ');
        self.out.push_str(word);
    }

    fn places(&mut self, ranges: &[Range]) {
        for range in ranges {
            let place = self.place(*range);
            self.word(&place);
        }
    }

    fn node(&mut self, kind: &str, range: Range, inside: impl FnOnce(&mut Self)) {
        let place = self.place(range);
        write!(self.out, "({kind} {place}").unwrap();
        inside(self);
        self.out.push(')');
    }

    fn child(&mut self, expr: &Expr) {
        self.out.push(' ');
        self.expression(expr);
    }

    fn optional(&mut self, expr: Option<&Expr>) {
        match expr {
            Some(expr) => self.child(expr),
            None => self.word("none"),
        }
    }

    fn root(&mut self, root: &Name) {
        self.out.push(' ');
        self.node("root", root.range, |dump| dump.word(&quote(&root.text)));
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.out.push(' ');
            match step {
                Step::Attribute(name) => self.node("attribute", name.range, |dump| dump.word(&quote(&name.text))),
                Step::Index { key, range } => self.node("index", *range, |dump| dump.word(&literal(key))),
                Step::Splat { range } => self.node("splat", *range, |_| ()),
            }
        }
    }

    pub fn traversal(&mut self, traversal: &Traversal) {
        self.root(&traversal.root);
        self.steps(&traversal.steps);
    }

    pub fn references(&mut self, expr: &Expr) {
        for traversal in expr.references() {
            self.out.push('\n');
            self.node("reference", traversal.range, |dump| dump.traversal(traversal));
        }
    }

    pub fn expression(&mut self, expr: &Expr) {
        self.node(kind(expr), expr.range, |dump| dump.inside(expr));
    }

    fn inside(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Literal(value) => self.word(&literal(value)),
            ExprKind::Traversal(traversal) => self.traversal(traversal),
            ExprKind::RelativeTraversal(traversal) => {
                self.child(&traversal.source);
                self.steps(&traversal.steps);
            }
            ExprKind::Index(index) => {
                self.places(&[index.brackets_range]);
                self.child(&index.collection);
                self.child(&index.key);
            }
            ExprKind::Splat(splat) => {
                self.places(&[splat.marker_range]);
                self.child(&splat.source);
                self.child(&splat.each);
            }
            ExprKind::Object(items) => {
                for item in items {
                    self.word(&item.key.in_parentheses.to_string());
                    self.word(&quote(item.key.word().unwrap_or_default()));
                    self.child(&item.key.expr);
                    self.child(&item.value);
                }
            }
            ExprKind::For(each) => {
                self.places(&[each.open_range, each.close_range]);
                self.word(&quote(each.key_name.as_ref().map_or("", |name| &name.text)));
                self.word(&quote(&each.value_name.text));
                self.word(&each.group.to_string());
                self.child(&each.collection);
                self.optional(each.key.as_ref());
                self.child(&each.value);
                self.optional(each.condition.as_ref());
            }
            ExprKind::Call(call) => {
                self.word(&quote(&call.name.text));
                self.places(&[call.name.range, call.open_range, call.close_range]);
                self.word(&call.expand_last.to_string());
                call.arguments.iter().for_each(|argument| self.child(argument));
            }
            ExprKind::Binary(binary) => {
                self.word(binary.operator.symbol());
                self.child(&binary.left);
                self.child(&binary.right);
            }
            ExprKind::Unary(operator, operand) => {
                self.word(if *operator == UnaryOperator::Negate { "-" } else { "!" });
                self.child(operand);
            }
            _ => expr.for_each_child(&mut |child| self.child(child)),
        }
    }

    pub fn body(&mut self, body: &Body) {
        self.node("body", body.range, |dump| {
            dump.places(&[body.end_range]);
            for attribute in &body.attributes {
                dump.out.push('\n');
                dump.attribute(attribute);
            }
            for block in &body.blocks {
                dump.out.push('\n');
                dump.node("block", block.kind.range, |dump| {
                    dump.word(&quote(&block.kind.text));
                    for label in &block.labels {
                        dump.word(&quote(&label.text));
                        dump.places(&[label.range]);
                    }
                    dump.places(&[block.open_range, block.close_range]);
                    dump.out.push(' ');
                    dump.body(&block.body);
                });
            }
        });
    }

    fn attribute(&mut self, attribute: &Attribute) {
        self.node("attribute", attribute.range, |dump| {
            dump.word(&quote(&attribute.name.text));
            dump.places(&[attribute.name.range, attribute.equals_range]);
            dump.child(&attribute.value);
            dump.references(&attribute.value);
        });
    }

    /// Writes a body in JSON syntax by the schema that the vectors are made with, and returns its problems.
    pub fn json(&mut self, body: Body) -> Vec<hcl::Diagnostic> {
        let mut schema = Schema::new(&["a", "b", "c"], &[("x", &[]), ("y", &["name"]), ("z", &["type", "name"])]);
        schema.blocks.push(BlockSchema { kind: "j".to_owned(), labels: Vec::new() });
        let (content, mut diagnostics) = body.content(&schema);
        write!(self.out, "(body {}", content.end_range.start).unwrap();
        self.json_attributes(&content.attributes);
        for block in content.blocks {
            write!(self.out, "\n(block {} {}", quote(&block.kind.text), bytes(block.kind.range)).unwrap();
            for label in &block.labels {
                write!(self.out, " {} {}", quote(&label.text), bytes(label.range)).unwrap();
            }
            self.out.push(' ');
            if block.kind.text == "j" {
                let (attributes, more) = block.body.just_attributes();
                diagnostics.extend(more);
                self.json_attributes(&attributes);
            } else {
                diagnostics.extend(self.json(block.body));
            }
            self.out.push(')');
        }
        self.out.push(')');
        diagnostics
    }

    fn json_attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let (range, name) = (bytes(attribute.range), &attribute.name);
            write!(self.out, "\n(attribute {range} {} {} ", quote(&name.text), bytes(name.range)).unwrap();
            self.json_expression(&attribute.value);
            self.out.push(')');
        }
    }

    fn json_expression(&mut self, expr: &Expr) {
        write!(self.out, "({}", bytes(expr.range)).unwrap();
        match &expr.kind {
            ExprKind::Object(items) => {
                self.word("object");
                for item in items {
                    self.out.push(' ');
                    self.json_expression(&item.key.expr);
                    self.out.push(' ');
                    self.json_expression(&item.value);
                }
            }
            ExprKind::Tuple(items) => {
                self.word("tuple");
                for item in items {
                    self.out.push(' ');
                    self.json_expression(item);
                }
            }
            ExprKind::JsonString(string) => {
                self.word(&literal(&Literal::String(string.normalized())));
                if let Ok(traversal) = expr.as_traversal() {
                    self.word(&format!("traversal {}", traversal.steps.len() + 1));
                }
                let references = if string.diagnostics.is_empty() { expr.references() } else { Vec::new() };
                for traversal in references {
                    self.word(&format!("{} {}", quote(&traversal.root.text), traversal.steps.len() + 1));
                }
            }
            ExprKind::Literal(value) => self.word(&literal(value)),
            _ => self.word("?"),
        }
        self.out.push(')');
    }
}

fn kind(expr: &Expr) -> &'static str {
    match &expr.kind {
        ExprKind::Literal(_) => "literal",
        ExprKind::Traversal(_) => "traversal",
        ExprKind::RelativeTraversal(_) => "relative",
        ExprKind::Index(_) => "index",
        ExprKind::Splat(_) => "splat",
        ExprKind::SplatItem => "item",
        ExprKind::Template(_) => "template",
        ExprKind::TemplateWrap(_) => "wrap",
        ExprKind::TemplateJoin(_) => "join",
        ExprKind::Tuple(_) => "tuple",
        ExprKind::Object(_) => "object",
        ExprKind::For(_) => "for",
        ExprKind::Call(_) => "call",
        ExprKind::Conditional(_) => "conditional",
        ExprKind::Binary(_) => "binary",
        ExprKind::Unary(..) => "unary",
        ExprKind::Parentheses(_) => "parentheses",
        ExprKind::JsonString(_) | ExprKind::Invalid => "invalid",
    }
}

fn bytes(range: Range) -> String {
    format!("{}-{}", range.start, range.end)
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            ' '..='~' if c != '"' && c != '\\' => out.push(c),
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap(),
        }
    }
    out.push('"');
    out
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Null => "null".to_owned(),
        Literal::Bool(truth) => truth.to_string(),
        Literal::Number(text) => number(text),
        Literal::String(text) => quote(text),
    }
}

/// A number as its digits without zeros at the ends, and an exponent: 1.50 is 15e-1.
fn number(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    let zeros = significant.len() - trimmed.len();
    let power =
        exponent.parse::<i64>().unwrap() + i64::try_from(zeros).unwrap() - i64::try_from(fraction.len()).unwrap();
    if trimmed.is_empty() { "0e0".to_owned() } else { format!("{sign}{trimmed}e{power}") }
}

//! A parser of HCL 2, the language of Terraform's and OpenTofu's configurations.
//!
//! It reads what `hashicorp/hcl` reads, to the same tree, and reports all errors of a file at once. It evaluates
//! nothing: a tree has the shape that HCL's specification gives the language, for an evaluator to follow.
//!
//! ```
//! use hcl::{ExprKind, FileId, Source};
//!
//! let text = "resource \"aws_vpc\" \"main\" {\n  cidr_block = var.cidr\n}\n";
//! let parsed = hcl::parse_body(Source::new(FileId(0), "main.tf", text));
//! assert!(parsed.diagnostics.is_empty());
//!
//! let block = &parsed.value.blocks[0];
//! assert_eq!(block.labels[1].text, "main");
//! let value = &block.body.attribute("cidr_block").unwrap().value;
//! assert!(matches!(value.kind, ExprKind::Traversal(_)));
//! assert_eq!(parsed.source.position(value.range.start).to_string(), "2,16");
//! ```
//!
//! Input of any kind takes time and memory in proportion to its length: nothing is parsed twice, and nesting is bounded
//! by [`MAX_NESTING`] and [`MAX_HEIGHT`], where `hashicorp/hcl` has no bound.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod source;
mod diagnostic;
mod token;
mod lexer;
mod escape;
mod tree;
mod parser;
mod references;
mod analysis;
mod json;
mod schema;
mod format;

pub use diagnostic::Diagnostic;
pub use format::{format, format_configuration};
pub use json::{parse_json, parse_json_expression};
pub use lexer::is_identifier;
pub use parser::{
    MAX_NESTING, Parsed, parse_body, parse_expression, parse_partial_traversal, parse_template, parse_traversal,
};
pub use schema::{AttributeSchema, BlockSchema, Content, Schema};
pub use source::{FileId, MAX_LEN, Position, Range, Source};
pub use tree::*;

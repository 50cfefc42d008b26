//! Traversals alone, as addresses and references are written outside of expressions.

use super::{Parser, Result};
use crate::source::Range;
use crate::token::{Token, TokenKind};
use crate::tree::{Literal, Name, Step, Traversal};

impl Parser<'_> {
    /// Parses a text that is one traversal.
    pub fn whole_traversal(&mut self, splats: bool) -> Option<Traversal> {
        self.newlines = vec![false];
        self.traversal(splats).ok()
    }

    fn traversal(&mut self, splats: bool) -> Result<Traversal> {
        let Some(root) = self.read_if(TokenKind::Identifier) else {
            return self.abandon(self.peek(), "Variable name required", "A name is expected here.", "");
        };
        let range = self.range(root);
        let root = Name { text: self.slice(root).to_owned(), range };
        let mut traversal = Traversal { root, steps: Vec::new(), range };
        loop {
            let token = self.peek();
            let step = match token.kind {
                TokenKind::EndOfFile => return Ok(traversal),
                TokenKind::Dot => self.attribute_step()?,
                TokenKind::OpenBracket => self.index_step(splats)?,
                _ => {
                    let detail = "An attribute or an index is expected here.";
                    return self.abandon(token, "Invalid character", detail, "");
                }
            };
            traversal.range = traversal.range.to(step.range());
            traversal.steps.push(step);
        }
    }

    fn attribute_step(&mut self) -> Result<Step> {
        let dot = self.read();
        match self.read_if(TokenKind::Identifier) {
            Some(name) => {
                let range = self.range(dot).to(self.range(name));
                Ok(Step::Attribute(Name { text: self.slice(name).to_owned(), range }))
            }
            None => {
                let detail = "The name of an attribute is expected after a dot.";
                self.abandon(self.peek(), "Attribute name required", detail, "")
            }
        }
    }

    fn index_step(&mut self, splats: bool) -> Result<Step> {
        let open = self.read();
        let token = self.peek();
        let key = match token.kind {
            TokenKind::Number => {
                self.read();
                Some(self.number(token))
            }
            TokenKind::OpenQuote => Some(Literal::String(crate::escape::normalize(self.quoted_text()?.text))),
            TokenKind::Star if splats => {
                self.read();
                None
            }
            _ => {
                let detail = "A number or a text in quotes is expected between the brackets of an index.";
                return self.abandon(token, "Index value required", detail, "");
            }
        };
        let range = self.range(open).to(self.close_index()?);
        Ok(match key {
            Some(key) => Step::Index { key, range },
            None => Step::Splat { range },
        })
    }

    fn close_index(&mut self) -> Result<Range> {
        let token: Token = self.peek();
        match self.read_if(TokenKind::CloseBracket) {
            Some(close) => Ok(self.range(close)),
            None => self.abandon(token, "Unclosed index brackets", "A closing bracket is expected after the key.", ""),
        }
    }
}

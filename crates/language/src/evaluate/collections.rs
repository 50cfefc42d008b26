//! Objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::{ExprKind, ObjectItem, ObjectKey};

use super::Evaluator;
use crate::cty::{Data, Marks, Type, Value, convert};

impl Evaluator<'_> {
    pub fn object(&mut self, items: &[ObjectItem]) -> Value {
        let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        let mut marks = Marks::NONE;
        let mut known = true;
        for item in items {
            let (key, problems) = self.attempt(|evaluator| evaluator.key(&item.key));
            let failed = !problems.is_empty();
            self.diagnostics.extend(problems);
            let value = self.value(&item.value);
            if failed {
                known = false;
                continue;
            }
            if key.is_null() {
                self.problem("Null value as key", "A key must not be null.", item.key.expr.range);
                known = false;
                continue;
            }
            let key = key.unmarked(&mut marks);
            match convert(&key, &Type::String) {
                Ok(key) => match key.data() {
                    Data::String(name) if !self.is_duplicate(&entries, name, item) => {
                        entries.insert(name.clone(), value);
                    }
                    _ => known = false,
                },
                Err(error) => {
                    let detail = format!("The value cannot be a key: {error}.");
                    self.problem("Incorrect key type", detail, item.key.expr.range);
                    known = false;
                }
            }
        }
        if known { Value::object(entries).with_marks(&marks) } else { Value::DYNAMIC }
    }

    /// JSON syntax refuses a key that occurs twice; in native syntax the last one wins.
    fn is_duplicate(&mut self, entries: &BTreeMap<Arc<str>, Value>, name: &str, item: &ObjectItem) -> bool {
        let duplicate = matches!(item.key.expr.kind, ExprKind::JsonString(_)) && entries.contains_key(name);
        if duplicate {
            let detail = format!("An attribute \"{name}\" was defined before.");
            self.problem("Duplicate object attribute", detail, item.key.expr.range);
        }
        duplicate
    }

    fn key(&mut self, key: &ObjectKey) -> Value {
        if let Some(word) = key.word() {
            return Value::string(word);
        }
        match &key.expr.kind {
            ExprKind::Traversal(_) if !key.in_parentheses => {
                let detail = "Write a reference as a key in parentheses, and a name with dots in quotes.";
                self.problem("Ambiguous attribute key", detail, key.expr.range)
            }
            _ => self.value(&key.expr),
        }
    }
}

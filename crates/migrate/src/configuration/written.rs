//! Which arguments of a block the configuration sets, at every depth.

use serde_json::Value as Json;

use super::{Arguments, Source};
use drivers::provider::values::{Written, WrittenArguments};
use model::Value;

/// Returns the arguments that are set. `known` returns the value of an expression that reads no other object.
pub fn arguments(arguments: &Arguments, known: &dyn Fn(&Source) -> Option<Json>) -> WrittenArguments {
    arguments.iter().map(|(name, source)| (name.clone(), source.written(known))).collect()
}

impl Source {
    fn written(&self, known: &dyn Fn(&Self) -> Option<Json>) -> Written {
        match self {
            Self::Constant(value) => Written::Constant(Value::from_json(value.clone())),
            Self::References(_) | Self::Expression(_) => {
                known(self).map_or(Written::Whole, |value| Written::Constant(Value::from_json(value)))
            }
            Self::Object(inner) => Written::Object(arguments(inner, known)),
            Self::List(items) => {
                let each = items.iter().map(|item| item.written(known));
                match items.iter().any(|item| matches!(item, Self::Dynamic(_))) {
                    true => Written::Each(Box::new(Written::any_of(&each.collect::<Vec<_>>()))),
                    false => Written::List(each.collect()),
                }
            }
            // The constants can differ between the blocks.
            Self::Dynamic(block) => Written::Object(arguments(&block.content, &|_| None)),
        }
    }
}

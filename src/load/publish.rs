//! `spec.publish`: copies of outputs in ConfigMaps and Secrets, for programs that know nothing of Purlin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Instance;
use super::expression::Scope;
use super::own::{Own, WithSelf};
use crate::model::data::Texts;
use crate::model::{DataRef, Diagnostics, Value};

/// What an instance publishes, as far as it is known.
pub type Published = BTreeMap<DataRef, Option<Texts>>;

/// What the instance publishes when its object is `itself`: `None` in place of the texts while one of them is not known.
/// What is sensitive goes into Secrets only; a null is left out.
///
/// # Errors
/// A diagnostic, with its place, for everything that cannot be published.
pub fn evaluate(instance: &Instance, itself: &Value, others: &dyn Scope) -> Result<Published, Diagnostics> {
    let own = Own { instance, others };
    let scope = WithSelf { object: itself, scope: &own };
    let mut published = Published::new();
    let mut problems = Vec::new();
    for publication in instance.publish.iter() {
        match publication.data.evaluate(&scope) {
            Ok(Value::Map(entries)) => match publication.texts(&entries) {
                Ok(texts) => drop(published.insert(publication.target.clone(), texts)),
                Err(problem) => problems.push(*problem),
            },
            Ok(_) => drop(published.insert(publication.target.clone(), Some(Texts::new()))),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let mut at = publication.at.clone();
                at.0.extend(problem.path.clone().unwrap_or_default().0);
                problem.at(at)
            })),
        }
    }
    for problem in &mut problems {
        problem.address = Some(instance.address.clone());
        problem.source = problem.source.take().or_else(|| instance.source.clone());
    }
    if problems.is_empty() { Ok(published) } else { Err(problems) }
}

/// The texts of a copy as they are recorded.
pub fn recorded(texts: &Texts) -> Value {
    Value::map(texts.iter().map(|(key, text)| (Arc::clone(key), Value::String(Arc::clone(text)))))
}

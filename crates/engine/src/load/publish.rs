//! `spec.publish`: copies of outputs in ConfigMaps and Secrets, for programs that do not use Purlin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Instance;
use super::expression::Scope;
use super::instance_scope::{InstanceScope, SelfScope};
use model::data::StringData;
use model::{DataRef, Diagnostics, Value};

/// The data of each published object. `None`: not all values are known yet.
pub type PublishedData = BTreeMap<DataRef, Option<StringData>>;

/// Evaluates what the instance publishes when the value of its object is `itself`. Secrets can contain sensitive
/// values, ConfigMaps cannot. Null values are omitted.
///
/// # Errors
/// One diagnostic, with its path, for each value that cannot be published.
pub fn evaluate(instance: &Instance, itself: &Value, others: &dyn Scope) -> Result<PublishedData, Diagnostics> {
    let scope = SelfScope { object: itself, scope: &InstanceScope { instance, others } };
    let mut published = PublishedData::new();
    let mut problems = Vec::new();
    for publication in instance.publish.iter() {
        match publication.data.evaluate(&scope) {
            Ok(Value::Map(entries)) => match publication.texts(&entries) {
                Ok(texts) => drop(published.insert(publication.target.clone(), texts)),
                Err(problem) => problems.push(*problem),
            },
            Ok(_) => drop(published.insert(publication.target.clone(), Some(StringData::new()))),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let mut at = publication.at.clone();
                at.0.extend(problem.path.clone().unwrap_or_default().0);
                problem.at(at)
            })),
        }
    }
    for problem in &mut problems {
        problem.address = Some(instance.address.clone());
        problem.source = problem.source.take().or_else(|| instance.source_of(problem.path.as_ref()));
    }
    if problems.is_empty() { Ok(published) } else { Err(problems) }
}

/// Returns the data of a copy in the form that is recorded.
pub fn to_recorded(texts: &StringData) -> Value {
    Value::map(texts.iter().map(|(key, text)| (Arc::clone(key), Value::String(Arc::clone(text)))))
}

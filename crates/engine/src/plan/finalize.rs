//! The final plan of a step, after all values are known. It may only narrow the original plan.
//!
//! The executor makes two driver calls in a step. [`request`] evaluates the configuration for the final plan,
//! [`narrow`] compares the response with the original plan, and [`check_result`] compares the result of `apply` with
//! the final plan. The rules are Terraform's.

use std::sync::Arc;

use super::conform::{below_config, conform_config, located};
use super::marks::marked;
use super::trigger::Revisions;
use super::{PreparedStep, contract, ignore, marks, protect, trigger};
use crate::load::expression::Scope;
use crate::load::{Instance, InstanceScope};
use model::{
    Address, Diagnostic, Diagnostics, Ignored, Path, PlanRequest, PlanResponse, Reason, RecordedObject, Schema, Value,
    visible,
};

/// The final plan of a step: the input of `apply`, which its result is checked against.
#[derive(Clone, Debug)]
pub struct FinalPlan {
    /// Contains no unknown values.
    pub config: Value,
    /// `Unknown` where only the result of the call is known.
    pub planned: Value,
    pub private: Arc<[u8]>,
    /// The identity, if it is known before the object exists.
    pub identity: Option<Value>,
    /// The update changes nothing: only the record is written, without a call. No other change of the action is
    /// allowed.
    pub unchanged: bool,
}

/// The request for the final plan. Every dependency in `scope` has its actual value. Fails for errors in expressions,
/// violations of the schema, and unknown values.
pub fn request(
    prepared: &PreparedStep,
    instance: &Instance,
    schema: &Schema,
    scope: &dyn Scope,
) -> Result<PlanRequest, Diagnostics> {
    let request = partial_request(prepared, instance, schema, scope)?;
    require_known(&instance.address, &request.config)?;
    Ok(request)
}

/// The request before the old object of a destroy-first replacement is destroyed. Values that are known only after the
/// destroy may be unknown.
pub fn partial_request(
    prepared: &PreparedStep,
    instance: &Instance,
    schema: &Schema,
    scope: &dyn Scope,
) -> Result<PlanRequest, Diagnostics> {
    let written = evaluated(instance, schema, scope)?;
    let ignoring = prepared.prior.as_ref().filter(|_| !instance.ignore_changes.is_empty());
    let (config, ignored) = match ignoring {
        Some(prior) => {
            let changes = instance.ignore_changes.clone();
            (ignore::keep(written.clone(), &prior.value, &changes, schema), Some(Ignored { written, changes }))
        }
        None => (written, None),
    };
    Ok(PlanRequest {
        prior: prepared.prior.clone(),
        config,
        ignored,
        entropy: prepared.entropy,
        previous_plan: Some(prepared.planned.clone()),
        replaces: None,
    })
}

/// The configuration of a data source for its step. Fails as [`request`] does.
pub fn data_config(instance: &Instance, schema: &Schema, scope: &dyn Scope) -> Result<Value, Diagnostics> {
    let config = evaluated(instance, schema, scope)?;
    require_known(&instance.address, &config)?;
    Ok(config)
}

/// The evaluated configuration with the types of the schema.
fn evaluated(instance: &Instance, schema: &Schema, scope: &dyn Scope) -> Result<Value, Diagnostics> {
    let scope = InstanceScope { instance, others: scope };
    let evaluated = instance.config.evaluate(&scope).map_err(|problems| located(instance, problems))?;
    conform_config(&instance.address, evaluated, schema)
}

/// The flags to record with the object of a step, with their expressions evaluated again.
pub fn recorded(
    prepared: &PreparedStep,
    instance: Option<&Instance>,
    scope: &dyn Scope,
    revisions: &Revisions<'_>,
) -> RecordedObject {
    let mut recorded = prepared.recorded.clone();
    if let Some(instance) = instance {
        if let Some(triggers) = &recorded.triggers {
            recorded.triggers = Some(Arc::new(trigger::fingerprints(instance, scope, revisions, triggers.salt)));
        }
        recorded.prevent_destroy = protect::recorded(instance, scope, recorded.prevent_destroy);
    }
    recorded
}

/// Checks the driver's final plan. Known values of the plan and the action must be the same, except that an update may
/// become a no-op.
pub fn narrow(
    address: &Address,
    prepared: &PreparedStep,
    schema: &Schema,
    config: Value,
    response: PlanResponse,
) -> Result<FinalPlan, Box<Diagnostic>> {
    let response = marked(response, &config, schema);
    let prior = prepared.prior.as_ref().map(|object| &object.value);
    if !response.checked {
        contract::check_planned(address, &config, &response.planned, prior)?;
        if let Some(path) = contract::first_difference(&prepared.planned, &response.planned) {
            let what = format!("driver produced an inconsistent final plan: {} differs from the plan", place(&path));
            return Err(contract::fault(address, what));
        }
    }
    let mut unchanged = false;
    if let Some(prior) = prior {
        let forcing = match response.checked {
            true => response.requires_replace,
            false => contract::forcing(address, schema, response.requires_replace, prior, &response.planned)?,
        };
        if let Some(path) = forcing.into_iter().next() {
            let path = visible::path(path, &[prior, &response.planned]);
            let what = format!("driver produced an inconsistent final plan: `{path}` now requires a replacement");
            return Err(contract::fault(address, what));
        }
        unchanged =
            !response.planned.has_unknown() && response.planned.equals_unmarked(prior) && !response.requires_update;
    }
    let PlanResponse { planned, private, identity, .. } = response;
    Ok(FinalPlan { config, planned, private, identity, unchanged })
}

/// The value to record after `apply`: with the sensitive marks of the plan, and null for unknown values. It is recorded
/// even if [`check_result`] fails, because the object exists.
pub fn recorded_value(planned: &Value, result: Value, schema: &Schema) -> Value {
    marks::like(marks::by_schema(without_unknown(result), schema), planned)
}

/// Checks the result of `apply`: it has no unknown values and matches the known values of the final plan.
pub fn check_result(address: &Address, planned: &Value, result: &Value) -> Diagnostics {
    let mut faults = Vec::new();
    if let Some(path) = first_unknown(result) {
        let what =
            format!("driver returned an invalid result: {} is still unknown", place(&visible::path(path, &[planned])));
        faults.push(*contract::fault(address, what));
    }
    if let Some(path) = contract::first_difference(planned, result) {
        let what = format!("driver produced an inconsistent result: {} differs from the plan", place(&path));
        faults.push(*contract::fault(address, what));
    }
    faults
}

fn place(path: &Path) -> String {
    if path.0.is_empty() { "the value".to_owned() } else { format!("`{path}`") }
}

fn require_known(address: &Address, config: &Value) -> Result<(), Diagnostics> {
    let Some(path) = first_unknown(config) else { return Ok(()) };
    let what = "is still unknown although all dependencies are applied";
    let fault = Diagnostic::error(address, Reason::InternalError, what);
    let fault = fault.at(below_config(&visible::path(path, &[config])));
    Err(vec![fault.hint("this is a bug in Purlin or in the provider of a dependency")])
}

fn first_unknown(value: &Value) -> Option<Path> {
    match value.unmarked() {
        Value::Unknown => Some(Path::default()),
        Value::Map(map) => map.iter().find_map(|(name, item)| prefixed(Path::default().name(name.clone()), item)),
        Value::List(items) => {
            items.iter().enumerate().find_map(|(place, item)| prefixed(Path::default().index(place), item))
        }
        _ => None,
    }
}

fn prefixed(mut at: Path, item: &Value) -> Option<Path> {
    at.0.extend(first_unknown(item)?.0);
    Some(at)
}

fn without_unknown(value: Value) -> Value {
    if !value.has_unknown() {
        return value;
    }
    match value {
        Value::Map(map) => Value::map(map.iter().map(|(name, item)| (name.clone(), without_unknown(item.clone())))),
        Value::List(items) => Value::list(items.iter().cloned().map(without_unknown)),
        Value::Sensitive(inner) => without_unknown(inner.as_ref().clone()).into_sensitive(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::fixture::schema;

    fn prepared(planned: Value, prior: Option<Value>) -> PreparedStep {
        let recorded = crate::plan::tests::fixture::object("a", &[]);
        let prior = prior.map(|value| Arc::new(model::RecordedObject { value, ..recorded.clone() }));
        PreparedStep {
            replaced: None,
            prior,
            config: Value::Null,
            planned,
            private: Arc::new([]),
            destroy_private: Arc::new([]),
            entropy: [0; 16],
            replace_paths: Vec::new(),
            requires_update: false,
            identity: None,
            publish_again: false,
            recorded,
            deposed_key: model::DeposedKey(1),
            record_only: false,
            is_drift_reported: false,
        }
    }

    fn response(planned: Value) -> PlanResponse {
        PlanResponse { planned, ..PlanResponse::default() }
    }

    fn input(value: i64) -> Value {
        Value::map([("input", Value::from(value))])
    }

    #[test]
    fn a_final_plan_may_set_unknown_values() {
        let planned = input(1).with("id", Value::Unknown);
        let finally = input(1).with("id", Value::from("x"));
        let narrowed = narrow(&Address::single("a"), &prepared(planned, None), &schema(), input(1), response(finally));
        assert!(!narrowed.unwrap().unchanged);
    }

    #[test]
    fn a_final_plan_may_not_change_known_values() {
        let narrowed =
            narrow(&Address::single("a"), &prepared(input(1), None), &schema(), input(2), response(input(2)));
        assert!(narrowed.unwrap_err().summary.contains("`input` differs from the plan"));
    }

    #[test]
    fn an_update_may_become_a_no_op() {
        let planned = Value::map([("input", Value::Unknown)]);
        let step = prepared(planned, Some(input(1)));
        let narrowed = narrow(&Address::single("a"), &step, &schema(), input(1), response(input(1)));
        assert!(narrowed.unwrap().unchanged);
    }

    #[test]
    fn an_update_may_not_become_a_replacement() {
        let planned = Value::map([("force", Value::Unknown)]);
        let step = prepared(planned, Some(Value::map([("force", Value::from(1))])));
        let finally = Value::map([("force", Value::from(2))]);
        let answer =
            PlanResponse { requires_replace: vec![Path::default().name("force")], ..response(finally.clone()) };
        let narrowed = narrow(&Address::single("a"), &step, &schema(), finally, answer);
        assert!(narrowed.unwrap_err().summary.contains("now requires a replacement"));
    }

    #[test]
    fn a_result_is_recorded_even_if_it_differs_from_the_plan() {
        let address = Address::single("a");
        let result = input(2).with("output", Value::Unknown);
        let found = check_result(&address, &input(1).with("output", Value::Unknown), &result);
        let summaries: Vec<_> = found.iter().map(|problem| problem.summary.as_str()).collect();
        assert_eq!(
            summaries,
            [
                "driver returned an invalid result: `output` is still unknown",
                "driver produced an inconsistent result: `input` differs from the plan"
            ]
        );
        let recorded = recorded_value(&Value::Null, result, &schema());
        assert_eq!(recorded.to_json(), serde_json::json!({"input": 2, "output": null}));
    }
}

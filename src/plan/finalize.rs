//! A planned change once its unknowns are known: it may only narrow the plan.
//!
//! Pure, in three parts around the two driver calls of a step, which the executor makes: [`request`] evaluates the
//! configuration with what is known now and gives the final question, [`narrow`] compares its answer with the plan, and
//! [`check_result`] compares what `apply` made with the final plan. These are Terraform's rules for the final plan and
//! the result after apply.

use std::sync::Arc;

use super::conform::{below_config, conform, located};
use super::marks::marked;
use super::trigger::Revisions;
use super::{Prepared, contract, ignore, marks, protect, trigger};
use crate::load::expression::Scope;
use crate::load::{Instance, Own};
use crate::model::{
    Address, Diagnostic, Diagnostics, Path, PlanRequest, PlanResponse, Reason, RecordedObject, Schema, Severity, Value,
};

/// The final plan of a step: what `apply` is asked to do, and what its result is checked against.
#[derive(Clone, Debug)]
pub struct Final {
    /// The evaluated configuration, wholly known.
    pub config: Value,
    /// The planned value; `Unknown` where only the call will tell.
    pub planned: Value,
    /// The driver's bytes for `apply`.
    pub private: Arc<[u8]>,
    /// What the object will be found by, when that is known before it exists.
    pub identity: Option<Value>,
    /// The update turned out to change nothing: no call is needed, the record is written. The only change of action
    /// that is allowed.
    pub unchanged: bool,
}

/// The final question to the driver: the configuration of `instance` in `scope`, where every dependency has its real
/// value by now. The errors are those of expressions, of the schema, and of places that are still not known.
pub fn request(
    prepared: &Prepared,
    instance: &Instance,
    schema: &Schema,
    scope: &dyn Scope,
) -> Result<PlanRequest, Diagnostics> {
    let request = rehearsal(prepared, instance, schema, scope)?;
    known(&instance.address, &request.config)?;
    Ok(request)
}

/// The question with what can be known before the old object of a delete-first replacement is destroyed: places that
/// only the order itself makes known may be unknown, everything else must be as it has to be.
pub fn rehearsal(
    prepared: &Prepared,
    instance: &Instance,
    schema: &Schema,
    scope: &dyn Scope,
) -> Result<PlanRequest, Diagnostics> {
    let config = evaluated(instance, schema, scope)?;
    let config = match &prepared.prior {
        Some(prior) => ignore::keep(config, &prior.value, &instance.ignore_changes, schema),
        None => config,
    };
    Ok(PlanRequest {
        prior: prepared.prior.clone(),
        config,
        entropy: prepared.entropy,
        planned_before: Some(prepared.planned.clone()),
    })
}

/// The configuration of a data source whose step has come: all of it is known by now. The errors are those of
/// [`request`].
pub fn data_config(instance: &Instance, schema: &Schema, scope: &dyn Scope) -> Result<Value, Diagnostics> {
    let config = evaluated(instance, schema, scope)?;
    known(&instance.address, &config)?;
    Ok(config)
}

/// The configuration in `scope`, as the schema has it.
fn evaluated(instance: &Instance, schema: &Schema, scope: &dyn Scope) -> Result<Value, Diagnostics> {
    let own = Own { instance, others: scope };
    let evaluated = instance.config.evaluate(&own).map_err(|problems| located(instance, problems))?;
    let (config, problems) = conform(&instance.address, evaluated, schema);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    Ok(config)
}

/// What is to be recorded with the object of a step: what expressions decide about it is known now.
pub fn recorded(
    prepared: &Prepared,
    instance: Option<&Instance>,
    scope: &dyn Scope,
    revisions: &Revisions<'_>,
) -> RecordedObject {
    let mut recorded = prepared.recorded.clone();
    if let Some(instance) = instance {
        if let Some(triggers) = &recorded.triggers {
            recorded.triggers = Some(Arc::new(trigger::seen_now(instance, scope, revisions, triggers.salt)));
        }
        recorded.prevent_destroy = protect::recorded(instance, scope, recorded.prevent_destroy);
    }
    recorded
}

/// Takes the driver's final plan. What was known in the plan must be equal, and the action the same, except that an
/// update may turn out to change nothing.
pub fn narrow(
    address: &Address,
    prepared: &Prepared,
    schema: &Schema,
    config: Value,
    response: PlanResponse,
) -> Result<Final, Box<Diagnostic>> {
    let response = marked(response, &config, schema);
    let prior = prepared.prior.as_ref().map(|object| &object.value);
    if !response.checked {
        contract::check_planned(address, &config, &response.planned, prior)?;
        if let Some(path) = contract::broken_promise(&prepared.planned, &response.planned) {
            let what = format!("driver produced an inconsistent final plan: {} is not as it was planned", place(&path));
            return Err(contract::fault(address, what));
        }
    }
    let mut unchanged = false;
    if let Some(prior) = prior {
        let forcing = match response.checked {
            true => response.requires_replace,
            false => contract::forcing(address, schema, response.requires_replace, prior, &response.planned)?,
        };
        if let Some(path) = forcing.first() {
            let what = format!("driver produced an inconsistent final plan: `{path}` now requires a replacement");
            return Err(contract::fault(address, what));
        }
        unchanged = !response.planned.has_unknown() && response.planned.same(prior) && !response.tells;
    }
    let PlanResponse { planned, private, identity, .. } = response;
    Ok(Final { config, planned, private, identity, unchanged })
}

/// The value to record of what `apply` made: sensitive places marked as in the plan, what is still unknown as null.
/// Recorded in every case, whatever [`check_result`] says: the object exists.
pub fn recorded_value(planned: &Value, result: Value, schema: &Schema) -> Value {
    marks::like(marks::by_schema(without_unknown(result), schema), planned)
}

/// Checks what `apply` made against the final plan: everything is known, and what was known before is unchanged.
pub fn check_result(address: &Address, planned: &Value, result: &Value) -> Diagnostics {
    let mut found = Vec::new();
    if let Some(path) = first_unknown(result) {
        let what = format!("driver returned an invalid result: {} is still unknown", place(&path));
        found.push(*contract::fault(address, what));
    }
    if let Some(path) = contract::broken_promise(planned, result) {
        let what = format!("driver produced an inconsistent result: {} is not as it was planned", place(&path));
        found.push(*contract::fault(address, what));
    }
    found
}

fn place(path: &Path) -> String {
    if path.0.is_empty() { "the value".to_owned() } else { format!("`{path}`") }
}

fn known(address: &Address, config: &Value) -> Result<(), Diagnostics> {
    let Some(path) = first_unknown(config) else { return Ok(()) };
    let what = "is still not known, although everything that it depends on is done";
    let fault = Diagnostic::error(address, Reason::InternalError, what).at(below_config(&path));
    Err(vec![fault.hint("this is a fault of Purlin or of the provider of a dependency")])
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
    use crate::plan::tests::world::schema;

    fn prepared(planned: Value, prior: Option<Value>) -> Prepared {
        let recorded = crate::plan::tests::world::object("a", &[]);
        let prior = prior.map(|value| Arc::new(crate::model::RecordedObject { value, ..recorded.clone() }));
        Prepared {
            replaced: None,
            prior,
            config: Value::Null,
            planned,
            private: Arc::new([]),
            entropy: [0; 16],
            replace_paths: Vec::new(),
            tells: false,
            identity: None,
            publish_again: false,
            recorded,
            deposed_key: crate::model::DeposedKey(1),
            only_follows: false,
        }
    }

    fn response(planned: Value) -> PlanResponse {
        PlanResponse { planned, ..PlanResponse::default() }
    }

    fn input(value: i64) -> Value {
        Value::map([("input", Value::from(value))])
    }

    #[test]
    fn a_final_plan_may_fill_in_unknowns() {
        let planned = input(1).with("id", Value::Unknown);
        let finally = input(1).with("id", Value::from("x"));
        let narrowed = narrow(&Address::single("a"), &prepared(planned, None), &schema(), input(1), response(finally));
        assert!(!narrowed.unwrap().unchanged);
    }

    #[test]
    fn a_final_plan_may_not_change_what_was_known() {
        let narrowed =
            narrow(&Address::single("a"), &prepared(input(1), None), &schema(), input(2), response(input(2)));
        assert!(narrowed.unwrap_err().summary.contains("`input` is not as it was planned"));
    }

    #[test]
    fn an_update_may_turn_out_to_change_nothing() {
        let planned = Value::map([("input", Value::Unknown)]);
        let step = prepared(planned, Some(input(1)));
        let narrowed = narrow(&Address::single("a"), &step, &schema(), input(1), response(input(1)));
        assert!(narrowed.unwrap().unchanged);
    }

    #[test]
    fn an_update_may_not_turn_into_a_replacement() {
        let planned = Value::map([("force", Value::Unknown)]);
        let step = prepared(planned, Some(Value::map([("force", Value::from(1))])));
        let finally = Value::map([("force", Value::from(2))]);
        let answer =
            PlanResponse { requires_replace: vec![Path::default().name("force")], ..response(finally.clone()) };
        let narrowed = narrow(&Address::single("a"), &step, &schema(), finally, answer);
        assert!(narrowed.unwrap_err().summary.contains("now requires a replacement"));
    }

    #[test]
    fn a_result_is_recorded_even_when_it_breaks_the_plan() {
        let address = Address::single("a");
        let result = input(2).with("output", Value::Unknown);
        let found = check_result(&address, &input(1).with("output", Value::Unknown), &result);
        let summaries: Vec<_> = found.iter().map(|problem| problem.summary.as_str()).collect();
        assert_eq!(
            summaries,
            [
                "driver returned an invalid result: `output` is still unknown",
                "driver produced an inconsistent result: `input` is not as it was planned"
            ]
        );
        let recorded = recorded_value(&Value::Null, result, &schema());
        assert_eq!(recorded.to_json(), serde_json::json!({"input": 2, "output": null}));
    }
}

//! The outputs of a Terraform configuration, as Terraform shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use cty::json;
use drivers::provider::values::to_unmarked_model;
use engine::load::{Config, Output, Scope};
use engine::plan::Plan;
use engine::plan::render::{Detail, nodes, tree};
use model::{Action, Address, Change, ReadResult, Recorded, Text, Value};
use runtime::store::{RecordedConfiguration, StateError, StateFile};

/// The outputs with the values of records and of data sources.
pub fn recorded(config: &Config, recorded: &Recorded, readings: &Readings, namespace: &Value) -> Vec<Output> {
    let Some(program) = config.root_program() else { return Vec::new() };
    let scope = RecordedScope { config, recorded, readings, namespace, planned: &BTreeMap::new(), is_final: true };
    program.outputs(&scope)
}

/// The outputs before and after a plan.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OutputChanges {
    /// As the last apply has recorded them.
    before: BTreeMap<Arc<str>, Value>,
    /// As far as they are known.
    after: BTreeMap<Arc<str>, Value>,
}

/// How an output changes.
pub struct OutputChange<'c> {
    pub name: &'c Arc<str>,
    pub before: Option<&'c Value>,
    pub after: Option<&'c Value>,
}

impl OutputChanges {
    /// The changes of a plan that `stored` outputs are compared with. An output with an error stays as it is.
    pub fn new(stored: &str, plan: &Plan, scope: RecordedScope<'_>) -> Self {
        let Some(program) = scope.config.root_program() else { return Self::default() };
        let before = stored_values(stored);
        let planned = plan
            .current_changes()
            .map(|change| {
                let known = change.after.as_ref().or(change.before.as_ref());
                (change.address.clone(), known.cloned().unwrap_or(Value::Unknown))
            })
            .collect();
        let outputs = program.outputs(&RecordedScope { planned: &planned, ..scope });
        let after = outputs.into_iter().filter_map(|Output { name, value, .. }| {
            let value = value.or_else(|| before.get(&name).cloned())?;
            // An output is sensitive as a whole.
            let whole = if value.has_sensitive() { value.without_marks().into_sensitive() } else { value };
            (*whole.unmarked() != Value::Null).then_some((name, whole))
        });
        Self { after: after.collect(), before }
    }

    /// The changes of a plan that destroys everything.
    pub fn removal(stored: &str) -> Self {
        Self { before: stored_values(stored), after: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.changes().next().is_none()
    }

    /// The outputs that differ, by name. A value that only becomes sensitive, or no longer is, differs too.
    pub fn changes(&self) -> impl Iterator<Item = OutputChange<'_>> {
        let names: BTreeSet<&Arc<str>> = self.before.keys().chain(self.after.keys()).collect();
        let outputs = names.into_iter().map(|name| OutputChange {
            name,
            before: self.before.get(name),
            after: self.after.get(name),
        });
        outputs.filter(|change| change.before != change.after)
    }

    /// Writes the outputs that change, if there are any.
    pub fn write(&self, detail: Detail, text: &mut Text) {
        if self.is_empty() {
            return;
        }
        text.put("Changes to Outputs:").end_line();
        let before = self.changes().filter_map(|change| Some((change.name.clone(), change.before?.clone())));
        let after = self.changes().filter_map(|change| Some((change.name.clone(), change.after?.clone())));
        let change = Change {
            before: Some(Value::map(before)),
            after: Some(Value::map(after)),
            ..Change::plain(Address::single("outputs"), "", Action::Update)
        };
        tree::write(&nodes(&change, detail), 0, text);
        text.end_line();
    }
}

/// The values of stored outputs.
fn stored_values(stored: &str) -> BTreeMap<Arc<str>, Value> {
    let all = from_state(stored).unwrap_or_default().into_iter();
    all.map(|output| {
        (output.name.into(), if output.is_sensitive { output.value.into_sensitive() } else { output.value })
    })
    .collect()
}

/// Records the outputs of the configuration from a source, unless they are the same or not all known. Returns what is recorded
/// of it then.
///
/// # Errors
/// The state file cannot be written.
pub fn record(
    state: &StateFile,
    source: &str,
    before: &RecordedConfiguration,
    outputs: &[Output],
) -> Result<Option<RecordedConfiguration>, StateError> {
    let Some(outputs) = to_state(outputs).filter(|outputs| *outputs != before.outputs) else { return Ok(None) };
    let after = RecordedConfiguration { outputs, ..before.clone() };
    state.record_configuration(source, &after)?;
    Ok(Some(after))
}

/// What was read of data sources.
pub type Readings = BTreeMap<Address, Arc<ReadResult>>;

/// The outputs in the form of a Terraform state. `None`: one of them is not known, because its objects wait or have errors.
pub fn to_state(outputs: &[Output]) -> Option<String> {
    let mut members = Vec::new();
    for Output { name, value, ty } in outputs {
        let value = value.as_ref().filter(|value| !value.has_unknown())?;
        if *value.unmarked() == Value::Null {
            continue;
        }
        let sensitive = if value.has_sensitive() { ",\"sensitive\":true" } else { "" };
        let text = value.without_marks().to_json_text();
        members.push(format!("{}:{{\"value\":{text},\"type\":{ty}{sensitive}}}", Json::from(&**name)));
    }
    Some(format!("{{{}}}", members.join(",")))
}

/// An output as a state file has it.
pub struct StoredOutput {
    pub name: String,
    /// Not marked.
    pub value: Value,
    /// The value as JSON, with all digits of numbers.
    pub json: String,
    /// The type as JSON.
    pub ty: String,
    pub is_sensitive: bool,
}

/// Reads the outputs in the form of a Terraform state.
///
/// # Errors
/// They are in another form.
pub fn from_state(outputs: &str) -> Result<Vec<StoredOutput>, String> {
    let members = json::members(if outputs.is_empty() { "{}" } else { outputs }).map_err(|error| error.to_string())?;
    members.into_iter().map(|(name, text)| stored_output(name, text)).collect()
}

fn stored_output(name: String, text: &str) -> Result<StoredOutput, String> {
    let members = json::members(text).map_err(|error| error.to_string())?;
    let members: BTreeMap<String, &str> = members.into_iter().collect();
    let json = *members.get("value").ok_or("it has no `value`")?;
    let ty = *members.get("type").ok_or("it has no `type`")?;
    let read = cty::Type::from_json(ty.as_bytes()).map_err(|error| error.to_string())?;
    let value = json::decode(json.as_bytes(), &read, json::UnsupportedAttributes::Reject);
    let value = value.map_err(|error| error.to_string())?;
    let (json, ty) = (json.to_owned(), ty.to_owned());
    let is_sensitive = members.get("sensitive").is_some_and(|text| *text == "true");
    Ok(StoredOutput { name, value: to_unmarked_model(&value), json, ty, is_sensitive })
}

/// Writes the outputs, if there are any. As in Terraform, one that is null is as if it were not there.
pub fn write(outputs: &[Output], text: &mut Text) {
    let outputs: Vec<&Output> = outputs
        .iter()
        .filter(|output| !matches!(output.value.as_ref().map(Value::unmarked), Some(Value::Null)))
        .collect();
    if outputs.is_empty() {
        return;
    }
    text.end_line().put("Outputs:").end_line().end_line();
    for output in outputs {
        let shown = output.value.as_ref().map_or_else(|| "(error)".to_owned(), |value| shown(value, 0));
        text.put(format!("{} = {shown}", output.name)).end_line();
    }
}

/// Writes the outputs that differ between two states.
pub fn write_changes(before: &str, after: &str, text: &mut Text) {
    let both = OutputChanges { before: stored_values(before), after: stored_values(after) };
    for OutputChange { name, after, .. } in both.changes() {
        match after {
            Some(value) => text.put(format!("Output {name} = {}", shown(value, 0))),
            None => text.put(format!("Output {name} is removed")),
        };
        text.end_line();
    }
}

/// A value in the syntax of the configuration. What is null in an object is shown, and what is sensitive is not.
pub fn shown(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match value {
        Value::Sensitive(_) => "<sensitive>".to_owned(),
        Value::Unknown => "(known after apply)".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_json_text(),
        Value::List(items) if items.is_empty() => "[]".to_owned(),
        Value::Map(entries) if entries.iter().next().is_none() => "{}".to_owned(),
        Value::List(items) => {
            let lines: String = items.iter().map(|item| format!("{indent}{},\n", shown(item, depth + 1))).collect();
            format!("[\n{lines}{end}]")
        }
        Value::Map(entries) => {
            let lines = entries.iter().map(|(key, item)| {
                format!("{indent}{} = {}\n", serde_json::Value::from(&**key), shown(item, depth + 1))
            });
            format!("{{\n{}{end}}}", lines.collect::<String>())
        }
    }
}

/// The values of records. What has none is not known.
pub struct RecordedScope<'a> {
    pub config: &'a Config,
    pub recorded: &'a Recorded,
    pub readings: &'a Readings,
    /// The variable `ns` of expressions.
    pub namespace: &'a Value,
    /// The values that objects will have, instead of the recorded ones.
    pub planned: &'a BTreeMap<Address, Value>,
    /// Whether an apply is done.
    pub is_final: bool,
}

impl RecordedScope<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        if let Some(reading) = self.readings.get(address) {
            return Some(reading.value.clone());
        }
        if let Some(planned) = self.planned.get(address) {
            return Some(planned.clone());
        }
        Some(self.recorded.get(address)?.record.current.as_ref()?.value.clone())
    }
}

impl Scope for RecordedScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        if self.config.instances.contains_key(address) {
            return Some(self.value(address).unwrap_or(Value::Unknown));
        }
        let family = self.config.families.get(&address.stem)?;
        let members: BTreeMap<&Address, Option<Value>> =
            self.config.instance_addresses(&address.stem).map(|member| (member, self.value(member))).collect();
        if family.is_pending() || members.values().any(Option::is_none) {
            return Some(Value::Unknown);
        }
        Some(family.value(members.into_iter().map(|(member, value)| (member.key.clone(), value))))
    }

    fn namespace(&self) -> Value {
        self.namespace.clone()
    }

    fn is_final(&self) -> bool {
        self.is_final
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn outputs_are_shown_as_in_a_configuration() {
        let output = |name: &str, value| Output { name: name.into(), value, ty: "\"dynamic\"".into() };
        let list = Value::list([Value::from("a\"b"), Value::list([Value::from(1)]), Value::list([])]);
        let map = Value::map([("k", Value::Null), ("s", Value::from("x").into_sensitive())]);
        let outputs = [
            output("list", Some(list)),
            output("map", Some(map)),
            output("secret", Some(Value::from("x").into_sensitive())),
            output("wrong", None),
            output("nothing", Some(Value::Null)),
        ];
        let mut text = Text::new(false);
        write(&outputs, &mut text);
        expect![[r#"

            Outputs:

            list = [
              "a\"b",
              [
                1,
              ],
              [],
            ]
            map = {
              "k" = null
              "s" = <sensitive>
            }
            secret = <sensitive>
            wrong = (error)
        "#]]
        .assert_eq(text.as_str());
    }

    #[test]
    fn outputs_come_back_from_a_state_file() {
        let output = |name: &str, value, ty: &str| Output { name: name.into(), value, ty: ty.into() };
        let number = Value::Number(model::Number::parse("12345678901234567890.5").unwrap());
        let outputs = [
            output("n", Some(number.clone()), "\"number\""),
            output("s", Some(Value::map([("k", Value::from("x").into_sensitive())])), r#"["object",{"k":"string"}]"#),
            output("none", Some(Value::Null), "\"string\""),
        ];
        let text = to_state(&outputs).unwrap();
        let read = from_state(&text).unwrap();
        let fields = |at: usize| (&*read[at].name, &*read[at].json, read[at].is_sensitive);
        assert_eq!(read.len(), 2, "{text}");
        assert_eq!((fields(0), &read[0].value), (("n", "12345678901234567890.5", false), &number));
        assert_eq!(fields(1), ("s", r#"{"k":"x"}"#, true));
        assert_eq!(
            to_state(&[output("u", Some(Value::Unknown), "\"string\"")]),
            None,
            "what is not known is not recorded"
        );
        assert!(from_state("").unwrap().is_empty() && from_state("{\"o\": {}}").is_err());
    }
}

//! The outputs of a Terraform configuration, as Terraform shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::load::{Config, Output, Scope};
use model::{Address, ReadResult, Recorded, Text, Value};

/// The outputs with the values of records and of data sources.
pub fn recorded(config: &Config, recorded: &Recorded, readings: &Readings, namespace: &Value) -> Vec<Output> {
    let Some(program) = &config.program else { return Vec::new() };
    program.outputs(&RecordedScope { config, recorded, readings, namespace })
}

/// What was read of data sources.
pub type Readings = BTreeMap<Address, Arc<ReadResult>>;

/// Writes the outputs, if there are any. As in Terraform, one that is null is as if it were not there.
pub fn write(outputs: &[Output], text: &mut Text) {
    let is_null = |output: &&Output| matches!(output.value.as_ref().map(Value::unmarked), Some(Value::Null));
    let outputs: Vec<&Output> = outputs.iter().filter(|output| !is_null(output)).collect();
    if outputs.is_empty() {
        return;
    }
    text.end_line().put("Outputs:").end_line().end_line();
    for output in outputs {
        let shown = output.value.as_ref().map_or_else(|| "(error)".to_owned(), |value| shown(value, 0));
        text.put(format!("{} = {shown}", output.name)).end_line();
    }
}

/// A value in the syntax of the configuration. What is null in an object is shown, and what is sensitive is not.
fn shown(value: &Value, depth: usize) -> String {
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
            let line = |(key, item): (&Arc<str>, &Value)| {
                format!("{indent}{} = {}\n", serde_json::Value::from(&**key), shown(item, depth + 1))
            };
            format!("{{\n{}{end}}}", entries.iter().map(line).collect::<String>())
        }
    }
}

/// The values of records. What has none is not known.
struct RecordedScope<'a> {
    config: &'a Config,
    recorded: &'a Recorded,
    readings: &'a Readings,
    namespace: &'a Value,
}

impl RecordedScope<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        if let Some(reading) = self.readings.get(address) {
            return Some(reading.value.clone());
        }
        Some(self.recorded.get(address)?.record.current.as_ref()?.value.clone())
    }
}

impl Scope for RecordedScope<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        if self.config.instances.contains_key(address) {
            return Some(self.value(address).unwrap_or(Value::Unknown));
        }
        let family = self.config.families.get(&address.name)?;
        let members: BTreeMap<&Address, Option<Value>> =
            self.config.instance_addresses(&address.name).map(|member| (member, self.value(member))).collect();
        if family.is_pending() || members.values().any(Option::is_none) {
            return Some(Value::Unknown);
        }
        Some(family.value(members.into_iter().map(|(member, value)| (member.key.clone(), value))))
    }

    fn namespace(&self) -> Value {
        self.namespace.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn outputs_are_shown_as_in_a_configuration() {
        let output = |name: &str, value| Output { name: name.into(), value };
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
}

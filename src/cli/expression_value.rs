//! A value of Terraform's language as an expression that gives it, in the form of OpenTofu's console.

use cty::{Data, Mark, Type, Value};

/// The text of a value. What is sensitive is not shown, also inside. The value begins after `indent` spaces.
pub fn shown(value: &Value, indent: usize) -> String {
    if !value.is_known() {
        return "(known after apply)".to_owned();
    }
    if value.has_mark(&Mark::Sensitive) {
        return "(sensitive value)".to_owned();
    }
    if value.has_mark(&Mark::Ephemeral) {
        return "(ephemeral value)".to_owned();
    }
    let text = match value.data() {
        Data::Null => return null(value.ty()),
        Data::Unknown(_) => return "(known after apply)".to_owned(),
        Data::Bool(bool) => return bool.to_string(),
        Data::Number(number) => return number.to_string(),
        Data::String(text) => return string(text, indent),
        Data::Items(items) => lines(items.iter().map(|item| format!("{},", shown(item, indent + 2))), "[]", indent),
        Data::Entries(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|(key, item)| format!("{} = {}", string(key, indent + 2), shown(item, indent + 2)));
            lines(entries, "{}", indent)
        }
    };
    match value.ty() {
        Type::List(_) => format!("tolist({text})"),
        Type::Set(_) => format!("toset({text})"),
        Type::Map(_) => format!("tomap({text})"),
        _ => text,
    }
}

fn lines(items: impl Iterator<Item = String>, brackets: &str, indent: usize) -> String {
    let inside: String = items.map(|item| format!("\n{}{item}", " ".repeat(indent + 2))).collect();
    let end = if inside.is_empty() { String::new() } else { format!("\n{}", " ".repeat(indent)) };
    let (open, close) = brackets.split_at(1);
    format!("{open}{inside}{end}{close}")
}

/// A text of several lines is a heredoc, whose delimiter does not occur in it.
fn string(text: &str, indent: usize) -> String {
    if !text.contains('\n') {
        return serde_json::Value::from(text).to_string();
    }
    let mut delimiter = "EOT".to_owned();
    while text.split('\n').any(|line| line.trim() == delimiter) {
        delimiter.push('_');
    }
    let operator = if indent > 0 { "<<-" } else { "<<" };
    let margin = " ".repeat(indent);
    let lines: String = text.split('\n').map(|line| format!("\n{margin}{line}")).collect();
    format!("{operator}{delimiter}{lines}\n{margin}{delimiter}")
}

fn null(ty: &Type) -> String {
    match ty {
        Type::Dynamic => "null".to_owned(),
        Type::String => "tostring(null)".to_owned(),
        Type::Number => "tonumber(null)".to_owned(),
        Type::Bool => "tobool(null)".to_owned(),
        Type::List(element) => format!("tolist(null) /* of {element} */"),
        Type::Set(element) => format!("toset(null) /* of {element} */"),
        Type::Map(element) => format!("tomap(null) /* of {element} */"),
        Type::Object(_) | Type::Tuple(_) => format!("null /* {ty} */"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_value_is_shown_as_in_the_console_of_opentofu() {
        let secret = Value::object([("k", Value::string("s3cret").with_mark(Mark::Sensitive))]);
        let value = Value::object([
            ("bool", Value::TRUE),
            ("empty", Value::tuple([])),
            ("list", Value::list(Type::Number, [Value::int(1), Value::int(2)])),
            ("lines", Value::string("a\nEOT")),
            ("map", Value::map(secret.ty().clone(), [("x", secret)])),
            ("none", Value::null(Type::list(Type::String))),
            ("open", Value::unknown(Type::String)),
            ("quoted \"key\"", Value::string("a\"\u{1b}")),
            ("set", Value::set(Type::String, [])),
        ]);
        expect![[r#"
            {
              "bool" = true
              "empty" = []
              "lines" = <<-EOT_
              a
              EOT
              EOT_
              "list" = tolist([
                1,
                2,
              ])
              "map" = tomap({
                "x" = {
                  "k" = (sensitive value)
                }
              })
              "none" = tolist(null) /* of string */
              "open" = (known after apply)
              "quoted \"key\"" = "a\"\u001b"
              "set" = toset([])
            }"#]]
        .assert_eq(&shown(&value, 0));
    }
}

//! The functions of the built-in provider: `provider::terraform::encode_expr` and the others, with the results of OpenTofu.

use configuration::{Sources, values_of_file};
use cty::{Data, Type, Value};
use language::Failure;
use language::functions::{Signature, TypedParameter};

/// A function of one argument, which is known and not null.
pub struct Function {
    parameter: &'static str,
    takes: Type,
    gives: Type,
    run: fn(&Value) -> Result<Value, Failure>,
}

impl Function {
    /// `None` if there is none of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "decode_tfvars" => {
                Some(Self { parameter: "content", takes: Type::String, gives: Type::Dynamic, run: decode_tfvars })
            }
            "encode_tfvars" => {
                Some(Self { parameter: "input", takes: Type::Dynamic, gives: Type::String, run: encode_tfvars })
            }
            "encode_expr" => Some(Self {
                parameter: "expr",
                takes: Type::Dynamic,
                gives: Type::String,
                run: |value| Ok(Value::string(&hcl::format(&expression(value)))),
            }),
            _ => None,
        }
    }

    /// What it takes and returns.
    pub fn signature(&self) -> Signature {
        let (name, ty) = (self.parameter.to_owned(), self.takes.clone());
        let parameter = TypedParameter { name, ty, null: false, unknown: false };
        Signature { parameters: vec![parameter], variadic: None, result: self.gives.clone() }
    }

    /// Calls it with arguments that its signature has prepared.
    ///
    /// # Errors
    /// If it refuses its argument.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, Failure> {
        (self.run)(&arguments[0])
    }
}

fn decode_tfvars(content: &Value) -> Result<Value, Failure> {
    let mut sources = Sources::default();
    let content = content.as_str().unwrap_or_default();
    let (values, problems) = values_of_file("content", content.into(), &mut sources);
    if let Some(first) = problems.errors.first() {
        let line = sources.get(first.range.file).map_or(1, |source| source.position(first.range.start).line);
        let detail = first.detail.trim_end_matches('.');
        return Err(Failure::of(0, format!("line {line}: {}: {detail}", first.summary)));
    }
    Ok(Value::object(values.into_iter().filter_map(|(name, input)| Some((name, input.into_value()?)))))
}

fn encode_tfvars(input: &Value) -> Result<Value, Failure> {
    let Some(entries) = input.as_entries().filter(|_| matches!(input.ty(), Type::Object(_))) else {
        return Err(Failure::of(0, "it must be an object"));
    };
    if let Some(name) = entries.keys().find(|name| !hcl::is_identifier(name)) {
        return Err(Failure::of(0, format!("the key \"{name}\" is no identifier")));
    }
    let lines: String = entries.iter().map(|(name, value)| format!("{name} = {}\n", expression(value))).collect();
    Ok(Value::string(&hcl::format(&lines)))
}

/// An expression with this value, before it is formatted.
fn expression(value: &Value) -> String {
    match value.data() {
        Data::Null | Data::Unknown(_) => "null".to_owned(),
        Data::Bool(bool) => bool.to_string(),
        Data::Number(number) => number.to_string(),
        Data::String(text) => quoted(text),
        Data::Items(items) => format!("[{}]", items.iter().map(expression).collect::<Vec<_>>().join(", ")),
        Data::Entries(entries) if entries.is_empty() => "{}".to_owned(),
        Data::Entries(entries) => {
            let key = |key: &str| if hcl::is_identifier(key) { key.to_owned() } else { quoted(key) };
            let lines: String =
                entries.iter().map(|(name, value)| format!("{} = {}\n", key(name), expression(value))).collect();
            format!("{{\n{lines}}}")
        }
    }
}

/// A text as a template without expressions.
fn quoted(text: &str) -> String {
    let mut result = String::from("\"");
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            '"' => result.push_str("\\\""),
            '\\' => result.push_str("\\\\"),
            '$' | '%' if letters.peek() == Some(&'{') => result.extend([letter, letter]),
            ' '..='~' => result.push(letter),
            _ if cty::is_printable(letter) => result.push(letter),
            _ if u32::from(letter) > 0xFFFF => result.push_str(&format!("\\U{:08x}", u32::from(letter))),
            _ => result.push_str(&format!("\\u{:04x}", u32::from(letter))),
        }
    }
    result.push('"');
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn call(name: &str, argument: Value) -> Result<Value, Failure> {
        Function::named(name).unwrap().call(&[argument])
    }

    /// The texts are those of OpenTofu 1.12.6 for the same values.
    #[test]
    fn values_are_written_as_by_upstream() {
        let inner = Value::object([("c", Value::int(1)), ("dd", Value::int(2))]);
        let value = Value::object([
            ("a-b", Value::number(cty::Number::parse("1e30").unwrap())),
            ("big", Value::number(cty::Number::parse("12345678901234567890.123").unwrap())),
            ("empty", Value::object::<&str>([])),
            ("for", Value::tuple([inner, Value::tuple([])])),
            ("longer_name", Value::string("a\"b\n\t${x} %{y} é \u{1}\u{200b}𝄞")),
            ("nested", Value::object([("1x", Value::int(0)), ("k e y", Value::TRUE)])),
            ("none", Value::null(Type::Dynamic)),
            ("set", Value::set(Type::String, [Value::string("b"), Value::string("a")])),
        ]);
        let written = call("encode_expr", value.clone()).unwrap();
        expect![[r#"
            {
              a-b   = 1000000000000000000000000000000
              big   = 12345678901234567890.123
              empty = {}
              for = [{
                c  = 1
                dd = 2
              }, []]
              longer_name = "a\"b\n\t$${x} %%{y} é \u0001\u200b𝄞"
              nested = {
                "1x"    = 0
                "k e y" = true
              }
              none = null
              set  = ["a", "b"]
            }"#]]
        .assert_eq(written.as_str().unwrap());
        let written = call("encode_tfvars", value).unwrap();
        let read = call("decode_tfvars", written).unwrap();
        assert_eq!(read.get("longer_name").and_then(Value::as_str), Some("a\"b\n\t${x} %{y} é \u{1}\u{200b}𝄞"));
        assert_eq!(read.as_entries().unwrap().len(), 8);
    }

    #[test]
    fn what_is_no_file_of_variables_is_refused() {
        let refused = |name: &str, value: Value| call(name, value).unwrap_err().message;
        assert_eq!(refused("encode_tfvars", Value::string("x")), "it must be an object");
        assert_eq!(refused("encode_tfvars", Value::object([("7*7", Value::TRUE)])), "the key \"7*7\" is no identifier");
        let message = refused("decode_tfvars", Value::string("a = 1\nb {}\n"));
        assert!(message.starts_with("line 2: "), "{message}");
        assert!(call("decode_tfvars", Value::string("")).unwrap().as_entries().unwrap().is_empty());
    }
}

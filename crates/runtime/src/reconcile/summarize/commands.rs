//! The commands in hints. Only the reconciler of a cluster knows the namespace in which a user has to run them.

/// The beginnings of commands that work in one namespace.
const COMMANDS: [&str; 5] = ["purlin approve", "purlin plan", "purlin reject", "purlin resume", "purlin state "];

/// Adds the namespace to the commands in backticks that name none. `namespace` is empty on files.
pub fn with_namespace(text: &str, namespace: &str) -> String {
    let mut parts = text.split('`').peekable();
    let mut named = String::new();
    while let Some(part) = parts.next() {
        named.push_str(part);
        if parts.peek().is_none() {
            break;
        }
        let is_command = COMMANDS.iter().any(|command| part.starts_with(command));
        if is_command && !namespace.is_empty() && !part.contains(" -n ") {
            named.push_str(&format!(" -n {namespace}"));
        }
        named.push('`');
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_namespace_once() {
        let text = "no (hint: `a` is kept; run `purlin state rm 'web[\"a\"]' --force`, or `purlin approve p -n shop`)";
        let expected =
            "no (hint: `a` is kept; run `purlin state rm 'web[\"a\"]' --force -n shop`, or `purlin approve p -n shop`)";
        assert_eq!(with_namespace(text, "shop"), expected);
        assert_eq!(with_namespace(expected, "shop"), expected);
        assert_eq!(with_namespace(text, ""), text);
        assert_eq!(with_namespace("purlin plan", "shop"), "purlin plan", "no command");
    }
}

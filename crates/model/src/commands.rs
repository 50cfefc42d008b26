//! The commands in hints. Only the reconciler of a cluster and the command line know the namespace in which a user has
//! to run them.

/// The commands that work in one namespace.
const COMMANDS: [&str; 11] =
    ["approve", "explain", "get", "history", "plan", "reconcile", "reject", "resume", "state", "suspend", "tree"];

/// The beginning of the commands of kubectl that change a Resource.
const ANNOTATE: &str = "kubectl annotate pres ";

fn is_of_namespace(text: &str) -> bool {
    let mut words = text.split(' ');
    let is_own = words.next() == Some("purlin") && words.next().is_some_and(|word| COMMANDS.contains(&word));
    let is_command = is_own || text.starts_with(ANNOTATE);
    is_command && !text.split(' ').any(|word| ["-n", "-f", "-A"].contains(&word))
}

/// Adds the namespace to the commands in backticks that name none, and work with the objects of a cluster. `namespace` is
/// empty on files.
pub fn with_namespace(text: &str, namespace: &str) -> String {
    let mut parts = text.split('`').peekable();
    let mut named = String::new();
    while let Some(part) = parts.next() {
        named.push_str(part);
        if parts.peek().is_none() {
            break;
        }
        if !namespace.is_empty() && is_of_namespace(part) {
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
        assert_eq!(with_namespace("`kubectl annotate pres a b-`", "shop"), "`kubectl annotate pres a b- -n shop`");
        assert_eq!(with_namespace("`purlin plan -f DIR`", "shop"), "`purlin plan -f DIR`", "works with files");
    }
}

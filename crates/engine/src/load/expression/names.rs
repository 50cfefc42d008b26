//! The names in expressions and their meaning.

use std::sync::Arc;

use super::{Problem, Variable, terraform};
use crate::load::intern::Interner;
use model::kube_names::is_label;
use model::{Address, Segment};

/// CEL's reserved words, except `true`, `false`, `null` and `in`.
const RESERVED_WORDS: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Words that cannot be identifiers in CEL.
const LITERALS: &[&str] = &["true", "false", "null", "in"];

/// Names of types, which are values in CEL: `type(x) == string`.
const TYPES: &[&str] =
    &["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

/// Namespaces of functions.
const NAMESPACES: &[&str] = &["base64", "json", "lists", "math", "optional", "strings"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    Object(Address),
    /// `ns`.
    Namespace,
    /// A variable of the expression's place.
    Variable(Variable),
}

/// A resolved path: its root, the root as written, and the remaining segments.
pub struct ResolvedPath {
    pub root: Root,
    pub source: Arc<str>,
    pub segments: Vec<Segment>,
}

/// Whether `name` is a namespace of functions, such as `math`.
pub fn is_namespace(name: &str) -> bool {
    NAMESPACES.contains(&name)
}

/// Whether an expression cannot use `name` as the name of a Resource.
fn is_reserved(name: &str) -> bool {
    matches!(name, "ns" | "resources" | "data" | "modules")
        || [RESERVED_WORDS, LITERALS, TYPES, NAMESPACES].iter().any(|words| words.contains(&name))
}

/// Returns the number of segments that belong to the root: one in `resources["a"]`, `data.a` and `modules.a`.
pub fn root_segments(name: &str) -> usize {
    usize::from(matches!(name, "resources" | "data" | "modules"))
}

/// Whether a path that starts with `name` can only reference a Resource.
pub fn is_resource_root(name: &str) -> bool {
    name != "ns" && Variable::named(name).is_none() && !LITERALS.contains(&name)
}

/// Resolves the path `name` + `segments`. `Ok(None)`: it is a literal or a type.
pub fn resolve(
    name: &str,
    mut segments: Vec<Segment>,
    interner: &mut Interner,
) -> Result<Option<ResolvedPath>, Problem> {
    let (root, shown) = match name {
        "ns" => (Root::Namespace, interner.get(name)),
        "resources" => {
            let target = match segments.first() {
                Some(Segment::Name(target)) => target.clone(),
                _ => {
                    return Err(Problem::new(
                        "`resources` requires the name of a Resource, such as `resources[\"app-key\"]`",
                    )
                    .because("dependencies must be known before evaluation"));
                }
            };
            segments.remove(0);
            if !is_label(&target) {
                return Err(Problem::new(format!("`{target}` is not a valid Resource name")).hint(NAME_RULE));
            }
            let shown = format!("resources[{}]", serde_json::Value::from(target.as_ref()));
            (Root::Object(Address::single(target)), interner.get(&shown))
        }
        "data" => {
            let target = match segments.first() {
                Some(Segment::Name(target)) => target.clone(),
                _ => {
                    return Err(Problem::new("`data` requires the name of a DataSource, such as `data.image`")
                        .because("dependencies must be known before evaluation")
                        .hint("to reference a Resource named `data`, write `resources[\"data\"]`"));
                }
            };
            segments.remove(0);
            let shown = data_source_expression(&target);
            let address = Address::data(&resource_name(&target, interner)?);
            (Root::Object(Address::single(interner.get(address.name()))), interner.get(&shown))
        }
        "modules" => {
            let (Some(Segment::Name(target)), Some(Segment::Name(_))) = (segments.first(), segments.get(1)) else {
                return Err(Problem::new(
                    "`modules` requires the names of a Module and of an output, such as `modules.network.id`",
                )
                .because("dependencies must be known before evaluation")
                .hint("to reference a Resource named `modules`, write `resources[\"modules\"]`"));
            };
            let shown = append_path("modules".to_owned(), &segments[..1]);
            let address = Address::module(&resource_name(target, interner)?);
            segments.remove(0);
            (Root::Object(Address::single(interner.get(address.name()))), interner.get(&shown))
        }
        _ if let Some(variable) = Variable::named(name) => (Root::Variable(variable), interner.get(name)),
        _ if LITERALS.contains(&name) => return Ok(None),
        _ if TYPES.contains(&name) && segments.is_empty() => return Ok(None),
        _ if is_reserved(name) => return Err(reserved(name, &segments)),
        _ => (Root::Object(Address::single(resource_name(name, interner)?)), interner.get(name)),
    };
    Ok(Some(ResolvedPath { root, source: shown, segments }))
}

/// Whether the name can be used in an expression without quotes.
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

const NAME_RULE: &str = "names consist of lowercase letters, digits and `-`; expressions write `-` as `_`";

/// Returns the Resource name of an identifier. Two Resources never share an identifier, because names do not contain
/// `_`.
fn resource_name(identifier: &str, interner: &mut Interner) -> Result<Arc<str>, Problem> {
    if is_label(identifier) {
        return Ok(interner.get(identifier));
    }
    let name = identifier.replace('_', "-");
    if is_label(&name) {
        return Ok(interner.get(&name));
    }
    Err(Problem::new(format!("`{identifier}` is not a valid object name")).hint(NAME_RULE))
}

/// The problem of a reserved name, with the path after it.
pub fn reserved(name: &str, rest: &[Segment]) -> Problem {
    let spelled = name.replace('_', "-");
    let explained = match Variable::named(name) {
        Some(Variable::Each) => Some(("it exists only in a Resource with `forEach`", "set `forEach` on the Resource")),
        Some(Variable::Count) => Some(("it exists only in a Resource with `count`", "set `count` on the Resource")),
        Some(Variable::Itself) => Some((
            "it is the object after a change, which is not known here",
            "use it in postconditions, hooks and `publish`",
        )),
        _ => None,
    };
    if let Some((why, hint)) = explained {
        return Problem::new(format!("`{name}` is not available here")).because(why).hint(hint);
    }
    if let Some(instead) = terraform::reserved(name, rest) {
        return Problem::new(format!("`{name}` is not available in expressions")).hint(instead);
    }
    let why = if Variable::named(name).is_some() {
        "it is not available here; expressions can reference Resources by name, `data`, `modules`, `ns` and `resources`"
    } else {
        "it has a special meaning in expressions"
    };
    Problem::new(format!("`{name}` is reserved"))
        .because(why)
        .hint(format!("to reference a Resource with this name, write `resources[\"{spelled}\"]`"))
}

/// Converts the CEL parser's error for a reserved word. `source`: the expression from that word on.
pub fn reserved_word(message: &str, source: &str) -> Option<Problem> {
    let (_, name) = message.split_once("reserved identifier: ")?;
    let after = source.strip_prefix(name).and_then(|after| after.strip_prefix('.')).unwrap_or_default();
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(after.len());
    let steps = after[..end].split('.').filter(|step| !step.is_empty());
    let rest: Vec<Segment> = steps.map(|step| Segment::Name(step.into())).collect();
    Some(reserved(name.trim(), &rest))
}

/// Returns the expression for a value of a Resource, or of a `DataSource` if the name is `data.NAME`.
pub fn path_expression(name: &str, path: &[Segment]) -> String {
    let address = Address::single(name);
    if address.is_data() {
        return append_path(data_source_expression(address.object_name()), path);
    }
    let identifier = name.replace('-', "_");
    let starts_well = identifier.starts_with(|first: char| first.is_ascii_lowercase());
    let plain = starts_well && !is_reserved(&identifier) && Variable::named(&identifier).is_none();
    let root = if plain { identifier } else { format!("resources[{}]", serde_json::Value::from(name)) };
    append_path(root, path)
}

fn data_source_expression(name: &str) -> String {
    let identifier = name.replace('-', "_");
    let field = if is_word(&identifier) { Segment::Name(identifier.into()) } else { Segment::Name(name.into()) };
    append_path("data".to_owned(), &[field])
}

pub fn append_path(root: String, path: &[Segment]) -> String {
    let mut out = root;
    for segment in path {
        match segment {
            Segment::Name(name) if is_word(name) => {
                out.push('.');
                out.push_str(name);
            }
            Segment::Name(name) => out.push_str(&format!("[{}]", serde_json::Value::from(name.as_ref()))),
            Segment::Index(place) => out.push_str(&format!("[{place}]")),
        }
    }
    out
}

/// Whether a key can follow a dot.
fn is_word(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && ![RESERVED_WORDS, LITERALS].iter().any(|words| words.contains(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_never_share_an_identifier() {
        // Each identifier has one name, and each name has one identifier.
        for name in ["a-b", "a--b", "ab", "a-b-c"] {
            let identifier = Address::single(name).identifier();
            assert_eq!(resource_name(&identifier, &mut Interner::default()).unwrap().as_ref(), name);
        }
    }
}

//! Which names an expression can use, and what each stands for.

use std::sync::Arc;

use super::{Problem, Variable};
use crate::load::intern::Interner;
use crate::model::{Address, Segment};

/// Words that CEL keeps for itself, besides `true`, `false`, `null` and `in`.
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

/// Words that are no names at all in CEL.
const LITERALS: &[&str] = &["true", "false", "null", "in"];

/// Names of types, which CEL has as values: `type(x) == string`.
const TYPES: &[&str] =
    &["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

/// Names that functions begin with.
const NAMESPACES: &[&str] = &["base64", "json", "lists", "math", "optional", "strings"];

/// Where a path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// An object.
    Object(Address),
    /// `ns`.
    Namespace,
    /// A variable of the place where the expression stands.
    Variable(Variable),
}

/// What a path reads: where it begins, the beginning as it was written, and what follows it.
pub(super) struct Named {
    pub(super) root: Root,
    pub(super) shown: Arc<str>,
    pub(super) segments: Vec<Segment>,
}

/// Whether `name` is where functions such as `math.abs` live.
pub(super) fn is_namespace(name: &str) -> bool {
    NAMESPACES.contains(&name)
}

/// Whether `name` cannot be the name of a Resource in an expression.
fn is_reserved(name: &str) -> bool {
    matches!(name, "ns" | "resources" | "data")
        || [RESERVED_WORDS, LITERALS, TYPES, NAMESPACES].iter().any(|words| words.contains(&name))
}

/// How many segments belong to the root itself: `resources["a"]` and `data.a` are one, as `a` is.
pub(super) fn length_of_root(name: &str) -> usize {
    usize::from(matches!(name, "resources" | "data"))
}

/// Whether a path that begins with `name` can only be one of a Resource.
pub(super) fn begins_a_resource(name: &str) -> bool {
    name != "ns" && Variable::named(name).is_none() && !LITERALS.contains(&name)
}

/// What the path `name` + `segments` reads. `Ok(None)`: it is no object but a literal or a type.
pub(super) fn resolve(
    name: &str,
    mut segments: Vec<Segment>,
    interner: &mut Interner,
) -> Result<Option<Named>, Problem> {
    let (root, shown) = match name {
        "ns" => (Root::Namespace, interner.get(name)),
        "resources" => {
            let target = match segments.first() {
                Some(Segment::Name(target)) => target.clone(),
                _ => {
                    return Err(Problem::new(
                        "`resources` needs the name of a Resource, such as `resources[\"app-key\"]`",
                    )
                    .because("dependencies must be known before anything is evaluated"));
                }
            };
            segments.remove(0);
            if !is_label(&target) {
                return Err(Problem::new(format!("no Resource can be named `{target}`")).hint(NAME_RULE));
            }
            let shown = format!("resources[{}]", serde_json::Value::from(target.as_ref()));
            (Root::Object(Address::single(target)), interner.get(&shown))
        }
        "data" => {
            let target = match segments.first() {
                Some(Segment::Name(target)) => target.clone(),
                _ => {
                    return Err(Problem::new("`data` needs the name of a DataSource, such as `data.image`")
                        .because("dependencies must be known before anything is evaluated")
                        .hint("for a Resource of that name write `resources[\"data\"]`"));
                }
            };
            segments.remove(0);
            let shown = spelled_data(&target);
            let address = Address::data(&resource_name(&target, interner)?);
            (Root::Object(Address::single(interner.get(&address.name))), interner.get(&shown))
        }
        _ if let Some(variable) = Variable::named(name) => (Root::Variable(variable), interner.get(name)),
        _ if LITERALS.contains(&name) => return Ok(None),
        _ if TYPES.contains(&name) && segments.is_empty() => return Ok(None),
        _ if is_reserved(name) => return Err(reserved(name)),
        _ => (Root::Object(Address::single(resource_name(name, interner)?)), interner.get(name)),
    };
    Ok(Some(Named { root, shown, segments }))
}

/// Whether an expression can name it without quotes.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

const NAME_RULE: &str = "names consist of lower-case letters, digits and `-`, which expressions write as `_`";

/// The Resource that an identifier stands for. Two Resources never share an identifier, since no name holds `_`.
fn resource_name(identifier: &str, interner: &mut Interner) -> Result<Arc<str>, Problem> {
    if is_label(identifier) {
        return Ok(interner.get(identifier));
    }
    let name = identifier.replace('_', "-");
    if is_label(&name) {
        return Ok(interner.get(&name));
    }
    Err(Problem::new(format!("no object can be named `{identifier}`")).hint(NAME_RULE))
}

/// The problem of a name that cannot be used as it was.
pub(super) fn reserved(name: &str) -> Problem {
    let spelled = name.replace('_', "-");
    let own = match Variable::named(name) {
        Some(Variable::Each) => {
            Some(("it tells the instances of a `forEach` family apart", "give the Resource `forEach`"))
        }
        Some(Variable::Count) => {
            Some(("it tells the instances of a `count` family apart", "give the Resource `count`"))
        }
        Some(Variable::Itself) => Some((
            "it is the object as it is after a step, which is not known here",
            "postconditions, hooks and `publish` can read it",
        )),
        _ => None,
    };
    if let Some((why, hint)) = own {
        return Problem::new(format!("`{name}` has no value here")).because(why).hint(hint);
    }
    let why = if Variable::named(name).is_some() {
        "it stands for no value here: expressions read Resources by name, `data`, `ns` and `resources`"
    } else {
        "it has a meaning of its own in expressions"
    };
    Problem::new(format!("`{name}` is reserved"))
        .because(why)
        .hint(format!("for the Resource of that name write `resources[\"{spelled}\"]`"))
}

/// The hint for a reserved word that the CEL parser stumbles over.
pub(super) fn reserved_word(message: &str) -> Option<Problem> {
    let (_, name) = message.split_once("reserved identifier: ")?;
    Some(reserved(name.trim()))
}

/// How an expression spells the path to a value of a Resource, or of the `DataSource` of a name `data.NAME`.
pub(crate) fn spelled(name: &str, path: &[Segment]) -> String {
    let address = Address::single(name);
    if address.is_data() {
        return below(spelled_data(address.object_name()), path);
    }
    let identifier = name.replace('-', "_");
    let starts_well = identifier.starts_with(|first: char| first.is_ascii_lowercase());
    let plain = starts_well && !is_reserved(&identifier) && Variable::named(&identifier).is_none();
    let root = if plain { identifier } else { format!("resources[{}]", serde_json::Value::from(name)) };
    below(root, path)
}

/// How an expression spells a `DataSource` of this name.
fn spelled_data(name: &str) -> String {
    let identifier = name.replace('-', "_");
    let field = if is_word(&identifier) { Segment::Name(identifier.into()) } else { Segment::Name(name.into()) };
    below("data".to_owned(), &[field])
}

fn below(root: String, path: &[Segment]) -> String {
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

/// Whether a key can be written behind a dot.
fn is_word(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && ![RESERVED_WORDS, LITERALS].iter().any(|words| words.contains(&key))
}

/// Whether a text is a DNS label, as names of Resources are.
pub(crate) fn is_label(name: &str) -> bool {
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|b| plain(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_never_share_an_identifier() {
        // An identifier leads to one name, and every name's identifier leads back to it.
        for name in ["a-b", "a--b", "ab", "a-b-c"] {
            let identifier = Address::single(name).identifier();
            assert_eq!(resource_name(&identifier, &mut Interner::default()).unwrap().as_ref(), name);
        }
        assert!(!is_label("a_b"), "a name with `_` would clash with one with `-`");
    }
}

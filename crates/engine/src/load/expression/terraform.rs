//! Names and functions of Terraform's language that expressions do not have, each with what to write instead.

use super::names::path_expression;
use model::{Address, Path, Segment};

/// Functions of Terraform that expressions lack or call differently, each with the expression or the way that replaces
/// it. `docs/expressions.md` has the same table.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("abs", "write `math.abs(n)`"),
    ("alltrue", "write `items.all(x, x)`"),
    ("anytrue", "write `items.exists(x, x)`"),
    ("base64decode", "write `base64.decode(s)`"),
    ("base64encode", "write `base64.encode(s)`"),
    ("can", "write `has(object.field)`"),
    ("ceil", "write `math.ceil(n)`"),
    ("chomp", "write `s.trim()`"),
    ("coalesce", "write `a != null ? a : b`"),
    ("compact", "write `items.filter(x, x != \"\")`"),
    ("concat", "write `items + other`"),
    ("contains", "write `x in items`"),
    ("distinct", "write `items.distinct()`"),
    ("element", "write `items[0]`"),
    ("endswith", "write `s.endsWith(\"x\")`"),
    ("file", "put the content into a ConfigMap, and read it with `spec.inputs`"),
    ("filebase64", "put the content into a ConfigMap, and read it with `spec.inputs`"),
    ("flatten", "write `items.flatten()`"),
    ("floor", "write `math.floor(n)`"),
    ("format", "write `\"%s-%d\".format([a, n])`"),
    ("formatlist", "write `items.map(x, \"%s\".format([x]))`"),
    ("join", "write `items.join(\",\")`"),
    ("jsondecode", "write `json.unmarshal(s)`"),
    ("jsonencode", "write `json.marshal(value)`"),
    ("keys", "write `object.map(key, key)`"),
    ("length", "write `size(value)`"),
    ("lookup", "write `object[?\"key\"].orValue(\"default\")`"),
    ("lower", "write `s.lowerAscii()`"),
    ("max", "write `math.greatest(a, b)`"),
    ("merge", "write one map with the keys of both: `{\"a\": object.a, \"b\": other.b}`"),
    ("min", "write `math.least(a, b)`"),
    ("one", "write `items[0]`"),
    ("parseint", "write `int(s)`"),
    ("range", "write `lists.range(n)`"),
    ("regex", "write `s.matches(\"^a\")`, which returns whether it matches"),
    ("replace", "write `s.replace(\"a\", \"b\")`"),
    ("reverse", "write `items.reverse()`"),
    ("sensitive", "put the value into a Secret, and read it with `spec.inputs`"),
    ("setunion", "write `(items + other).distinct()`"),
    ("signum", "write `math.sign(n)`"),
    ("slice", "write `items.slice(0, 2)`"),
    ("sort", "write `items.sort()`"),
    ("split", "write `s.split(\",\")`"),
    ("startswith", "write `s.startsWith(\"x\")`"),
    ("strrev", "write `s.reverse()`"),
    (
        "substr",
        "write `s.substring(0, math.least(size(s), 3))`, with the start and the end; `substring` fails if `s` is shorter",
    ),
    ("templatefile", "put the text into the manifest, with expressions in it"),
    ("timestamp", "expressions read no clock; use a type such as `time_static`"),
    ("title", "write `s.substring(0, 1).upperAscii() + s.substring(1)`"),
    ("tobool", "write `bool(s)`"),
    ("tolist", "a list needs no conversion"),
    ("tomap", "a map needs no conversion"),
    ("tonumber", "write `int(s)` or `double(s)`"),
    ("toset", "write `items.distinct()`"),
    ("tostring", "write `string(value)`"),
    ("trim", "write `s.trim()`, which removes spaces"),
    ("trimprefix", "write `s.startsWith(\"x\") ? s.substring(1) : s`"),
    ("trimspace", "write `s.trim()`"),
    ("trimsuffix", "write `s.endsWith(\"x\") ? s.substring(0, size(s) - 1) : s`"),
    ("try", "write `has(object.field) ? object.field : \"default\"`"),
    ("upper", "write `s.upperAscii()`"),
    ("uuid", "expressions are not random; use a type such as `random_uuid`"),
    ("values", "write `object.map(key, object[key])`"),
    ("yamlencode", "write `json.marshal(value)`, because JSON is also YAML"),
];

/// What to write instead of a function of Terraform.
pub fn function(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

/// What to write instead of a name that Terraform reserves for something other than a resource, such as `var` in
/// `var.region`. `rest` is the path after the name.
pub fn reserved(name: &str, rest: &[Segment]) -> Option<String> {
    let first = match rest.first() {
        Some(Segment::Name(first)) => Some(&**first),
        _ => None,
    };
    match (name, first) {
        ("var", Some(first)) => Some(format!("declare `{first}` in `spec.inputs`, and write {}", input_of(first))),
        ("var", None) => Some("declare each value in `spec.inputs`, and write `${inputs.NAME}`".to_owned()),
        ("local", Some(first)) => Some(format!(
            "there are no local values: write the value of `{first}` here, or declare it in `spec.inputs` and write {}",
            input_of(first)
        )),
        ("module", Some(first)) => Some(format!(
            "there are no modules: instead of `module.{first}`, write the name of the Resource with the value{}",
            match &rest[1..] {
                [] => String::new(),
                rest => format!(": `${{NAME.{}}}`", Path(rest.to_vec())),
            }
        )),
        ("path", Some("module" | "root" | "cwd")) => Some(
            "there are no paths: put the content of a file into a ConfigMap, and read it with `spec.inputs`".into(),
        ),
        ("terraform", Some("workspace")) => Some("the namespace is the workspace: write `${ns.name}`".to_owned()),
        ("for", _) => {
            Some("loop with `items.map(x, x.id)`, and select with `items.filter(x, x.id != \"\")`".to_owned())
        }
        _ => None,
    }
}

fn input_of(variable: &str) -> String {
    format!("`${{inputs.{}}}`", variable.replace('-', "_"))
}

/// What to write instead of a syntax of Terraform that the CEL parser rejects with this message.
pub fn syntax(source: &str, message: &str) -> Option<String> {
    if let Some((list, attribute)) = source.split_once("[*]") {
        let list = list.rsplit(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))).next()?;
        let end = attribute.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
        return Some(format!("write `{list}.map(x, x{})`", &attribute[..end.unwrap_or(attribute.len())]));
    }
    message.contains("expected ':' in map entry").then(|| "write a map as `{\"key\": value}`".to_owned())
}

/// What to write instead of the path `target` + `rest`, whose target does not exist, if it is written as in Terraform.
/// `exists`: whether there is an object with this name; `is_type`: whether this is a resource type.
pub(crate) fn instead_of_missing(
    target: &Address,
    rest: &[Segment],
    exists: impl Fn(&str) -> bool,
    is_type: impl Fn(&str) -> bool,
) -> Option<String> {
    if !target.is_data()
        && let Some(instead) = reserved(target.name(), rest)
    {
        return Some(instead);
    }
    let type_name = target.object_name().replace('-', "_");
    let [Segment::Name(name), attributes @ ..] = rest else { return None };
    let name = name.replace('_', "-");
    let object = if target.is_data() { Address::data(&name).to_string() } else { name };
    let written = format!("`${{{}}}`", path_expression(&object, attributes));
    let kind = target.kind();
    if exists(&object) && (type_name.contains('_') || is_type(&type_name)) {
        return Some(format!("write the name of the {kind} without its type: {written}"));
    }
    if is_type(&type_name) {
        return Some(format!("write the name of a {kind} without its type, such as {written}"));
    }
    let is_like_a_type = type_name.contains('_') && !attributes.is_empty();
    is_like_a_type.then(|| format!("if `{type_name}` is a type, write only the name of the {kind}: {written}"))
}

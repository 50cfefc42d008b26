//! Functions of HCL and their counterparts. `docs/expressions.md` has the same table for users.

use hcl_edit::expr::FuncCall;
use serde_json::Value as Json;

use super::{Cel, Place, Translator, Untranslated, folded};
use crate::configuration::{normalized, template};

impl Translator<'_> {
    pub(super) fn call(&self, call: &FuncCall, place: &Place) -> Result<Cel, Untranslated> {
        let name = call.name.name.as_str();
        if call.name.is_namespaced() && call.name.namespace.iter().all(|part| part.as_str() != "core") {
            return Err(format!("the function `{name}` of a provider has no counterpart"));
        }
        if matches!(name, "try" | "coalesce") {
            let mut all = call.args.iter().map(|one| self.expression(one, place));
            return match name {
                "try" => all.find(Result::is_ok).unwrap_or_else(|| Err("no argument of `try` has a value".to_owned())),
                _ => coalesce(&all.collect::<Result<Vec<_>, _>>()?),
            };
        }
        let mut arguments: Vec<Cel> =
            call.args.iter().map(|one| self.expression(one, place)).collect::<Result<_, _>>()?;
        if call.args.expand_final() {
            let last = arguments.pop().and_then(|last| last.items()).ok_or("an expanded list is not known")?;
            arguments.extend(last);
        }
        match (name, arguments.as_slice()) {
            ("file", [path]) => self.file(path).map(Cel::string),
            ("fileexists", [path]) => Ok(Cel::Constant(Json::Bool(self.file(path).is_ok()))),
            ("templatefile", [path, variables]) => self.template_file(path, variables, place),
            (name, arguments) => match structural(name, arguments) {
                Some(result) => result,
                None => by_code(name, arguments),
            },
        }
    }

    fn file(&self, path: &Cel) -> Result<String, Untranslated> {
        let path = path.as_text().ok_or("the path of a file is not a constant")?;
        let text = self.configuration.files.get(&normalized(path));
        text.cloned().ok_or_else(|| format!("the file `{path}` is not in the directory"))
    }

    fn template_file(&self, path: &Cel, variables: &Cel, place: &Place) -> Result<Cel, Untranslated> {
        let template = template(path.as_text().unwrap_or_default(), &self.file(path)?)?;
        let variables = variables.entries().ok_or("the variables of a template are not known")?;
        let inside = place.inside(&place.module, super::Repetition::None)?;
        let inside = variables.into_iter().fold(inside, |inside, (name, value)| inside.with(&name, value));
        self.template(template.iter(), &inside)
    }
}

/// The first value that is not empty.
fn coalesce(arguments: &[Cel]) -> Result<Cel, Untranslated> {
    let [first, rest @ ..] = arguments else { return Err("no argument of `coalesce` has a value".to_owned()) };
    match first.as_constant() {
        Some(Json::Null) => coalesce(rest),
        Some(Json::String(text)) if text.is_empty() => coalesce(rest),
        Some(_) => Ok(first.clone()),
        None if rest.is_empty() => Ok(first.clone()),
        None => {
            let (value, other) = (first.to_operand()?, coalesce(rest)?.to_operand()?);
            Ok(Cel::operation(format!("{value} != null && {value} != \"\" ? {value} : {other}")))
        }
    }
}

/// Functions that need only the structure of their arguments. `None`: it is not known, or the function is another one.
fn structural(name: &str, arguments: &[Cel]) -> Option<Result<Cel, Untranslated>> {
    let list = |items: Vec<Cel>| Some(Ok(Cel::List(items).simplified()));
    match (name, arguments) {
        ("sensitive" | "nonsensitive" | "tolist" | "tomap", [one]) => Some(Ok(one.clone())),
        ("toset", [one]) => {
            let items = one.as_constant()?.as_array()?;
            let mut texts: Vec<&str> = items.iter().map(Json::as_str).collect::<Option<_>>()?;
            texts.sort_unstable();
            texts.dedup();
            Some(Ok(Cel::Constant(Json::from(texts))))
        }
        ("length", [one]) => {
            let length = one.items().map(|all| all.len()).or_else(|| one.entries().map(|all| all.len()))?;
            Some(Ok(Cel::Constant(Json::from(length))))
        }
        ("concat", all) => {
            let items: Vec<Vec<Cel>> = all.iter().map(Cel::items).collect::<Option<_>>()?;
            list(items.concat())
        }
        ("flatten", [one]) => list(flat(one)?),
        ("keys", [one]) => {
            let mut keys: Vec<String> = one.entries()?.into_iter().map(|(key, _)| key).collect();
            keys.sort();
            list(keys.into_iter().map(Cel::string).collect())
        }
        ("values", [one]) => {
            let mut entries = one.entries()?;
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            list(entries.into_iter().map(|(_, value)| value).collect())
        }
        ("merge", all) => {
            let mut merged: Vec<(String, Cel)> = Vec::new();
            for map in all.iter().filter(|map| map.as_constant() != Some(&Json::Null)) {
                for (key, value) in map.entries()? {
                    merged.retain(|(known, _)| *known != key);
                    merged.push((key, value));
                }
            }
            Some(Ok(Cel::Map(merged).simplified()))
        }
        ("zipmap", [keys, values]) => {
            let keys: Vec<String> =
                keys.items()?.iter().map(|key| key.as_text().map(str::to_owned)).collect::<Option<_>>()?;
            Some(Ok(Cel::Map(keys.into_iter().zip(values.items()?).collect()).simplified()))
        }
        ("lookup", [map, key, rest @ ..]) => {
            let (entries, key) = (map.entries()?, key.as_text()?);
            let found = entries.into_iter().find(|(name, _)| name == key).map(|(_, value)| value);
            Some(found.or_else(|| rest.first().cloned()).ok_or_else(|| format!("there is no `{key}`")))
        }
        ("element", [items, at]) => {
            let (items, at) = (items.items()?, usize::try_from(at.as_constant()?.as_u64()?).ok()?);
            Some(items.get(at % items.len().max(1)).cloned().ok_or_else(|| "a list is empty".to_owned()))
        }
        ("one", [items]) => match items.items()?.as_slice() {
            [] => Some(Ok(Cel::Constant(Json::Null))),
            [one] => Some(Ok(one.clone())),
            _ => Some(Err("`one` has several values".to_owned())),
        },
        ("format", [pattern, values @ ..]) => formatted(pattern.as_text()?, values),
        ("tostring", [one]) if one.as_constant().is_some() => Some(Ok(Cel::Text(vec![one.clone()]).simplified())),
        _ => None,
    }
}

/// The elements of nested lists.
fn flat(value: &Cel) -> Option<Vec<Cel>> {
    let mut found = Vec::new();
    for item in value.items()? {
        match flat(&item) {
            Some(inner) => found.extend(inner),
            // An element that may be a list.
            None if matches!(item, Cel::Code(..)) => return None,
            None => found.push(item),
        }
    }
    Some(found)
}

/// Only `%s`, `%d` and `%v` have a counterpart: a part of a string.
fn formatted(pattern: &str, values: &[Cel]) -> Option<Result<Cel, Untranslated>> {
    let mut parts = Vec::new();
    let mut values = values.iter();
    let mut pieces = pattern.split('%');
    parts.push(Cel::string(pieces.next().unwrap_or_default()));
    while let Some(piece) = pieces.next() {
        let mut chars = piece.chars();
        match chars.next() {
            Some('s' | 'd' | 'v') => {
                parts.push(values.next()?.clone());
                parts.push(Cel::string(chars.as_str()));
            }
            // `%%`
            None => parts.push(Cel::string(format!("%{}", pieces.next().unwrap_or_default()))),
            Some(_) => return Some(Err(format!("the format `%{piece}` has no counterpart"))),
        }
    }
    parts.retain(|part| part.as_text() != Some(""));
    Some(Ok(Cel::Text(parts).simplified()))
}

/// Functions with a counterpart in CEL.
fn by_code(name: &str, arguments: &[Cel]) -> Result<Cel, Untranslated> {
    let text: Vec<String> = arguments.iter().map(Cel::to_code).collect::<Result<_, _>>()?;
    let target: Vec<String> = arguments.iter().map(Cel::to_operand).collect::<Result<_, _>>()?;
    let number = |at: usize| arguments.get(at).and_then(|one| one.as_constant()?.as_i64());
    let code = match (name, text.as_slice()) {
        ("upper", [_]) => format!("{}.upperAscii()", target[0]),
        ("lower", [_]) => format!("{}.lowerAscii()", target[0]),
        ("trimspace", [_]) => format!("{}.trim()", target[0]),
        ("strrev" | "reverse", [_]) => format!("{}.reverse()", target[0]),
        ("distinct", [_]) => format!("{}.distinct()", target[0]),
        ("sort", [_]) => format!("{}.sort()", target[0]),
        ("toset", [_]) => format!("{}.distinct().sort()", target[0]),
        ("flatten", [_]) => format!("{}.flatten()", target[0]),
        ("keys", [_]) => format!("{}.map(key, key)", target[0]),
        ("values", [map]) => format!("{}.map(key, {map}[key])", target[0]),
        ("compact", [_]) => format!("{}.filter(it, it != null && it != \"\")", target[0]),
        ("alltrue", [_]) => format!("{}.all(it, it)", target[0]),
        ("anytrue", [_]) => format!("{}.exists(it, it)", target[0]),
        ("join", [separator, _]) => format!("{}.join({separator})", target[1]),
        ("split", [separator, _]) => format!("{}.split({separator})", target[1]),
        ("replace", [_, from, to]) if !from.starts_with("\"/") => format!("{}.replace({from}, {to})", target[0]),
        ("startswith", [_, part]) => format!("{}.startsWith({part})", target[0]),
        ("endswith", [_, part]) => format!("{}.endsWith({part})", target[0]),
        ("trimprefix", [value, part]) => {
            format!("{0}.startsWith({part}) ? {0}.substring(size({part})) : {value}", target[0])
        }
        ("trimsuffix", [value, part]) => {
            format!("{0}.endsWith({part}) ? {0}.substring(0, size({value}) - size({part})) : {value}", target[0])
        }
        ("substr", [_, _, _]) => match (number(1), number(2)) {
            (Some(from), Some(length)) if from >= 0 && length >= -1 => {
                // `substr` cuts what is shorter, where `substring` fails.
                let size = format!("size({})", target[0]);
                let within = |end: i64| if end == 0 { "0".to_owned() } else { format!("math.least({size}, {end})") };
                let end = if length == -1 { size.clone() } else { within(from + length) };
                format!("{}.substring({}, {end})", target[0], within(from))
            }
            _ => return Err("`substr` with these arguments has no counterpart".to_owned()),
        },
        ("length", [value]) => format!("size({value})"),
        ("contains", [_, _]) => format!("{} in {}", target[1], target[0]),
        ("concat", [_, ..]) => target.join(" + "),
        ("setunion", [_, ..]) => format!("({}).distinct()", target.join(" + ")),
        ("lookup", [_, key, default]) => format!("{}[?{key}].orValue({default})", target[0]),
        ("lookup" | "element", [_, key]) => format!("{}[{key}]", target[0]),
        ("one", [list]) => format!("size({list}) == 0 ? null : {}[0]", target[0]),
        ("tostring", [value]) => format!("string({value})"),
        ("tobool", [value]) => format!("bool({value})"),
        ("tonumber", [value]) => format!("json.unmarshal(string({value}))"),
        ("jsonencode", [value]) => format!("json.marshal({value})"),
        ("jsondecode", [value]) => format!("json.unmarshal({value})"),
        ("base64encode", [value]) => format!("base64.encode({value})"),
        ("base64decode", [value]) => format!("base64.decode({value})"),
        ("max", [_, ..]) => format!("math.greatest({})", text.join(", ")),
        ("min", [_, ..]) => format!("math.least({})", text.join(", ")),
        ("abs" | "ceil" | "floor", [value]) => format!("math.{name}({value})"),
        ("signum", [value]) => format!("math.sign({value})"),
        ("range", [value]) => format!("lists.range({value})"),
        _ => return Err(format!("`{name}()` has no counterpart")),
    };
    let is_call = code.ends_with(')') && !code.contains(" ? ") && !code.contains(" in ") && !code.contains(" + ");
    let constants: Vec<&Cel> = arguments.iter().collect();
    folded(&constants, code).map(|result| match result {
        Cel::Code(text, _) => Cel::Code(text, is_call),
        other => other,
    })
}

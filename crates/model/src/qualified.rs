//! Names of Terraform's in addresses: `aws_vpc.main`, and `module.a["x"].aws_vpc.main` in a module.

use super::InstanceKey;

const MODULE: &str = "module.";
const DATA: &str = "data.";

/// Splits an address of Terraform's into the name and the key. `None` if it is none.
pub fn split(text: &str) -> Option<(&str, InstanceKey)> {
    let name = in_module(text);
    let calls = &text[..text.len() - name.len()];
    if !keys(calls).all(|key| InstanceKey::parse(key).is_some()) {
        return None;
    }
    if let Some(call) = name.strip_prefix(MODULE) {
        return with_key(text, call);
    }
    let resource = name.strip_prefix(DATA).unwrap_or(name);
    let (kind, rest) = resource.split_once('.')?;
    if is_name(kind) { with_key(text, rest) } else { None }
}

/// The name and the key of a text, of which `last` is what comes after the last point outside of a key.
fn with_key<'t>(text: &'t str, last: &str) -> Option<(&'t str, InstanceKey)> {
    let end = last.find('[').unwrap_or(last.len());
    if !is_name(&last[..end]) {
        return None;
    }
    let key = match &last[end..] {
        "" => InstanceKey::None,
        key => InstanceKey::parse(key.strip_prefix('[')?.strip_suffix(']')?)?,
    };
    Some((&text[..text.len() - (last.len() - end)], key))
}

/// What is left of a name after the module calls.
pub fn in_module(name: &str) -> &str {
    let mut rest = name;
    while let Some((_, after)) = call(rest) {
        rest = after;
    }
    rest
}

/// The module calls of a name, each with all before it and without its own key.
pub fn calls(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (end, after) = call(rest)?;
        let start = name.len() - rest.len();
        rest = after;
        Some(&name[..start + end])
    })
}

/// The keys of the module calls.
fn keys(calls: &str) -> impl Iterator<Item = &str> {
    let mut rest = calls;
    std::iter::from_fn(move || {
        loop {
            let (end, after) = call(rest)?;
            let key = rest[end..rest.len() - after.len() - 1].strip_prefix('[').and_then(|key| key.strip_suffix(']'));
            rest = after;
            if key.is_some() {
                return key;
            }
        }
    })
}

/// The first module call: where its name ends, and what comes after it. `None` if nothing comes after it.
fn call(name: &str) -> Option<(usize, &str)> {
    let rest = name.strip_prefix(MODULE)?;
    let end = rest.find(['.', '['])?;
    if !is_name(&rest[..end]) {
        return None;
    }
    let after = match rest.as_bytes()[end] {
        b'[' => end + key_length(&rest[end..])?,
        _ => end,
    };
    Some((MODULE.len() + end, rest[after..].strip_prefix('.')?))
}

/// The length of a key in brackets, which may contain brackets in quotes.
fn key_length(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether it is a name of Terraform's.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
        && text.chars().all(|c| c == '_' || c == '-' || c.is_alphanumeric())
}

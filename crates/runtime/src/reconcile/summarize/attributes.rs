//! The attributes that a status shows: no sensitive values, and no more than fit.

use serde_json::{Map, Value as Json};

use model::Value;

/// Space reserved for the marker of each attribute that is cut.
const MARKER: usize = 48;

/// The object's attributes as JSON of at most `room` bytes. Markers replace the largest attributes first. If the
/// markers do not fit either, attributes are omitted and one marker shows how many.
pub fn visible(object: &Value, room: usize) -> Map<String, Json> {
    let mut shown = match object {
        Value::Map(map) => public_map(map.iter()),
        _ => Map::new(),
    };
    let mut sizes: Vec<(usize, String)> =
        shown.iter().map(|(name, value)| (value.to_string().len(), name.clone())).collect();
    sizes.sort();
    let mut total = 2 + shown.iter().map(|(name, value)| entry_size(name, value)).sum::<usize>();
    while total + MARKER > room {
        let Some((size, name)) = sizes.pop().filter(|(size, _)| *size > MARKER) else { break };
        let marker = Json::from(format!("(cut: {size} bytes)"));
        total = total - size + marker.to_string().len();
        shown.insert(name, marker);
    }
    leave_out(shown, total, room)
}

fn leave_out(mut shown: Map<String, Json>, mut total: usize, room: usize) -> Map<String, Json> {
    let mut left_out = 0_usize;
    while total + MARKER > room {
        let Some(name) = shown.keys().next_back().cloned() else { break };
        if let Some(value) = shown.remove(&name) {
            total -= entry_size(&name, &value);
            left_out += 1;
        }
    }
    if left_out > 0 {
        shown.insert("...".to_owned(), Json::from(format!("(cut: {left_out} attributes)")));
    }
    shown
}

/// Includes quotes, colon and comma. Escapes in names are not counted; the reserve covers them.
fn entry_size(name: &str, value: &Json) -> usize {
    name.len() + 4 + value.to_string().len()
}

fn public_map<'a>(entries: impl Iterator<Item = (&'a std::sync::Arc<str>, &'a Value)>) -> Map<String, Json> {
    entries.filter_map(|(name, value)| Some((name.to_string(), public(value)?))).collect()
}

/// The value without sensitive and unknown parts. List items are masked instead, so that the others keep their
/// positions.
fn public(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Sensitive(_) | Value::Unknown => return None,
        Value::Map(map) => Json::Object(public_map(map.iter())),
        Value::List(items) => Json::Array(
            items.iter().map(|item| public(item).unwrap_or_else(|| Json::from("(sensitive value)"))).collect(),
        ),
        other => other.to_public_json(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_values_are_left_out_at_every_depth() {
        let secret = Value::from("hunter2").into_sensitive();
        let object = Value::map([
            ("user", Value::from("amy")),
            ("password", secret.clone()),
            ("nested", Value::map([("token", secret.clone()), ("ok", Value::from(true))])),
            ("list", Value::list([Value::from(1), secret])),
        ]);
        let shown = Json::Object(visible(&object, 4096)).to_string();
        assert_eq!(shown, r#"{"list":[1,"(sensitive value)"],"nested":{"ok":true},"user":"amy"}"#);
    }

    #[test]
    fn large_attributes_are_cut_with_a_marker_and_small_ones_stay() {
        let object = Value::map([("big", Value::from("x".repeat(9000).as_str())), ("small", Value::from("y"))]);
        let shown = Json::Object(visible(&object, 1000)).to_string();
        assert_eq!(shown, r#"{"big":"(cut: 9002 bytes)","small":"y"}"#);
    }

    #[test]
    fn attributes_always_fit() {
        let many = Value::map((0..2000).map(|n| (format!("attribute-{n:05}"), Value::from(n))));
        for room in [100, 1000, 16_000] {
            let shown = visible(&many, room);
            assert!(Json::Object(shown.clone()).to_string().len() <= room, "{room}");
            assert!(shown.contains_key("..."));
        }
    }
}

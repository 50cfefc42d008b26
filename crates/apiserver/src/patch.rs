//! JSON patches and merge patches, as the real server applies them.

use serde_json::Value;

/// Applies a JSON patch. A test for `null` succeeds if the path does not exist, as in the real server.
pub fn json_patch(object: &mut Value, patch: &[Value]) -> Result<(), String> {
    patch.iter().try_for_each(|operation| apply(object, operation).ok_or_else(|| operation.to_string()))
}

/// Applies one operation. `None` if it fails.
fn apply(object: &mut Value, operation: &Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    match operation["op"].as_str()? {
        "test" => {
            let found = object.pointer(path).unwrap_or(&Value::Null);
            (*found == operation["value"]).then_some(())
        }
        "add" => add(object, path, operation.get("value")?.clone()),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            let there = object.pointer_mut(path)?;
            *there = operation.get("value")?.clone();
            Some(())
        }
        "move" => {
            let value = remove(object, operation["from"].as_str()?)?;
            add(object, path, value)
        }
        "copy" => {
            let value = object.pointer(operation["from"].as_str()?)?.clone();
            add(object, path, value)
        }
        _ => None,
    }
}

fn place(path: &str) -> Option<(&str, String)> {
    let (parent, key) = path.rsplit_once('/')?;
    Some((parent, key.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = place(path)?;
    match object.pointer_mut(parent)? {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let at = key.parse::<usize>().ok().filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = place(path)?;
    match object.pointer_mut(parent)? {
        Value::Object(map) => map.remove(&key),
        Value::Array(list) => {
            let at = key.parse::<usize>().ok().filter(|at| *at < list.len())?;
            Some(list.remove(at))
        }
        _ => None,
    }
}

/// Applies a merge patch.
pub fn merge_patch(object: &mut Value, patch: &Value) {
    json_patch::merge(object, patch);
}

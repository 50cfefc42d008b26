//! Writes documents as YAML.

use serde_json::Value as Json;

use super::Problem;

pub fn to_yaml(documents: &[Json]) -> Result<String, Problem> {
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        let written = serde_saphyr::to_string(document);
        text.push_str(written.map_err(|error| Problem::plain(error.to_string()))?.trim_end());
        text.push('\n');
    }
    Ok(text)
}

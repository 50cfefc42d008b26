//! Which files of a directory are its configuration.

use std::collections::BTreeSet;

/// A file of a module, as it is given to [`crate::read_module`].
#[derive(Clone, Debug)]
pub struct File {
    /// The name, without the directory.
    pub name: String,
    /// The bytes, whatever they are.
    pub content: Vec<u8>,
}

/// The endings of configuration files. Of two files with the same stem, the first ending wins.
const ENDINGS: [(&str, &str); 2] = [(".tofu", ".tf"), (".tofu.json", ".tf.json")];

/// Whether a file of this name belongs to a configuration, unless a `.tofu` file has its place.
pub fn is_configuration(name: &str) -> bool {
    let is_ignored = name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'));
    !is_ignored && stem(name).is_some()
}

pub(crate) fn is_json(name: &str) -> bool {
    name.strip_suffix(".json").is_some()
}

/// Whether a file is only for OpenTofu, whose files take the place of those for both programs.
pub(crate) fn is_tofu(name: &str) -> bool {
    ENDINGS.iter().any(|(own, _)| name.ends_with(own))
}

fn stem(name: &str) -> Option<&str> {
    ENDINGS.iter().flat_map(|(own, old)| [own, old]).find_map(|ending| name.strip_suffix(ending))
}

pub(crate) fn is_override(name: &str) -> bool {
    stem(name).is_some_and(|stem| stem == "override" || stem.ends_with("_override"))
}

/// The configuration files in the order in which they are read.
pub(crate) fn configuration_files(files: Vec<File>) -> Vec<File> {
    let names: BTreeSet<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut chosen: Vec<File> = files;
    chosen.retain(|file| {
        let mut endings = ENDINGS.iter().filter_map(|(own, old)| Some((own, file.name.strip_suffix(old)?)));
        is_configuration(&file.name) && !endings.any(|(own, stem)| names.contains(&format!("{stem}{own}")))
    });
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tofu_files_take_the_place_of_tf_files_of_the_same_name() {
        let names =
            ["b.tf", "a.tf", "a.tofu", "c.tf.json", "c.tofu.json", ".hidden.tf", "x.tf~", "#y.tf#", "README.md"];
        let files = names.map(|name| File { name: name.to_owned(), content: Vec::new() });
        let chosen: Vec<String> = configuration_files(files.into()).into_iter().map(|file| file.name).collect();
        assert_eq!(chosen, ["a.tofu", "b.tf", "c.tofu.json"]);
    }

    #[test]
    fn override_files_are_known_by_their_names() {
        for name in ["override.tf", "a_override.tf.json", "override.tofu"] {
            assert!(is_override(name), "{name}");
        }
        assert!(!is_override("overrides.tf") && !is_override("my-override.tf"));
    }
}

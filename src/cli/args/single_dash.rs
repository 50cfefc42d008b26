//! Accepts Terraform's form of long options, with one dash: `-upgrade`, `-lockfile=readonly`, `-input=false`.

use std::ffi::OsString;

use clap::{ArgAction, Command};

/// Gives long options their second dash. Words that are no long option of the command stay as they are.
pub fn with_two_dashes(words: impl IntoIterator<Item = OsString>, command: &Command) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    // Most command lines have no such word, and need not know the options of all commands.
    if !words.iter().any(|word| word.to_str().and_then(name).is_some()) {
        return words;
    }
    let mut command = command.clone();
    command.build();
    let mut command = &command;
    let mut result = Vec::new();
    let mut words = words.into_iter();
    result.extend(words.next());
    for word in words.by_ref() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            result.push(word);
            break;
        }
        if let Some(inner) = command.find_subcommand(text) {
            command = inner;
            result.push(word);
            continue;
        }
        match LongOption::of(text, command) {
            Some(LongOption::Flag { name, is_set: true }) => result.push(format!("--{name}").into()),
            // That is its default.
            Some(LongOption::Flag { is_set: false, .. }) => {}
            Some(LongOption::Other) => result.push(format!("-{text}").into()),
            None => result.push(word),
        }
    }
    result.extend(words);
    result
}

/// What stands after one dash, if it is longer than a short option.
fn name(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|name| name.len() > 1 && !name.starts_with('-'))
}

/// A long option with one dash.
enum LongOption<'a> {
    /// A flag with a value, as Go's programs accept it.
    Flag {
        name: &'a str,
        is_set: bool,
    },
    Other,
}

impl<'a> LongOption<'a> {
    fn of(text: &'a str, command: &Command) -> Option<Self> {
        let given = name(text)?;
        let (name, value) = given.split_once('=').map_or((given, None), |(name, value)| (name, Some(value)));
        let arg = command.get_arguments().find(|arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        })?;
        let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
        match value {
            Some("true") if is_flag => Some(Self::Flag { name, is_set: true }),
            Some("false") if is_flag => Some(Self::Flag { name, is_set: false }),
            _ => Some(Self::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::PurlinArgs;

    fn changed(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let words = with_two_dashes(words, &PurlinArgs::command());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn long_options_are_accepted_with_one_dash() {
        for (line, expected) in [
            ("purlin init -upgrade", "purlin init --upgrade"),
            ("purlin init -upgrade=true -lockfile=readonly", "purlin init --upgrade --lockfile=readonly"),
            ("purlin init -upgrade=false -backend=false", "purlin init --backend=false"),
            ("purlin plan -f shop -out x.plan", "purlin plan -f shop --out x.plan"),
            ("purlin apply -refresh-only -yes", "purlin apply --refresh-only --yes"),
            ("purlin -color never state list -state x", "purlin --color never state list --state x"),
            ("purlin plan -help", "purlin plan --help"),
        ] {
            assert_eq!(changed(line), expected);
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for line in
            ["purlin apply -y -f -", "purlin plan -fshop -ojson", "purlin get -- -state", "purlin init -unknown"]
        {
            assert_eq!(changed(line), line);
        }
    }
}

//! What the status of a `ProviderConfig` says. Pure: the time comes in.

use jiff::Timestamp;

use super::index::SettingsView;
use super::summarize::Note;
use crate::api::ProviderConfigStatus;
use crate::api::conditions::{ConditionType, condition, merge};
use crate::model::{Diagnostic, Reason};

/// How many users a message names.
const NAMED: usize = 5;
/// A message longer than this helps nobody.
const MESSAGE_LIMIT: usize = 1024;

/// What came of configuring the provider with the present settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It is under way, or about to be.
    Open,
    /// The provider has accepted them.
    Accepted {
        /// The version of the provider.
        version: Option<String>,
        /// That it has, and what it warns of.
        message: String,
    },
    /// It cannot be used with them.
    Refused(String),
}

impl Trial {
    /// The provider has accepted the settings, with these warnings.
    pub fn accepted(version: Option<String>, warnings: &[Diagnostic]) -> Self {
        let mut message = "the provider accepts the settings".to_owned();
        for warning in warnings {
            let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
            message.push_str(&format!("; it warns: {place}{}", warning.summary));
        }
        Self::Accepted { version, message }
    }
}

/// The status to write.
pub fn status(view: &SettingsView, trial: &Trial, now: Timestamp) -> ProviderConfigStatus {
    let generation = view.meta.generation;
    let of = |kind, status, reason, message: &str| condition(kind, status, reason, bounded(message), generation);
    let (synced, ready) = match (&view.settled, trial) {
        (Err((reason, message)), _) => (("False", *reason, message.as_str()), ("False", *reason, message.as_str())),
        (Ok(_), trial) => {
            let ready = match trial {
                Trial::Open => ("False", Reason::Progressing, "the provider is being configured"),
                Trial::Accepted { message, .. } => ("True", Reason::Available, message.as_str()),
                Trial::Refused(why) => ("False", Reason::ProviderNotReady, why.as_str()),
            };
            (("True", Reason::Available, "the settings are known"), ready)
        }
    };
    let mut conditions = vec![
        of(ConditionType::Ready, ready.0, ready.1, ready.2),
        of(ConditionType::Synced, synced.0, synced.1, synced.2),
    ];
    if view.meta.deleting && !view.users.is_empty() {
        conditions.push(of(ConditionType::DeletionBlocked, "True", Reason::StillUsed, &still_used(view)));
    }
    ProviderConfigStatus {
        observed_generation: generation,
        conditions: merge(&view.meta.status.conditions, conditions, now),
        provider: Some(view.provider.to_string()),
        version: match trial {
            Trial::Accepted { version, .. } => version.clone(),
            _ => None,
        },
        users: i32::try_from(view.users.len()).unwrap_or(i32::MAX),
    }
}

fn still_used(view: &SettingsView) -> String {
    let named: Vec<String> = view.users.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = match view.users.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut text = format!(
        "still used by {}{more} (hint: delete them as well, or let them use another ProviderConfig; it goes with the last \
         of them)",
        named.join(", ")
    );
    for (address, is_open) in view.abandoned.iter().take(NAMED) {
        let force = if *is_open { " --force" } else { "" };
        text.push_str(&format!(
            "; of `{address}` there is only a record and no Resource (hint: apply the Resource again, or forget the \
             record with `purlin state rm {address}{force}`)"
        ));
    }
    text
}

/// What is to be told of the way from one status to the next.
pub fn notes(before: &ProviderConfigStatus, now: &ProviderConfigStatus) -> Vec<Note> {
    let find = |status: &ProviderConfigStatus, kind: ConditionType| {
        status.conditions.iter().find(|condition| condition.type_ == kind.as_str()).cloned()
    };
    let mut notes = Vec::new();
    for kind in [ConditionType::Ready, ConditionType::DeletionBlocked] {
        let (old, new) = (find(before, kind), find(now, kind));
        let Some(new) = new else { continue };
        let same = old.is_some_and(|old| old.reason == new.reason);
        let told = Reason::ALL.iter().find(|known| known.as_str() == new.reason);
        if let Some(reason) = told.filter(|reason| !same && **reason != Reason::Progressing) {
            let warning = *reason != Reason::Available;
            notes.push(Note { warning, reason: reason.as_str(), action: "Configure", note: new.message });
        }
    }
    notes
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::model::{Address, ProviderUse, Version};
    use crate::reconcile::index::SettingsMeta;

    fn view(settled: bool, deleting: bool, users: usize) -> SettingsView {
        let used = ProviderUse::of_cloud("s");
        SettingsView {
            name: "cloud".into(),
            provider: "cloud".into(),
            meta: Arc::new(SettingsMeta {
                uid: "u".into(),
                version: Version(1),
                generation: 3,
                deleting,
                finalizers: Vec::new(),
                status: ProviderConfigStatus::default(),
            }),
            settled: if settled { Ok(used) } else { Err((Reason::InputNotFound, "no Secret".into())) },
            users: (0..users).map(|number| format!("user-{number}").into()).collect(),
            abandoned: BTreeMap::new(),
        }
    }

    fn told(view: &SettingsView, trial: &Trial) -> Vec<String> {
        let status = status(view, trial, Timestamp::UNIX_EPOCH);
        let told = status.conditions.iter();
        told.map(|one| format!("{} {} {}: {}", one.type_, one.status, one.reason, one.message)).collect()
    }

    #[test]
    fn conditions_say_whether_settings_are_known_and_accepted() {
        let accepted = Trial::accepted(Some("1.2.3".into()), &[]);
        assert_eq!(
            told(&view(true, false, 1), &accepted),
            [
                "Ready True Available: the provider accepts the settings",
                "Synced True Available: the settings are known"
            ]
        );
        assert_eq!(
            told(&view(true, false, 1), &Trial::Refused("bad key".into())),
            ["Ready False ProviderNotReady: bad key", "Synced True Available: the settings are known"]
        );
        assert_eq!(
            told(&view(false, false, 1), &Trial::Open),
            ["Ready False InputNotFound: no Secret", "Synced False InputNotFound: no Secret"]
        );
    }

    #[test]
    fn a_deletion_names_some_of_those_that_hold_it() {
        let blocked = told(&view(true, true, 7), &Trial::Open).pop().unwrap();
        assert!(blocked.starts_with(
            "DeletionBlocked True StillUsed: still used by `user-0`, `user-1`, `user-2`, `user-3`, `user-4` and 2 more"
        ));
        assert_eq!(told(&view(true, true, 0), &Trial::Open).len(), 2);
    }

    #[test]
    fn a_record_without_a_resource_is_named_with_the_way_out() {
        let abandoned = [("user-0", true), ("user-1", false)].map(|(name, open)| (Address::single(name), open));
        let view = SettingsView { abandoned: BTreeMap::from(abandoned), ..view(true, true, 3) };
        let blocked = told(&view, &Trial::Open).pop().unwrap();
        let ends = "; of `user-0` there is only a record and no Resource (hint: apply the Resource again, or forget the \
                    record with `purlin state rm user-0 --force`); of `user-1` there is only a record and no Resource (hint: \
                    apply the Resource again, or forget the record with `purlin state rm user-1`)";
        assert!(blocked.ends_with(ends), "{blocked}");
    }

    #[test]
    fn only_news_is_told() {
        let open = status(&view(true, false, 0), &Trial::Open, Timestamp::UNIX_EPOCH);
        let refused = status(&view(true, false, 0), &Trial::Refused("no".into()), Timestamp::UNIX_EPOCH);
        assert_eq!(notes(&ProviderConfigStatus::default(), &open), []);
        let told = notes(&open, &refused);
        assert_eq!((told.len(), told[0].warning, told[0].reason), (1, true, "ProviderNotReady"));
        assert_eq!(notes(&refused, &refused), []);
    }
}

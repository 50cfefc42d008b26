//! Computes the status of a `ProviderConfig`. Pure: the caller passes the time.

use jiff::Timestamp;

use super::index::ProviderConfigView;
use super::summarize::Note;
use api::ProviderConfigStatus;
use api::conditions::{self, ConditionType, condition, merge};
use model::{Diagnostic, Reason};

/// How many dependents a message names.
const NAMED: usize = 5;
/// The length limit of a message.
const MESSAGE_LIMIT: usize = 1024;

/// The result of configuring the provider with the current configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationCheck {
    /// Running or about to start.
    Pending,
    Accepted {
        version: Option<String>,
        message: String,
    },
    /// The provider cannot be used with this configuration, for this reason.
    Rejected(String),
}

impl ConfigurationCheck {
    pub fn accepted(version: Option<String>, warnings: &[Diagnostic]) -> Self {
        let mut message = "the provider accepted the configuration".to_owned();
        for warning in warnings {
            let place = warning.path.as_ref().map_or_else(String::new, |path| format!("spec.config.{path}: "));
            message.push_str(&format!("; warning: {place}{}", warning.summary));
        }
        Self::Accepted { version, message }
    }
}

pub fn status(view: &ProviderConfigView, check: &ConfigurationCheck, now: Timestamp) -> ProviderConfigStatus {
    let generation = view.meta.generation;
    let (synced, ready) = match (&view.configuration, check) {
        (Err((reason, message)), _) => (("False", *reason, message.as_str()), ("False", *reason, message.as_str())),
        (Ok(_), trial) => {
            let ready = match trial {
                ConfigurationCheck::Pending => ("False", Reason::Progressing, "the provider is being configured"),
                ConfigurationCheck::Accepted { message, .. } => ("True", Reason::Available, message.as_str()),
                ConfigurationCheck::Rejected(why) => ("False", Reason::ProviderNotReady, why.as_str()),
            };
            (("True", Reason::Available, "the configuration is known"), ready)
        }
    };
    let mut conditions = vec![
        condition(ConditionType::Ready, ready.0, ready.1, bounded(ready.2), generation),
        condition(ConditionType::Synced, synced.0, synced.1, bounded(synced.2), generation),
    ];
    if view.meta.deleting && !view.users.is_empty() {
        let message = bounded(&still_used(view));
        conditions.push(condition(ConditionType::DeletionBlocked, "True", Reason::InUse, message, generation));
    }
    ProviderConfigStatus {
        observed_generation: generation,
        conditions: merge(&view.meta.status.conditions, conditions, now),
        provider: Some(view.provider.to_string()),
        version: match check {
            ConfigurationCheck::Accepted { version, .. } => version.clone(),
            _ => None,
        },
        users: i32::try_from(view.users.len()).unwrap_or(i32::MAX),
    }
}

fn still_used(view: &ProviderConfigView) -> String {
    let named: Vec<String> = view.users.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = match view.users.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut text = format!(
        "in use by {}{more} (hint: delete them too, or switch them to another ProviderConfig; Purlin removes its \
         finalizer when nothing uses it)",
        named.join(", ")
    );
    for (address, is_open) in view.abandoned.iter().take(NAMED) {
        let force = if *is_open { " --force" } else { "" };
        text.push_str(&format!(
            "; `{address}` has a record but no Resource (hint: apply the Resource again, or remove the record with \
             `purlin state rm {}{force}`)",
            address.shell_word()
        ));
    }
    text
}

/// The events for the change from one status to the next.
pub fn notes(before: &ProviderConfigStatus, now: &ProviderConfigStatus) -> Vec<Note> {
    let mut notes = Vec::new();
    for kind in [ConditionType::Ready, ConditionType::DeletionBlocked] {
        let Some(new) = conditions::find(&now.conditions, kind) else { continue };
        let old = conditions::find(&before.conditions, kind);
        let same = old.is_some_and(|old| old.reason == new.reason);
        let reason = Reason::ALL.iter().find(|known| known.as_str() == new.reason);
        if let Some(reason) = reason.filter(|reason| !same && **reason != Reason::Progressing) {
            let warning = *reason != Reason::Available;
            notes.push(Note { warning, reason: reason.as_str(), action: "Configure", note: new.message.clone() });
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
    use crate::reconcile::index::ProviderConfigMeta;
    use model::{Address, Version};

    fn view(is_known: bool, deleting: bool, users: usize) -> ProviderConfigView {
        let used = testkit::provider_use("s");
        ProviderConfigView {
            name: "cloud".into(),
            provider: "cloud".into(),
            meta: Arc::new(ProviderConfigMeta {
                uid: "u".into(),
                version: Version(1),
                generation: 3,
                deleting,
                finalizers: Vec::new(),
                status: ProviderConfigStatus::default(),
            }),
            configuration: if is_known { Ok(used) } else { Err((Reason::InputNotFound, "no Secret".into())) },
            users: (0..users).map(|number| format!("user-{number}").into()).collect(),
            abandoned: BTreeMap::new(),
        }
    }

    fn conditions(view: &ProviderConfigView, trial: &ConfigurationCheck) -> Vec<String> {
        let status = status(view, trial, Timestamp::UNIX_EPOCH);
        let conditions = status.conditions.iter();
        conditions
            .map(|known| format!("{} {} {}: {}", known.type_, known.status, known.reason, known.message))
            .collect()
    }

    #[test]
    fn conditions_show_whether_the_configuration_is_known_and_accepted() {
        let accepted = ConfigurationCheck::accepted(Some("1.2.3".into()), &[]);
        assert_eq!(
            conditions(&view(true, false, 1), &accepted),
            [
                "Ready True Available: the provider accepted the configuration",
                "Synced True Available: the configuration is known"
            ]
        );
        assert_eq!(
            conditions(&view(true, false, 1), &ConfigurationCheck::Rejected("bad key".into())),
            ["Ready False ProviderNotReady: bad key", "Synced True Available: the configuration is known"]
        );
        assert_eq!(
            conditions(&view(false, false, 1), &ConfigurationCheck::Pending),
            ["Ready False InputNotFound: no Secret", "Synced False InputNotFound: no Secret"]
        );
    }

    #[test]
    fn a_blocked_deletion_names_some_dependents() {
        let blocked = conditions(&view(true, true, 7), &ConfigurationCheck::Pending).pop().unwrap();
        assert!(blocked.starts_with(
            "DeletionBlocked True InUse: in use by `user-0`, `user-1`, `user-2`, `user-3`, `user-4` and 2 more"
        ));
        assert_eq!(conditions(&view(true, true, 0), &ConfigurationCheck::Pending).len(), 2);
    }

    #[test]
    fn a_record_without_a_resource_is_named_with_a_hint() {
        let abandoned = [("user-0", true), ("user-1", false)].map(|(name, open)| (Address::single(name), open));
        let view = ProviderConfigView { abandoned: BTreeMap::from(abandoned), ..view(true, true, 3) };
        let blocked = conditions(&view, &ConfigurationCheck::Pending).pop().unwrap();
        let ends = "; `user-0` has a record but no Resource (hint: apply the Resource again, or remove the record with \
                    `purlin state rm user-0 --force`); `user-1` has a record but no Resource (hint: apply the Resource \
                    again, or remove the record with `purlin state rm user-1`)";
        assert!(blocked.ends_with(ends), "{blocked}");
    }

    #[test]
    fn only_changes_are_reported() {
        let open = status(&view(true, false, 0), &ConfigurationCheck::Pending, Timestamp::UNIX_EPOCH);
        let refused = status(&view(true, false, 0), &ConfigurationCheck::Rejected("no".into()), Timestamp::UNIX_EPOCH);
        assert_eq!(notes(&ProviderConfigStatus::default(), &open), []);
        let reported = notes(&open, &refused);
        assert_eq!((reported.len(), reported[0].warning, reported[0].reason), (1, true, "ProviderNotReady"));
        assert_eq!(notes(&refused, &refused), []);
    }
}

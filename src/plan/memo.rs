//! Replies remembered, so that nobody is asked the same twice: while planning begins anew because instances of a family
//! became known, and from one plan to the next while an object waits to be made.
//!
//! A provider is asked over a socket. Each plan of a component asks about all of it that is not yet as it should be, and
//! while a thousand objects arrive and are made there are many plans. What a provider plans for the same configuration
//! and the same object is the same a moment later, and if it is not nothing comes of it: a step asks once more before it
//! acts, and Terraform carries out plans that are much older.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Ask, Question, Reply};
use crate::model::{Address, Severity};

/// For so long a provider need not be asked again about an object that waits to be made or changed.
const HOLDS: Duration = Duration::from_mins(1);

/// Questions with their replies.
#[derive(Debug, Default)]
pub struct Memo {
    replies: BTreeMap<Address, Vec<Known>>,
}

#[derive(Debug)]
struct Known {
    ask: Ask,
    reply: Reply,
    at: Timestamp,
}

impl Memo {
    /// Remembers a reply that was given at `at`.
    pub fn keep(&mut self, ask: Ask, reply: Reply, at: Timestamp) {
        self.replies.entry(ask.address.clone()).or_default().push(Known { ask, reply, at });
    }

    /// The reply to a question that was asked before.
    pub fn recall(&self, ask: &Ask) -> Option<Reply> {
        let known = self.replies.get(&ask.address)?;
        known.iter().find(|known| is_same(&known.ask, ask)).map(|known| known.reply.clone())
    }

    /// Whether the reply to a question may be of use to later plans.
    pub fn outlives_plan(ask: &Ask) -> bool {
        ask.provider.is_some() && matches!(ask.question, Question::Plan(_))
    }

    /// Drops what only the plan that is made now may use.
    pub fn end_plan(&mut self) {
        for known in self.replies.values_mut() {
            known.retain(|known| Self::outlives_plan(&known.ask) && is_good(&known.reply));
            // The last one is about the object as it is now.
            known.drain(..known.len().saturating_sub(1));
        }
        self.replies.retain(|_, known| !known.is_empty());
    }

    /// Takes out what is known of the objects of some names, and holds at `now`.
    #[must_use]
    pub fn take(&mut self, names: &BTreeSet<Arc<str>>, now: Timestamp) -> Self {
        let taken = self.replies.extract_if(.., |address, _| names.contains(&address.name));
        let holds = |known: &Known| now.duration_since(known.at).unsigned_abs() < HOLDS;
        Self { replies: taken.filter(|(_, known)| known.iter().all(holds)).collect() }
    }

    /// Puts back what was taken out, with what has become known since.
    pub fn put_back(&mut self, taken: Self) {
        self.replies.extend(taken.replies);
    }

    /// The next plan asks about this object again.
    pub fn forget(&mut self, address: &Address) {
        self.replies.remove(address);
    }
}

/// Random bytes that come with a question are no part of it: those of the first time are as good.
fn is_same(one: &Ask, other: &Ask) -> bool {
    let questions = match (&one.question, &other.question) {
        (Question::Plan(one), Question::Plan(other)) => {
            (&one.config, &one.prior, &one.planned_before) == (&other.config, &other.prior, &other.planned_before)
        }
        (one, other) => one == other,
    };
    questions
        && (&one.type_name, &one.provider, &one.service_account)
            == (&other.type_name, &other.provider, &other.service_account)
}

/// A plan without any error.
fn is_good(reply: &Reply) -> bool {
    let Reply::Planned(found, Ok(Some(_))) = reply else { return false };
    found.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Diagnostic, Diagnostics, PlanRequest, PlanResponse, ProviderUse, Reason, Value};
    use crate::plan::AskId;

    fn ask(name: &str, provider: Option<Arc<ProviderUse>>, config: &str, entropy: u8) -> Ask {
        let (config, entropy) = (Value::from(config), [entropy; 16]);
        Ask {
            id: AskId(usize::from(entropy[0])),
            address: Address::single(name),
            type_name: "cloud_disk".into(),
            provider,
            service_account: "".into(),
            question: Question::Plan(PlanRequest { prior: None, config, entropy, planned_before: None }),
        }
    }

    fn planned(found: Diagnostics) -> Reply {
        Reply::Planned(found, Ok(Some(PlanResponse::default())))
    }

    /// What is left for the next plan, so many seconds later, of one reply of this one.
    fn carried(ask: &Ask, reply: Reply, seconds: i64) -> Memo {
        let (mut memo, start) = (Memo::default(), Timestamp::UNIX_EPOCH);
        memo.keep(ask.clone(), reply, start);
        assert!(memo.recall(ask).is_some(), "within the plan every reply is known");
        memo.end_plan();
        memo.take(&["a".into()].into(), Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn a_later_plan_that_asks_the_same_gets_the_same_reply_for_a_minute() {
        let first = ask("a", Some(ProviderUse::of_cloud("one")), "small", 1);
        let memo = carried(&first, planned(Vec::new()), 59);
        assert!(
            memo.recall(&ask("a", Some(ProviderUse::of_cloud("one")), "small", 2)).is_some(),
            "random bytes are no part of it"
        );
        let others = [
            ask("a", Some(ProviderUse::of_cloud("one")), "large", 1),
            ask("a", Some(ProviderUse::of_cloud("two")), "small", 1),
            ask("b", Some(ProviderUse::of_cloud("one")), "small", 1),
            ask("a", None, "small", 1),
        ];
        assert!(others.iter().all(|other| memo.recall(other).is_none()));
        assert!(carried(&first, planned(Vec::new()), 60).recall(&first).is_none());
    }

    #[test]
    fn only_good_plans_of_providers_outlive_the_plan() {
        let of_provider = ask("a", Some(ProviderUse::of_cloud("one")), "small", 1);
        let built_in = ask("a", None, "small", 1);
        let wrong = Diagnostic::error(&Address::single("a"), Reason::InvalidConfig, "no");
        for (asked, reply) in [
            (&of_provider, planned(vec![wrong])),
            (&of_provider, Reply::Planned(Vec::new(), Ok(None))),
            (&built_in, planned(Vec::new())),
        ] {
            assert!(carried(asked, reply, 0).recall(asked).is_none());
        }
        let (mut memo, start) = (Memo::default(), Timestamp::UNIX_EPOCH);
        for name in ["a", "b"] {
            memo.keep(ask(name, Some(ProviderUse::of_cloud("one")), "small", 1), planned(Vec::new()), start);
        }
        let taken = memo.take(&["b".into()].into(), start);
        assert!(memo.recall(&ask("b", Some(ProviderUse::of_cloud("one")), "small", 1)).is_none());
        memo.put_back(taken);
        memo.forget(&Address::single("a"));
        assert!(memo.recall(&ask("b", Some(ProviderUse::of_cloud("one")), "small", 1)).is_some());
        assert!(
            memo.recall(&ask("a", Some(ProviderUse::of_cloud("one")), "small", 1)).is_none(),
            "its change has failed"
        );
    }
}

//! Caches driver responses: within a plan that starts again because instances of a family became known, and between
//! plans while an object waits to be created.
//!
//! Each plan of a component calls the provider for every object that is not up to date, and there are many plans while
//! a thousand objects are created. The response for the same configuration and object rarely changes within a minute,
//! and a step requests the final plan before it applies anything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{DriverCall, DriverRequest, DriverResponse};
use model::{Address, Name, Severity};

/// How long a later plan may use a response.
const HOLDS: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub struct ResponseCache {
    replies: BTreeMap<Address, Vec<CachedResponse>>,
}

#[derive(Debug)]
struct CachedResponse {
    ask: DriverCall,
    response: DriverResponse,
    at: Timestamp,
}

impl ResponseCache {
    pub fn insert(&mut self, ask: DriverCall, response: DriverResponse, at: Timestamp) {
        self.replies.entry(ask.address.clone()).or_default().push(CachedResponse { ask, response, at });
    }

    /// The response to an earlier call with the same request.
    pub fn get(&self, ask: &DriverCall) -> Option<DriverResponse> {
        let known = self.replies.get(&ask.address)?;
        known.iter().find(|known| is_same(&known.ask, ask)).map(|known| known.response.clone())
    }

    /// Whether later plans may use the response.
    pub fn outlives_plan(ask: &DriverCall) -> bool {
        ask.provider.is_some() && matches!(ask.request, DriverRequest::Plan(_))
    }

    /// Drops the responses that later plans must not use.
    pub fn end_plan(&mut self) {
        for known in self.replies.values_mut() {
            known.retain(|known| Self::outlives_plan(&known.ask) && is_good(&known.response));
            // Only the last response applies to the current object.
            known.drain(..known.len().saturating_sub(1));
        }
        self.replies.retain(|_, known| !known.is_empty());
    }

    /// Moves the responses for the objects of some names that have not expired at `now` to a new cache.
    #[must_use]
    pub fn take(&mut self, names: &BTreeSet<Name>, now: Timestamp) -> Self {
        let replies = self
            .replies
            .extract_if(.., |address, _| names.contains(address.name()))
            .filter(|(_, known)| known.iter().all(|known| now.duration_since(known.at).unsigned_abs() < HOLDS))
            .collect();
        Self { replies }
    }

    /// Merges a cache from `take` back.
    pub fn put_back(&mut self, taken: Self) {
        self.replies.extend(taken.replies);
    }

    /// Makes the next plan call the driver for this object again.
    pub fn remove(&mut self, address: &Address) {
        self.replies.remove(address);
    }
}

/// Ignores the random bytes of a request: the response with the earlier bytes is as valid.
fn is_same(one: &DriverCall, other: &DriverCall) -> bool {
    let questions = match (&one.request, &other.request) {
        (DriverRequest::Plan(one), DriverRequest::Plan(other)) => {
            (&one.config, &one.ignored, &one.prior, &one.previous_plan, &one.replaces)
                == (&other.config, &other.ignored, &other.prior, &other.previous_plan, &other.replaces)
        }
        (one, other) => one == other,
    };
    questions
        && (&one.type_name, &one.provider, &one.service_account)
            == (&other.type_name, &other.provider, &other.service_account)
}

/// Whether it is a plan without errors.
fn is_good(response: &DriverResponse) -> bool {
    let DriverResponse::Planned(diagnostics, Ok(Some(_)), _) = response else { return false };
    diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::CallId;
    use model::{Diagnostic, Diagnostics, PlanRequest, PlanResponse, ProviderUse, Reason, Value};

    fn ask(name: &str, provider: Option<Arc<ProviderUse>>, config: &str, entropy: u8) -> DriverCall {
        let (config, entropy) = (Value::from(config), [entropy; 16]);
        DriverCall {
            id: CallId(usize::from(entropy[0])),
            address: Address::single(name),
            type_name: "cloud_disk".into(),
            provider,
            service_account: "".into(),
            request: DriverRequest::Plan(PlanRequest {
                prior: None,
                config,
                entropy,
                previous_plan: None,
                ignored: None,
                replaces: None,
            }),
        }
    }

    fn planned(found: Diagnostics) -> DriverResponse {
        DriverResponse::Planned(found, Ok(Some(PlanResponse::default())), Arc::default())
    }

    /// The cache of the next plan, `seconds` after a plan with one response.
    fn carried(ask: &DriverCall, response: DriverResponse, seconds: i64) -> ResponseCache {
        let (mut memo, start) = (ResponseCache::default(), Timestamp::UNIX_EPOCH);
        memo.insert(ask.clone(), response, start);
        assert!(memo.get(ask).is_some(), "within the plan every response is cached");
        memo.end_plan();
        memo.take(&["a".into()].into(), Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn a_later_plan_with_the_same_request_gets_the_same_response_for_a_minute() {
        let first = ask("a", Some(testkit::provider_use("one")), "small", 1);
        let memo = carried(&first, planned(Vec::new()), 59);
        assert!(
            memo.get(&ask("a", Some(testkit::provider_use("one")), "small", 2)).is_some(),
            "random bytes are ignored"
        );
        let others = [
            ask("a", Some(testkit::provider_use("one")), "large", 1),
            ask("a", Some(testkit::provider_use("two")), "small", 1),
            ask("b", Some(testkit::provider_use("one")), "small", 1),
            ask("a", None, "small", 1),
        ];
        assert!(others.iter().all(|other| memo.get(other).is_none()));
        assert!(carried(&first, planned(Vec::new()), 60).get(&first).is_none());
    }

    #[test]
    fn only_plans_of_providers_without_errors_outlive_the_plan() {
        let of_provider = ask("a", Some(testkit::provider_use("one")), "small", 1);
        let built_in = ask("a", None, "small", 1);
        let wrong = Diagnostic::error(&Address::single("a"), Reason::InvalidConfig, "no");
        for (asked, response) in [
            (&of_provider, planned(vec![wrong])),
            (&of_provider, DriverResponse::Planned(Vec::new(), Ok(None), Arc::default())),
            (&built_in, planned(Vec::new())),
        ] {
            assert!(carried(asked, response, 0).get(asked).is_none());
        }
        let (mut memo, start) = (ResponseCache::default(), Timestamp::UNIX_EPOCH);
        for name in ["a", "b"] {
            memo.insert(ask(name, Some(testkit::provider_use("one")), "small", 1), planned(Vec::new()), start);
        }
        let taken = memo.take(&["b".into()].into(), start);
        assert!(memo.get(&ask("b", Some(testkit::provider_use("one")), "small", 1)).is_none());
        memo.put_back(taken);
        memo.remove(&Address::single("a"));
        assert!(memo.get(&ask("b", Some(testkit::provider_use("one")), "small", 1)).is_some());
        assert!(
            memo.get(&ask("a", Some(testkit::provider_use("one")), "small", 1)).is_none(),
            "the response was removed"
        );
    }
}

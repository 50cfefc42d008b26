//! When a `ProviderConfig` is checked.

use super::*;
use crate::reconcile::index::tests::observed_provider_config;
use engine::load::ProviderSpec;

/// A `ProviderConfig` of the Provider `cloud`. If it is being deleted, another controller keeps it.
fn provider_config(version: u64, is_deleting: bool) -> Event {
    let mut object = serde_json::json!({
        "apiVersion": "purlin.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {
            "name": "cloud", "namespace": "shop", "uid": "p", "generation": 1,
            "finalizers": ["example.com/keep"],
        },
        "spec": { "provider": { "name": "cloud" }, "config": { "address": "a" } },
    });
    if is_deleting {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    observed_provider_config(object, version)
}

impl Bench {
    /// Lets the time pass until nothing is due within a minute, without executing commands. Returns the number of
    /// turns, at most 100.
    fn turns_until_idle(&mut self) -> usize {
        let end = self.now + MINUTE;
        let mut turns = 0;
        while let Some(Time(at)) = self.wake.filter(|Time(at)| *at <= end && turns < 100) {
            self.now = self.now.max(at);
            self.react(Signal::Wake);
            turns += 1;
        }
        turns
    }

    fn take_check(&mut self) -> Option<(Arc<str>, Arc<model::ProviderUse>)> {
        let at = self.pending.iter().position(|command| matches!(command, Command::ConfigureProvider { .. }))?;
        let Command::ConfigureProvider { name, used, .. } = self.pending.remove(at) else { return None };
        Some((name, used))
    }
}

#[tokio::test]
async fn a_rejected_provider_config_that_is_being_deleted_is_checked_again_only_when_something_uses_it() {
    let mut bench = Bench::new();
    let cloud = Arc::new(ProviderSpec::named("cloud"));
    bench.reconciler.observe(Event::Providers(Arc::new(BTreeMap::from([("cloud".into(), cloud)]))));
    bench.reconciler.observe(provider_config(1, false));
    bench.react(Signal::Started);
    bench.turns_until_idle();
    let (name, used) = bench.take_check().unwrap();
    bench.react(Signal::ProviderConfigured(name, used, ConfigurationCheck::Rejected("no".to_owned())));
    bench.reconciler.observe(provider_config(2, true));
    bench.react(Signal::Wake);
    let turns = bench.turns_until_idle();
    assert!(turns < 10, "{turns} turns");
    assert_eq!(bench.take_check(), None, "it is not worth a process");
    let disk = serde_json::json!({
        "metadata": { "name": "disk" },
        "spec": { "type": "cloud_disk", "config": {} },
    });
    bench.observe(disk, 1);
    bench.react(Signal::Wake);
    bench.turns_until_idle();
    assert!(bench.take_check().is_some(), "{:?}", bench.log);
}

/// As in a namespace that was removed by force: the API server rejects every write of what is left in it.
#[tokio::test]
async fn a_provider_config_that_cannot_be_written_is_written_again_with_back_off() {
    let mut bench = Bench::new();
    bench.reconciler.observe(provider_config(1, true));
    bench.react(Signal::Started);
    let mut writes = 0;
    let end = bench.now + 5 * MINUTE;
    while let Some(Time(at)) = bench.wake.filter(|Time(at)| *at <= end && writes < 100) {
        bench.now = bench.now.max(at);
        bench.react(Signal::Wake);
        // Something else in the namespace changes all the time.
        bench.reconciler.observe(provider_config(1, true));
        let before = bench.pending.len();
        bench.pending.retain(|command| !matches!(command, Command::WriteProviderConfig { .. }));
        if bench.pending.len() < before {
            writes += 1;
            bench.react(Signal::ProviderConfigWritten("cloud".into(), false));
        }
    }
    assert!((3..20).contains(&writes), "{writes} writes in five minutes");
}

//! The pool of provider processes: when they are shared, started, stopped and replaced.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use purlin::plugin::{Client, Lease, PlaceLimits, PluginError, Pool, PoolKey, PoolOptions};

use super::{gone, launch, nothing};
use crate::kit::ManualClock;

struct Bench {
    clock: Arc<ManualClock>,
    pool: Pool,
    starts: AtomicUsize,
}

impl Bench {
    fn new(settings: PoolOptions) -> Self {
        let clock = Arc::new(ManualClock::new());
        Self { pool: Pool::new(settings, Arc::clone(&clock) as _), clock, starts: AtomicUsize::new(0) }
    }

    async fn start(&self) -> Result<Client, PluginError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let client = Client::start(&launch("random")).await?;
        client.validate_and_configure(nothing()).await?;
        Ok(client)
    }

    async fn lease(&self, key: &PoolKey) -> Result<Lease, PluginError> {
        self.pool.lease(key, None, async || self.start().await).await
    }

    fn starts(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }
}

fn key(configuration: u8) -> PoolKey {
    PoolKey { namespace: "shop".into(), package: "random".into(), configuration: [configuration; 32] }
}

#[tokio::test]
async fn one_configuration_has_one_process() {
    let bench = Bench::new(PoolOptions::default());
    let (one, two) = (key(1), key(2));
    let (first, second, other) = tokio::join!(bench.lease(&one), bench.lease(&one), bench.lease(&two));
    let (first, second, other) = (first.unwrap(), second.unwrap(), other.unwrap());
    let third = bench.lease(&one).await.unwrap();
    assert_eq!(first.process_id(), second.process_id());
    assert_eq!(first.process_id(), third.process_id());
    assert_ne!(first.process_id(), other.process_id());
    assert_eq!((bench.starts(), bench.pool.len()), (2, 2));
    bench.pool.close().await;
}

#[tokio::test]
async fn a_process_exits_after_the_idle_time() {
    let bench = Bench::new(PoolOptions::default());
    let lease = bench.lease(&key(1)).await.unwrap();
    let process = lease.process_id().unwrap();
    bench.clock.advance(Duration::from_hours(1));
    bench.pool.sweep().await;
    assert!(lease.is_alive(), "it is in use");
    drop(lease);
    bench.clock.advance(Duration::from_mins(4));
    bench.pool.sweep().await;
    assert_eq!(bench.pool.len(), 1);
    bench.clock.advance(Duration::from_mins(2));
    bench.pool.sweep().await;
    assert!(bench.pool.is_empty());
    gone(process).await;
}

#[tokio::test]
async fn an_old_or_large_process_is_replaced_without_a_gap() {
    let small = PoolOptions { max_memory: 1, ..PoolOptions::default() };
    let short = PoolOptions { max_age: Duration::from_mins(1), ..PoolOptions::default() };
    for settings in [small, short] {
        let bench = Bench::new(settings);
        let old = bench.lease(&key(1)).await.unwrap();
        bench.clock.advance(Duration::from_mins(2));
        bench.pool.sweep().await;
        let new = bench.lease(&key(1)).await.unwrap();
        assert_ne!(old.process_id(), new.process_id());
        assert!(old.is_alive(), "a leased process is not stopped");
        let process = old.process_id().unwrap();
        drop(old);
        bench.pool.sweep().await;
        gone(process).await;
        assert!(new.is_alive());
        bench.pool.close().await;
    }
}

#[tokio::test]
async fn a_retired_process_exits_after_its_last_call() {
    let bench = Bench::new(PoolOptions::default());
    let lease = bench.lease(&key(1)).await.unwrap();
    let process = lease.process_id().unwrap();
    bench.pool.retire(&key(1));
    tokio::select! {
        () = bench.pool.maintain() => {}
        () = async {
            lease.schema().await.unwrap();
            drop(lease);
            gone(process).await;
        } => {}
    }
    assert!(bench.pool.is_empty());
}

#[tokio::test]
async fn a_provider_that_crashes_repeatedly_is_started_after_a_delay() {
    let bench = Bench::new(PoolOptions { max_wait: Duration::ZERO, ..PoolOptions::default() });
    let crash = async || {
        let lease = bench.lease(&key(1)).await?;
        let process = rustix::process::Pid::from_raw(lease.process_id().unwrap().cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        let error = lease.schema().await.unwrap_err();
        assert!(error.to_string().contains("exited during GetProviderSchema: signal: 9 (SIGKILL)"), "{error}");
        Ok::<_, PluginError>(())
    };
    crash().await.unwrap();
    crash().await.unwrap();
    let refused = crash().await.unwrap_err().to_string();
    assert!(refused.contains("failed 2 times in a row; next start at 2026-01-01T00:00:01Z"), "{refused}");
    assert_eq!(bench.starts(), 2);
    bench.clock.advance(Duration::from_secs(1));
    crash().await.unwrap();
    bench.pool.close().await;
    assert!(matches!(crash().await, Err(PluginError::ShuttingDown { .. })));
}

#[tokio::test]
async fn concurrent_callers_of_one_start_share_its_failure() {
    let bench = Bench::new(PoolOptions::default());
    let key = key(1);
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("provider");
    fs::write(&program, "").unwrap();
    let start = async || {
        bench.starts.fetch_add(1, Ordering::Relaxed);
        // Other callers wait for the same start.
        tokio::task::yield_now().await;
        Client::start(&super::of("odd", &program)).await
    };
    let (first, second, third) = tokio::join!(
        bench.pool.lease(&key, None, start),
        bench.pool.lease(&key, None, start),
        bench.pool.lease(&key, None, start)
    );
    for result in [first, second, third] {
        assert!(result.err().unwrap().to_string().contains("it is not executable"));
    }
    assert_eq!(bench.starts(), 1);
}

fn limited(total: usize, per_namespace: usize) -> PoolOptions {
    let places = PlaceLimits { total, per_namespace, ..PlaceLimits::default() };
    PoolOptions { places, max_wait: Duration::ZERO, ..PoolOptions::default() }
}

#[tokio::test]
async fn the_least_recently_used_idle_process_ends_for_another() {
    let bench = Bench::new(PoolOptions { max_wait: Duration::from_mins(1), ..limited(2, 2) });
    let mut processes = Vec::new();
    for configuration in [1, 2, 1, 3] {
        processes.push(bench.lease(&key(configuration)).await.unwrap().process_id().unwrap());
        bench.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(processes[0], processes[2]);
    gone(processes[1]).await;
    assert_eq!((bench.pool.len(), bench.starts()), (2, 3));
    assert_eq!(bench.lease(&key(1)).await.unwrap().process_id(), Some(processes[0]));
    bench.pool.close().await;
}

#[tokio::test]
async fn a_process_that_still_starts_elsewhere_keeps_its_place_for_a_while() {
    let bench = Bench::new(limited(1, 1));
    let waiting =
        async || Err(PluginError::Waiting { provider: "random".to_owned(), what: "the Pod shop/web".to_owned() });
    for _ in 0..2 {
        let error = bench.pool.lease(&key(1), None, waiting).await.err().unwrap();
        assert_eq!(error.to_string(), "the provider random waits for the Pod shop/web");
        assert!(matches!(bench.lease(&key(2)).await, Err(PluginError::NoPlace { .. })));
    }
    // The wait was no failure, so the start is not delayed.
    drop(bench.lease(&key(1)).await.unwrap());
    drop(bench.lease(&key(2)).await.unwrap());
    // Nothing asks for the process any more.
    bench.pool.lease(&key(1), None, waiting).await.err().unwrap();
    bench.clock.advance(Duration::from_mins(15));
    bench.pool.sweep().await;
    drop(bench.lease(&key(2)).await.unwrap());
    bench.pool.close().await;
}

#[tokio::test]
async fn a_process_that_cannot_start_waits_and_is_reported() {
    for (options, text, flag) in [
        (limited(1, 1), "all processes that the controller may run are in use", "--max-provider-processes or"),
        (
            limited(2, 1),
            "all processes that the namespace `bank` may have are in use",
            "--max-provider-processes-per-namespace or",
        ),
    ] {
        let bench = Bench::new(options);
        let of_bank = |configuration| PoolKey { namespace: "bank".into(), ..key(configuration) };
        let used = if options.places.total == 1 { key(1) } else { of_bank(1) };
        let lease = bench.lease(&used).await.unwrap();
        let (one, two) = (of_bank(2), of_bank(2));
        let (refused, shared) = tokio::join!(bench.lease(&one), bench.lease(&two));
        for refused in [refused, shared] {
            let refused = refused.err().unwrap().to_string();
            assert!(refused.contains(&format!("the provider random waits for a process: {text}")), "{refused}");
            assert!(refused.contains(flag), "{refused}");
        }
        assert_eq!(bench.starts(), 1);
        let mut available = Box::pin(bench.pool.process_available());
        assert!(futures::poll!(&mut available).is_pending(), "the process is in use");
        drop(lease);
        assert_eq!(available.await, BTreeSet::from(["bank".into()]));
        assert!(bench.lease(&one).await.unwrap().is_alive(), "the idle process ended for it");
        bench.pool.close().await;
    }
}

#[tokio::test]
async fn a_waiting_process_starts_when_another_ends() {
    let bench = Bench::new(PoolOptions { max_wait: Duration::from_mins(1), ..limited(1, 1) });
    let first = bench.lease(&key(1)).await.unwrap();
    let process = first.process_id().unwrap();
    let other = PoolKey { namespace: "bank".into(), ..key(1) };
    let mut second = Box::pin(bench.lease(&other));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    let second = second.await.unwrap();
    gone(process).await;
    assert!(second.is_alive() && bench.pool.len() == 1);
    bench.pool.close().await;
}

#[tokio::test]
async fn the_memory_limits_of_all_processes_fit_together() {
    let places = PlaceLimits { memory: 1 << 30, ..PlaceLimits::default() };
    let bench = Bench::new(PoolOptions { places, max_wait: Duration::ZERO, ..PoolOptions::default() });
    let of = async |namespace: &str, memory: u64| {
        let key = PoolKey { namespace: namespace.into(), ..key(memory.to_le_bytes()[3]) };
        bench.pool.lease(&key, Some(memory), async || bench.start().await).await
    };
    let too_large = of("a", 2 << 30).await.err().unwrap().to_string();
    assert!(too_large.contains("its memory limit of 2048 MiB exceeds the 1024 MiB that all"), "{too_large}");
    let _half = of("a", 512 << 20).await.unwrap();
    assert!(matches!(of("a", 256 << 20).await, Err(PluginError::NoPlace { namespace: Some(_), .. })));
    let _quarter = of("b", 256 << 20).await.unwrap();
    assert!(matches!(of("c", 512 << 20).await, Err(PluginError::NoPlace { namespace: None, .. })));
    assert_eq!(bench.starts(), 2);
    bench.pool.close().await;
}

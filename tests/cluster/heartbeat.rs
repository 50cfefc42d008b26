//! A controller that runs in the test, so that the test can occupy its threads.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::time::Duration;

use purlin::controller::{self, ElectionTimes, Options, ProviderProcesses, Services};
use purlin::execute::Limits;
use purlin::process::Shutdown;
use tokio::runtime::{Builder, Runtime};

use crate::controller::{free_port, http};
use crate::controlplane::wait_until;
use crate::installation::*;

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime")
}

#[test]
fn a_controller_with_busy_threads_renews_its_lease_and_answers_health_checks() {
    const THREADS: usize = 2;
    let _guard = shared();
    let namespace = plane().namespace("busy");
    let port = free_port();
    let times = ElectionTimes {
        lease: Duration::from_secs(6),
        renew: Duration::from_secs(4),
        retry: Duration::from_millis(500),
    };
    let options = Options {
        kubeconfig: Some(plane().kubeconfig()),
        context: None,
        namespace: namespace.clone(),
        pod: None,
        watch_namespaces: vec![namespace.clone()],
        default_service_account: "default".to_owned(),
        limits: Limits::default(),
        provider_processes: ProviderProcesses { total: 1, memory: 1 << 30 },
        runner_image: None,
        allow_unconfined_providers: true,
        grace: Duration::from_secs(5),
        ui: false,
        shards: 2,
        metrics_address: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        election: Some(times),
    };
    let (main, heartbeat, shutdown) = (runtime(THREADS), runtime(1), Shutdown::default());
    let (handle, stop) = (heartbeat.handle().clone(), shutdown.clone());
    let controller = main.spawn(async move {
        let services = Services::system(&options, handle).await?;
        controller::run(options, services, stop).await
    });
    wait_until("the controller is ready", LIMIT, || http(port, "/readyz").is_some_and(|(status, _)| status == 200));
    let renewed = || {
        let path = "jsonpath={.spec.renewTime}";
        plane().kubectl_ok(&["-n", &namespace, "get", "lease", "purlin-controller", "--ignore-not-found", "-o", path])
    };
    wait_until("it leads", LIMIT, || !renewed().is_empty());

    let (occupied, started) = channel();
    let mut releases = Vec::new();
    for _ in 0..THREADS {
        let (release, released) = channel::<()>();
        releases.push(release);
        let occupied = occupied.clone();
        main.spawn(async move {
            occupied.send(()).expect("the test waits");
            // Blocks the thread until the test drops the sender.
            let _ = released.recv();
        });
    }
    for _ in 0..THREADS {
        started.recv_timeout(LIMIT).expect("every thread is busy");
    }
    for _ in 0..2 {
        let before = renewed();
        wait_until("the Lease is renewed", LIMIT, || renewed() != before);
        assert_eq!(http(port, "/healthz").map(|(status, _)| status), Some(200));
    }
    drop(releases);
    shutdown.trigger();
    main.block_on(controller).expect("no panic").expect("a clean shutdown");
}

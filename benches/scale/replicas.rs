//! The processes that are measured: the replicas of Purlin, and what other programs have in common with them.

use crate::controller::{Controller, SHARDS};
use crate::controlplane::{ControlPlane, wait_until};
use crate::installation::LIMIT;
use crate::processes::Process;

/// The times of the leases in the chart: the tests use shorter ones.
const AS_IN_THE_CHART: &[&str] = &["--lease-duration=15s", "--lease-renew-deadline=10s", "--lease-retry-period=2s"];

/// The same, with logs that show why an object is not ready.
const WITH_ALL_LOGS: &[&str] =
    &[AS_IN_THE_CHART[0], AS_IN_THE_CHART[1], AS_IN_THE_CHART[2], "--log-level=info,purlin=debug"];

/// The running processes of a controller.
pub(crate) trait Processes {
    fn all(&self) -> Vec<Process>;

    /// Kills a process with SIGKILL, and returns at once.
    fn kill(&mut self, index: usize);

    /// Starts another process in the place of one that was killed.
    fn replace(&mut self, index: usize);
}

pub(crate) struct Replicas<'p> {
    plane: &'p ControlPlane,
    arguments: &'static [&'static str],
    running: Vec<Controller>,
    /// The recoveries of the replicas that were killed.
    recoveries: u64,
}

impl<'p> Replicas<'p> {
    /// Starts replicas, and waits until each has its share of the shards.
    pub(crate) fn start(plane: &'p ControlPlane, count: usize) -> Self {
        Self::start_with(plane, count, AS_IN_THE_CHART)
    }

    /// As [`Self::start`], for a run whose logs are read if it fails.
    pub(crate) fn start_logged(plane: &'p ControlPlane, count: usize) -> Self {
        Self::start_with(plane, count, WITH_ALL_LOGS)
    }

    fn start_with(plane: &'p ControlPlane, count: usize, arguments: &'static [&'static str]) -> Self {
        let running = (0..count).map(|_| Controller::start_with(plane, arguments)).collect();
        let replicas = Self { plane, arguments, running, recoveries: 0 };
        replicas.wait_shared();
        replicas
    }

    fn wait_shared(&self) {
        wait_until("each replica holds its share", LIMIT, || {
            let shares: Vec<usize> = self.running.iter().map(Controller::shards_held).collect();
            shares.iter().sum::<usize>() == SHARDS && shares.iter().all(|share| *share >= SHARDS / shares.len() - 1)
        });
    }

    /// How many operations that a killed process had begun were recovered. Those of a replica that was killed later are
    /// included up to its last kill.
    pub(crate) fn recoveries(&self) -> u64 {
        self.recoveries + self.running.iter().map(recoveries).sum::<u64>()
    }
}

impl Processes for Replicas<'_> {
    fn all(&self) -> Vec<Process> {
        self.running.iter().map(|controller| Process(controller.pid())).collect()
    }

    fn kill(&mut self, index: usize) {
        self.recoveries += recoveries(&self.running[index]);
        self.running[index].signal("KILL");
    }

    fn replace(&mut self, index: usize) {
        self.running.remove(index).kill(self.plane);
        self.running.insert(index, Controller::start_with(self.plane, self.arguments));
    }
}

fn recoveries(controller: &Controller) -> u64 {
    let metrics = controller.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with("purlin_recoveries_total"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

//! The replicas of a story: how they start, stop, crash and pause.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::sleep;

use super::play::Play;
use super::strike::{Crash, Fault, Trap};
use crate::replica::{Replica, delete_pod};

impl Play {
    /// Restarts processes that have crashed.
    pub(super) async fn watch_over(&self) {
        loop {
            let Crash { replica: name, fault } = self.strikes.crash().await;
            // Its last requests still arrive.
            sleep(Duration::from_millis(2)).await;
            let found = self.replicas.borrow().iter().position(|replica| replica.name == name);
            let Some(index) = found else { continue };
            let replica = self.replicas.borrow_mut().remove(index);
            let stays = matches!(fault, Fault::CrashBefore | Fault::CallCrashBefore) && !replica.is_stopping;
            let pod = replica.crash(&self.env).await;
            sleep(Duration::from_secs(1)).await;
            let next = self.next_name();
            if fault == Fault::StaleStart {
                self.strikes.make_stale(&next);
            }
            let replica = if stays {
                Replica::start_in(&self.env, &next, pod, SignedDuration::ZERO)
            } else {
                delete_pod(&self.env, &pod);
                Replica::start(&self.env, &next, SignedDuration::ZERO)
            };
            self.replicas.borrow_mut().push(replica);
        }
    }

    fn next_name(&self) -> String {
        self.started.set(self.started.get() + 1);
        format!("r{}", self.started.get())
    }

    /// Starts another replica.
    pub(crate) fn start(&self) {
        let name = self.next_name();
        self.replicas.borrow_mut().push(Replica::start(&self.env, &name, SignedDuration::ZERO));
    }

    /// Shuts down the first replica, and starts another one.
    pub(crate) async fn roll(&self) {
        let Some(name) = self.begin_shutdown() else { return };
        self.start();
        self.until_stopped(&name).await;
    }

    /// Shuts down the first replica.
    pub(crate) async fn stop(&self) {
        let Some(name) = self.begin_shutdown() else { return };
        self.until_stopped(&name).await;
    }

    /// Requests that the first replica shuts down.
    pub(super) fn begin_shutdown(&self) -> Option<Arc<str>> {
        let mut replicas = self.replicas.borrow_mut();
        let replica = replicas.first_mut()?;
        replica.begin_shutdown(&self.env);
        Some(replica.name.clone())
    }

    pub(super) async fn until_stopped(&self, name: &Arc<str>) {
        self.until("the replica has shut down", || {
            let mut replicas = self.replicas.borrow_mut();
            let Some(index) = replicas.iter().position(|replica| replica.name == *name) else { return true };
            let has_ended = replicas[index].exit_reason().is_some();
            if has_ended {
                let pod = replicas.remove(index).pod;
                delete_pod(&self.env, &pod);
            }
            has_ended
        })
        .await;
    }

    /// The replica that sends the next such request crashes after its effect, and is not restarted: `create
    /// /api/v1/...`.
    pub(crate) fn crash_after(&self, request: &str) {
        self.strikes.trap(request, Trap::Crash);
    }

    /// The replica that sends the next such request is paused before it, for a time.
    pub(crate) fn pause_before(&self, request: &str, time: Duration) {
        self.strikes.trap(request, Trap::Pause(time));
    }

    /// Waits for the crash that `crash_after` causes.
    pub(crate) async fn until_down(&self) {
        self.until("a replica has crashed", || self.strikes.trapped().is_some()).await;
        let found =
            self.replicas.borrow().iter().position(|replica| self.strikes.trapped().as_ref() == Some(&replica.name));
        let Some(index) = found else { return };
        let replica = self.replicas.borrow_mut().remove(index);
        replica.kill(&self.env).await;
    }

    /// Cuts off the first replica for a time.
    pub(crate) fn cut_off(&self, time: Duration) {
        let replicas = self.replicas.borrow();
        let Some(replica) = replicas.first() else { return };
        self.env.judge.note(&format!("{} is cut off for {time:?}", replica.name));
        self.strikes.cut_off(&replica.name, time);
    }

    /// Pauses the first replica for a time: what it sends and receives, and its calls and their results, wait until then.
    pub(crate) fn pause(&self, time: Duration) {
        let replicas = self.replicas.borrow();
        let Some(replica) = replicas.first() else { return };
        self.env.judge.note(&format!("{} is paused for {time:?}", replica.name));
        self.strikes.pause(&replica.name, time);
        self.env.outside.pause(&replica.name, time);
    }

    /// Kills the first replica. No other process starts in its place.
    pub(crate) async fn kill(&self) {
        if self.replicas.borrow().is_empty() {
            return;
        }
        let replica = self.replicas.borrow_mut().remove(0);
        replica.kill(&self.env).await;
    }

    /// Kills the replica that started last.
    pub(crate) async fn kill_last(&self) {
        let last = self.replicas.borrow_mut().pop();
        if let Some(replica) = last {
            replica.kill(&self.env).await;
        }
    }

    /// What is missing for an even distribution of the shards.
    pub(crate) fn unshared(&self) -> Vec<String> {
        self.env.unshared(&self.replicas.borrow())
    }
}

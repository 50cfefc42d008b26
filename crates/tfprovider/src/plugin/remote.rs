//! Plugins on another machine. A *runner* is a process there that starts one plugin for one controller and passes the calls
//! through: [`serve`] is the runner, [`start`] its controller.
//!
//! Both ends have a certificate for this one runner and accept only that of the other ([`keys`]). The controller opens two
//! connections. Over the first one it sends the package and what to start, and both ends report that they are alive; the
//! second one carries the plugin protocol. The plugin lives exactly as long as the first connection: a runner whose
//! controller is gone kills it ([`LOST_AFTER`]), and so does one that is asked to.
//!
//! Where a runner runs, and how it gets there, is not known here: [`RunnerHost`] ends it.

mod frame;
mod keys;
mod package;
mod process;
mod serve;

use std::time::Duration;

use futures::future::BoxFuture;

pub use keys::{ControllerKeys, RunnerKeys, generate_keys};
pub use package::Package;
pub use process::RemoteStart;
pub(crate) use process::{RemoteProcess, StartedRemote, start};
pub use serve::{RunnerError, RunnerOptions, serve};

/// How long each end waits for a sign of life of the other. After this time the runner kills its plugin, so a plugin runs at
/// most this long after its controller. Long enough for a controller that is stopped for a while, and far shorter than
/// the time that another controller waits for a process that it cannot reach.
pub const LOST_AFTER: Duration = Duration::from_mins(1);

/// The interval of the signs of life.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// How long a package may take: a gigabyte over a slow network.
const PACKAGE_LIMIT: Duration = Duration::from_mins(10);

/// What a runner runs in.
pub trait RunnerHost: Send + Sync {
    /// Ends the runner. Returns when no process of it can still run, with how it ended, if that is known.
    fn end(&self) -> BoxFuture<'_, Option<String>>;

    /// The host asked the runner to end. Returns whether another runner can take its place.
    fn is_replaceable(&self) -> BoxFuture<'_, bool>;
}

//! Plumbing of the process: the clock, randomness, shutdown, telemetry. The only place that reads the real clock or
//! draws real randomness; everything else gets them as arguments.

pub mod clock;
pub mod command;
mod lock;
pub mod private_file;
pub mod random;
pub mod readiness;
pub mod shutdown;
pub mod telemetry;
pub mod threads;

pub use clock::{Clock, SystemClock};
pub use lock::lock;
pub use random::{Random, SystemRandom};
pub use readiness::{Gate, Readiness};
pub use shutdown::Shutdown;
pub use threads::Threads;

//! The clock, random values, shutdown, telemetry and HTTP server of the process. Only this module reads the system clock and
//! generates random values; other modules receive them as arguments.
#![forbid(unsafe_code)]

pub mod backoff;
pub mod clock;
pub mod command;
pub mod http_server;
mod kernel;
mod observable;
pub mod panics;
pub mod private_file;
pub mod random;
pub mod readiness;
mod request_error;
pub mod shutdown;
pub mod supervisor;
pub mod telemetry;
pub mod threads;

pub use clock::{Clock, SystemClock};
pub use http_server::{HttpLimits, serve_http};
pub use kernel::{hide_from_others, memory_limit};
pub use observable::{Observable, lock};
pub use random::{Random, SystemRandom};
pub use readiness::{Gate, Readiness};
pub use request_error::{
    client, connection_error, error_code, is_refusal, is_watch_refused, request_error, watch_error,
};
pub use shutdown::Shutdown;
pub use threads::{ProcessorShare, Threads};

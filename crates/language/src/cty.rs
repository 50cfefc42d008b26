//! The values. The only place that names the crate they come from.

pub use ::cty::*;

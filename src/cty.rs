//! Values as providers of the plugin protocol have them: types, values that are null, unknown or typed by themselves,
//! their two encodings, schemas, and the rules by which prior state, configuration and plan become one another.
//!
//! Everything here is pure. Values are immutable and shared, so a clone costs a counter. A [`Value`] is read by a
//! [`Type`] beside it, usually the one a [`Schema`] implies; only places of the type `dynamic` carry their own.
//! The encodings give the bytes that go-cty gives, which `tests/vectors` checks on values made there.

mod apply_check;
mod configured;
mod conform;
mod contract;
mod convert;
mod decimal;
mod dynamic;
mod dynamic_types;
mod error;
mod nested;
mod normalize;
mod plan_check;
mod propose;
mod record;
mod replace;
mod text;
mod ty;
mod value;
mod write_only;

pub mod json;
pub mod msgpack;
pub mod schema;

pub use apply_check::result_faults;
pub use configured::{Closeness, configured};
pub use conform::{conform, convert};
pub use decimal::Decimal;
pub use dynamic_types::DynamicTypes;
pub use error::ValueError;
pub use normalize::normalized;
pub use plan_check::plan_faults;
pub use propose::{proposed, unread};
pub use record::{from_engine, plain, raw_state, to_engine};
pub use replace::replacing;
pub use schema::Schema;
pub use ty::{Type, TypeError};
pub use value::{Refinement, Set, Typed, Value};
pub use write_only::{kept_write_only, without_write_only, write_only, write_only_fingerprint};

/// How deep types and values may nest. The deepest schemas known have some twenty levels; a limit keeps a hostile
/// encoding from exhausting the stack.
pub const MAX_DEPTH: usize = 100;

/// How many places one decoded value may have in all: some hundred MiB of memory.
pub const MAX_PLACES: usize = 4_000_000;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

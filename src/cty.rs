//! Values as providers of the plugin protocol have them: types, values that are null, unknown or typed by themselves,
//! their two encodings, schemas, and the rules by which prior state, configuration and plan become one another.
//!
//! Everything here is pure. Values are immutable and shared, so a clone costs a counter. A [`Value`] is read by a
//! [`Type`] beside it, usually the one a [`Schema`] implies; only places of the type `dynamic` carry their own.
//! The encodings give the bytes that go-cty gives, which `tests/vectors` checks on values made there.

mod decimal;
mod error;
mod set;
mod text;
mod ty;
mod value;

pub mod json;
pub mod msgpack;

pub use decimal::Decimal;
pub use error::ValueError;
pub use set::Set;
pub use ty::{Type, TypeError};
pub use value::{Refinement, Typed, Value};

/// How deep types and values may nest. The deepest schemas known have some twenty levels; a limit keeps a hostile
/// encoding from exhausting the stack.
pub const MAX_DEPTH: usize = 100;

/// How many places one decoded value may have in all: some hundred MiB of memory.
pub const MAX_PLACES: usize = 4_000_000;

#[cfg(test)]
mod tests;

//! The types and values of Terraform.
//!
//! Every [`Value`] knows its [`Type`], also when it is null or unknown. An unknown value may carry what is already known
//! about it (a [`Range`]: not null, a prefix of a string, bounds of a number or of a length), and every value may carry
//! [`Marks`] (sensitive, ephemeral, deprecated) at any depth. Numbers are binary floating point numbers with up to 512
//! bits, as in go-cty, so arithmetic gives the same digits.
//!
//! [`convert`] converts values between types, and [`unify`] finds the type that several types convert to.
//!
//! [`msgpack`] and [`json`] are the encodings of the provider protocol and of states, with the same bytes as go-cty;
//! the vectors of `tfprovider` check this.
//!
//! The crate reads and writes nothing, and knows no schema, provider or configuration.
#![forbid(unsafe_code)]
#![allow(clippy::match_same_arms, reason = "the arms are in the order in which the rules apply")]

mod entries;
mod ty;
mod number;
mod marks;
mod range;
mod value;
mod set;
mod operations;
mod equality;
mod comparison;
mod index;
mod conversion;
mod unification;
mod error;
mod limits;
mod path;
pub mod json;
pub mod msgpack;
mod strings;

pub use conversion::{convert, is_convertible};
pub use entries::Entries;
pub use error::Error;
pub use marks::{Mark, Marks};
pub use number::Number;
pub use path::{Path, Step};
pub use range::Range;
pub use set::is_printable;
pub use strings::{known_prefix, normalize};
pub use ty::{ObjectType, Type};
pub use unification::{Unified, unify, unify_unsafe};
pub use value::{Data, Value};

/// The maximum nesting depth of decoded types and values. The deepest known schemas have about twenty levels; the limit
/// keeps a malicious encoding from exhausting the stack.
pub const MAX_DEPTH: usize = 100;

/// The maximum number of elements, at all levels, of one decoded value: some hundred MiB of memory.
pub const MAX_ELEMENTS: usize = 2_000_000;

#[cfg(test)]
mod tests;

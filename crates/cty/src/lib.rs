//! The values of Terraform's type system, as an evaluator needs them.
//!
//! Every [`Value`] knows its [`Type`], also when it is null or unknown. An unknown value may carry what is already known
//! about it (a [`Range`]: not null, a prefix of a string, bounds of a number or of a length), and every value may carry
//! [`Marks`] (sensitive, ephemeral, deprecated) at any depth. Numbers are binary floating point numbers with up to 512
//! bits, as in go-cty, so arithmetic gives the same digits.
//!
//! [`convert`] converts values between types, and [`unify`] finds the type that several types convert to.
//!
//! The crate reads and writes nothing, and knows no schema, provider or configuration.
#![forbid(unsafe_code)]
#![allow(clippy::match_same_arms, reason = "the arms are in the order in which the rules apply")]

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
mod json;
mod strings;

pub use conversion::{convert, is_convertible};
pub use error::{Error, Step};
pub use json::{decode as decode_json, encode as encode_json, write_string as write_json_string};
pub use marks::{Mark, Marks};
pub use number::Number;
pub use range::Range;
pub use strings::{known_prefix, normalize};
pub use ty::{ObjectType, Type};
pub use unification::{Unified, unify, unify_unsafe};
pub use value::{Data, Value};

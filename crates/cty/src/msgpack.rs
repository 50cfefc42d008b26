//! The msgpack encoding of the values in provider requests and responses.
//!
//! Both directions follow the type: null is nil, an object is a map with every attribute of its type, lists, sets and
//! tuples are arrays. A number is the smallest integer form that fits, else a float if it is exactly representable,
//! else a string of digits. An unknown value is extension 0 (12 with a refinement), and a value at a dynamic position
//! is an array of the JSON form of its type and the value.

mod decode;
mod encode;
mod reader;

pub use decode::decode;
pub use encode::encode;

/// An unknown value without a refinement.
const EXT_UNKNOWN: i8 = 0;
/// An unknown value with a refinement.
const EXT_REFINED: i8 = 12;

#[cfg(test)]
mod tests;

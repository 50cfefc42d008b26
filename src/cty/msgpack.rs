//! The msgpack encoding: what providers are sent and answer.
//!
//! Both directions follow the type: null is nil, an object is a map with every attribute of its type, lists, sets and
//! tuples are arrays. A number is the smallest integer form if it fits, else a float if it is one exactly, else its
//! digits as text. An unknown value is the extension 0 (12 with a refinement), and what stands at a dynamic place is the
//! JSON form of its type and the value.

mod decode;
mod encode;
mod reader;

pub use decode::decode;
pub use encode::encode;

/// An unknown value of which nothing else is known.
const EXT_UNKNOWN: i8 = 0;
/// An unknown value with what is known of it.
const EXT_REFINED: i8 = 12;

#[cfg(test)]
mod tests;

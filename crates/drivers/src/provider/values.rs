//! The border between the engine and providers: what the engine knows of an object in the types of `cty`, and back.

mod coerce;
mod config_from_state;
mod convert;
mod dynamic_types;
mod record;

use cty::Step;
use model::{Path, Segment};

pub use coerce::{coerce_config, coerce_validated, convert};
pub use config_from_state::{ArgumentSelection, Dropped, config_from_state, without};
pub use dynamic_types::DynamicTypes;
pub use record::{from_model, raw_state, to_model, to_unmarked_model};

/// The path in the engine's form.
pub fn path(path: &cty::Path) -> Path {
    let segments = path.0.iter().map(|step| match step {
        Step::Name(name) => Segment::Name(name.clone()),
        Step::Index(index) => Segment::Index(*index),
    });
    Path(segments.collect())
}

/// The path in the form of providers.
pub fn provider_path(path: &Path) -> cty::Path {
    let steps = path.0.iter().map(|segment| match segment {
        Segment::Name(name) => Step::Name(name.clone()),
        Segment::Index(index) => Step::Index(*index),
    });
    cty::Path(steps.collect())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

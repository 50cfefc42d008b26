//! Provider plugins as processes: how they come up, answer, hang, crash and go, with real providers.

mod starting;

use std::path::PathBuf;

use purlin::plugin::{Client, Launch, Msgpack};

use crate::providers;

/// How a provider of `tests/providers` is started in tests.
pub(crate) fn launch(name: &str) -> Launch {
    of(name, providers::program(name))
}

/// How a program is started as if it were a provider.
fn of(name: &str, program: impl Into<PathBuf>) -> Launch {
    let mut launch = Launch::new(name, program);
    launch.launcher = env!("CARGO_BIN_EXE_purlin").into();
    launch
}

async fn started(name: &str) -> Client {
    Client::start(&launch(name)).await.unwrap()
}

/// An object whose attributes have these encoded values.
fn object(attributes: &[(&str, &[u8])]) -> Msgpack {
    let mut attributes = attributes.to_vec();
    attributes.sort_unstable_by_key(|(name, _)| *name);
    let mut bytes = Vec::new();
    rmp::encode::write_map_len(&mut bytes, attributes.len() as u32).unwrap();
    for (name, value) in attributes {
        rmp::encode::write_str(&mut bytes, name).unwrap();
        bytes.extend_from_slice(value);
    }
    Msgpack(bytes)
}

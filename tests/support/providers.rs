//! Real providers, built from the Go modules in `tests/providers`.
//!
//! Include it with `#[path = "../support/providers.rs"] mod providers;`, together with `programs`.
#![allow(dead_code, reason = "a test binary uses the part it needs")]

use std::path::PathBuf;

use crate::programs::{Program, ensure};

const PROVIDERS: &[Program] = &[
    provider("providers/random", "github.com/terraform-providers/terraform-provider-random", "random"),
    provider("providers/time", "github.com/hashicorp/terraform-provider-time", "time"),
    provider("providers/tls", "github.com/hashicorp/terraform-provider-tls", "tls"),
    provider("providers/local", "github.com/terraform-providers/terraform-provider-local", "local"),
    provider("providers/kubectl", "github.com/gavinbunney/terraform-provider-kubectl", "kubectl"),
    provider("providers/kafka", "github.com/Mongey/terraform-provider-kafka", "kafka"),
    provider("providers/corner", ".", "corner"),
    provider("providers/legacy", ".", "legacy"),
    provider("providers/cloud", ".", "cloud"),
];

const fn provider(module: &'static str, package: &'static str, name: &'static str) -> Program {
    Program { module, package, name }
}

/// The program of a provider: `random`, `time`, `tls`, `local`, `kubectl`, `kafka`, or the test providers `corner`,
/// `legacy` and `cloud`.
///
/// # Panics
/// If the provider does not exist or cannot be built.
pub(crate) fn program(name: &str) -> PathBuf {
    let known = PROVIDERS.iter().find(|program| program.name == name);
    ensure(known.unwrap_or_else(|| panic!("no provider {name} in tests/providers")))
}

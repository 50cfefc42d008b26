//! Against a real API server: the controller runs with the arguments, the ServiceAccount and the rights that the
//! chart renders, and everything is done and looked at with kubectl, as a user does.
//!
//! Tests share one control plane and one controller, each in a namespace of its own. A test that disturbs either
//! (kills, pauses, takes the API server away) has them for itself: see `installation::exclusive`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and tells what it saw")]

#[path = "../support/controlplane.rs"]
mod controlplane;

#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/providers.rs"]
mod real_providers;

#[path = "../simulation/apiserver.rs"]
mod apiserver;

mod bad_input;
mod chart;
mod command_line;
mod conditions;
mod controller;
mod data_sources;
mod drift;
mod example_providers;
mod families;
mod family_lifecycle;
mod inputs;
mod hooks;
mod installation;
mod kubectl_provider;
mod kubernetes_objects;
mod lifecycle;
mod moves;
mod namespaces;
mod provider_configs;
mod providers;
mod proxy;
mod publish;
mod simulated;
mod trouble;
mod troubled;

//! Tests against a real API server. The controller runs with the arguments, the ServiceAccount and the permissions that
//! the chart renders, and the tests apply and read everything with kubectl, as a user does.
//!
//! The tests share one control plane and one controller, and each test has its own namespace. A test that kills or
//! pauses the controller or stops the API server runs alone: see `installation::exclusive`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and prints what it observed")]

#[path = "../support/controlplane.rs"]
mod controlplane;

#[path = "../support/pages.rs"]
mod pages;
#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/providers.rs"]
mod real_providers;

mod approvals;
mod bad_input;
mod chart;
mod chart_values;
mod ci_examples;
mod command_line;
mod conditions;
mod controller;
mod data_sources;
mod drift;
mod events;
mod example_providers;
mod families;
mod family_lifecycle;
mod gitops;
mod hostile;
mod inputs;
mod heartbeat;
mod hooks;
mod installation;
mod kubectl_provider;
mod kept_objects;
mod kubernetes_objects;
mod large_plans;
mod lifecycle;
mod live_view;
mod modules;
mod moves;
mod namespaces;
mod page_examples;
mod policies;
mod previews;
mod provider_configs;
mod providers;
mod proxy;
mod publish;
mod quotas;
mod readiness;
mod runners;
mod pushed_records;
mod shards;
mod simulated;
mod trouble;
mod troubled;

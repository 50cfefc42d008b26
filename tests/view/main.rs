//! Tests of the live view in a real Chromium without a window: clicks, keys and screenshots. Without a browser, they pass,
//! and say that they tested nothing; with `PURLIN_REQUIRE_BROWSER=1`, as in CI, they fail instead.
//!
//! `UPDATE_EXPECT=1` writes the screenshots of `docs/images`. Others are in `purlin-view` below the target directory.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and prints what it observed")]

#[path = "../support/controlplane.rs"]
mod controlplane;
#[path = "../support/programs.rs"]
mod programs;

#[path = "../cluster/controller.rs"]
#[allow(dead_code, reason = "the cluster tests use the rest")]
mod controller;
#[path = "../cluster/installation.rs"]
#[allow(dead_code, reason = "the cluster tests use the rest")]
mod installation;

mod browser;
mod cluster;
mod files;
mod large;

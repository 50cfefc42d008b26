//! The commands, one file each. They connect the other modules, and neither parse arguments nor print.

pub mod apply;
pub mod completion;
pub mod controller;
pub mod crds;
pub mod decide;
pub mod dev;
pub mod explain;
pub mod fmt;
pub mod get;
pub mod graph;
pub mod history;
pub mod import;
pub mod init;
pub mod launch_hook;
pub mod launch_plugin;
pub mod migrate;
pub mod output;
pub mod plan;
pub mod providers;
pub mod runner;
pub mod reconcile;
pub mod switch;
pub mod tree;
pub mod ui;
pub mod validate;
pub mod version;

//! The commands, one file each, small ones together. They connect the other modules, and neither parse arguments nor print.

pub mod about;
pub mod apply;
pub mod console;
pub mod controller;
pub mod decide;
pub mod dev;
pub mod explain;
pub mod fmt;
pub mod get;
pub mod graph;
pub mod history;
pub mod import;
pub mod init;
pub mod migrate;
pub mod output;
pub mod plan;
pub mod providers;
pub mod processes;
pub mod reconcile;
pub mod show;
pub mod switch;
pub mod tree;
pub mod ui;
pub mod validate;

//! Everything that needs no cluster: the layout, the scenarios, the judge, and the command line.

mod kit;
mod scenarios;
mod judge;
mod cli;
mod documents;
mod tidy;

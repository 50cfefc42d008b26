//! Everything that needs no cluster: the layout, the scenarios, the judge, and the command line.

mod kit;
mod judge;
mod scenarios;
mod tidy;

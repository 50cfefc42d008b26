//! The rules against their plain reading: over every case of three objects, over random ones, over the ten diagrams.

mod cases;
mod diagrams;
mod families;
mod judge;
mod plain;
mod scale;

//! Compares the rules with a simple implementation: for all cases of three objects, random cases, and ten diagrams.

mod cases;
mod diagrams;
mod families;
mod judge;
mod plain;
mod scale;

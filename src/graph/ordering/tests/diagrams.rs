//! The diagrams.

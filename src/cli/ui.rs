//! `purlin ui`: serves the live view to the user of this computer.

mod files;
mod listen;
mod planned;

pub use files::{FilesSession, Follower};
pub use listen::serve;

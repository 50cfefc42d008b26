//! Hides the process from others.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Makes the memory, the environment and the open files of this process inaccessible to other processes of the same user,
/// and disables core dumps. Its files in `/proc` then belong to root.
///
/// # Errors
/// If the kernel refuses it.
pub fn hide_from_others() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

//! What the kernel limits and hides for the process.

use std::fs;
use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The limits of a container, of cgroups version 2 and version 1.
const FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// The memory limit of the container in bytes. `None` if there is no limit.
pub fn memory_limit() -> Option<u64> {
    FILES.iter().find_map(|file| limit(&fs::read_to_string(file).ok()?))
}

/// The limit in a file of the kernel: `max` and numbers near the maximum mean that there is none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < u64::MAX / 4)
}

/// Makes the memory, the environment and the open files of this process inaccessible to other processes of the same user,
/// and disables core dumps. Its files in `/proc` then belong to root.
///
/// # Errors
/// If the kernel refuses it.
pub fn hide_from_others() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_limit_is_recognized() {
        assert_eq!(limit("4294967296\n"), Some(4 << 30));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("9223372036854771712\n"), None);
    }
}

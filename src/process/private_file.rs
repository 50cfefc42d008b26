//! Files that only their owner can read: records, saved plans, exported states, published Secrets.

use std::fs::OpenOptions;

/// Returns options that create a private file for writing. An existing file keeps its permissions.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

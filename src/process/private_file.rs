//! Files that hold what nobody but their owner may read: records, saved plans, exported states, published Secrets.

use std::fs::OpenOptions;

/// Options that open such a file for writing. A file that is there already keeps the rights it has.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

//! Files that only their owner can read: records, saved plans, exported states, published Secrets.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Returns options that create a private file for writing. An existing file keeps its permissions.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes the permissions of all other users from an existing file.
///
/// # Errors
/// If they cannot be changed, such as for a file of another user.
pub fn restrict(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mut permissions = std::fs::metadata(path)?.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(permissions.mode() & 0o700);
            std::fs::set_permissions(path, permissions)?;
        }
    }
    Ok(())
}

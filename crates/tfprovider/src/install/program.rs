//! The program in a package.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::InstallError;

/// Finds the program in a package by Terraform's rule: the first file by name that is `terraform-provider-TYPE`, alone
/// or followed by `_` or `.`. The path may also be the program itself.
pub fn program(package: &Path, name: &str) -> Result<PathBuf, InstallError> {
    let metadata = fs::metadata(package).map_err(|error| InstallError::file(package, error))?;
    let program = if metadata.is_dir() {
        let expected = format!("terraform-provider-{name}");
        let first = fs::read_dir(package)
            .map_err(|error| InstallError::file(package, error))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|file| {
                file.strip_prefix(&expected)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.starts_with('.'))
            })
            .min();
        package.join(first.ok_or_else(|| {
            InstallError::new(format!("{} does not contain the program `{expected}`", package.display()))
                .at("spec.package")
        })?)
    } else {
        package.to_owned()
    };
    let metadata = fs::metadata(&program).map_err(|error| InstallError::file(&program, error))?;
    if !metadata.is_file() {
        return Err(InstallError::new(format!("{} is not a regular file", program.display())).at("spec.package"));
    }
    Ok(program)
}

pub fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// Makes a program executable, because not every zip contains file modes.
pub fn make_executable(program: &Path) -> Result<(), InstallError> {
    if is_executable(program) {
        return Ok(());
    }
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(program, mode).map_err(|error| InstallError::file(program, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_first_match_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "LICENSE",
            "terraform-provider-randomness",
            "terraform-provider-random_v2",
            "terraform-provider-random.exe",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = program(folder.path(), "random").unwrap();
        assert_eq!(found.file_name().unwrap(), "terraform-provider-random.exe");
        assert!(!is_executable(&found));
        make_executable(&found).unwrap();
        assert!(is_executable(&found));
        let error = program(folder.path(), "other").unwrap_err();
        assert!(error.message.ends_with("does not contain the program `terraform-provider-other`"), "{error}");
    }
}

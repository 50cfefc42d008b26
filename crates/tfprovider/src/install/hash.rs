//! Checksums of packages in the two schemes of Terraform's lock files: `zh:` is the checksum of the published zip file,
//! `h1:` that of the files in a package, which also verifies an unpacked package.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fetch::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A checksum with its scheme: `zh:` and 64 hexadecimal digits, or `h1:` and base64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash(String);

impl Hash {
    /// The `zh:` checksum for the SHA-256 digest of a zip file.
    pub fn of_zip(digest: [u8; 32]) -> Self {
        Self(format!("zh:{}", hex(&digest)))
    }

    /// The `zh:` checksum for 64 hexadecimal digits; `None` if they are not valid.
    pub fn of_zip_hex(digits: &str) -> Option<Self> {
        format!("zh:{}", digits.to_ascii_lowercase()).parse().ok()
    }

    pub fn of_zip_file(path: &Path) -> io::Result<Self> {
        Ok(Self::of_zip(digest_of(path)?))
    }

    /// The `h1:` checksum of the files in a directory, as in Go's `dirhash`. File modes are ignored. A single program
    /// is hashed like a package that contains only this file.
    pub fn of_files(path: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        if path.is_dir() {
            collect_files(path, "", &mut files)?;
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.push((name, path.to_owned()));
        }
        files.sort();
        let mut hasher = Sha256::new();
        for (name, path) in files {
            hasher.update(format!("{}  {name}\n", hex(&digest_of(&path)?)));
        }
        Ok(Self(format!("h1:{}", STANDARD.encode(hasher.finalize()))))
    }

    /// Whether this is an `h1:` checksum.
    pub fn is_of_files(&self) -> bool {
        self.0.starts_with("h1:")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Collects the files in a directory with their relative paths. Symbolic links are followed, because mirrors may use
/// them.
fn collect_files(directory: &Path, prefix: &str, files: &mut Vec<(String, std::path::PathBuf)>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("a file name is not UTF-8"))?;
        if name.contains('\n') {
            return Err(io::Error::other("a file name contains a line break"));
        }
        let name = format!("{prefix}{name}");
        if std::fs::metadata(entry.path())?.is_dir() {
            collect_files(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}

fn digest_of(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    // Large enough to make the cost of the reads negligible.
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_right = match text.split_once(':') {
            Some(("zh", digits)) => {
                digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            }
            Some(("h1", encoded)) => STANDARD.decode(encoded).is_ok_and(|digest| digest.len() == 32),
            _ => false,
        };
        if is_right { Ok(Self(text.to_owned())) } else { Err(format!("`{text}` is not a valid checksum")) }
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_checksum_of_go() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("b")).unwrap();
        std::fs::write(directory.path().join("b/c"), "two").unwrap();
        std::fs::write(directory.path().join("a"), "one").unwrap();
        // By hand, as golang.org/x/mod/sumdb/dirhash describes it:
        // (sha256sum a b/c, with two spaces) | sha256sum | xxd -r -p | base64
        let hash = Hash::of_files(directory.path()).unwrap();
        assert_eq!(hash.as_str(), "h1:KXgGMUKo/6VCqEzeXvAmGo7Nmd490RhuXS0CDJIvmXg=");
        assert!(hash.is_of_files());
    }

    #[test]
    fn invalid_checksums_are_rejected() {
        let zip = Hash::of_zip([7; 32]);
        assert_eq!(zip.as_str().parse::<Hash>().unwrap(), zip);
        for wrong in ["", "zh:", "zh:07", "h1:AAAA", "h2:AAAA", &zip.as_str().to_uppercase()] {
            assert!(wrong.parse::<Hash>().is_err(), "{wrong}");
        }
    }
}

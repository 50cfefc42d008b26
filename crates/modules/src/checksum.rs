//! The checksum of `?checksum=` in the address of an archive.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::error::ModuleError;

/// An expected checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    algorithm: Algorithm,
    /// In lower case.
    digits: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    const NAMES: [(&'static str, Self, usize); 4] =
        [("md5", Self::Md5, 32), ("sha1", Self::Sha1, 40), ("sha256", Self::Sha256, 64), ("sha512", Self::Sha512, 128)];
}

impl Checksum {
    /// Reads `sha256:DIGITS`, or digits alone, whose number says which checksum it is.
    pub fn parse(text: &str) -> Result<Self, ModuleError> {
        let (name, digits) = text.split_once(':').map_or((None, text), |(name, digits)| (Some(name), digits));
        let algorithm = Algorithm::NAMES
            .iter()
            .find(|(known, _, length)| digits.len() == *length && name.is_none_or(|name| name == *known))
            .filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let (_, algorithm, _) = algorithm.ok_or_else(|| {
            ModuleError::new(format!("`{text}` is not a checksum"))
                .hint("write `checksum=sha256:` and 64 hexadecimal digits")
        })?;
        Ok(Self { algorithm: *algorithm, digits: digits.to_lowercase() })
    }

    /// Compares a file with the checksum. `what` is its name in the error.
    pub fn check(&self, file: &Path, what: &str) -> Result<(), ModuleError> {
        let digest = match self.algorithm {
            Algorithm::Md5 => digest::<Md5>(file),
            Algorithm::Sha1 => digest::<Sha1>(file),
            Algorithm::Sha256 => digest::<Sha256>(file),
            Algorithm::Sha512 => digest::<Sha512>(file),
        };
        let digest = digest.map_err(|error| ModuleError::file(file, error))?;
        if digest == self.digits {
            return Ok(());
        }
        let message = format!("{what} does not match its checksum: it is {digest}, not {}", self.digits);
        Err(ModuleError::new(message).hint("it was changed, or truncated in transit; nothing was installed"))
    }
}

fn digest<D: Digest>(file: &Path) -> std::io::Result<String> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut hasher = D::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(fetch::hex(&hasher.finalize())),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_compared_with_each_kind_of_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        // The test vectors of the standards.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for text in [
            "md5:900150983cd24fb0d6963f7d28e17f72",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            &format!("sha256:{}", sha256.to_uppercase()),
            "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ] {
            Checksum::parse(text).unwrap().check(&file, "the archive").unwrap();
        }
        let other = Checksum::parse(&"0".repeat(64)).unwrap().check(&file, "the archive").unwrap_err();
        let expected = format!("the archive does not match its checksum: it is {sha256}, not {}", "0".repeat(64));
        assert_eq!(other.message, expected);
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        for text in ["", "sha256:00", "sha3:00", "file:sums", &"x".repeat(64), &format!("md5:{}", "0".repeat(64))] {
            assert_eq!(Checksum::parse(text).unwrap_err().message, format!("`{text}` is not a checksum"));
        }
    }
}

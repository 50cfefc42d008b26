//! Manifests compressed with zstd and encoded with Base64, as a Plan can contain them.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use model::data::decode_base64;

/// The maximum size of a decompressed text in bytes: a small one can expand to any size, and decoded manifests need about
/// thirty times as much memory.
pub const MAX_DECOMPRESSED: usize = 4 * 1024 * 1024;

/// Compresses a text.
///
/// # Errors
/// If the library fails.
pub fn compress(text: &str) -> std::io::Result<String> {
    // The default level of zstd: manifests repeat themselves, so more effort saves little.
    const LEVEL: i32 = 3;
    Ok(STANDARD.encode(zstd::encode_all(text.as_bytes(), LEVEL)?))
}

/// Returns the text, or why it cannot be read.
///
/// # Errors
/// If the text is not compressed as expected, or is too large.
pub fn decompress(compressed: &str) -> Result<String, String> {
    let bytes = decode_base64(compressed).ok_or("it is not valid Base64")?;
    let reader = zstd::stream::read::Decoder::new(bytes.as_slice()).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let size = reader.take(MAX_DECOMPRESSED as u64 + 1).read_to_string(&mut text);
    match size {
        Ok(size) if size > MAX_DECOMPRESSED => Err(format!("it is larger than {} MiB", MAX_DECOMPRESSED >> 20)),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("it is not text that zstd has compressed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compressed_and_read_again() {
        let text = "kind: Resource\n".repeat(1000);
        let compressed = compress(&text).unwrap();
        assert!(compressed.len() < 200);
        assert_eq!(decompress(&compressed), Ok(text));
    }

    #[test]
    fn a_small_text_does_not_expand_to_any_size() {
        let bomb = compress(&"a".repeat(MAX_DECOMPRESSED + 1)).unwrap();
        assert!(bomb.len() < 10_000);
        assert_eq!(decompress(&bomb), Err("it is larger than 4 MiB".to_owned()));
        for invalid in ["?", "aGVsbG8="] {
            assert!(decompress(invalid).is_err());
        }
    }
}

//! The binary format of a record, used by every store.
//!
//! ```text
//! format (1 byte) | flags (1 byte) | CRC-32 of flags and rest (4 bytes) | body
//! ```
//!
//! `write` produces the body, which is compressed with zstd if that makes it smaller. Values are stored without loss:
//! exact decimals, null and absent, unknown and sensitive values. A newer format is rejected, because a partly
//! understood record would be written back without the other part.
//!
//! [`FORMAT`] must be raised by every change that lets a body hold something that current readers do not understand: a
//! field behind a new flag, a new tag, a new variant. Otherwise an older program would report the record as damaged and
//! advise the user to restore a backup instead of an upgrade. `read` still reads all older formats: newer fields are
//! behind flags that older formats never set. A test fails when bodies change.

mod read;
mod write;

#[cfg(test)]
mod tests;

use std::cell::RefCell;

use crate::store::Interner;
use model::{Record, Value};

/// The written format. 2: families among dependencies, and everything added behind flags before. 3: the configuration
/// digest of up-to-date objects. 4: the address before a move. 5: readiness. 6: the import of an interrupted create. 7: the
/// history. 8: approvals.
pub const FORMAT: u8 = 8;

/// The body is compressed, after its length as four bytes.
const COMPRESSED: u8 = 1;

/// The length of the header in bytes.
const HEADER: usize = 6;

/// Smaller bodies are not compressed: compression would take ten times as long as encoding and save almost nothing.
const COMPRESS_FROM: usize = 512;

/// Level 1 is 50% faster than level 3, and the size differs by a few percent for such bodies.
const LEVEL: i32 = 1;

/// The maximum nesting depth of values. Deeper values could overflow the stack; no provider schema comes close.
const MAX_DEPTH: usize = 256;

/// Why a record cannot be decoded or encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A newer version of Purlin wrote it.
    #[error(
        "a newer version of Purlin wrote it (format {found}; this version reads formats up to {FORMAT}) (hint: use the \
         version that wrote it, or a later one)"
    )]
    NewerFormat { found: u8 },
    /// The bytes differ from those that were written.
    #[error("it is damaged: {0} (hint: restore it from a backup)")]
    Damaged(&'static str),
    /// A value is nested too deeply.
    #[error("a value is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

thread_local! {
    /// zstd contexts are expensive to create and cheap to reuse.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> =
        RefCell::new(zstd::bulk::Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        RefCell::new(zstd::bulk::Decompressor::new().ok());
}

/// Encodes a record. Equal records have equal bytes.
///
/// # Errors
/// When a value is nested too deeply.
pub fn encode(record: &Record) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(COMPRESS_FROM + HEADER);
    bytes.extend_from_slice(&[FORMAT, 0, 0, 0, 0, 0]);
    write::record(&mut bytes, record)?;
    if bytes.len() >= COMPRESS_FROM + HEADER
        && let Some(compressed) = compress(&bytes[HEADER..])
    {
        bytes.truncate(HEADER);
        bytes[1] |= COMPRESSED;
        bytes.extend_from_slice(&compressed);
    }
    let checksum = checksum(&bytes);
    bytes[2..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a record. Strings that repeat between records are shared through `strings`.
///
/// # Errors
/// When the bytes are damaged or have a newer format.
pub fn decode(bytes: &[u8], strings: &mut Interner) -> Result<Record, CodecError> {
    let (&format, _) = bytes.split_first().ok_or(CodecError::Damaged("it is empty"))?;
    if format > FORMAT {
        return Err(CodecError::NewerFormat { found: format });
    }
    if format == 0 || bytes.len() < HEADER {
        return Err(CodecError::Damaged("it does not start with the header of a record"));
    }
    let stored = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
    if stored != checksum(bytes) {
        return Err(CodecError::Damaged("its checksum does not match"));
    }
    match bytes[1] {
        0 => read::record(&bytes[HEADER..], strings),
        COMPRESSED => read::record(&decompress(&bytes[HEADER..])?, strings),
        _ => Err(CodecError::Damaged("it has unknown flags")),
    }
}

/// Encodes a single value without loss, for files that hold values beside records.
///
/// # Errors
/// When it is nested too deeply.
pub fn encode_value(value: &Value) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    write::value(&mut bytes, value, 0)?;
    Ok(bytes)
}

/// Decodes a value.
///
/// # Errors
/// When the bytes are damaged.
pub fn decode_value(bytes: &[u8]) -> Result<Value, CodecError> {
    read::value(bytes, &mut Interner::default())
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[1..2]);
    hasher.update(&bytes[HEADER..]);
    hasher.finalize()
}

/// The length and the compressed body, or `None` if that is not smaller.
fn compress(body: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(body.len()).ok()?;
    let compressed = COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(body).ok())?;
    if compressed.len() + 4 >= body.len() {
        return None;
    }
    Some([&length.to_le_bytes()[..], &compressed].concat())
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    const DAMAGED: CodecError = CodecError::Damaged("it cannot be decompressed");
    let (length, compressed) = bytes.split_first_chunk::<4>().ok_or(DAMAGED)?;
    let length = u32::from_le_bytes(*length) as usize;
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = decompressor.as_mut().ok_or(DAMAGED)?;
        let body = decompressor.decompress(compressed, length).map_err(|_| DAMAGED)?;
        if body.len() == length { Ok(body) } else { Err(DAMAGED) }
    })
}

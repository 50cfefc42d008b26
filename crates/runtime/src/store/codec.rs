//! The binary format of a record, used by every store.
//!
//! ```text
//! format (1 byte) | flags (1 byte) | CRC-32 of flags and rest (4 bytes) | body
//! ```
//!
//! The body is the record in MessagePack, as the types of `model` derive it: structs are maps with the names of their
//! fields, and a field with its default value is left out. It is compressed with zstd if that makes it smaller. Values are
//! stored without loss: exact decimals, null and absent, unknown and sensitive values. A newer format is rejected, because
//! a partly understood record would be written back without the other part.
//!
//! A new field is one line, with `#[serde(default)]`. [`FORMAT`] must be raised with it, as with a new variant of an enum:
//! otherwise an older program would report the record as damaged and advise the user to restore a backup instead of an
//! upgrade. A test fails when bodies change.

#[cfg(test)]
mod tests;

use std::cell::RefCell;

use rmp_serde::decode::Error;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize as _, Serialize};

use model::value::MAX_DEPTH;
use model::{Interner, Record, shared};

/// The written format.
pub const FORMAT: u8 = 1;

/// The body is compressed, after its length as four bytes.
const COMPRESSED: u8 = 1;

/// The length of the header in bytes.
const HEADER: usize = 6;

/// Smaller bodies are not compressed: compression would take ten times as long as encoding and save almost nothing.
const COMPRESS_FROM: usize = 512;

/// Level 1 is 50% faster than level 3, and the size differs by a few percent for such bodies.
const LEVEL: i32 = 1;

/// Larger bodies are not compressed, so that a damaged length reserves no more memory than this.
const COMPRESS_UP_TO: usize = 1 << 28;

/// The maximum nesting depth of what surrounds a value.
const MAX_DEPTH_AROUND: usize = 32;

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
    write(&mut bytes, record)?;
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
    if format == 0 || bytes.len() < HEADER {
        return Err(CodecError::Damaged("it does not start with the header of a record"));
    }
    let stored = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
    if stored != checksum(bytes) {
        return Err(CodecError::Damaged("its checksum does not match"));
    }
    // Every format has this header, so that a damaged record is not mistaken for one of a newer version.
    if format > FORMAT {
        return Err(CodecError::NewerFormat { found: format });
    }
    match bytes[1] {
        0 => read(&bytes[HEADER..], strings),
        COMPRESSED => read(&decompress(&bytes[HEADER..])?, strings),
        _ => Err(CodecError::Damaged("it has unknown flags")),
    }
}

/// Encodes the content of another file as records are, but without a header.
///
/// # Errors
/// When a value is nested too deeply.
pub fn encode_content(content: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    write(&mut bytes, content)?;
    Ok(bytes)
}

/// Decodes what [`encode_content`] encoded.
///
/// # Errors
/// When the bytes are damaged.
pub fn decode_content<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    read(bytes, &mut Interner::default())
}

fn write(out: &mut Vec<u8>, content: &impl Serialize) -> Result<(), CodecError> {
    // Writing to memory does not fail, so only a value can be the reason.
    content.serialize(&mut rmp_serde::Serializer::new(out).with_struct_map()).map_err(|_| CodecError::TooDeep)
}

/// Accepts any bytes. What was found is not part of the error, because it can be sensitive.
fn read<T: DeserializeOwned>(body: &[u8], strings: &mut Interner) -> Result<T, CodecError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(body);
    reader.set_max_depth(MAX_DEPTH + MAX_DEPTH_AROUND);
    let content = shared::sharing(strings, || T::deserialize(&mut reader)).map_err(|error| match error {
        Error::DepthLimitExceeded => CodecError::TooDeep,
        Error::InvalidMarkerRead(_) | Error::InvalidDataRead(_) => CodecError::Damaged("it ends too early"),
        _ => CodecError::Damaged("its content is not that of a record"),
    })?;
    match IgnoredAny::deserialize(&mut reader) {
        Err(Error::InvalidMarkerRead(_)) => Ok(content),
        _ => Err(CodecError::Damaged("it has bytes after its end")),
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[1..2]);
    hasher.update(&bytes[HEADER..]);
    hasher.finalize()
}

/// The length and the compressed body, or `None` if that is not smaller.
fn compress(body: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= COMPRESS_UP_TO)?;
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
    if length > COMPRESS_UP_TO {
        return Err(DAMAGED);
    }
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = decompressor.as_mut().ok_or(DAMAGED)?;
        let body = decompressor.decompress(compressed, length).map_err(|_| DAMAGED)?;
        if body.len() == length { Ok(body) } else { Err(DAMAGED) }
    })
}

//! The bytes of a record: one format for every store.
//!
//! ```text
//! format (1 byte) | flags (1 byte) | CRC-32 of flags and rest (4 bytes) | body
//! ```
//!
//! The body is what `write` produces, compressed with zstd when that makes it smaller. Values pass without loss:
//! exact decimals, null and absent, unknown places, sensitive marks. An unknown number is refused, because a record that
//! is half understood would be written back without the half that was not.
//!
//! [`FORMAT`] is raised by whatever lets a body hold what readers of the present number would not understand: a field
//! behind a new flag, a new tag, a new kind of anything. Without that an older program calls the record damaged, and
//! sends its user to a backup instead of to the newer program. `read` goes on reading all older formats: what they
//! lack is behind flags that they never set. A test fails when the bodies change, so that nobody has to remember this.

mod read;
mod write;

#[cfg(test)]
pub(crate) mod arbitrary;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use crate::model::{Record, Value};
use crate::store::Strings;

/// The format that is written. 2: whole families among dependencies, and all that has come behind flags before it. 3: of
/// which configuration an object is known to be what it asks for. 4: where an object was before it was moved. 5: that an object is not
/// ready yet.
pub const FORMAT: u8 = 5;

/// The body is compressed; its length stands before it, as four bytes.
const COMPRESSED: u8 = 1;

/// Bytes before the body.
const HEADER: usize = 6;

/// Bodies below this size are kept as they are: compressing them costs more than ten times the time of encoding and
/// wins next to nothing.
const COMPRESS_FROM: usize = 512;

/// Level 1 is half as fast again as level 3, and the difference in size is a few per cent for bodies of this kind.
const LEVEL: i32 = 1;

/// How deep values may be nested. Deeper ones would endanger the stack of whoever walks them; no provider schema
/// comes near it.
const MAX_DEPTH: usize = 256;

/// Why bytes are no record that this version can read, or a record cannot become bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A newer version of Purlin wrote it.
    #[error(
        "it was written by a newer purlin (format {found}, and this one reads formats up to {FORMAT}) (hint: use the \
         version that wrote it, or a later one)"
    )]
    NewerFormat {
        /// The format it has.
        found: u8,
    },
    /// The bytes are not what was written.
    #[error("it is damaged: {0} (hint: restore it from a backup)")]
    Damaged(&'static str),
    /// A value is nested too deeply to be kept.
    #[error("a value is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

thread_local! {
    /// Contexts of zstd are costly to make and cheap to use again.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> =
        RefCell::new(zstd::bulk::Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        RefCell::new(zstd::bulk::Decompressor::new().ok());
}

/// The bytes of a record. The same record always gives the same bytes.
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

/// The record that the bytes hold. Texts that repeat from record to record are shared through `strings`.
///
/// # Errors
/// When the bytes are damaged, or of a newer format.
pub fn decode(bytes: &[u8], strings: &mut Strings) -> Result<Record, CodecError> {
    let (&format, _) = bytes.split_first().ok_or(CodecError::Damaged("it is empty"))?;
    if format > FORMAT {
        return Err(CodecError::NewerFormat { found: format });
    }
    if format == 0 || bytes.len() < HEADER {
        return Err(CodecError::Damaged("it does not begin like a record"));
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

/// The bytes of a value alone, without loss: for files that keep values beside records.
///
/// # Errors
/// When it is nested too deeply.
pub fn encode_value(value: &Value) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    write::value(&mut bytes, value, 0)?;
    Ok(bytes)
}

/// The value that the bytes hold.
///
/// # Errors
/// When the bytes are damaged.
pub fn decode_value(bytes: &[u8]) -> Result<Value, CodecError> {
    read::value(bytes, &mut Strings::default())
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[1..2]);
    hasher.update(&bytes[HEADER..]);
    hasher.finalize()
}

/// Length and compressed form; `None` when that would not be smaller.
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

//! A msgpack reader that enforces limits on depth and size.

use rmp::Marker;

use crate::Error;
use crate::limits::Limits;

pub struct Reader<'a> {
    rest: &'a [u8],
    limits: Limits,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, limits: Limits::default() }
    }

    /// Runs `read` for one element, one level deeper. Fails when a limit is exceeded.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.limits.enter()?;
        let result = read(self);
        self.limits.leave();
        result
    }

    /// Returns the next marker without consuming it.
    pub fn peek(&self) -> Result<Marker, Error> {
        self.rest.first().map(|byte| Marker::from_u8(*byte)).ok_or_else(truncated)
    }

    /// Consumes the next marker.
    pub fn marker(&mut self) -> Result<Marker, Error> {
        let marker = self.peek()?;
        self.rest = &self.rest[1..];
        Ok(marker)
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads the integer that begins with `marker`; `None` if the marker is not that of an integer.
    pub fn integer(&mut self, marker: Marker) -> Result<Option<i128>, Error> {
        Ok(Some(match marker {
            Marker::FixPos(small) => small.into(),
            Marker::FixNeg(small) => small.into(),
            Marker::U8 => self.u8()?.into(),
            Marker::U16 => self.u16()?.into(),
            Marker::U32 => self.u32()?.into(),
            Marker::U64 => self.u64()?.into(),
            Marker::I8 => self.array().map(i8::from_be_bytes)?.into(),
            Marker::I16 => self.array().map(i16::from_be_bytes)?.into(),
            Marker::I32 => self.array().map(i32::from_be_bytes)?.into(),
            Marker::I64 => self.array().map(i64::from_be_bytes)?.into(),
            _ => return Ok(None),
        }))
    }

    /// Reads the string or bytes that begin with `marker`; `None` if the marker is not that of either.
    pub fn bytes(&mut self, marker: Marker) -> Result<Option<&'a [u8]>, Error> {
        let length = match marker {
            Marker::FixStr(length) => length.into(),
            Marker::Str8 | Marker::Bin8 => self.u8()?.into(),
            Marker::Str16 | Marker::Bin16 => self.u16()?.into(),
            Marker::Str32 | Marker::Bin32 => self.u32()? as usize,
            _ => return Ok(None),
        };
        self.take(length).map(Some)
    }

    /// Reads the length of an array; `None` if another value is next.
    pub fn array_length(&mut self) -> Result<Option<usize>, Error> {
        Ok(Some(match self.marker()? {
            Marker::FixArray(length) => length.into(),
            Marker::Array16 => self.u16()?.into(),
            Marker::Array32 => self.u32()? as usize,
            _ => return Ok(None),
        }))
    }

    /// Reads the number of entries of a map; `None` if another value is next.
    pub fn map_length(&mut self) -> Result<Option<usize>, Error> {
        Ok(Some(match self.marker()? {
            Marker::FixMap(length) => length.into(),
            Marker::Map16 => self.u16()?.into(),
            Marker::Map32 => self.u32()? as usize,
            _ => return Ok(None),
        }))
    }

    /// Reads the type and payload of an extension. Returns `None`, and consumes nothing, if another value is next.
    pub fn extension(&mut self) -> Result<Option<(i8, &'a [u8])>, Error> {
        let fixed = match self.peek()? {
            Marker::FixExt1 => Some(1),
            Marker::FixExt2 => Some(2),
            Marker::FixExt4 => Some(4),
            Marker::FixExt8 => Some(8),
            Marker::FixExt16 => Some(16),
            Marker::Ext8 | Marker::Ext16 | Marker::Ext32 => None,
            _ => return Ok(None),
        };
        let marker = self.marker()?;
        let length = match (fixed, marker) {
            (Some(length), _) => length,
            (None, Marker::Ext8) => self.u8()?.into(),
            (None, Marker::Ext16) => self.u16()?.into(),
            _ => self.u32()? as usize,
        };
        let kind = self.array().map(i8::from_be_bytes)?;
        Ok(Some((kind, self.take(length)?)))
    }

    /// Skips the next value.
    pub fn skip(&mut self) -> Result<(), Error> {
        self.deeper(|reader| {
            if reader.extension()?.is_some() {
                return Ok(());
            }
            let inner = match reader.peek()? {
                Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => reader.array_length()?.unwrap_or(0),
                Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => 2 * reader.map_length()?.unwrap_or(0),
                _ => {
                    let marker = reader.marker()?;
                    if reader.integer(marker)?.is_none() && reader.bytes(marker)?.is_none() {
                        match marker {
                            Marker::F32 => reader.take(4).map(drop)?,
                            Marker::F64 => reader.take(8).map(drop)?,
                            _ => {}
                        }
                    }
                    0
                }
            };
            (0..inner).try_for_each(|_| reader.skip())
        })
    }

    /// The capacity to reserve for `claimed` elements: each takes at least one of the remaining bytes.
    pub fn capacity(&self, claimed: usize) -> usize {
        claimed.min(self.rest.len()).min(1024)
    }
}

fn truncated() -> Error {
    Error::new("the encoding ends in the middle of a value")
}

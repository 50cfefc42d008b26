//! gzip with the bytes that Go's library gives at its default level.
//!
//! Compressed data goes into arguments of resources, so other bytes for the same text would be a change: user data of a
//! machine, and with it the machine. A general encoder makes other choices, so this one makes the same ones: which
//! matches, where a block ends, and how it is encoded.
mod huffman;
mod matches;
mod writer;

use writer::Writer;

/// A block ends after this number of literals and matches.
const MAX_TOKENS: usize = 1 << 14;

/// A byte as it is, or a copy of what came before.
#[derive(Clone, Copy)]
enum Token {
    Literal(u8),
    Match { length: usize, distance: usize },
}

pub fn compress(input: &[u8]) -> Vec<u8> {
    // No name, no time, an unknown system.
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut writer = Writer::new(&mut out);
    matches::find(input, &mut |tokens, block| writer.block(tokens, block));
    // A flush, and then the end: two empty stored blocks.
    writer.stored_header(0, false);
    writer.stored_header(0, true);
    writer.align();
    let mut digest = flate2::Crc::new();
    digest.update(input);
    out.extend_from_slice(&digest.sum().to_le_bytes());
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    out
}

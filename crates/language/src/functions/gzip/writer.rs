//! Blocks: stored, with fixed codes, or with codes of their own, whichever is the shortest.

use super::Token;
use super::huffman::{Code, codes};

const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END: usize = 256;
/// The longest stored block.
const MAX_STORED: usize = 65_535;

/// The first length of each length code, less 3, and the number of extra bits.
const LENGTHS: [(usize, u32); 29] = [
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 1),
    (10, 1),
    (12, 1),
    (14, 1),
    (16, 2),
    (20, 2),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 3),
    (56, 3),
    (64, 4),
    (80, 4),
    (96, 4),
    (112, 4),
    (128, 5),
    (160, 5),
    (192, 5),
    (224, 5),
    (255, 0),
];

/// The order in which the lengths of the codes for code lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The code of a length, and its extra bits.
fn length_code(length: usize) -> (usize, u64, u32) {
    let code = LENGTHS.iter().rposition(|(first, _)| *first <= length - 3).unwrap_or(0);
    let (first, extra) = LENGTHS[code];
    (END + 1 + code, (length - 3 - first) as u64, extra)
}

/// The code of a distance, and its extra bits: two codes for each power of two.
fn distance_code(distance: usize) -> (usize, u64, u32) {
    let distance = distance - 1;
    if distance < 4 {
        return (distance, 0, 0);
    }
    let extra = distance.ilog2() - 1;
    let code = 2 * (extra as usize + 1) + (distance >> extra & 1);
    (code, (distance & ((1 << extra) - 1)) as u64, extra)
}

pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    bits: u64,
    count: u32,
}

/// The codes of a block's literals, lengths and distances.
struct Tables {
    literals: Vec<Code>,
    distances: Vec<Code>,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, bits: 0, count: 0 }
    }

    fn put(&mut self, bits: u64, count: u32) {
        self.bits |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.bits as u8);
            self.bits >>= 8;
            self.count -= 8;
        }
    }

    fn code(&mut self, code: Code) {
        self.put(u64::from(code.bits), u32::from(code.length));
    }

    /// Fills the last byte.
    pub fn align(&mut self) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
    }

    pub fn stored_header(&mut self, length: u16, is_last: bool) {
        self.put(u64::from(is_last), 3);
        self.align();
        self.put(u64::from(length), 16);
        self.put(u64::from(!length), 16);
    }

    pub fn block(&mut self, tokens: &[Token], input: &[u8]) {
        let (literals, distances) = frequencies(tokens);
        let tables = Tables { literals: codes(&literals, 15), distances: codes(&distances, 15) };
        let lengths = CodeLengths::new(&tables, used(&literals), used(&distances));
        let fixed = fixed();
        let fixed_size = 3 + fixed.size(&literals, &distances);
        let tables_size = lengths.size() + tables.size(&literals, &distances);
        let extra = extra_bits(tokens);
        let stored = (input.len() <= MAX_STORED).then_some((input.len() + 5) * 8);
        if stored.is_some_and(|stored| stored < tables_size.min(fixed_size) + extra) {
            self.stored_header(input.len() as u16, false);
            self.out.extend_from_slice(input);
        } else if tables_size < fixed_size {
            lengths.write(self);
            self.tokens(tokens, &tables);
        } else {
            self.put(2, 3);
            self.tokens(tokens, &fixed);
        }
    }

    fn tokens(&mut self, tokens: &[Token], tables: &Tables) {
        for token in tokens {
            match *token {
                Token::Literal(byte) => self.code(tables.literals[usize::from(byte)]),
                Token::Match { length, distance } => {
                    let (code, extra, count) = length_code(length);
                    self.code(tables.literals[code]);
                    self.put(extra, count);
                    let (code, extra, count) = distance_code(distance);
                    self.code(tables.distances[code]);
                    self.put(extra, count);
                }
            }
        }
        self.code(tables.literals[END]);
    }
}

fn frequencies(tokens: &[Token]) -> (Vec<u32>, Vec<u32>) {
    let (mut literals, mut distances) = (vec![0; LITERALS], vec![0; DISTANCES]);
    literals[END] = 1;
    for token in tokens {
        match *token {
            Token::Literal(byte) => literals[usize::from(byte)] += 1,
            Token::Match { length, distance } => {
                literals[length_code(length).0] += 1;
                distances[distance_code(distance).0] += 1;
            }
        }
    }
    // A block without matches still has one code for a distance.
    if distances.iter().all(|frequency| *frequency == 0) {
        distances[0] = 1;
    }
    (literals, distances)
}

fn extra_bits(tokens: &[Token]) -> usize {
    let bits = tokens.iter().map(|token| match *token {
        Token::Literal(_) => 0,
        Token::Match { length, distance } => (length_code(length).2 + distance_code(distance).2) as usize,
    });
    bits.sum()
}

/// The number of symbols up to the last one that occurs.
fn used(frequencies: &[u32]) -> usize {
    frequencies.iter().rposition(|frequency| *frequency > 0).map_or(0, |last| last + 1)
}

fn fixed() -> Tables {
    let literals = (0..LITERALS as u16).map(|symbol| match symbol {
        0..144 => reversed(symbol + 48, 8),
        144..256 => reversed(symbol + 256, 9),
        256..280 => reversed(symbol - 256, 7),
        _ => reversed(symbol - 88, 8),
    });
    Tables {
        literals: literals.collect(),
        distances: (0..DISTANCES as u16).map(|symbol| reversed(symbol, 5)).collect(),
    }
}

/// A code whose bits are given in the order in which a reader compares them.
fn reversed(bits: u16, length: u8) -> Code {
    Code { bits: bits.reverse_bits() >> (16 - length), length }
}

fn size(codes: &[Code], frequencies: &[u32]) -> usize {
    codes.iter().zip(frequencies).map(|(code, frequency)| usize::from(code.length) * *frequency as usize).sum()
}

impl Tables {
    /// The bits of all tokens, without extra bits.
    fn size(&self, literals: &[u32], distances: &[u32]) -> usize {
        size(&self.literals, literals) + size(&self.distances, distances)
    }
}

/// The header of a block with codes of its own: the lengths of the codes, with runs shortened.
struct CodeLengths {
    literals: usize,
    distances: usize,
    /// A length or a kind of run, and what follows it with how many bits.
    symbols: Vec<(usize, u64, u32)>,
    frequencies: [u32; 19],
    codes: Vec<Code>,
}

impl CodeLengths {
    fn new(tables: &Tables, literals: usize, distances: usize) -> Self {
        let lengths: Vec<u8> =
            tables.literals[..literals].iter().chain(&tables.distances[..distances]).map(|code| code.length).collect();
        let mut symbols = Vec::new();
        for run in lengths.chunk_by(|a, b| a == b) {
            add_run(usize::from(run[0]), run.len(), &mut symbols);
        }
        let mut frequencies = [0; 19];
        symbols.iter().for_each(|(symbol, ..)| frequencies[*symbol] += 1);
        Self { literals, distances, symbols, codes: codes(&frequencies, 7), frequencies }
    }

    /// How many of the lengths of the codes for lengths are written.
    fn written(&self) -> usize {
        ORDER.iter().rposition(|symbol| self.frequencies[*symbol] > 0).map_or(0, |last| last + 1).max(4)
    }

    fn size(&self) -> usize {
        let extra: u32 = self.symbols.iter().map(|(_, _, count)| *count).sum();
        3 + 5 + 5 + 4 + 3 * self.written() + size(&self.codes, &self.frequencies) + extra as usize
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(4, 3);
        writer.put(self.literals as u64 - 257, 5);
        writer.put(self.distances as u64 - 1, 5);
        writer.put(self.written() as u64 - 4, 4);
        for symbol in &ORDER[..self.written()] {
            writer.put(u64::from(self.codes[*symbol].length), 3);
        }
        for (symbol, extra, count) in &self.symbols {
            writer.code(self.codes[*symbol]);
            writer.put(*extra, *count);
        }
    }
}

/// 16 repeats the length before 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros.
fn add_run(length: usize, mut count: usize, symbols: &mut Vec<(usize, u64, u32)>) {
    if length == 0 {
        while count >= 11 {
            let run = count.min(138);
            symbols.push((18, run as u64 - 11, 7));
            count -= run;
        }
        if count >= 3 {
            symbols.push((17, count as u64 - 3, 3));
            count = 0;
        }
    } else {
        symbols.push((length, 0, 0));
        count -= 1;
        while count >= 3 {
            let run = count.min(6);
            symbols.push((16, run as u64 - 3, 2));
            count -= run;
        }
    }
    symbols.extend(std::iter::repeat_n((length, 0, 0), count));
}

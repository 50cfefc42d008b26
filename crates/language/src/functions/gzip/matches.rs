//! What is copied from before: lazy matching, in which a match gives way to a longer one at the next byte.

use super::{MAX_TOKENS, Token};

const WINDOW: usize = 1 << 15;
/// Go's library keeps two windows of the input, and moves on by one when so little of them is left.
const REST: usize = MIN_MATCH + MAX_MATCH;
const MIN_MATCH: usize = 4;
const MAX_MATCH: usize = 258;
/// A match of this length is taken without a look at the next byte.
const LAZY: usize = 16;
/// A match of this length ends the search.
const NICE: usize = 128;
/// How many earlier places are tried.
const TRIES: usize = 128;
/// A shortest match from farther away than this costs more than it saves.
const FAR: usize = 4096;
const HASH_BITS: u32 = 17;

/// Earlier places by the four bytes at them.
struct Chains<'a> {
    input: &'a [u8],
    heads: Vec<Option<usize>>,
    previous: Vec<Option<usize>>,
    /// Where the windows begin. Nothing before is found, also if it is near enough.
    base: usize,
}

impl Chains<'_> {
    /// Moves the windows on if a place is near their end, and there is more input.
    fn reach(&mut self, at: usize) {
        let end = self.base + 2 * WINDOW;
        if at + REST > end && self.input.len() > end {
            self.base += WINDOW;
        }
    }

    /// The first place that a match may begin at.
    fn least(&self, at: usize) -> usize {
        at.saturating_sub(WINDOW).max(self.base)
    }

    /// Adds a place, and gives the last one before it with the same hash.
    fn add(&mut self, at: usize) -> Option<usize> {
        let bytes = self.input.get(at..at + MIN_MATCH)?;
        let word = bytes.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let hash = (word.wrapping_mul(0x1e35_a7bd) >> (32 - HASH_BITS)) as usize;
        self.previous[at] = self.heads[hash];
        self.heads[hash].replace(at)
    }

    /// The longest match, of the nearest place if there are several.
    fn longest(&self, at: usize, first: usize) -> Option<(usize, usize)> {
        let most = MAX_MATCH.min(self.input.len() - at);
        let least = self.least(at);
        let mut best = None;
        let mut length = MIN_MATCH - 1;
        let mut place = Some(first);
        for _ in 0..TRIES {
            let Some(start) = place.filter(|start| *start >= least) else { break };
            let common = self.common(start, at, most);
            if common > length && (common > MIN_MATCH || at - start <= FAR) {
                length = common;
                best = Some((common, at - start));
                if common >= NICE.min(most) {
                    break;
                }
            }
            if at >= self.base + WINDOW && start == least {
                break;
            }
            place = self.previous[start];
        }
        best
    }

    fn common(&self, a: usize, b: usize, most: usize) -> usize {
        let pairs = self.input[a..].iter().zip(&self.input[b..b + most]);
        pairs.take_while(|(a, b)| a == b).count()
    }
}

/// Gives the tokens of each block, and the part of the input that it stands for.
pub fn find(input: &[u8], write: &mut dyn FnMut(&[Token], &[u8])) {
    let mut chains = Chains { input, heads: vec![None; 1 << HASH_BITS], previous: vec![None; input.len()], base: 0 };
    let mut tokens = Vec::new();
    let (mut at, mut block_start) = (0, 0);
    let mut pending_byte = false;
    let (mut length, mut distance) = (MIN_MATCH - 1, 0);
    while at < input.len() {
        chains.reach(at);
        let first = chains.add(at);
        let (before_length, before_distance) = (length, distance);
        (length, distance) = (MIN_MATCH - 1, 0);
        if let Some(first) = first.filter(|first| *first >= chains.least(at))
            && input.len() - at > before_length
            && before_length < LAZY
            && let Some(found) = chains.longest(at, first)
        {
            (length, distance) = found;
        }
        if before_length >= MIN_MATCH && length <= before_length {
            tokens.push(Token::Match { length: before_length, distance: before_distance });
            let next = at + before_length - 1;
            for inner in at + 1..next {
                chains.add(inner);
            }
            at = next;
            pending_byte = false;
            length = MIN_MATCH - 1;
        } else {
            if pending_byte {
                tokens.push(Token::Literal(input[at - 1]));
            }
            if tokens.len() < MAX_TOKENS || !pending_byte {
                at += 1;
                pending_byte = true;
                continue;
            }
            write(&tokens, &input[block_start..at]);
            tokens.clear();
            block_start = at;
            at += 1;
            continue;
        }
        if tokens.len() == MAX_TOKENS {
            write(&tokens, &input[block_start..at]);
            tokens.clear();
            block_start = at;
        }
    }
    if pending_byte {
        tokens.push(Token::Literal(input[at - 1]));
    }
    if !tokens.is_empty() {
        write(&tokens, &input[block_start..]);
    }
}

//! Huffman codes of a limited length.

/// The code of a symbol, with its first bit lowest.
#[derive(Clone, Copy, Default)]
pub struct Code {
    pub bits: u16,
    pub length: u8,
}

/// Codes for symbols by how often they occur; symbols that do not occur have none.
pub fn codes(frequencies: &[u32], limit: usize) -> Vec<Code> {
    let mut codes = vec![Code::default(); frequencies.len()];
    let mut symbols: Vec<usize> = (0..frequencies.len()).filter(|symbol| frequencies[*symbol] > 0).collect();
    if symbols.len() <= 2 {
        for (bits, symbol) in (0..).zip(symbols) {
            codes[symbol] = Code { bits, length: 1 };
        }
        return codes;
    }
    symbols.sort_by_key(|symbol| frequencies[*symbol]);
    let weights: Vec<u64> = symbols.iter().map(|symbol| u64::from(frequencies[*symbol])).collect();
    let lengths = lengths(&weights, limit.min(symbols.len() - 1));
    let mut bits: u16 = 0;
    for length in 1..=limit as u8 {
        bits <<= 1;
        // Codes of one length are in the order of the symbols.
        let coded = symbols.iter().zip(&lengths).filter(|(_, coded)| **coded == length);
        let mut coded: Vec<usize> = coded.map(|(symbol, _)| *symbol).collect();
        coded.sort_unstable();
        for symbol in coded {
            codes[symbol] = Code { bits: bits.reverse_bits() >> (16 - length), length };
            bits += 1;
        }
    }
    codes
}

/// The lengths of the codes for weights in ascending order, by the package-merge algorithm. Of a package and a symbol
/// with the same weight, the package comes first.
fn lengths(weights: &[u64], limit: usize) -> Vec<u8> {
    // The items of each level: the weight, and whether it is a symbol.
    let mut levels: Vec<Vec<(u64, bool)>> = vec![weights.iter().map(|weight| (*weight, true)).collect()];
    for _ in 1..limit {
        let below = &levels[levels.len() - 1];
        let packages = below.chunks_exact(2).map(|pair| pair[0].0 + pair[1].0);
        levels.push(merged(packages.collect(), weights));
    }
    let mut lengths = vec![0; weights.len()];
    let mut taken = 2 * weights.len() - 2;
    for level in levels.iter().rev() {
        let symbols = level[..taken].iter().filter(|(_, is_symbol)| *is_symbol).count();
        lengths[..symbols].iter_mut().for_each(|length| *length += 1);
        taken = 2 * (taken - symbols);
    }
    lengths
}

fn merged(packages: Vec<u64>, weights: &[u64]) -> Vec<(u64, bool)> {
    let (mut packages, mut symbols) = (packages.into_iter().peekable(), weights.iter().copied().peekable());
    let mut items = Vec::new();
    loop {
        let symbol_first = match (packages.peek(), symbols.peek()) {
            (Some(package), Some(symbol)) => symbol < package,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return items,
        };
        let next = if symbol_first { symbols.next() } else { packages.next() };
        items.extend(next.map(|weight| (weight, symbol_first)));
    }
}

//! IP networks as upstream's functions see them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// 32 or 128.
    pub bits: u32,
    pub prefix: u32,
    /// Without the bits of the host.
    pub address: u128,
}

/// An address, and how many bits it has.
pub fn parse_address(text: &str) -> Option<(u128, u32)> {
    if text.contains(':') {
        let address: Ipv6Addr = text.parse().ok()?;
        // An IPv4 address in IPv6 is an IPv4 address.
        return Some(match address.to_ipv4_mapped() {
            Some(mapped) => (u32::from(mapped).into(), 32),
            None => (address.into(), 128),
        });
    }
    Some((parse_ipv4(text)?, 32))
}

/// Leading zeros are allowed and mean nothing, because old configurations have them.
fn parse_ipv4(text: &str) -> Option<u128> {
    let octets: Vec<u128> = text
        .split('.')
        .map(|octet| {
            let digits = !octet.is_empty() && octet.bytes().all(|byte| byte.is_ascii_digit());
            octet.parse().ok().filter(|octet| digits && *octet <= 255)
        })
        .collect::<Option<_>>()?;
    (octets.len() == 4).then(|| octets.iter().fold(0, |address, octet| address << 8 | octet))
}

impl Network {
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (address, bits) = match address.contains(':') {
            true => (address.parse::<Ipv6Addr>().ok()?.into(), 128),
            false => (parse_ipv4(address)?, 32),
        };
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= bits)?;
        Some(Self::of(bits, prefix, address))
    }

    pub fn of(bits: u32, prefix: u32, address: u128) -> Self {
        let network = Self { bits, prefix, address };
        Self { address: address & !network.host_mask(), ..network }
    }

    fn full_mask(self) -> u128 {
        if self.bits == 128 { u128::MAX } else { u128::from(u32::MAX) }
    }

    /// The bits of the host.
    pub fn host_mask(self) -> u128 {
        let length = self.bits - self.prefix;
        if length == 128 { u128::MAX } else { (1 << length) - 1 }
    }

    pub fn last(self) -> u128 {
        self.address | self.host_mask()
    }

    pub fn contains(self, address: u128) -> bool {
        address & !self.host_mask() & self.full_mask() == self.address
    }

    /// The network of a length that ends just before this one, around the end of all addresses if need be.
    pub fn before(self, prefix: u32) -> Self {
        Self::of(self.bits, prefix, self.address.wrapping_sub(1) & self.full_mask())
    }

    /// The network of a length that begins after this one. `None` at the end of all addresses.
    pub fn after(self, prefix: u32) -> Option<Self> {
        let next = Self::of(self.bits, prefix, self.last()).last().wrapping_add(1) & self.full_mask();
        (next != 0).then(|| Self::of(self.bits, prefix, next))
    }

    pub fn show_address(self, address: u128) -> String {
        match self.bits {
            32 => Ipv4Addr::from(address as u32).to_string(),
            _ => show_ipv6(address),
        }
    }
}

/// As Go: an IPv4 address in IPv6 is written as an IPv4 address.
fn show_ipv6(address: u128) -> String {
    let address = Ipv6Addr::from(address);
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |mapped| mapped.to_string())
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.show_address(self.address), self.prefix)
    }
}

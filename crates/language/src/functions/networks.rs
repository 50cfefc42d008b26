//! IP networks.

use num_bigint::BigInt;

use super::call::Call;
use super::network::{Network, parse_address};
use super::parameter::{number, string};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] = &[
    function("cidrcontains", cidrcontains)
        .takes(&[string("containing_prefix"), string("contained_ip_or_prefix")])
        .gives(Accepts::Bool)
        .or_null()
        .says(
            "Whether a network contains an address or another network.",
            "cidrcontains(\"192.168.2.0/20\", \"192.168.2.1\")",
            "true",
        ),
    function("cidrhost", cidrhost).takes(&[string("prefix"), number("hostnum")]).gives(Accepts::String).says(
        "The address of a host in a network. Negative numbers count from the end.",
        "cidrhost(\"10.12.112.0/20\", 16)",
        "\"10.12.112.16\"",
    ),
    function("cidrnetmask", cidrnetmask).takes(&[string("prefix")]).gives(Accepts::String).says(
        "The mask of an IPv4 network.",
        "cidrnetmask(\"172.16.0.0/12\")",
        "\"255.240.0.0\"",
    ),
    function("cidrsubnet", cidrsubnet)
        .takes(&[string("prefix"), number("newbits"), number("netnum")])
        .gives(Accepts::String)
        .says(
            "The subnet of a number in a network whose prefix is longer by some bits.",
            "cidrsubnet(\"172.16.0.0/12\", 4, 2)",
            "\"172.18.0.0/16\"",
        ),
    function("cidrsubnets", cidrsubnets)
        .takes(&[string("prefix")])
        .and_any(number("newbits"))
        .gives(Accepts::ListOfStrings)
        .says(
            "Consecutive subnets of a network, each with a prefix that is longer by some bits.",
            "cidrsubnets(\"10.1.0.0/16\", 4, 4, 8, 4)",
            "[\"10.1.0.0/20\", \"10.1.16.0/20\", \"10.1.32.0/24\", \"10.1.48.0/20\"]",
        ),
];

fn network(call: &Call<'_>, index: usize) -> Result<Network, Failure> {
    let text = call.text(index);
    Network::parse(text).ok_or_else(|| Failure::of(index, format!("\"{text}\" is not a network in CIDR notation")))
}

/// A whole number of any size.
fn big(call: &Call<'_>, index: usize) -> Result<BigInt, Failure> {
    let number = call.number(index);
    number.truncated().filter(|_| number.is_integer()).ok_or_else(|| Failure::of(index, "a whole number is required"))
}

fn cidrhost(call: &Call<'_>) -> Result<Value, Failure> {
    let number = big(call, 1)?;
    let network = network(call, 0)?;
    let most = BigInt::from(network.host_mask());
    let counted = if number < BigInt::from(0) { &most + &number + 1 } else { number };
    let host = u128::try_from(&counted).ok().filter(|_| counted <= most);
    let host = host.ok_or_else(|| Failure::of(1, format!("{network} has only {} host numbers", &most + 1)))?;
    Ok(Value::string(&network.show_address(network.address | host)))
}

fn cidrnetmask(call: &Call<'_>) -> Result<Value, Failure> {
    let network = network(call, 0)?;
    if network.bits != 32 {
        return Err(Failure::of(0, "an IPv6 network has no mask"));
    }
    Ok(Value::string(&network.show_address(u128::from(u32::MAX) & !network.host_mask())))
}

fn cidrsubnet(call: &Call<'_>) -> Result<Value, Failure> {
    let new_bits = call.whole(1)?;
    let number = big(call, 2)?;
    let network = network(call, 0)?;
    let extended = i64::from(network.prefix).checked_add(new_bits);
    let prefix = extended.and_then(|prefix| u32::try_from(prefix).ok()).filter(|prefix| *prefix <= network.bits);
    let prefix = prefix.ok_or_else(|| Failure::of(1, format!("{network} cannot be extended by {new_bits} bits")))?;
    let subnet = Network { prefix, ..network };
    // A negative number of bits gives a larger network. Upstream bounds its numbers by the length of the address only.
    let most = BigInt::from(1) << if new_bits < 0 { subnet.prefix } else { subnet.prefix - network.prefix };
    let number = u128::try_from(&number).ok().filter(|_| number < most);
    let number = number.ok_or_else(|| Failure::of(2, format!("{new_bits} bits have only {most} numbers")))?;
    let shift = subnet.bits - subnet.prefix;
    let offset = if shift == 128 { 0 } else { number << shift };
    Ok(Value::string(&Network { address: network.address | offset, ..subnet }.to_string()))
}

fn cidrsubnets(call: &Call<'_>) -> Result<Value, Failure> {
    let network = network(call, 0)?;
    let mut current: Option<Network> = None;
    let mut subnets = Vec::new();
    for index in 1..call.arguments.len() {
        let new_bits = u32::try_from(call.whole(index)?).ok().filter(|bits| (1..=32).contains(bits));
        let new_bits = new_bits.ok_or_else(|| Failure::of(index, "a prefix must be extended by 1 to 32 bits"))?;
        let prefix = network.prefix + new_bits;
        if prefix > network.bits {
            return Err(Failure::of(index, format!("a prefix of {prefix} bits is too long for such an address")));
        }
        let before = current.unwrap_or_else(|| network.before(prefix));
        let next = before.after(prefix).filter(|next| network.contains(next.address));
        let next = next.ok_or_else(|| {
            Failure::of(index, format!("{network} has no room for a subnet of {prefix} bits after {before}"))
        })?;
        subnets.push(Value::string(&next.to_string()));
        current = Some(next);
    }
    Ok(Value::list(Type::String, subnets))
}

fn cidrcontains(call: &Call<'_>) -> Result<Value, Failure> {
    let network = network(call, 0)?;
    let text = call.text(1);
    let (first, last, bits) = match (parse_address(text), Network::parse(text)) {
        (Some((address, bits)), _) => (address, address, bits),
        (None, Some(inner)) => (inner.address, inner.last(), inner.bits),
        (None, None) => return Err(Failure::of(1, format!("\"{text}\" is neither an address nor a network"))),
    };
    if bits != network.bits {
        return Err(Failure::of(1, "one is IPv4, and the other is IPv6"));
    }
    Ok((network.contains(first) && network.contains(last)).into())
}

//! Parses the handshake line, in which a plugin announces its address and protocol. Pure.
//!
//! The format is `CORE|APP|NETWORK|ADDRESS|TYPE|CERTIFICATE`, for example `1|6|unix|/tmp/p/plugin123|grpc|MIIC…`. The
//! certificate is standard base64 without padding, and is absent if the plugin does not use TLS. Newer plugins may add
//! fields.

use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::Protocol;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    pub protocol: Protocol,
    pub address: Address,
    /// In DER form; `None` if the plugin does not use TLS.
    pub certificate: Option<Vec<u8>>,
}

/// The address on which a plugin listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// An invalid or unsupported handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHandshake {
    /// The output of another program.
    #[error("it is not a provider plugin: it wrote `{0}` instead of a handshake")]
    NotAPlugin(String),
    /// Another version of the handshake itself.
    #[error("it uses version {0} of the plugin handshake, but Purlin supports only version 1")]
    Core(String),
    /// Another version of the provider protocol.
    #[error(
        "it uses version {0} of the provider protocol, but Purlin supports only versions 5 and 6 \
        (hint: use a version of the provider for Terraform 0.12 or newer)"
    )]
    Protocol(String),
    /// Neither a Unix socket nor a TCP address.
    #[error("it listens on `{0}`, but Purlin supports only Unix sockets and TCP")]
    Address(String),
    /// The transport that preceded gRPC.
    #[error(
        "it uses {0}, but Purlin supports only gRPC \
        (hint: use a version of the provider for Terraform 0.12 or newer)"
    )]
    Transport(String),
    #[error("its certificate is not valid base64")]
    Certificate,
}

/// A shorter last field is not a certificate: some plugins put a word there.
const MIN_CERTIFICATE_LENGTH: usize = 50;

/// The maximum number of characters of an unexpected line that an error quotes.
const MAX_QUOTE: usize = 100;

/// Parses the first line of a plugin's standard output.
pub fn parse(line: &str) -> Result<Handshake, InvalidHandshake> {
    let fields: Vec<&str> = line.trim().split('|').map(str::trim).collect();
    let [core, app, network, address, ..] = fields.as_slice() else {
        return Err(InvalidHandshake::NotAPlugin(quote(line)));
    };
    if core.parse::<u32>().is_err() || app.parse::<u32>().is_err() {
        return Err(InvalidHandshake::NotAPlugin(quote(line)));
    }
    if *core != "1" {
        return Err(InvalidHandshake::Core((*core).to_owned()));
    }
    // A server with another transport announces it here.
    match fields.get(4) {
        Some(&"grpc") => {}
        Some(&other) if !other.is_empty() => return Err(InvalidHandshake::Transport(other.to_owned())),
        _ => return Err(InvalidHandshake::Transport("net/rpc".to_owned())),
    }
    let protocol = match *app {
        "5" => Protocol::V5,
        "6" => Protocol::V6,
        other => return Err(InvalidHandshake::Protocol(other.to_owned())),
    };
    let certificate = match fields.get(5) {
        Some(text) if text.len() > MIN_CERTIFICATE_LENGTH => {
            Some(STANDARD_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| InvalidHandshake::Certificate)?)
        }
        _ => None,
    };
    Ok(Handshake { protocol, address: parse_address(network, address)?, certificate })
}

fn parse_address(network: &str, address: &str) -> Result<Address, InvalidHandshake> {
    let parsed = match network {
        "unix" if !address.is_empty() => Some(Address::Unix(address.into())),
        "tcp" => address.parse().ok().map(Address::Tcp),
        _ => None,
    };
    parsed.ok_or_else(|| InvalidHandshake::Address(quote(&format!("{network} {address}"))))
}

fn quote(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_a_certificate_are_parsed() {
        let certificate = STANDARD_NO_PAD.encode([7; 100]);
        let handshake = parse(&format!("1|6|unix|/p/plugin1|grpc|{certificate}\n")).unwrap();
        assert_eq!(handshake.protocol, Protocol::V6);
        assert_eq!(handshake.address, Address::Unix("/p/plugin1".into()));
        assert_eq!(handshake.certificate, Some(vec![7; 100]));
    }

    #[test]
    fn a_handshake_without_tls_and_with_unknown_fields_is_accepted() {
        let handshake = parse("1|5|tcp|127.0.0.1:1234|grpc||true").unwrap();
        assert_eq!(handshake.protocol, Protocol::V5);
        assert_eq!(handshake.address, Address::Tcp(([127, 0, 0, 1], 1234).into()));
        assert_eq!(handshake.certificate, None);
    }

    fn error(line: &str) -> InvalidHandshake {
        parse(line).unwrap_err()
    }

    #[test]
    fn every_invalid_line_has_a_specific_error() {
        assert_eq!(error("Hello, world!\n"), InvalidHandshake::NotAPlugin("Hello, world!".into()));
        assert_eq!(error("a|b|c|d|e"), InvalidHandshake::NotAPlugin("a|b|c|d|e".into()));
        assert_eq!(error("2|5|unix|/p|grpc"), InvalidHandshake::Core("2".into()));
        assert_eq!(error("1|4|unix|/p|grpc"), InvalidHandshake::Protocol("4".into()));
        assert_eq!(error("1|4|unix|/p"), InvalidHandshake::Transport("net/rpc".into()));
        assert_eq!(error("1|5|unix|/p|netrpc"), InvalidHandshake::Transport("netrpc".into()));
        assert_eq!(error("1|5|unix||grpc"), InvalidHandshake::Address("unix".into()));
        assert_eq!(error("1|5|tcp|nowhere|grpc"), InvalidHandshake::Address("tcp nowhere".into()));
        assert_eq!(error(&format!("1|5|unix|/p|grpc|{}", "!".repeat(60))), InvalidHandshake::Certificate);
        assert!(error(&"é".repeat(500)).to_string().contains('…'));
    }
}

//! The line with which a plugin says where it listens and how to talk to it. Pure.
//!
//! `CORE|APP|NETWORK|ADDRESS|TYPE|CERTIFICATE`, for example `1|6|unix|/tmp/p/plugin123|grpc|MIIC…`. A certificate is
//! standard base64 without padding, and absent when the plugin speaks without TLS. Newer plugins may add fields.

use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::Protocol;

/// What a plugin said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The version of the provider protocol that it will speak.
    pub protocol: Protocol,
    /// Where it listens.
    pub address: Address,
    /// Its certificate (DER); `None` when it speaks without TLS.
    pub certificate: Option<Vec<u8>>,
}

/// Where a plugin listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// Why a line is no handshake that we can go on with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHandshake {
    /// Some other program.
    #[error("it is no provider plugin: it wrote `{0}` where a plugin tells its address")]
    NoPlugin(String),
    /// Another way to start plugins.
    #[error("it uses version {0} of the plugin handshake, Purlin knows version 1")]
    Core(String),
    /// Another version of the provider protocol.
    #[error(
        "it speaks version {0} of the provider protocol, Purlin speaks 5 and 6 \
         (hint: use a version of the provider that was made for Terraform 0.12 or newer)"
    )]
    Protocol(String),
    /// Neither a socket nor a port.
    #[error("it listens on `{0}`, Purlin knows Unix sockets and TCP")]
    Address(String),
    /// The transport before gRPC.
    #[error(
        "it speaks {0}, Purlin speaks gRPC \
         (hint: use a version of the provider that was made for Terraform 0.12 or newer)"
    )]
    Transport(String),
    /// The last field is no base64.
    #[error("its certificate cannot be read")]
    Certificate,
}

/// A shorter last field is no certificate: some plugins fill it with a word.
const SHORTEST_CERTIFICATE: usize = 50;

/// How much of a foreign line an error repeats.
const LONGEST_QUOTE: usize = 100;

/// Reads the first line of a plugin's standard output.
pub fn parse(line: &str) -> Result<Handshake, InvalidHandshake> {
    let fields: Vec<&str> = line.trim().split('|').map(str::trim).collect();
    let [core, app, network, address, ..] = fields.as_slice() else {
        return Err(InvalidHandshake::NoPlugin(quote(line)));
    };
    if core.parse::<u32>().is_err() || app.parse::<u32>().is_err() {
        return Err(InvalidHandshake::NoPlugin(quote(line)));
    }
    if *core != "1" {
        return Err(InvalidHandshake::Core((*core).to_owned()));
    }
    // A server of another protocol says so here, whatever it was asked for.
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
        Some(text) if text.len() > SHORTEST_CERTIFICATE => {
            Some(STANDARD_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| InvalidHandshake::Certificate)?)
        }
        _ => None,
    };
    Ok(Handshake { protocol, address: listening(network, address)?, certificate })
}

fn listening(network: &str, address: &str) -> Result<Address, InvalidHandshake> {
    let unknown = || InvalidHandshake::Address(quote(&format!("{network} {address}")));
    match network {
        "unix" if !address.is_empty() => Ok(Address::Unix(address.into())),
        "tcp" => address.parse().map(Address::Tcp).map_err(|_| unknown()),
        _ => Err(unknown()),
    }
}

fn quote(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_a_certificate_are_read() {
        let certificate = STANDARD_NO_PAD.encode([7; 100]);
        let handshake = parse(&format!("1|6|unix|/p/plugin1|grpc|{certificate}\n")).unwrap();
        assert_eq!(handshake.protocol, Protocol::V6);
        assert_eq!(handshake.address, Address::Unix("/p/plugin1".into()));
        assert_eq!(handshake.certificate, Some(vec![7; 100]));
    }

    #[test]
    fn without_tls_and_with_fields_of_the_future_it_is_read_as_well() {
        let handshake = parse("1|5|tcp|127.0.0.1:1234|grpc||true").unwrap();
        assert_eq!(handshake.protocol, Protocol::V5);
        assert_eq!(handshake.address, Address::Tcp(([127, 0, 0, 1], 1234).into()));
        assert_eq!(handshake.certificate, None);
    }

    #[test]
    fn every_malformed_line_has_its_own_error() {
        let error = |line: &str| parse(line).unwrap_err();
        assert_eq!(error("Hello, world!\n"), InvalidHandshake::NoPlugin("Hello, world!".into()));
        assert_eq!(error("a|b|c|d|e"), InvalidHandshake::NoPlugin("a|b|c|d|e".into()));
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

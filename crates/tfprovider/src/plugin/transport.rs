//! The gRPC transport to a plugin: over a Unix socket or TCP, with or without TLS.

use std::error::Error as _;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use prost::bytes::Buf as _;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::{ProstCodec, ProstEncoder};

use process::lock;

use super::fields::Fields;
use super::handshake::Address;
use super::tls::SERVER_NAME;

/// The limit of the servers: schemas and states of large providers far exceed gRPC's default of 4 MiB.
pub const MAX_MESSAGE_SIZE: usize = 256 * 1024 * 1024;

/// The maximum number of fields of a response. An element of a list, such as a diagnostic or the schema of a type, is a field
/// of at least two bytes, and becomes a struct of about a hundred. The largest providers have some thousand types.
const MAX_FIELDS: usize = 20_000;

/// The limit of messages that are always small: output and the responses of the framework.
pub const MAX_SMALL_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The bytes of a connection to a plugin, without the encryption of this machine's end.
pub type ByteStream = Box<dyn Stream>;

/// Connects to a plugin.
pub async fn connect(address: &Address, tls: Option<ClientConfig>) -> io::Result<ByteStream> {
    let stream: ByteStream = match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    };
    match tls {
        None => Ok(stream),
        Some(config) => {
            let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
            Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
        }
    }
}

/// The channel for calls over a connection. It never reconnects: no process would listen at the same address, or another
/// process that was never configured.
pub async fn channel(stream: ByteStream) -> io::Result<Channel> {
    let only = Arc::new(Mutex::new(Some(TokioIo::new(stream))));
    let connector = tower::service_fn(move |_: http::Uri| {
        let stream = lock(&only).take();
        async move { stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
    });
    // The name is only used in HTTP/2 headers; TLS has been set up already.
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.map_err(io::Error::other)
}

/// Sends a call. `limit`: the maximum size of the response in bytes.
pub async fn unary<Q, A>(channel: Channel, path: &'static str, request: Q, limit: usize) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = ready(channel, limit).await?;
    let codec = Bounded(PhantomData::<(Q, A)>);
    Ok(grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?.into_inner())
}

/// Encodes requests, and decodes responses with a limited number of fields.
struct Bounded<T>(PhantomData<T>);

impl<Q, A> Codec for Bounded<(Q, A)>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    type Encode = Q;
    type Decode = A;
    type Encoder = ProstEncoder<Q>;
    type Decoder = Bounded<A>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        Bounded(PhantomData)
    }
}

impl<A: Message + Default> Decoder for Bounded<A> {
    type Item = A;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<A>, Status> {
        decode(&buffer.copy_to_bytes(buffer.remaining())).map(Some)
    }
}

fn decode<A: Message + Default>(encoded: &[u8]) -> Result<A, Status> {
    if Fields(encoded).nth(MAX_FIELDS).is_some() {
        return Err(Status::out_of_range(format!("the response has more than {MAX_FIELDS} elements")));
    }
    A::decode(encoded).map_err(|error| Status::internal(error.to_string()))
}

/// Sends a call that returns a stream. Waits for the first message.
pub async fn stream<Q, A>(channel: Channel, path: &'static str, request: Q) -> Result<Streaming<A>, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = ready(channel, MAX_SMALL_MESSAGE_SIZE).await?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.server_streaming(Request::new(request), PathAndQuery::from_static(path), codec).await?.into_inner())
}

async fn ready(channel: Channel, limit: usize) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(limit).max_encoding_message_size(MAX_MESSAGE_SIZE);
    grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
    Ok(grpc)
}

/// Whether a status was caused by the connection and not returned by the plugin.
pub fn is_broken(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}

/// Formats a status and its sources on one line.
pub fn reason(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(&format!(": {more}"));
        }
        source = error.source();
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::Diagnostic;
    use crate::plugin::messages::CheckResponse;

    #[test]
    fn a_response_has_a_maximum_number_of_elements() {
        let read = |count: usize| {
            let diagnostics = vec![Diagnostic::default(); count];
            decode::<CheckResponse>(&CheckResponse { diagnostics }.encode_to_vec())
        };
        assert_eq!(read(MAX_FIELDS).unwrap().diagnostics.len(), MAX_FIELDS);
        let refused = read(MAX_FIELDS + 1).unwrap_err();
        assert_eq!(refused.message(), "the response has more than 20000 elements");
        assert!(decode::<CheckResponse>(&[0x0a]).is_err());
    }
}

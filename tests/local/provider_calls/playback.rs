//! A provider that answers as the recorded one did: requests that `OpenTofu` made get the recorded response, and all
//! others an error.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::server::SendResponse;
use tokio::net::{UnixListener, UnixStream};

use super::message::{current_name, decode};
use super::vectors::{Call, Step, unhex};

/// The gRPC status of a method that the provider does not have.
const UNIMPLEMENTED: u16 = 12;

/// The gRPC status of a request that was not recorded.
const UNKNOWN: u16 = 2;

/// A request by provider, method and decoded value.
pub(super) type Request = (String, String, String);

/// The calls of a step, recorded and made.
#[derive(Default)]
pub(super) struct Played {
    /// The recorded calls in their order. Equal requests can have different responses.
    recorded: BTreeMap<Request, Vec<Call>>,
    /// How often each request was made.
    pub(super) made: BTreeMap<Request, usize>,
}

impl Played {
    pub(super) fn new(step: &Step) -> Self {
        let mut played = Self::default();
        for call in &step.calls {
            let request = request(&call.provider, &call.method, &unhex(&call.request));
            played.recorded.entry(request).or_default().push(call.clone());
        }
        played
    }

    fn respond(&mut self, request: Request) -> Result<Vec<u8>, u16> {
        if request.1 == "ConfigureProvider" && !self.recorded.keys().any(|known| known.1 == request.1) {
            // OpenTofu validates everything before it configures a provider.
            return Ok(Vec::new());
        }
        let count = self.made.entry(request.clone()).or_default();
        let calls = self.recorded.get(&request).ok_or(UNKNOWN)?;
        let call = &calls[(*count).min(calls.len() - 1)];
        *count += 1;
        match call.failure.as_deref() {
            None => Ok(unhex(&call.response)),
            Some("Unimplemented") => Err(UNIMPLEMENTED),
            Some(_) => Err(UNKNOWN),
        }
    }

    /// The requests that `OpenTofu` did not make.
    pub(super) fn added(&self) -> Vec<&Request> {
        self.made.keys().filter(|request| !self.recorded.contains_key(request)).collect()
    }

    /// The requests that only `OpenTofu` made.
    pub(super) fn missing(&self) -> Vec<&Request> {
        self.recorded.keys().filter(|request| !self.made.contains_key(request)).collect()
    }
}

fn request(provider: &str, method: &str, message: &[u8]) -> Request {
    let mut fields = decode(method, message);
    let method = current_name(method);
    if method == "PlanResourceChange" && fields["prior_state"].is_null() {
        // Of the new object in a replacement: OpenTofu sends the private data of the first plan, but none when it plans
        // again in the apply phase. Purlin sends none.
        fields.as_object_mut().unwrap().remove("prior_private");
    }
    (provider.to_owned(), method.to_owned(), fields.to_string())
}

/// Serves a provider on a socket, until the runtime ends.
pub(super) fn serve(socket: &Path, provider: String, played: Arc<Mutex<Played>>) {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(converse(connection, provider.clone(), Arc::clone(&played)));
        }
    });
}

async fn converse(connection: UnixStream, provider: String, played: Arc<Mutex<Played>>) {
    let Ok(mut connection) = h2::server::handshake(connection).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond, provider.clone(), Arc::clone(&played)));
    }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    respond: SendResponse<Bytes>,
    provider: String,
    played: Arc<Mutex<Played>>,
) {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut message = BytesMut::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        message.extend_from_slice(&data);
    }
    let method = path.rsplit('/').next().unwrap_or_default();
    let response = match path.starts_with("/tfplugin") {
        // Five bytes precede the message: whether it is compressed, and its length.
        true => played.lock().unwrap().respond(self::request(&provider, method, &message[5..])),
        false => Err(UNIMPLEMENTED),
    };
    // The client may be gone.
    let _ = send(respond, response);
}

fn send(mut respond: SendResponse<Bytes>, response: Result<Vec<u8>, u16>) -> Result<(), h2::Error> {
    let head = http::Response::builder().header("content-type", "application/grpc");
    match response {
        Ok(message) => {
            let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
            let mut framed = BytesMut::with_capacity(message.len() + 5);
            framed.put_u8(0);
            framed.put_u32(u32::try_from(message.len()).unwrap());
            framed.put_slice(&message);
            stream.send_data(framed.freeze(), false)?;
            let ended = [("grpc-status".parse().unwrap(), "0".parse().unwrap())];
            stream.send_trailers(ended.into_iter().collect())
        }
        Err(status) => {
            let head = head.header("grpc-status", status).header("grpc-message", "this request was not recorded");
            respond.send_response(head.body(()).unwrap(), true).map(drop)
        }
    }
}

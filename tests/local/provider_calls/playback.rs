//! A provider that answers as the recorded one did: requests that OpenTofu made get the recorded response, and all
//! others an error.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::server::SendResponse;
use serde_json::Value as Json;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::difference::differences;
use super::message::{current_name, decode};
use super::vectors::{Call, Step, unhex};

/// The gRPC status of a method that the provider does not have.
const UNIMPLEMENTED: u16 = 12;

/// The gRPC status of a request that was not recorded.
const UNKNOWN: u16 = 2;

/// The methods that Purlin must call whenever OpenTofu does: those that read or change objects.
const REQUIRED: [&str; 4] = ["ApplyResourceChange", "ImportResourceState", "MoveResourceState", "ReadResource"];

/// A request by provider, method and decoded value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    provider: String,
    method: String,
    fields: String,
}

/// The calls of a step, recorded and made.
#[derive(Default)]
pub(super) struct Played {
    /// The recorded calls in their order. Equal requests can have different responses.
    recorded: BTreeMap<Request, Vec<Call>>,
    /// How often each request was made.
    made: BTreeMap<Request, usize>,
    /// Whether an object has `ignoreChanges`.
    ignores: bool,
}

impl Played {
    pub(super) fn new(step: &Step) -> Self {
        let ignores = step.objects().iter().any(|object| !object.ignore_changes.is_empty());
        let mut played = Self { ignores, ..Self::default() };
        for call in &step.calls {
            let request = Request::new(&call.provider, &call.method, &unhex(&call.request));
            played.recorded.entry(request).or_default().push(call.clone());
        }
        played
    }

    fn respond(&mut self, request: Request) -> Result<Vec<u8>, u16> {
        let is_configured = |known: &Request| known.method == "ConfigureProvider" && known.provider == request.provider;
        if request.method == "ConfigureProvider" && !self.recorded.keys().any(is_configured) {
            // OpenTofu validates all configurations before it configures a provider. An empty response is a success.
            return Ok(Vec::new());
        }
        let request = self.without_ignored(request);
        let count = self.made.entry(request.clone()).or_default();
        *count += 1;
        let calls = self.recorded.get(&request).ok_or(UNKNOWN)?;
        let call = &calls[(*count - 1).min(calls.len() - 1)];
        match call.failure.as_deref() {
            None => Ok(unhex(&call.response)),
            Some("Unimplemented") => Err(UNIMPLEMENTED),
            Some(_) => Err(UNKNOWN),
        }
    }

    /// In the configuration of an update, OpenTofu sends ignored attributes as written, and Purlin with the values that
    /// it planned. Returns the recorded request that is equal otherwise, or else the request.
    fn without_ignored(&self, request: Request) -> Request {
        if !self.ignores || request.method != "ApplyResourceChange" || self.recorded.contains_key(&request) {
            return request;
        }
        let mut recorded = self.recorded.keys().filter(|known| known.method == request.method);
        recorded.find(|known| known.without_config() == request.without_config()).cloned().unwrap_or(request)
    }

    /// The requests that OpenTofu did not make, those that only OpenTofu made although Purlin must, and the changes
    /// that were not made equally often.
    pub(super) fn differences(&self) -> Vec<String> {
        let added = self.made.keys().filter(|request| !self.recorded.contains_key(request));
        let missing = self.recorded.keys().filter(|request| !self.made.contains_key(request));
        let missing = missing.filter(|request| REQUIRED.contains(&request.method.as_str()));
        let often = self.made.iter().filter(|(request, count)| {
            let recorded = self.recorded.get(request).map(|calls| calls.iter().map(|call| call.count).sum());
            request.method == "ApplyResourceChange" && recorded.is_some_and(|recorded: usize| recorded != **count)
        });
        let added = added.map(|request| self.explain(request));
        let missing = missing.map(|request| format!("only OpenTofu sends {}", request.shown()));
        let often = often.map(|(request, count)| format!("sent {count} times: {}", request.shown()));
        added.chain(missing).chain(often).collect()
    }

    /// How a request differs from the most similar one of OpenTofu.
    fn explain(&self, request: &Request) -> String {
        let like = self.recorded.keys().filter(|known| known.kind() == request.kind());
        let compared = like.map(|known| differences(&request.json(), &known.json()));
        match compared.min_by_key(Vec::len) {
            Some(differences) => format!("{} differs:\n  {}", request.kind().1, differences.join("\n  ")),
            None => format!("only Purlin sends {}", request.shown()),
        }
    }
}

impl Request {
    fn new(provider: &str, method: &str, message: &[u8]) -> Self {
        let mut fields = decode(method, message);
        let method = current_name(method);
        if method == "PlanResourceChange" && fields["prior_state"].is_null() {
            // For the new object of a replacement, OpenTofu sends the private data of the first plan, but none when it
            // plans again to apply. Purlin sends none.
            fields.as_object_mut().unwrap().remove("prior_private");
        }
        Self { provider: provider.to_owned(), method: method.to_owned(), fields: fields.to_string() }
    }

    fn json(&self) -> Json {
        serde_json::from_str(&self.fields).unwrap()
    }

    fn without_config(&self) -> Json {
        let mut fields = self.json();
        fields.as_object_mut().unwrap().remove("config");
        fields
    }

    /// The provider, method and type.
    fn kind(&self) -> (&str, String) {
        let type_name = self.json()["type_name"].as_str().unwrap_or_default().to_owned();
        (&self.provider, format!("{} {type_name}", self.method))
    }

    fn shown(&self) -> String {
        format!("{} {}", self.method, self.fields)
    }
}

/// Serves a provider on a socket, until the runtime ends.
pub(super) fn serve(runtime: &Handle, socket: &Path, provider: String, played: Arc<Mutex<Played>>) {
    let _guard = runtime.enter();
    let listener = UnixListener::bind(socket).unwrap();
    runtime.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((connection, _)) = listener.accept().await {
            connections.spawn(converse(connection, provider.clone(), Arc::clone(&played)));
        }
    });
}

async fn converse(connection: UnixStream, provider: String, played: Arc<Mutex<Played>>) {
    let Ok(mut connection) = h2::server::handshake(connection).await else { return };
    let mut answers = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        answers.spawn(answer(request, respond, provider.clone(), Arc::clone(&played)));
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
        true => played.lock().unwrap().respond(Request::new(&provider, method, &message[5..])),
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

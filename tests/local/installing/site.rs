//! An HTTPS server on loopback with the responses of a test, which can also be truncated.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The response for one path.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The number of bytes of the body that are sent before the connection is closed.
    pub(crate) sent: usize,
    /// The required `Authorization` header, and the response for other requests.
    pub(crate) only_for: Option<(String, Box<Answer>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
}

#[derive(Default)]
struct Content {
    answers: BTreeMap<String, Answer>,
    requests: Vec<Request>,
}

/// The server. It stops when it is dropped.
pub(crate) struct Site {
    /// `localhost:PORT`.
    pub(crate) host: String,
    /// The certificate to trust (PEM).
    pub(crate) root: Vec<u8>,
    content: Arc<Mutex<Content>>,
    _serving: JoinSet<()>,
}

impl Answer {
    pub(crate) fn of(body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status: 200, headers: Vec::new(), sent: body.len(), body, only_for: None }
    }

    pub(crate) fn json(body: &serde_json::Value) -> Self {
        Self::of(body.to_string()).with("Content-Type", "application/json")
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::of("") }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection after this number of bytes of the body.
    pub(crate) fn cut(self, sent: usize) -> Self {
        Self { sent, ..self }
    }

    pub(crate) fn only_for(self, authorization: &str, otherwise: Self) -> Self {
        Self { only_for: Some((authorization.to_owned(), Box::new(otherwise))), ..self }
    }

    fn head(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = self.body.len();
        format!("HTTP/1.1 {} Answer\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n", self.status)
    }
}

impl Site {
    pub(crate) async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let host = format!("localhost:{}", listener.local_addr().unwrap().port());
        let content = Arc::new(Mutex::new(Content::default()));
        let served = Arc::clone(&content);
        let mut all = JoinSet::new();
        all.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, content) = (acceptor.clone(), Arc::clone(&served));
                connections.spawn(async move {
                    // A client that does not trust the certificate closes the connection. A separate test checks this.
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let answer = answer(&content, &String::from_utf8_lossy(&head));
                    let _ = stream.write_all(answer.head().as_bytes()).await;
                    let _ = stream.write_all(&answer.body[..answer.sent]).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { host, root: made.cert.pem().into_bytes(), content, _serving: all }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.host)
    }

    pub(crate) fn put(&self, path: impl Into<String>, answer: Answer) {
        self.content.lock().unwrap().answers.insert(path.into(), answer);
    }

    /// Changes the response for a path.
    pub(crate) fn change(&self, path: &str, change: impl FnOnce(&mut Answer)) {
        change(self.content.lock().unwrap().answers.get_mut(path).unwrap());
    }

    /// Returns the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.content.lock().unwrap().requests)
    }
}

fn answer(content: &Mutex<Content>, head: &str) -> Answer {
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let header = |name: &str| {
        head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let authorization = header("authorization").map(|(_, value)| value.to_owned());
    let mut content = content.lock().unwrap();
    content.requests.push(Request { path: path.clone(), authorization: authorization.clone() });
    let mut found = content.answers.get(&path).cloned().unwrap_or_else(|| Answer::status(404));
    if let Some((wanted, otherwise)) = found.only_for.take()
        && authorization != Some(wanted)
    {
        found = *otherwise;
    }
    found
}

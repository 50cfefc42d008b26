//! An API server that answers some requests with trouble: a proxy in front of the real one.
//!
//! `kubectl proxy` speaks TLS and authenticates; what stands before it reads the head of each request and either lets
//! the connection through, or answers itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::controlplane::ControlPlane;
use crate::installation::NAMESPACE;

/// What a request is answered with instead of being let through.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// 429, with the request to come back in a second.
    TooManyRequests,
    /// A list or watch that is told at once that its version is too old.
    Gone,
    /// A watch that begins, and then is told the same.
    GoneLater,
}

type Rule = dyn FnMut(&str, &str) -> Option<Trouble> + Send;

/// The proxy. Dropping it takes the way to the API server away.
pub(crate) struct Proxy {
    upstream: Child,
    kubeconfig: PathBuf,
}

impl Proxy {
    /// Stands before the API server for the controller's own account. `rule` is asked about each request: its method,
    /// and its path with the query.
    pub(crate) fn start(
        plane: &ControlPlane,
        rule: impl FnMut(&str, &str) -> Option<Trouble> + Send + 'static,
    ) -> Self {
        let account = plane.service_account_kubeconfig(NAMESPACE, "purlin");
        let account = account.to_str().expect("a path of text");
        let mut upstream = plane.kubectl_child(&["--kubeconfig", account, "proxy", "--port=0"]);
        let mut line = String::new();
        BufReader::new(upstream.stdout.take().expect("its output")).read_line(&mut line).expect("its announcement");
        let port = line.trim().rsplit(':').next().expect("a port").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let rule: Arc<Mutex<Box<Rule>>> = Arc::new(Mutex::new(Box::new(rule)));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (rule, port) = (Arc::clone(&rule), port.clone());
                // A connection that breaks is what a proxy does when either side goes away.
                thread::spawn(move || drop(serve(connection, &rule, &port)));
            }
        });
        let kubeconfig = plane.scratch().join(format!("proxy-{}.kubeconfig", address.port()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("write a kubeconfig");
        Self { upstream, kubeconfig }
    }

    /// The way through it.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It is ours, and nothing of it is needed any more.
        let _ = self.upstream.kill();
        let _ = self.upstream.wait();
    }
}

/// Serves one request of a connection, which ends with it.
fn serve(client: TcpStream, rule: &Mutex<Box<Rule>>, port: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        if !line.to_ascii_lowercase().starts_with("connection:") {
            head.push(line);
        }
    }
    let mut words = head.first().map(String::as_str).unwrap_or_default().split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let trouble = rule.lock().ok().and_then(|mut rule| rule(method, path));
    if let Some(trouble) = trouble {
        return answer(client, trouble);
    }
    let mut server = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    server.write_all(head.concat().as_bytes())?;
    server.write_all(b"Connection: close\r\n\r\n")?;
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    let back = thread::spawn(move || {
        let copied = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
        copied
    });
    // The body of the request, until the client has said all or is gone.
    let _ = std::io::copy(&mut reader.by_ref(), &mut server);
    let _ = server.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

fn answer(mut client: TcpStream, trouble: Trouble) -> std::io::Result<()> {
    let status = |code: u16, reason: &str| {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
            "message": format!("{reason}, as the test wants it")})
    };
    let (line, more, body) = match trouble {
        Trouble::TooManyRequests => {
            ("429 Too Many Requests", "Retry-After: 1\r\n", status(429, "TooManyRequests").to_string())
        }
        Trouble::Gone => ("410 Gone", "", status(410, "Expired").to_string()),
        Trouble::GoneLater => {
            ("200 OK", "", json!({"type": "ERROR", "object": status(410, "Expired")}).to_string() + "\n")
        }
    };
    write!(
        client,
        "HTTP/1.1 {line}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n{body}",
        body.len()
    )?;
    client.shutdown(Shutdown::Write)
}

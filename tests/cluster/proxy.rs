//! A proxy in front of the real API server that responds to some requests with errors.
//!
//! `kubectl proxy` does TLS and authentication. The proxy in front of it reads the head of each request, and either
//! forwards the connection or responds with an error.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::controlplane::ControlPlane;
use crate::installation::NAMESPACE;

/// The response to a request that is not forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// 429, with the hint to retry after a second.
    TooManyRequests,
    /// 410 for a list or watch: its version is too old.
    Gone,
    /// A watch that starts, and then receives the same error as an event.
    GoneLater,
}

type Rule = dyn FnMut(&str, &str) -> Option<Fault> + Send;

/// The proxy. Dropping it closes the connections to the API server.
pub(crate) struct Proxy {
    upstream: Child,
    kubeconfig: PathBuf,
}

impl Proxy {
    /// Starts a proxy with the account of the controller. `rule` decides on each request, by its method and its path
    /// with the query.
    pub(crate) fn start(plane: &ControlPlane, rule: impl FnMut(&str, &str) -> Option<Fault> + Send + 'static) -> Self {
        let account = plane.service_account_kubeconfig(NAMESPACE, "purlin");
        let account = account.to_str().expect("a path in UTF-8");
        let mut upstream = plane.kubectl_child(&["--kubeconfig", account, "proxy", "--port=0"]);
        let mut line = String::new();
        BufReader::new(upstream.stdout.take().expect("a piped stdout"))
            .read_line(&mut line)
            .expect("the line with the port");
        let port = line.trim().rsplit(':').next().expect("a port").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let rule: Arc<Mutex<Box<Rule>>> = Arc::new(Mutex::new(Box::new(rule)));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (rule, port) = (Arc::clone(&rule), port.clone());
                // An I/O error only means that either side has closed the connection.
                thread::spawn(move || drop(serve(connection, &rule, &port)));
            }
        });
        let kubeconfig = plane.scratch().join(format!("proxy-{}.kubeconfig", address.port()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "anonymous", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "anonymous"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("write a kubeconfig");
        Self { upstream, kubeconfig }
    }

    /// A kubeconfig that connects through the proxy.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Errors do not matter: the process may have ended already.
        let _ = self.upstream.kill();
        let _ = self.upstream.wait();
    }
}

/// Serves one request, and closes the connection.
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
    let fault = rule.lock().ok().and_then(|mut rule| rule(method, path));
    if let Some(fault) = fault {
        return respond(client, fault);
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
    // Copy the body of the request until the client closes its side.
    let _ = std::io::copy(&mut reader.by_ref(), &mut server);
    let _ = server.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

fn respond(mut client: TcpStream, fault: Fault) -> std::io::Result<()> {
    let status = |code: u16, reason: &str| {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
            "message": format!("{reason}, injected by the test")})
    };
    let (line, more, body) = match fault {
        Fault::TooManyRequests => {
            ("429 Too Many Requests", "Retry-After: 1\r\n", status(429, "TooManyRequests").to_string())
        }
        Fault::Gone => ("410 Gone", "", status(410, "Expired").to_string()),
        Fault::GoneLater => {
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

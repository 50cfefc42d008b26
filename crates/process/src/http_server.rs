//! Serves HTTP requests with limits on time, size and number: everyone who reaches the port can open connections.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tower::ServiceExt as _;

use super::Shutdown;

/// The maximum size of a request without its body, in bytes: tokens have a few kilobytes.
const MAX_HEAD: usize = 32 * 1024;

/// The delay after an error of the listener, such as too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// What a client may use.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The time for the head of a request, and between two requests.
    pub head: Duration,
    /// The time for a connection: a client that reads slowly does not keep it.
    pub connection: Duration,
    /// The number of connections.
    pub connections: usize,
}

impl Default for HttpLimits {
    /// Enough for a page in each of hundreds of browsers, probes and scrapers.
    fn default() -> Self {
        Self { head: Duration::from_secs(15), connection: Duration::from_mins(5), connections: 512 }
    }
}

/// Serves until `ended`; then requests that have begun are answered.
pub async fn serve_http(listener: TcpListener, router: Router, limits: HttpLimits, ended: Shutdown) {
    let mut connections = Connections { limits, tasks: JoinSet::new(), open: Vec::new() };
    loop {
        tokio::select! {
            biased;
            () = ended.triggered() => break,
            Some(_) = connections.tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => connections.add(peer, serve(stream, router.clone(), limits, ended.clone())),
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
    while connections.tasks.join_next().await.is_some() {}
}

struct Connections {
    limits: HttpLimits,
    tasks: JoinSet<()>,
    /// Oldest first.
    open: Vec<(IpAddr, AbortHandle)>,
}

impl Connections {
    /// Adds a connection. If there are too many, the client with the most of them loses its oldest one: a client that
    /// opens thousands does not keep others out, such as the probes of the kubelet.
    fn add(&mut self, peer: SocketAddr, served: impl Future<Output = ()> + Send + 'static) {
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= self.limits.connections {
            let busiest = self
                .open
                .iter()
                .map(|(peer, _)| *peer)
                .max_by_key(|busy| self.open.iter().filter(|(peer, _)| peer == busy).count());
            let oldest = self.open.iter().position(|(peer, _)| Some(*peer) == busiest);
            oldest.into_iter().for_each(|oldest| self.open.remove(oldest).1.abort());
        }
        self.open.push((peer.ip(), self.tasks.spawn(served)));
    }
}

async fn serve(stream: TcpStream, router: Router, limits: HttpLimits, ended: Shutdown) {
    let service = router.map_request(|request: hyper::Request<Incoming>| request.map(Body::new));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(MAX_HEAD);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
    // How a connection ends is the matter of its client.
    tokio::select! {
        _ = &mut served => return,
        () = ended.triggered() => {}
        () = tokio::time::sleep(limits.connection) => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(limits.head, served).await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server, and what ends it.
    async fn server(limits: HttpLimits) -> (SocketAddr, Shutdown, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router =
            Router::new().route("/", get(|| async { "hello" })).route("/large", get(|| async { "x".repeat(1 << 24) }));
        let ended = Shutdown::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_http(listener, router, limits, ended.clone()));
        (address, ended, tasks)
    }

    async fn open(address: SocketAddr, sent: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream
    }

    /// Everything until the server closes the connection.
    async fn rest(mut stream: TcpStream) -> String {
        let mut text = Vec::new();
        // A connection that is closed with unread data is reset.
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8(text).unwrap()
    }

    async fn answer(address: SocketAddr) -> String {
        rest(open(address, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await).await
    }

    const SHORT: Duration = Duration::from_millis(50);
    const HALF: &str = "GET / HTTP/1.1\r\nhost: a\r\n";

    #[tokio::test]
    async fn an_unfinished_request_is_closed_after_its_time() {
        let (address, _, _tasks) = server(HttpLimits { head: SHORT, ..HttpLimits::default() }).await;
        for sent in ["", HALF, "GET / HTTP/1.1\r\nhost: a\r\n\r\n"] {
            let text = rest(open(address, sent).await).await;
            assert_eq!(text.contains("hello"), sent.ends_with("\r\n\r\n"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_is_refused() {
        let (address, _, _tasks) = server(HttpLimits::default()).await;
        let text = rest(open(address, &format!("{HALF}x: {}", "x".repeat(2 * MAX_HEAD))).await).await;
        assert!(!text.contains("200 OK"), "{text}");
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_loses_its_connection() {
        let (address, _, _tasks) = server(HttpLimits { head: SHORT, connection: SHORT, ..HttpLimits::default() }).await;
        let mut slow = open(address, "GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut first = [0; 1];
        slow.read_exact(&mut first).await.unwrap();
        // The server ends it although nothing more is read, so that a write fails in the end.
        while slow.write_all(b"x").await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn many_open_connections_do_not_keep_others_out() {
        let (address, _, _tasks) = server(HttpLimits { connections: 4, ..HttpLimits::default() }).await;
        let mut half = Vec::new();
        for _ in 0..40 {
            half.push(open(address, HALF).await);
        }
        assert!(answer(address).await.ends_with("hello"));
        let oldest = half.remove(0);
        assert_eq!(rest(oldest).await, "", "it was closed to serve others");
    }

    #[tokio::test]
    async fn the_end_waits_for_requests_that_have_begun() {
        let (address, ended, mut server) = server(HttpLimits { head: SHORT, ..HttpLimits::default() }).await;
        assert!(answer(address).await.ends_with("hello"));
        let idle = open(address, "").await;
        ended.trigger();
        server.join_next().await.unwrap().unwrap();
        assert_eq!(rest(idle).await, "");
    }
}

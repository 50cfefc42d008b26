//! Serves the page on the loopback interface, to those who know the token in the printed address.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use sha2::{Digest as _, Sha256};

use crate::cli::failure::Failure;
use crate::cli::output::Console;
use crate::cli::signals::Signals;
use controller::ui::server::Server;
use controller::ui::{Backend, Opened, Refusal, Session};
use model::text::hex;
use process::{HttpLimits, Random as _, Shutdown, SystemRandom, serve_http};

/// One session for everyone with the token: other users of this computer can connect, but do not know it.
struct OneUser {
    token: [u8; 32],
    session: Arc<dyn Session>,
}

impl Backend for OneUser {
    fn sign_in(&self) -> &'static str {
        "Open the address that `purlin ui` printed: it contains a token."
    }

    fn open<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Opened, Refusal>> {
        // Digests are compared, so that the time of the comparison says nothing about the token.
        let is_right = digest(token) == self.token;
        let opened = Opened { session: Arc::clone(&self.session), permit: None };
        let opened = if is_right { Ok(opened) } else { Err(wrong()) };
        async move { opened }.boxed()
    }
}

fn wrong() -> Refusal {
    Refusal::new(401, "the token is wrong (hint: open the address that `purlin ui` printed)")
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Serves until a signal. `port`: 0 for a free one. `namespace`: the one that the page opens.
pub async fn serve(session: Arc<dyn Session>, port: u16, namespace: &str, console: Console) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = tokio::net::TcpListener::bind(address).await.map_err(|error| {
        Failure::hinted(format!("cannot listen on {address}: {error}"), "choose another port with --port")
    })?;
    let port = listener.local_addr()?.port();
    let token = token();
    let backend = OneUser { token: digest(&token), session };
    let hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let router = Server::new(Arc::new(backend)).only_for_hosts(hosts).router();
    console.lines(format_args!("http://127.0.0.1:{port}/ui/#token={token}&namespace={namespace}\n"))?;
    console.notice("The page shows the graph, and changes with it. Press Ctrl-C to stop.");
    let mut signals = Signals::listen()?;
    tokio::select! {
        () = serve_http(listener, router, HttpLimits::default(), Shutdown::default()) => {}
        _ = signals.received() => {}
    }
    Ok(())
}

/// 240 random bits: each number has four fixed ones.
fn token() -> String {
    let bytes: Vec<u8> = std::iter::repeat_with(|| SystemRandom.number().to_be_bytes()).take(4).flatten().collect();
    hex(&bytes)
}

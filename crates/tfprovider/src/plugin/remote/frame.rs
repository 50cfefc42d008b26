//! The messages on the first connection: a length of four bytes and JSON. The content of a file follows its message.

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Far above the largest message: a start request with all its variables, or a line of output.
const MAX_LENGTH: u32 = 4 * 1024 * 1024;

/// From the controller.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// The first message of the first connection.
    Start(StartRequest),
    /// A file of the package, whose content follows.
    File(FileHeader),
    /// The package is complete.
    Run,
    /// The only message of the second connection. The plugin protocol follows.
    Plugin,
    Ping,
    Kill,
}

/// From the runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    /// The plugin runs and serves this version of the protocol.
    Started { protocol: u8 },
    /// The plugin did not start. The runner ends.
    Failed { why: String },
    /// A line of the plugin's output. It can contain secrets.
    Output { line: String },
    Pong {
        /// The memory of the plugin in bytes.
        memory: Option<u64>,
    },
    /// The host asked the runner to end.
    Terminating,
    /// The plugin has ended, with this status of the operating system. The runner ends.
    Ended { status: Option<i32> },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct StartRequest {
    pub name: String,
    /// The path of the program in the package.
    pub program: String,
    /// Variables of the plugin besides those of the runner.
    pub environment: BTreeMap<String, String>,
    /// The soft memory limit in bytes.
    pub memory: Option<u64>,
    /// The time until the handshake of the plugin.
    pub limit_seconds: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FileHeader {
    /// Relative to the package, with `/`.
    pub path: String,
    pub executable: bool,
    /// In bytes.
    pub length: u64,
}

pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_LENGTH);
    let length = length.ok_or_else(|| io::Error::other("a message to or from a runner is too long"))?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&json).await?;
    stream.flush().await
}

pub async fn read<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = stream.read_u32().await?;
    if length > MAX_LENGTH {
        return Err(io::Error::other("a message to or from a runner is too long"));
    }
    let mut json = vec![0; length as usize];
    stream.read_exact(&mut json).await?;
    Ok(serde_json::from_slice(&json)?)
}

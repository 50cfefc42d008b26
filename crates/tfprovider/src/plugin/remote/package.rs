//! Sends the files of a provider package to a runner, and stores them there.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use tokio::fs;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::frame::{self, FileHeader, Request};

/// An unpacked package.
#[derive(Clone, Debug)]
pub struct Package {
    /// A directory, or a program that is the whole package.
    pub root: PathBuf,
    /// The program, directly in the directory.
    pub program: PathBuf,
}

impl Package {
    /// The path of the program in the package.
    pub(crate) fn program_name(&self) -> io::Result<String> {
        let name = self.program.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned).ok_or_else(|| io::Error::other("the name of the program is not UTF-8"))
    }

    /// Sends all files.
    pub(crate) async fn send(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if fs::metadata(&self.root).await?.is_file() {
            return send_file(stream, &self.root, self.program_name()?).await;
        }
        let mut directories = vec![(self.root.clone(), String::new())];
        while let Some((directory, prefix)) = directories.pop() {
            let mut entries = fs::read_dir(&directory).await?;
            while let Some(entry) = entries.next_entry().await? {
                let name = entry.file_name().into_string();
                let name = name.map_err(|_| io::Error::other("a file name in the package is not UTF-8"))?;
                // Symbolic links are followed, as for the checksum of the package.
                match fs::metadata(entry.path()).await?.is_dir() {
                    true => directories.push((entry.path(), format!("{prefix}{name}/"))),
                    false => send_file(stream, &entry.path(), format!("{prefix}{name}")).await?,
                }
            }
        }
        Ok(())
    }
}

async fn send_file(stream: &mut (impl AsyncWrite + Unpin), file: &Path, path: String) -> io::Result<()> {
    let mut content = fs::File::open(file).await?;
    let metadata = content.metadata().await?;
    let (length, executable) = (metadata.len(), metadata.permissions().mode() & 0o111 != 0);
    frame::write(stream, &Request::File(FileHeader { path, executable, length })).await?;
    let sent = tokio::io::copy(&mut (&mut content).take(length), stream).await?;
    if sent == length { Ok(()) } else { Err(io::Error::other(format!("{} changed while it was sent", file.display()))) }
}

/// Stores the file that follows a header below `directory`.
pub async fn receive_file(
    stream: &mut (impl AsyncRead + Unpin),
    directory: &Path,
    header: &FileHeader,
) -> io::Result<()> {
    let relative = Path::new(&header.path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("the path `{}` is not in the package", header.path)));
    }
    let path = directory.join(relative);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).await?;
    }
    let mut file = fs::File::create_new(&path).await?;
    let received = tokio::io::copy(&mut stream.take(header.length), &mut file).await?;
    if received != header.length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if header.executable {
        file.set_permissions(std::fs::Permissions::from_mode(0o755)).await?;
    }
    file.sync_all().await
}

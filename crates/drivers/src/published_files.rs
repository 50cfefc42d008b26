//! Publishes outputs as manifest files in a directory next to the state file. Only the current user can read them.

use std::fs;
use std::io::{ErrorKind as IoKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value as Json, json};

use super::kubernetes_object::{OWNER_ANNOTATION, owner_annotation};
use super::publish::{CopyTarget, Publisher};
use model::data::StringData;
use model::{DataKind, DataRef, DriverError, ErrorKind, Uid};
use process::private_file;

/// Writes `published/secret-NAME.json` and `published/configmap-NAME.json`.
pub struct PublishedFiles {
    directory: PathBuf,
    /// Distinguishes the copies of different state files.
    scope: Arc<str>,
}

impl PublishedFiles {
    pub fn new(directory: PathBuf, scope: impl Into<Arc<str>>) -> Self {
        Self { directory, scope: scope.into() }
    }

    fn path(&self, target: &DataRef) -> PathBuf {
        self.directory.join(format!("{}-{}.json", target.kind.as_str().to_lowercase(), target.name))
    }

    fn owner(&self, copy: &CopyTarget<'_>) -> String {
        owner_annotation(&self.scope, &copy.context.namespace, &copy.context.address)
    }

    /// The existing file, and whether this Resource owns it.
    fn existing(&self, copy: &CopyTarget<'_>) -> std::io::Result<Option<(Json, bool)>> {
        match fs::read(self.path(copy.target)) {
            Ok(bytes) => {
                let json: Json = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
                let mark = json["metadata"]["annotations"][OWNER_ANNOTATION].as_str().unwrap_or_default();
                // A recorded copy of this state file stays owned when the Resource is renamed.
                let recorded = !copy.uid.is_empty() && mark.starts_with(&format!("{}/", self.scope));
                let ours = recorded || mark == self.owner(copy);
                Ok(Some((json, ours)))
            }
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write_now(&self, copy: &CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError> {
        let path = self.path(copy.target);
        if let Some((_, false)) = self.existing(copy).map_err(|error| io_error(&path, &error))? {
            return Err(DriverError {
                kind: ErrorKind::AlreadyExists,
                message: format!("`{}` exists and is not managed by this Resource", path.display()),
                path: None,
                hint: Some("move the file, or publish under another name".to_owned()),
            });
        }
        self.replace(&path, &self.manifest(copy, texts)).map_err(|error| io_error(&path, &error))?;
        Ok("file".into())
    }

    fn manifest(&self, copy: &CopyTarget<'_>, texts: &StringData) -> Json {
        let data: serde_json::Map<String, Json> =
            texts.iter().map(|(key, text)| (key.to_string(), text.as_ref().into())).collect();
        json!({
            "apiVersion": "v1",
            "kind": copy.target.kind.as_str(),
            "metadata": {"name": copy.target.name.as_ref(), "annotations": {OWNER_ANNOTATION: self.owner(copy)}},
            field(copy.target.kind): data,
        })
    }

    /// Replaces the file atomically.
    fn replace(&self, path: &Path, manifest: &Json) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let draft = path.with_extension("json.new");
        let _ = fs::remove_file(&draft);
        let mut file = private_file::options().create_new(true).open(&draft)?;
        file.write_all(format!("{manifest:#}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    }

    fn read_now(&self, copy: &CopyTarget<'_>) -> Result<Option<StringData>, DriverError> {
        let existing = self.existing(copy).map_err(|error| io_error(&self.path(copy.target), &error))?;
        Ok(existing.filter(|(_, ours)| *ours).map(|(json, _)| {
            let data = json[field(copy.target.kind)].as_object().cloned().unwrap_or_default();
            data.into_iter().map(|(key, text)| (key.into(), text.as_str().unwrap_or_default().into())).collect()
        }))
    }

    fn remove_now(&self, copy: &CopyTarget<'_>) -> Result<(), DriverError> {
        let path = self.path(copy.target);
        let ours = self.existing(copy).map_err(|error| io_error(&path, &error))?.is_some_and(|(_, ours)| ours);
        if ours {
            fs::remove_file(&path).map_err(|error| io_error(&path, &error))?;
            // Fails while the directory is not empty.
            let _ = fs::remove_dir(&self.directory);
        }
        Ok(())
    }
}

#[async_trait]
impl Publisher for PublishedFiles {
    async fn write(&self, copy: CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError> {
        self.write_now(&copy, texts)
    }

    async fn read(&self, copy: CopyTarget<'_>) -> Result<Option<StringData>, DriverError> {
        self.read_now(&copy)
    }

    async fn remove(&self, copy: CopyTarget<'_>) -> Result<(), DriverError> {
        self.remove_now(&copy)
    }
}

fn field(kind: DataKind) -> &'static str {
    match kind {
        DataKind::ConfigMap => "data",
        DataKind::Secret => "stringData",
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> DriverError {
    let message = format!("`{}` cannot be written: {error}", path.display());
    DriverError { kind: ErrorKind::Transient, message, path: None, hint: None }
}

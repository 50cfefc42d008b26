//! Packages in OCI registries, as OpenTofu publishes modules: an artifact whose content is one zip file.

use std::path::Path;

use fetch::oci::{MANIFEST, Manifest, Repository, ZIP};
use fetch::{ArchiveFormat, Credentials, Http, HttpRequest, hex};
use reqwest::Url;

use crate::archive;
use crate::error::ModuleError;
use crate::package::blocking;

/// The type of artifacts that are modules.
const MODULE: &str = "application/vnd.opentofu.modulepkg";

/// The tag if an address names none, as in OpenTofu.
const LATEST: &str = "latest";

/// Fetches what an address `oci://HOST/REPOSITORY?tag=TAG` or `?digest=DIGEST` names.
pub async fn fetch(http: &Http, credentials: &Credentials, url: &Url, into: &Path) -> Result<(), ModuleError> {
    let reference = reference(url)?;
    let name = name(url);
    let repository = Repository::new(&name, http, credentials)
        .map_err(|why| ModuleError::new(format!("`{name}` is not a repository: {why}")))?;
    let separator = if reference.contains(':') { '@' } else { ':' };
    let what = format!("the module {name}{separator}{reference}");
    let manifest: Option<Manifest> = repository.published(&reference, MANIFEST, &what).await?;
    let manifest = manifest.ok_or_else(|| {
        ModuleError::new(format!("{what} does not exist")).hint("correct the repository, or its `tag` or `digest`")
    })?;
    if manifest.artifact_type != MODULE {
        let message = format!("{what} is of type `{}`, not `{MODULE}`", manifest.artifact_type);
        return Err(
            ModuleError::new(message).hint("publish it as a module package of OpenTofu, such as with `oras push`")
        );
    }
    let mut layers = manifest.layers.iter().filter(|layer| layer.media_type == ZIP);
    let (Some(layer), None) = (layers.next(), layers.next()) else {
        return Err(ModuleError::new(format!("{what} has to have one layer of the type `{ZIP}`")));
    };
    let archive = into.with_extension("archive");
    let (content, hint, authorization) =
        (repository.content(&layer.digest)?, repository.hint(), repository.authorization());
    let request = HttpRequest {
        authorization: authorization.as_deref(),
        credentials: &hint,
        ..HttpRequest::new(&content, &what)
    };
    let digest = http.download(request, &archive).await?;
    let digest = hex(&digest);
    if layer.sha256() != Some(&*digest) {
        let message = format!("{what} does not match its digest: it is sha256:{digest}, not {}", layer.digest);
        return Err(ModuleError::new(message).hint("it was truncated or modified in transit"));
    }
    let into = into.to_owned();
    blocking(move || archive::unpack(&archive, ArchiveFormat::Zip, &into)).await
}

/// `HOST/REPOSITORY`.
fn name(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}{}", url.host_str().unwrap_or_default(), url.path())
}

/// The tag or digest.
fn reference(url: &Url) -> Result<String, ModuleError> {
    let mut reference = None;
    for (name, value) in url.query_pairs() {
        if !["tag", "digest"].contains(&&*name) {
            let message = format!("an address of a module in an OCI registry has no parameter `{name}`");
            return Err(ModuleError::new(message).hint("write `?tag=TAG` or `?digest=sha256:...`"));
        }
        let is_valid = match &*name {
            "tag" => is_tag(&value),
            _ => value.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64),
        };
        if !is_valid {
            return Err(ModuleError::new(format!("`{value}` is not a {name} of an OCI registry")));
        }
        if reference.replace(value.into_owned()).is_some() {
            return Err(ModuleError::new(
                "an address of a module in an OCI registry has one tag or digest, not several",
            ));
        }
    }
    Ok(reference.unwrap_or_else(|| LATEST.to_owned()))
}

fn is_tag(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_repository_and_a_tag_or_digest() {
        let read = |text: &str| {
            let url = Url::parse(text).unwrap();
            reference(&url).map(|reference| (name(&url), reference)).map_err(|error| error.message)
        };
        let found = |name: &str, reference: &str| Ok((name.to_owned(), reference.to_owned()));
        assert_eq!(read("oci://example.com:5000/a/b?tag=v1.2"), found("example.com:5000/a/b", "v1.2"));
        assert_eq!(read("oci://example.com/a"), found("example.com/a", "latest"));
        let digest = format!("sha256:{}", "0".repeat(64));
        assert_eq!(read(&format!("oci://example.com/a?digest={digest}")), found("example.com/a", &digest));
        for wrong in ["?ref=v1", "?tag=a&tag=b", "?tag=../x", "?digest=sha256:1"] {
            assert!(read(&format!("oci://example.com/a{wrong}")).is_err(), "{wrong}");
        }
    }
}

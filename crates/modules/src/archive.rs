//! Packages that are archives: over HTTP, and as files.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use configuration::RemoteModule;
use fetch::{ArchiveFormat, HttpRequest, display_url};
use reqwest::Url;

use crate::checksum::Checksum;
use crate::error::ModuleError;
use crate::package::{Fetcher, RULES, blocking, copy_directory, subdirectory};

/// The hint for an archive of another format.
pub const FORMATS: &str =
    "archives are .zip, .tar.gz, .tgz, .tar.xz, .txz and .tar files; `?archive=zip` says which one it is";

/// Addresses that refer to addresses: more than this are a mistake.
const MAX_REFERENCES: usize = 5;

/// What the query of an address says about the archive, which is no part of its URL.
#[derive(Clone, Debug, Default)]
pub struct Query {
    archive: Option<String>,
    checksum: Option<Checksum>,
}

impl Query {
    /// Takes the parameters out of a URL.
    pub fn take(url: &mut Url) -> Result<Self, ModuleError> {
        let mut query = Self::default();
        let pairs: Vec<(String, String)> =
            url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let mut rest = Vec::new();
        for (name, value) in pairs {
            match name.as_str() {
                "archive" => query.archive = Some(value),
                "checksum" => query.checksum = Some(Checksum::parse(&value)?),
                // The name of the file is ours to choose.
                "filename" => {}
                _ => rest.push((name, value)),
            }
        }
        // A URL without these parameters stays as it is written.
        if query.archive.is_some() || query.checksum.is_some() {
            url.set_query(None);
            if !rest.is_empty() {
                url.query_pairs_mut().extend_pairs(rest);
            }
        }
        Ok(query)
    }

    /// The format of the archive, by the query or by its name.
    pub fn format(&self, name: &str) -> Option<ArchiveFormat> {
        match &self.archive {
            Some(archive) => ArchiveFormat::named(archive),
            None => ArchiveFormat::of_file(name),
        }
    }

    /// Compares a file with the checksum, if there is one.
    pub fn check(&self, file: &Path, what: &str) -> Result<(), ModuleError> {
        self.checksum.as_ref().map_or(Ok(()), |checksum| checksum.check(file, what))
    }
}

/// Downloads and unpacks an archive. A URL that is not one of an archive refers to another address.
pub async fn fetch(fetcher: &Fetcher<'_>, url: Url, into: &Path) -> Result<(), ModuleError> {
    let mut url = url;
    let mut subdir: Option<String> = None;
    for _ in 0..MAX_REFERENCES {
        let query = Query::take(&mut url)?;
        if let Some(format) = query.format(url.path()) {
            return download(fetcher, &url, &query, format, subdir.as_deref(), into).await;
        }
        if let Some(archive) = query.archive.filter(|archive| archive != "false") {
            return Err(ModuleError::new(format!("archives of the format `{archive}` are not supported")).hint(FORMATS));
        }
        let remote = reference(fetcher, &url).await?;
        let remote = remote.inside(subdir.as_deref());
        subdir = remote.subdir;
        match Url::parse(&remote.package).ok().filter(|url| ["http", "https"].contains(&url.scheme())) {
            Some(next) => url = next,
            None if remote.package.starts_with("git::") => {
                let git = Url::parse(remote.package.trim_start_matches("git::"));
                let git =
                    git.map_err(|error| ModuleError::new(format!("`{}` is not a URL: {error}", remote.package)))?;
                let package = into.with_extension("package");
                fetcher.git.clone(&git, &package).await?;
                return take_subdirectory(&package, subdir.as_deref(), into).await;
            }
            None => {
                let message = format!("{} refers to `{}`, which is not supported", display_url(&url), remote.package);
                return Err(ModuleError::new(message));
            }
        }
    }
    Err(ModuleError::new(format!("{} refers to other addresses again and again", display_url(&url))))
}

async fn download(
    fetcher: &Fetcher<'_>,
    url: &Url,
    query: &Query,
    format: ArchiveFormat,
    subdir: Option<&str>,
    into: &Path,
) -> Result<(), ModuleError> {
    let archive = into.with_extension("archive");
    let what = "the archive of the module";
    // Who writes http wants it; a checksum protects the content then.
    let request = HttpRequest { plain: true, ..HttpRequest::new(url, what) };
    fetcher.http.download(request, &archive).await?;
    let (query, unpacked) = (query.clone(), into.with_extension("package"));
    let package = unpacked.clone();
    blocking(move || {
        query.check(&archive, what)?;
        unpack(&archive, format, &unpacked)
    })
    .await?;
    take_subdirectory(&package, subdir, into).await
}

/// Moves a directory of a package to the place of the package.
async fn take_subdirectory(package: &Path, subdir: Option<&str>, into: &Path) -> Result<(), ModuleError> {
    let (package, into) = (package.to_owned(), into.to_owned());
    let subdir = subdir.map(str::to_owned);
    blocking(move || match subdir {
        None => fs::rename(&package, &into).map_err(|error| ModuleError::file(&into, error)),
        Some(subdir) => {
            fetch::inspect(&package, RULES)?;
            copy_directory(&package.join(subdirectory(&package, &subdir)?), &into)
        }
    })
    .await
}

/// Unpacks an archive into a directory that does not exist yet.
pub fn unpack(archive: &Path, format: ArchiveFormat, into: &Path) -> Result<(), ModuleError> {
    fs::create_dir(into).map_err(|error| ModuleError::file(into, error))?;
    Ok(fetch::unpack(archive, format, into, RULES)?)
}

/// The address that a page refers to, by its header or by an element of its head.
async fn reference(fetcher: &Fetcher<'_>, url: &Url) -> Result<RemoteModule, ModuleError> {
    let mut asked = url.clone();
    asked.query_pairs_mut().append_pair("terraform-get", "1");
    let request = HttpRequest { plain: true, ..HttpRequest::new(&asked, "the module") };
    let answer = fetcher.http.answer(request).await?;
    let (headers, content) =
        answer.ok_or_else(|| ModuleError::new(format!("the module does not exist: {} (404)", display_url(url))))?;
    let header = headers.get("X-Terraform-Get").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let location = header.or_else(|| meta(&String::from_utf8_lossy(&content))).ok_or_else(|| {
        let message = format!("{} is not an archive, and refers to none", display_url(url));
        ModuleError::new(message).hint(FORMATS)
    })?;
    located(&location, url)
}

/// The package that a location means. It may be relative to the URL of the document that has it.
pub fn located(location: &str, url: &Url) -> Result<RemoteModule, ModuleError> {
    let is_relative = ["/", "./", "../"].iter().any(|prefix| location.starts_with(prefix));
    let location = if is_relative {
        let joined = url
            .join(location)
            .map_err(|error| ModuleError::new(format!("{} refers to `{location}`: {error}", display_url(url))))?;
        Cow::Owned(joined.to_string())
    } else {
        Cow::Borrowed(location)
    };
    let remote = RemoteModule::parse(&location)?;
    // A server must not read files of this machine.
    if remote.package.starts_with("file:") || remote.package.starts_with("git::file:") {
        return Err(ModuleError::new(format!("{} refers to a file of this machine", display_url(url))));
    }
    Ok(remote)
}

/// The content of `<meta name="terraform-get" content="...">`.
fn meta(page: &str) -> Option<String> {
    let mut elements = page.split("<meta").skip(1).filter_map(|rest| rest.split_once('>').map(|(element, _)| element));
    let element = elements.find(|element| quoted(element, "name") == Some("terraform-get"))?;
    quoted(element, "content").map(str::to_owned)
}

/// The quoted value of an attribute of an element.
fn quoted<'e>(element: &'e str, name: &str) -> Option<&'e str> {
    let value = element.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    Some(value[1..].split_once(quote)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_archive_are_no_part_of_its_url() {
        let mut url = Url::parse("https://example.com/m?archive=zip&token=a%20b&filename=x").unwrap();
        let query = Query::take(&mut url).unwrap();
        assert_eq!(url.as_str(), "https://example.com/m?token=a+b");
        assert_eq!(query.format(url.path()), Some(ArchiveFormat::Zip));
        let mut url = Url::parse("https://example.com/m.zip?token=a%20b").unwrap();
        assert_eq!(Query::take(&mut url).unwrap().format(url.path()), Some(ArchiveFormat::Zip));
        assert_eq!(url.as_str(), "https://example.com/m.zip?token=a%20b");
    }

    #[test]
    fn a_page_refers_to_an_address() {
        let page =
            "<html><head><meta charset='x'><meta name=\"terraform-get\" content='https://example.com/m.zip' /></head>";
        assert_eq!(meta(page).as_deref(), Some("https://example.com/m.zip"));
        assert_eq!(meta("<meta name=\"other\" content=\"x\">"), None);
    }

    #[test]
    fn a_location_may_be_relative_but_no_file() {
        let url = Url::parse("https://example.com/v1/a/b/aws/1.0.0/download").unwrap();
        assert_eq!(located("../m.tgz//*", &url).unwrap().package, "https://example.com/v1/a/b/aws/m.tgz");
        for location in ["file:///etc", "git::file:///srv/x"] {
            let error = located(location, &url).unwrap_err();
            assert!(error.message.ends_with("refers to a file of this machine"), "{error:?}");
        }
    }
}

//! Where modules come from: the addresses of `source`, in the normal form in which the list of installed modules has them.
//!
//! The rules are upstream's: what is neither a local path nor the address of a registry is one for go-getter, whose shorthands
//! are written out here.

use std::fmt;

use language::functions::clean_path;

/// The registry of addresses without a host.
pub const DEFAULT_REGISTRY: &str = "registry.opentofu.org";

/// The registry that upstream's predecessor takes for addresses without a host. What is installed from it is not fetched again.
const OTHER_DEFAULT: &str = "registry.terraform.io";

/// Where a module is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleSource {
    /// A path from the module that calls it: `./a`, `../a`.
    Local(String),
    /// A module of a registry.
    Registry(RegistryModule),
    /// A package at an address.
    Remote(RemoteModule),
}

/// A module of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryModule {
    /// The host of the registry, with its port.
    pub host: String,
    /// The publisher.
    pub namespace: String,
    /// The name of the module.
    pub name: String,
    /// The system that it is for, such as `aws`.
    pub system: String,
    /// The directory in the package.
    pub subdir: Option<String>,
}

/// A package at an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteModule {
    /// The address of the whole package, such as `git::https://example.com/network.git?ref=v1`.
    pub package: String,
    /// The directory in the package. The one from a registry can have `*` in it.
    pub subdir: Option<String>,
}

/// Why a text is no source: a sentence without its period, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSource {
    /// What is wrong.
    pub detail: String,
    /// What to write instead.
    pub hint: String,
}

impl ModuleSource {
    /// Reads a source.
    ///
    /// ```
    /// use configuration::ModuleSource;
    /// let normal = |text| ModuleSource::parse(text).unwrap().to_string();
    /// assert_eq!(normal("./a//b/../c"), "./a/c");
    /// assert_eq!(normal("acme/network/aws//modules/x"), "registry.opentofu.org/acme/network/aws//modules/x");
    /// assert_eq!(normal("github.com/acme/network//x?ref=v1"), "git::https://github.com/acme/network.git//x?ref=v1");
    /// ```
    ///
    /// # Errors
    /// If the text is none of the known forms, or leads out of its package.
    pub fn parse(text: &str) -> Result<Self, InvalidSource> {
        if is_local(text) {
            return Ok(Self::Local(local(text)));
        }
        let (package, subdir) = split_subdir(text);
        let subdir = clean_subdir(subdir)?;
        if let Some(module) = registry(&package, subdir.clone()) {
            return Ok(Self::Registry(module));
        }
        RemoteModule::new(&package, subdir).map(Self::Remote)
    }

    /// The path from the module that calls, if the source is one.
    pub fn as_local(&self) -> Option<&str> {
        match self {
            Self::Local(path) => Some(path),
            Self::Registry(_) | Self::Remote(_) => None,
        }
    }
}

impl RemoteModule {
    /// Reads the address of a package, with or without a directory in it, as a registry gives it.
    pub fn parse(text: &str) -> Result<Self, InvalidSource> {
        let (package, subdir) = split_subdir(text);
        Self::new(&package, clean_subdir(subdir)?)
    }

    fn new(package: &str, subdir: Option<String>) -> Result<Self, InvalidSource> {
        let written_out = write_out(package)?;
        let (package, detected) = split_subdir(&written_out);
        let subdir = match (clean_subdir(detected)?, subdir) {
            (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
            (outer, inner) => outer.or(inner),
        };
        Ok(Self { package, subdir })
    }

    /// The directory of another one in the package of this one.
    #[must_use]
    pub fn inside(self, subdir: Option<&str>) -> Self {
        let subdir = match (self.subdir, subdir) {
            (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
            (outer, inner) => outer.or_else(|| inner.map(str::to_owned)),
        };
        Self { subdir, ..self }
    }
}

impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(path),
            Self::Registry(module) => write!(f, "{module}"),
            Self::Remote(module) => write!(f, "{module}"),
        }
    }
}

impl fmt::Display for RegistryModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, namespace, name, system, subdir } = self;
        write!(f, "{host}/{namespace}/{name}/{system}")?;
        subdir.iter().try_for_each(|subdir| write!(f, "//{subdir}"))
    }
}

impl fmt::Display for RemoteModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(subdir) = &self.subdir else { return f.write_str(&self.package) };
        match self.package.split_once('?') {
            Some((address, query)) => write!(f, "{address}//{subdir}?{query}"),
            None => write!(f, "{}//{subdir}", self.package),
        }
    }
}

fn is_local(text: &str) -> bool {
    ["./", "../", ".\\", "..\\"].iter().any(|prefix| text.starts_with(prefix))
}

fn local(text: &str) -> String {
    let clean = clean_path(&text.replace('\\', "/"));
    if clean.starts_with("../") { clean } else { format!("./{clean}") }
}

/// Cuts the directory after `//` out of an address.
fn split_subdir(text: &str) -> (String, Option<&str>) {
    let (address, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let (scheme, rest) = address.split_at(address.find("://").map_or(0, |at| at + 3));
    match rest.split_once("//") {
        Some((package, subdir)) => (format!("{scheme}{package}{query}"), Some(subdir)),
        None => (text.to_owned(), None),
    }
}

fn clean_subdir(subdir: Option<&str>) -> Result<Option<String>, InvalidSource> {
    let Some(subdir) = subdir.filter(|subdir| !subdir.is_empty()) else { return Ok(None) };
    let clean = clean_path(subdir);
    if clean == ".." || clean.starts_with("../") || clean.starts_with('/') {
        return Err(InvalidSource {
            detail: format!("the directory `{subdir}` leads out of the package"),
            hint: "write a directory of the package after `//`".to_owned(),
        });
    }
    Ok((clean != ".").then_some(clean))
}

/// The parts of an address of a registry: `[HOST/]NAMESPACE/NAME/SYSTEM`.
fn registry(package: &str, subdir: Option<String>) -> Option<RegistryModule> {
    let parts: Vec<&str> = package.split('/').collect();
    let (host, parts) = match parts.as_slice() {
        [host, rest @ ..] if rest.len() == 3 => (host.to_lowercase(), rest),
        rest => (DEFAULT_REGISTRY.to_owned(), rest),
    };
    let [namespace, name, system] = parts else { return None };
    let is_system = (1..=64).contains(&system.len())
        && system.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    if !(is_host(&host) && is_name(namespace) && is_name(name) && is_system) {
        return None;
    }
    let host = if host == OTHER_DEFAULT { DEFAULT_REGISTRY.to_owned() } else { host };
    let [namespace, name, system] = [namespace, name, system].map(|part| (*part).to_owned());
    Some(RegistryModule { host, namespace, name, system, subdir })
}

/// Whether a part of an address of a registry can be a namespace or a name.
fn is_name(part: &str) -> bool {
    let ends = [part.bytes().next(), part.bytes().last()];
    part.len() <= 64
        && ends.iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Whether a text is a host with a registry. These hosts have repositories instead.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "1"));
    !["github.com", "bitbucket.org", "gitlab.com"].contains(&text)
        && port.parse::<u16>().is_ok()
        && (name.contains('.') || text.contains(':'))
        && name.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let is_inside = |letter: char| letter.is_alphanumeric() || letter == '-';
    !text.is_empty() && text.chars().all(is_inside) && !text.starts_with('-') && !text.ends_with('-')
}

/// Writes a shorthand out: the address with the program or protocol that gets it.
fn write_out(package: &str) -> Result<String, InvalidSource> {
    let (forced, address) = match package.split_once("::") {
        Some((word, address)) if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            (Some(word), address)
        }
        _ => (None, package),
    };
    let has_scheme = address
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)));
    if has_scheme {
        return Ok(package.to_owned());
    }
    let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let found = if let Some(path) = path.strip_prefix("github.com/") {
        Some(("git", hosted("github.com", path)?))
    } else if let Some(path) = path.strip_prefix("bitbucket.org/") {
        Some(("git", hosted("bitbucket.org", path)?))
    } else if let Some(url) = ssh(path) {
        Some(("git", url))
    } else if path.contains(".amazonaws.com/") {
        Some(("s3", format!("https://{path}")))
    } else if path.starts_with("www.googleapis.com/storage/") {
        Some(("gcs", format!("https://{path}")))
    } else {
        None
    };
    if let Some((program, url)) = found {
        return Ok(format!("{}::{url}{query}", forced.unwrap_or(program)));
    }
    if path.starts_with('/') {
        let prefix = forced.map(|forced| format!("{forced}::")).unwrap_or_default();
        return Ok(format!("{prefix}file://{address}"));
    }
    Err(InvalidSource {
        detail: format!("\"{package}\" is not the address of a module"),
        hint: format!(
            "write \"./{package}\" for a directory, \"NAMESPACE/NAME/SYSTEM\" for a module of a registry, or a URL"
        ),
    })
}

/// The URL of a repository that is named by its path on a host.
fn hosted(host: &str, path: &str) -> Result<String, InvalidSource> {
    let parts: Vec<&str> = path.split('/').collect();
    let [owner, name, inner @ ..] = parts.as_slice() else {
        return Err(InvalidSource {
            detail: format!("\"{host}/{path}\" does not name a repository"),
            hint: format!("write \"{host}/OWNER/REPOSITORY\""),
        });
    };
    let name = name.strip_suffix(".git").unwrap_or(name);
    let inner = if inner.is_empty() { String::new() } else { format!("//{}", inner.join("/")) };
    Ok(format!("https://{host}/{owner}/{name}.git{inner}"))
}

/// The URL for `git@host:path`.
fn ssh(address: &str) -> Option<String> {
    let (user, rest) = address.split_once('@')?;
    let (host, path) = rest.split_once(':')?;
    (user == "git" && !host.is_empty() && !host.contains('/') && !path.is_empty())
        .then(|| format!("ssh://{user}@{host}/{}", path.trim_start_matches('/')))
}

/// A relative path from a directory, as upstream shows it in `path.module`.
pub(crate) fn join(directory: &str, relative: &str) -> String {
    clean_path(&format!("{directory}/{}", relative.replace('\\', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        ModuleSource::parse(text).unwrap().to_string()
    }

    #[test]
    fn local_paths_are_normalized() {
        for (written, expected) in [("./a", "./a"), ("./a/", "./a"), ("../a/./b//c", "../a/b/c"), (".\\a\\b", "./a/b")]
        {
            assert_eq!(normal(written), expected);
        }
        assert_eq!(ModuleSource::parse("./a").unwrap().as_local(), Some("./a"));
    }

    #[test]
    fn addresses_of_registries_have_their_host() {
        for (written, expected) in [
            ("terraform-aws-modules/vpc/aws", "registry.opentofu.org/terraform-aws-modules/vpc/aws"),
            ("registry.terraform.io/a/b/aws", "registry.opentofu.org/a/b/aws"),
            ("app.example.com/a/b_c/aws//modules/x/", "app.example.com/a/b_c/aws//modules/x"),
            ("localhost:8443/a/b/aws", "localhost:8443/a/b/aws"),
        ] {
            assert_eq!(normal(written), expected);
            assert!(matches!(ModuleSource::parse(written), Ok(ModuleSource::Registry(_))), "{written}");
        }
        for written in [
            "a/b",
            "a/b/c/d/e",
            "a/b/AWS",
            "-a/b/aws",
            "a/b./aws",
            "host/a/b/aws",
            "gitlab.com/a/b/aws",
            "---.com/a/b/aws",
            "x",
            "",
        ] {
            let error = ModuleSource::parse(written).unwrap_err();
            assert!(error.detail.ends_with("is not the address of a module"), "{written}: {error:?}");
        }
    }

    #[test]
    fn shorthands_are_written_out_as_by_upstream() {
        for (written, expected) in [
            ("github.com/hashicorp/example", "git::https://github.com/hashicorp/example.git"),
            ("github.com/hashicorp/example.git", "git::https://github.com/hashicorp/example.git"),
            (
                "github.com/hashicorp/example/inner//deep?ref=v1",
                "git::https://github.com/hashicorp/example.git//inner/deep?ref=v1",
            ),
            ("bitbucket.org/a/b", "git::https://bitbucket.org/a/b.git"),
            ("git@github.com:a/b.git", "git::ssh://git@github.com/a/b.git"),
            ("git::git@example.com:/a/b.git//x?ref=1", "git::ssh://git@example.com/a/b.git//x?ref=1"),
            (
                "git::https://example.com/v.git//x/../y?depth=1&ref=a//b",
                "git::https://example.com/v.git//y?depth=1&ref=a//b",
            ),
            ("git::ssh://user@example.com/storage.git", "git::ssh://user@example.com/storage.git"),
            ("https://example.com/v.zip", "https://example.com/v.zip"),
            ("https://example.com/v?archive=zip", "https://example.com/v?archive=zip"),
            ("https://example.com/v.zip//a", "https://example.com/v.zip//a"),
            ("/srv/modules/a", "file:///srv/modules/a"),
            ("/srv/modules//a", "file:///srv/modules//a"),
            ("bucket.s3.amazonaws.com/m.zip", "s3::https://bucket.s3.amazonaws.com/m.zip"),
            ("www.googleapis.com/storage/v1/m.zip", "gcs::https://www.googleapis.com/storage/v1/m.zip"),
            ("hg::http://example.com/v.hg", "hg::http://example.com/v.hg"),
        ] {
            assert_eq!(normal(written), expected);
        }
    }

    #[test]
    fn sources_that_lead_out_of_their_package_are_refused() {
        for written in ["a/b/aws//../x", "https://example.com/v.zip//..", "git::https://example.com/v.git//a/../../b"] {
            let error = ModuleSource::parse(written).unwrap_err();
            assert!(error.detail.ends_with("leads out of the package"), "{written}: {error:?}");
        }
        let error = ModuleSource::parse("github.com/a").unwrap_err();
        assert_eq!(error.hint, "write \"github.com/OWNER/REPOSITORY\"");
    }

    #[test]
    fn a_registry_may_name_a_directory_of_the_package() {
        let remote = RemoteModule::parse("https://example.com/v1.tar.gz//*?archive=tar.gz").unwrap();
        assert_eq!(remote.package, "https://example.com/v1.tar.gz?archive=tar.gz");
        assert_eq!(remote.inside(Some("modules/x")).subdir.as_deref(), Some("*/modules/x"));
    }

    #[test]
    fn paths_are_joined_as_upstream_shows_them() {
        assert_eq!(join(".", "./a/../b"), "b");
        assert_eq!(join("a/b", "../../.."), "..");
        assert_eq!(join("../x", "../y"), "../y");
        assert_eq!(join("/x", "../../y"), "/y");
        assert_eq!(join("a", "../"), ".");
    }
}

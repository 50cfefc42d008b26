//! The environment variables of a plugin. Purlin's own variables are not inherited, because providers read credentials
//! from dozens of variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::orphans::MARK;

/// The variables that every plugin inherits: search path, certificates, proxies and locale.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Marks the process as started by a plugin client and not by a user.
const MAGIC_COOKIE: (&str, &str) =
    ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2");

/// Returns the environment of a plugin.
///
/// `lookup` reads a variable of this process, `declared` holds additional variables, `dir` is the private directory,
/// `certificate` the client certificate for TLS, and `memory` the soft memory limit in bytes.
pub fn environment(
    lookup: impl Fn(&str) -> Option<OsString>,
    declared: &BTreeMap<String, String>,
    dir: &Path,
    certificate: Option<&str>,
    memory: Option<u64>,
) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> =
        INHERITED.iter().filter_map(|name| Some((OsString::from(name), lookup(name)?))).collect();
    if let Some(bytes) = memory {
        variables.insert("GOMEMLIMIT".into(), format!("{bytes}B").into());
    }
    variables.extend(declared.iter().map(|(name, value)| (name.into(), value.into())));
    // The remaining variables belong to the plugin protocol, so `declared` cannot override them.
    variables.insert("TMPDIR".into(), dir.into());
    // Plugins that do not know this variable create their socket in TMPDIR.
    variables.insert(MARK.into(), dir.into());
    variables.insert(MAGIC_COOKIE.0.into(), MAGIC_COOKIE.1.into());
    variables.insert("PLUGIN_PROTOCOL_VERSIONS".into(), "5,6".into());
    // Used on systems without Unix sockets.
    variables.insert("PLUGIN_MIN_PORT".into(), "10000".into());
    variables.insert("PLUGIN_MAX_PORT".into(), "25000".into());
    // Otherwise the plugin framework logs every step of every call; no other variable disables this.
    variables.entry("TF_LOG_SDK".into()).or_insert_with(|| "OFF".into());
    match certificate {
        Some(pem) => variables.insert("PLUGIN_CLIENT_CERT".into(), pem.into()),
        None => variables.remove(&OsString::from("PLUGIN_CLIENT_CERT")),
    };
    // This variable would make the plugin expect another kind of connection.
    variables.remove(&OsString::from("PLUGIN_MULTIPLEX_GRPC"));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_and_declared_variables_are_passed() {
        let declared = BTreeMap::from([
            ("AWS_PROFILE".to_owned(), "dev".to_owned()),
            ("TMPDIR".to_owned(), "/elsewhere".to_owned()),
            ("TF_LOG_SDK".to_owned(), "TRACE".to_owned()),
        ]);
        let variables = environment(
            |name| Some(OsString::from(format!("our {name}"))),
            &declared,
            Path::new("/p"),
            None,
            Some(1000),
        );
        let get = |name: &str| variables.get(&OsString::from(name)).map(|value| value.to_str().unwrap());
        assert_eq!(get("PATH"), Some("our PATH"));
        assert_eq!(get("AWS_PROFILE"), Some("dev"));
        assert_eq!(get("AWS_SECRET_ACCESS_KEY"), None);
        assert_eq!(get("KUBECONFIG"), None);
        assert_eq!(get("TMPDIR"), Some("/p"));
        assert_eq!(get("TF_LOG_SDK"), Some("TRACE"));
        assert_eq!(get("GOMEMLIMIT"), Some("1000B"));
        assert_eq!(get("PLUGIN_CLIENT_CERT"), None);
    }
}

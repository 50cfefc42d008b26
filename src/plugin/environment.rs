//! The environment of a plugin. It starts empty: providers read credentials from dozens of variables, and what stands
//! in ours is not meant for them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// What a plugin needs of ours to run at all: programs, certificates and proxies of the machine, its language.
const PASSED: &[&str] = &[
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

/// Shows plugins that it is a client of theirs that starts them, and no user.
const MAGIC_COOKIE: (&str, &str) =
    ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2");

/// Makes the environment of a plugin.
///
/// `ours` tells a variable of our own environment, `declared` is what the provider is to get beyond that, `folder` its
/// private folder, `certificate` our certificate for TLS, `memory` the bytes at which it shall try to use less.
pub(super) fn environment(
    ours: impl Fn(&str) -> Option<OsString>,
    declared: &BTreeMap<String, String>,
    folder: &Path,
    certificate: Option<&str>,
    memory: Option<u64>,
) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> =
        PASSED.iter().filter_map(|name| Some((OsString::from(name), ours(name)?))).collect();
    if let Some(bytes) = memory {
        variables.insert("GOMEMLIMIT".into(), format!("{bytes}B").into());
    }
    variables.extend(declared.iter().map(|(name, value)| (name.into(), value.into())));
    // What follows is the protocol, so nothing can replace it.
    variables.insert("TMPDIR".into(), folder.into());
    // Plugins from before this variable put their socket into TMPDIR.
    variables.insert("PLUGIN_UNIX_SOCKET_DIR".into(), folder.into());
    variables.insert(MAGIC_COOKIE.0.into(), MAGIC_COOKIE.1.into());
    variables.insert("PLUGIN_PROTOCOL_VERSIONS".into(), "5,6".into());
    // Used where there are no Unix sockets.
    variables.insert("PLUGIN_MIN_PORT".into(), "10000".into());
    variables.insert("PLUGIN_MAX_PORT".into(), "25000".into());
    // Otherwise the plugin framework logs each step of each call, and no other variable stops it.
    variables.entry("TF_LOG_SDK".into()).or_insert_with(|| "OFF".into());
    match certificate {
        Some(pem) => variables.insert("PLUGIN_CLIENT_CERT".into(), pem.into()),
        None => variables.remove(&OsString::from("PLUGIN_CLIENT_CERT")),
    };
    // With it the plugin would expect another kind of connection.
    variables.remove(&OsString::from("PLUGIN_MULTIPLEX_GRPC"));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_ours_gets_in_but_what_is_declared() {
        let ours = |name: &str| Some(OsString::from(format!("our {name}")));
        let declared = BTreeMap::from([
            ("AWS_PROFILE".to_owned(), "dev".to_owned()),
            ("TMPDIR".to_owned(), "/elsewhere".to_owned()),
            ("TF_LOG_SDK".to_owned(), "TRACE".to_owned()),
        ]);
        let variables = environment(ours, &declared, Path::new("/p"), None, Some(1000));
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

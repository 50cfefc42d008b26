//! Service discovery of registries: `/.well-known/terraform.json` on the host holds the base URL of each service.

use std::collections::BTreeMap;
use std::fmt::Display;

use reqwest::Url;

use crate::credentials::{Credentials, token_variable};
use crate::error::{FetchError, FetchErrorKind};
use crate::http::{Http, HttpRequest, display_url};

/// Returns the base URL of a service, with a trailing slash. `kind` is what a host with this service is called in errors.
///
/// # Errors
/// If the document cannot be fetched, or the host does not offer the service.
pub async fn service(
    http: &Http,
    credentials: &Credentials,
    host: &str,
    service: &str,
    kind: &str,
) -> Result<Url, FetchError> {
    let url = Url::parse(&format!("https://{host}/.well-known/terraform.json"));
    let url = url.map_err(|error| not_offered(host, kind, error))?;
    let authorization = credentials.token(host).map(|token| format!("Bearer {token}"));
    let request = HttpRequest {
        authorization: authorization.as_deref(),
        credentials: &token_variable(host),
        ..HttpRequest::new(&url, "the list of services")
    };
    let services: Option<BTreeMap<String, serde_json::Value>> = http.json(request).await?;
    let services =
        services.ok_or_else(|| not_offered(host, kind, format_args!("{} does not exist", display_url(&url))))?;
    let base = services.get(service).and_then(serde_json::Value::as_str);
    let base = base.ok_or_else(|| not_offered(host, kind, format_args!("it does not offer the service {service}")))?;
    let slash = if base.ends_with('/') { "" } else { "/" };
    url.join(&format!("{base}{slash}")).map_err(|error| not_offered(host, kind, error))
}

fn not_offered(host: &str, kind: &str, why: impl Display) -> FetchError {
    FetchError::new(FetchErrorKind::NotOffered, format!("{host} is not a {kind}: {why}"))
}

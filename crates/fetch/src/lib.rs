//! What registries of providers and modules have in common: HTTP requests, credentials, service discovery, and archives.
//!
//! What is fetched is untrusted: requests have limits on time and size, and archives on what they unpack to.
#![forbid(unsafe_code)]

mod archive;
mod credentials;
mod error;
mod http;
pub mod oci;
mod services;

pub use archive::{ArchiveFormat, Compression, Links, UnpackRules, inspect, measure, unpack};
pub use credentials::{Credentials, token_variable};
pub use error::{FetchError, FetchErrorKind};
pub use http::{DOCUMENT, DOCUMENT_BYTES, Http, HttpRequest, display_url, hex, is_secure, status_error};
pub use services::service;

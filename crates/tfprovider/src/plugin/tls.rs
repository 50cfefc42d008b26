//! Mutual TLS with a plugin, and with a runner. Each side uses a certificate that is valid for one process: a plugin receives
//! the client certificate in an environment variable and returns its own certificate in the handshake, and a runner receives
//! both with its start.
//!
//! Each side accepts exactly one certificate, which it compares byte by byte; the signature proves possession of the key.
//! The certificate of a plugin is a self-signed CA certificate, which ordinary verification would reject as an end entity.
//! Plugins use P-521 keys, which aws-lc supports.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};

/// The name in the certificates of plugins.
pub const SERVER_NAME: &str = "localhost";

/// A key and its certificate, for one process.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// A key and its certificate as text, in PEM form.
pub struct IdentityPem {
    pub certificate: String,
    pub key: String,
}

impl IdentityPem {
    pub fn generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    pub fn identity(&self) -> Result<Identity, pem::Error> {
        Ok(Identity {
            certificate: certificate(&self.certificate)?,
            key: PrivateKeyDer::from_pem_slice(self.key.as_bytes())?,
        })
    }
}

/// Parses a certificate in PEM form.
pub fn certificate(text: &str) -> Result<CertificateDer<'static>, pem::Error> {
    CertificateDer::from_pem_slice(text.as_bytes())
}

impl Identity {
    /// The configuration of a client that accepts only the server with this certificate.
    pub(crate) fn client(self, server: CertificateDer<'static>) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(PinnedCertificate { certificate: server, provider: Arc::clone(&provider) });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate], self.key)?;
        // gRPC servers close connections that do not negotiate HTTP/2.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    /// The configuration of a server that accepts only the client with this certificate.
    pub(crate) fn server(self, client: CertificateDer<'static>) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(PinnedCertificate { certificate: client, provider: Arc::clone(&provider) });
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.certificate], self.key)
    }
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct PinnedCertificate {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl PinnedCertificate {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if *presented == self.certificate {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PinnedCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}

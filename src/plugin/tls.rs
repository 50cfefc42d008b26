//! Mutual TLS with a plugin. Each side uses a certificate that is valid for one process: the plugin receives the client
//! certificate in an environment variable and returns its own certificate in the handshake.
//!
//! The server certificate is a self-signed CA certificate, which ordinary verification rejects as an end entity. It is
//! compared byte by byte with the certificate of the handshake instead; the signature still proves possession of the
//! key. Plugins use P-521 keys, which aws-lc supports.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};

/// The name in the certificates of plugins.
pub(super) const SERVER_NAME: &str = "localhost";

/// The client key and certificate for one plugin.
pub(super) struct ClientIdentity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    /// The certificate in the form that the plugin expects in its environment.
    pub(super) pem: String,
}

impl ClientIdentity {
    pub(super) fn generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self { pem: certificate.pem(), certificate: certificate.der().clone(), key: key.serialize_der() })
    }

    /// The TLS configuration for the plugin with this certificate.
    pub(super) fn config(self, server: Vec<u8>) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier =
            Arc::new(PinnedCertificateVerifier { certificate: server.into(), provider: Arc::clone(&provider) });
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate], key)?;
        // gRPC servers close connections that do not negotiate HTTP/2.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct PinnedCertificateVerifier {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
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

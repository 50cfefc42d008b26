//! Mutual TLS with a plugin. Both sides have a certificate that lives as long as the process: ours goes to it through
//! its environment, its own comes back in the handshake.
//!
//! The server's certificate is its own authority, so ordinary verification refuses it as the end of a chain. It is
//! compared byte by byte with the one of the handshake instead; that the peer has its key is checked by the signature
//! as always. Servers use P-521, which is why the cryptography is that of aws-lc.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};

/// The name that plugins have in their certificates.
pub(super) const SERVER_NAME: &str = "localhost";

/// Our key and certificate for one plugin.
pub(super) struct ClientIdentity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    /// The certificate as the plugin wants it in its environment.
    pub(super) pem: String,
}

impl ClientIdentity {
    /// Makes a new one.
    pub(super) fn generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self { pem: certificate.pem(), certificate: certificate.der().clone(), key: key.serialize_der() })
    }

    /// The settings of a connection to the plugin that has told this certificate.
    pub(super) fn config(self, server: Vec<u8>) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(Pinned { certificate: server.into(), provider: Arc::clone(&provider) });
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate], key)?;
        // The server's gRPC closes a connection that does not ask for HTTP/2.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
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

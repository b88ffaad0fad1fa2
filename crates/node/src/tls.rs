//! Channels: TLS 1.3, mutually authenticated with raw Ed25519 public keys (RFC 7250).
//!
//! There are no certificates and no names: a dialer pins the one key that it expects, a listener
//! accepts any well-formed key and hands it up, and the transport maps it to a member or a client.
//! Each handshake proves possession afresh: no tickets, no resumption, no early data.

use quorate_crypto::{IdentityKey, IdentitySecret};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error,
    ServerConfig, SignatureScheme,
};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The application protocol; a peer of another version fails in the handshake.
pub const ALPN: &[u8] = b"quorate/1";

/// An Ed25519 key as a `SubjectPublicKeyInfo` is this and the key (RFC 8410 §4).
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An Ed25519 seed as a PKCS #8 version 1 key is this and the seed (RFC 8410 §7).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// TLS configuration of a listener: presents the identity's key, and demands one of every dialer.
///
/// # Errors
/// When the key is refused by the TLS library.
pub fn listener(identity: &IdentitySecret) -> Result<Arc<ServerConfig>, Error> {
    let provider = provider();
    let key = certified(identity)?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(AnyKey { provider }))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// TLS configurations of a dialer, each of which accepts one key alone.
#[derive(Clone, Debug)]
pub struct Dialer {
    provider: Arc<CryptoProvider>,
    key: Arc<CertifiedKey>,
}

impl Dialer {
    /// A dialer that proves `identity`.
    ///
    /// # Errors
    /// When the key is refused by the TLS library.
    pub fn new(identity: &IdentitySecret) -> Result<Self, Error> {
        Ok(Self { provider: provider(), key: certified(identity)? })
    }

    /// TLS configuration for connections to the owner of `expected` and nobody else.
    ///
    /// # Errors
    /// Never with the provider that this crate uses.
    pub fn to(&self, expected: IdentityKey) -> Result<Arc<ClientConfig>, Error> {
        let verifier = PinnedKey { expected, provider: Arc::clone(&self.provider) };
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                Arc::clone(&self.key),
            )));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        config.enable_early_data = false;
        Ok(Arc::new(config))
    }
}

/// The name that TLS wants and nobody looks at.
#[must_use]
pub fn no_name() -> ServerName<'static> {
    ServerName::try_from("quorate.invalid").expect("a valid name")
}

/// The key that the other end proved; `None` before the handshake is over.
#[must_use]
pub fn proven_key(connection: &CommonState) -> Option<IdentityKey> {
    let presented = connection.peer_certificates()?.first()?;
    parse_spki(presented.as_ref())
}

/// Returns `true` if both ends agreed on this protocol by ALPN.
#[must_use]
pub fn speaks_quorate(connection: &CommonState) -> bool {
    connection.alpn_protocol() == Some(ALPN)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certified(identity: &IdentitySecret) -> Result<Arc<CertifiedKey>, Error> {
    let mut der = Zeroizing::new(PKCS8_PREFIX.to_vec());
    der.extend_from_slice(&identity.seed()[..]);
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(&der[..]))?;
    let public = CertificateDer::from(spki(&identity.public()));
    Ok(Arc::new(CertifiedKey::new(vec![public], key)))
}

fn spki(key: &IdentityKey) -> Vec<u8> {
    [&SPKI_PREFIX[..], &key.0[..]].concat()
}

fn parse_spki(der: &[u8]) -> Option<IdentityKey> {
    let key = der.strip_prefix(&SPKI_PREFIX[..])?;
    Some(IdentityKey(key.try_into().ok()?))
}

/// Accepts the owner of one key.
#[derive(Debug)]
struct PinnedKey {
    expected: IdentityKey,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = well_formed(end_entity, intermediates)?;
        if key != self.expected {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(&self.provider, message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Accepts any client that proves possession of an Ed25519 key.
#[derive(Debug)]
struct AnyKey {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        well_formed(end_entity, intermediates).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(&self.provider, message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

fn well_formed(
    key: &CertificateDer<'_>,
    more: &[CertificateDer<'_>],
) -> Result<IdentityKey, Error> {
    match (parse_spki(key.as_ref()), more) {
        (Some(key), []) => Ok(key),
        _ => Err(CertificateError::BadEncoding.into()),
    }
}

fn verify_signature(
    provider: &CryptoProvider,
    message: &[u8],
    key: &CertificateDer<'_>,
    dss: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature_with_raw_key(
        message,
        &SubjectPublicKeyInfoDer::from(key.as_ref()),
        dss,
        &provider.signature_verification_algorithms,
    )
}

fn only_tls13() -> Error {
    Error::General("a channel is TLS 1.3 or nothing".into())
}

#[cfg(test)]
mod tests;

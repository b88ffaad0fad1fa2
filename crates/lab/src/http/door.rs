//! Doors as a client reaches them: in clear or over TLS, with or without a token.

use super::{Connection, Length, invalid};
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderValue};
use hyper::{Request, StatusCode};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, RootCertStore,
    SignatureScheme,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Files in which systems keep the authorities that everybody trusts.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Certificates that a door may show.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Those that the authorities in a PEM file vouch for, under the name that is asked.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate.
    pub fn authorities(path: &Path) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in read(path)? {
            roots.add(certificate).map_err(|error| refused(path, &error))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| refused(path, &error))?;
        Ok(Self(configured(verifier)))
    }

    /// Those that the system's authorities vouch for.
    ///
    /// # Errors
    /// When it has none at the usual places.
    pub fn system() -> io::Result<Self> {
        let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let usual = BUNDLES.iter().map(PathBuf::from).find(|path| path.exists());
        let path = named.or(usual).ok_or_else(|| {
            let reason = "this system keeps no authorities at a usual place: name them by --ca";
            io::Error::new(io::ErrorKind::NotFound, reason)
        })?;
        Self::authorities(&path)
    }

    /// The first certificate of a PEM file alone, whatever name it bears: for whoever has a door's
    /// own file.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate.
    pub fn pinned(path: &Path) -> io::Result<Self> {
        let expected = read(path)?.swap_remove(0);
        let provider = Arc::new(ring::default_provider());
        Ok(Self(configured(Arc::new(Pinned { expected, provider }))))
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

fn read(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let failed = |error| invalid(format!("{} holds no certificates: {error}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(invalid(format!("{} holds no certificate in PEM", path.display())));
    }
    Ok(found)
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    invalid(format!("{} is refused: {error}", path.display()))
}

fn configured(verifier: Arc<dyn ServerCertVerifier>) -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let mut config =
        config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Accepts one certificate alone.
#[derive(Debug)]
struct Pinned {
    expected: CertificateDer<'static>,
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
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity != self.expected {
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
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Door of a validator or gateway.
#[derive(Clone, Debug)]
pub struct Door {
    pub(super) address: String,
    pub(super) trust: Option<Trust>,
    /// Value of the field that carries the token, marked as a secret.
    pub(super) authorization: Option<HeaderValue>,
}

/// A door in clear, at `host:port`.
impl From<String> for Door {
    fn from(address: String) -> Self {
        Self { address, trust: None, authorization: None }
    }
}

impl From<&str> for Door {
    fn from(address: &str) -> Self {
        Self::from(address.to_owned())
    }
}

impl From<&String> for Door {
    fn from(address: &String) -> Self {
        Self::from(address.clone())
    }
}

impl Door {
    /// A door over TLS, at `host:port`.
    #[must_use]
    pub fn encrypted(address: impl Into<String>, trust: Trust) -> Self {
        Self { address: address.into(), trust: Some(trust), authorization: None }
    }

    /// The door, with a token to show.
    ///
    /// # Errors
    /// When the token has characters that none has.
    pub fn with_token(mut self, token: &str) -> io::Result<Self> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| invalid("a token is plain text".to_owned()))?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Address of the door, as people write it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.trust {
            Some(_) => format!("https://{}", self.address),
            None => self.address.clone(),
        }
    }

    /// Fetches `path` over a connection of its own and returns the body of a 200 answer.
    ///
    /// # Errors
    /// When a step takes longer than `timeout`, or the answer is not 200 or longer than 4 MiB.
    pub fn get(&self, path: &str, timeout: Duration) -> io::Result<String> {
        let mut connection = Connection::to(self, timeout)?;
        let request = Request::get(path).header(CONNECTION, "close").body(String::new());
        connection.exchange(request.map_err(io::Error::other)?, Length::UntilClose)
    }

    /// Fetches `path` as [`Door::get`] does, and returns code and body whatever the code is.
    ///
    /// # Errors
    /// When a step takes longer than `timeout`, or the answer is longer than 4 MiB.
    pub fn look(&self, path: &str, timeout: Duration) -> io::Result<(StatusCode, String)> {
        let mut connection = Connection::to(self, timeout)?;
        let request = Request::get(path).header(CONNECTION, "close").body(String::new());
        let answer = connection.send(request.map_err(io::Error::other)?)?;
        let code = answer.status();
        Ok((code, connection.read(answer)?))
    }

    /// Name that its certificate must bear.
    pub(super) fn server_name(&self) -> io::Result<ServerName<'static>> {
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(host.to_owned());
        name.map_err(|_| invalid(format!("'{host}' is no name of a host")))
    }

    /// Adds the token to a request.
    pub(super) fn authorize(&self, request: &mut Request<String>) {
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
    }
}

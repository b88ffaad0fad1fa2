//! TLS of the HTTP doors, with a certificate that browsers and tools know.
//!
//! Between members and clients keys are pinned ([`crate::tls`]); here a certificate chain and its
//! key come from PEM files, as `certbot` and the like write them. They are read again on SIGHUP:
//! connections that are open keep the former.

use arc_swap::ArcSwap;
use quorate_crypto::shared_mode;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use zeroize::Zeroizing;

/// Longest PEM file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files of a door's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTlsFiles {
    /// Certificate chain, the server's own first.
    pub cert: PathBuf,
    /// Its private key, which only its owner and group may read.
    pub key: PathBuf,
}

/// Error of a certificate or its key.
#[derive(Debug, thiserror::Error)]
pub enum HttpTlsError {
    /// A file that is not there or not readable.
    #[error("cannot read {path}: {source}; check the path, and who may read it", path = path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file without what belongs there.
    #[error("{path} holds no {what} in PEM: {source}", path = path.display())]
    Pem {
        /// Path of the file.
        path: PathBuf,
        /// Kind of content that was expected.
        what: &'static str,
        /// Error of the parser.
        source: pem::Error,
    },
    /// Others may read or write the key.
    #[error("the key {path} is open to others (mode {mode:04o}): run `chmod 640` on it, and replace it if somebody may have read it", path = path.display())]
    Shared {
        /// Path of the key file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// Certificate and key do not go together.
    #[error("{cert} and {key} are refused: {source}", cert = cert.display(), key = key.display())]
    Refused {
        /// Path of the certificate chain.
        cert: PathBuf,
        /// Path of the key.
        key: PathBuf,
        /// Error of the TLS library.
        source: rustls::Error,
    },
}

/// TLS of a door, whose certificate can be replaced while it is open.
pub struct HttpTls {
    files: HttpTlsFiles,
    config: ArcSwap<ServerConfig>,
}

impl HttpTls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, hold something else, or do not go together.
    pub fn load(files: HttpTlsFiles) -> Result<Arc<Self>, HttpTlsError> {
        let config = ArcSwap::from(read(&files)?);
        Ok(Arc::new(Self { files, config }))
    }

    /// Reads the files again, for connections to come; the path of the certificate.
    ///
    /// # Errors
    /// As [`HttpTls::load`]: the former certificate stays in force.
    pub fn reload(&self) -> Result<String, HttpTlsError> {
        self.config.store(read(&self.files)?);
        Ok(self.files.cert.display().to_string())
    }

    /// Shakes hands with a browser or tool.
    ///
    /// # Errors
    /// When the connection fails, or the other end speaks something else.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.config.load_full()).accept(stream).await
    }
}

impl fmt::Debug for HttpTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpTls({})", self.files.cert.display())
    }
}

fn read(files: &HttpTlsFiles) -> Result<Arc<ServerConfig>, HttpTlsError> {
    let HttpTlsFiles { cert, key } = files;
    let refused = |path: &Path, what, source| HttpTlsError::Pem { path: path.into(), what, source };
    let text = content(cert, false)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|source| refused(cert, "certificate", source))?;
    if chain.is_empty() {
        return Err(refused(cert, "certificate", pem::Error::NoItemsFound));
    }
    let text = content(key, true)?;
    let secret = PrivateKeyDer::from_pem_slice(&text);
    let secret = secret.map_err(|source| refused(key, "private key", source))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|source| HttpTlsError::Refused {
        cert: cert.clone(),
        key: key.clone(),
        source,
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn content(path: &Path, is_secret: bool) -> Result<Zeroizing<Vec<u8>>, HttpTlsError> {
    let failed = |source| HttpTlsError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if is_secret && let Some(mode) = shared_mode(&file, 0o027).map_err(failed)? {
        return Err(HttpTlsError::Shared { path: path.to_owned(), mode });
    }
    let mut content = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

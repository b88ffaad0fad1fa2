//! Certificates of doors, and requests to doors that have one or none.

use super::{Net, TIMEOUT, edit};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// Puts a certificate and its key beside a configuration.
pub(crate) fn install(config: &Path, name: &str) {
    fs::copy(fixture(&format!("{name}.pem")), config.with_file_name("cert.pem")).expect("copied");
    install_key(config, name);
}

pub(crate) fn install_key(config: &Path, name: &str) {
    let key = config.with_file_name("cert.key");
    fs::copy(fixture(&format!("{name}.key")), &key).expect("copied");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("set");
}

pub(crate) fn use_tls(config: &Path) {
    install(config, "first");
    edit(config, "# tls_cert = \"cert.pem\"", "tls_cert = \"cert.pem\"");
    edit(config, "# tls_key = \"cert.key\"", "tls_key = \"cert.key\"");
}

pub(crate) fn hang_up(net: &Net) {
    let process = net.processes.id(0).expect("it runs").cast_signed();
    kill_process(Pid::from_raw(process).expect("a process"), Signal::HUP).expect("told");
}

/// Asks as a browser that trusts this certificate alone does.
pub(crate) fn ask_over_tls(trusted: &str, address: &str, request: &str) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_file(fixture(trusted)).expect("a certificate");
    roots.add(trusted).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the one version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let tcp = TcpStream::connect(address)?;
    tcp.set_read_timeout(Some(TIMEOUT))?;
    let mut stream = StreamOwned::new(connection, tcp);
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    request_with("", (method, path, body))
}

/// A request with these lines in its head besides those that it needs.
pub(crate) fn request_with(lines: &str, (method, path, body): (&str, &str, &str)) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{lines}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Asks in clear.
pub(crate) fn ask_in_clear(address: &str, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Status of an answer.
pub(crate) fn status_of(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {answer}"))
}

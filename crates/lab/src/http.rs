//! Blocking `GET` and `POST` over HTTP/1.1, for threads that ask a validator for its status or its
//! gateway for an answer.
//!
//! The protocol is hyper's. Each connection has a runtime of its own, which only works while its
//! owner waits for an answer.

mod door;

pub use door::{Door, Trust};

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time;
use tokio_rustls::TlsConnector;

/// Longest answer read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Longest head of an answer read, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Fetches `path` from `address` over a connection of its own and returns the body of a 200 answer.
///
/// # Errors
/// When a step takes longer than `timeout`, or the answer is not 200 or longer than 4 MiB.
pub fn get(address: &str, path: &str, timeout: Duration) -> io::Result<String> {
    Door::from(address).get(path, timeout)
}

/// A connection on which many requests follow one another.
#[derive(Debug)]
pub struct Connection {
    runtime: Runtime,
    sender: SendRequest<String>,
    door: Door,
    timeout: Duration,
}

/// Answers accepted, by what their heads say of their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Only answers that say how long they are: the next one begins behind.
    Declared,
    /// Also answers that end with their connection.
    UntilClose,
}

impl Connection {
    /// Connects to `address`; no step on the connection takes longer than `timeout`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn open(address: &str, timeout: Duration) -> io::Result<Self> {
        Self::to(&Door::from(address), timeout)
    }

    /// Connects to a door, as [`Connection::open`].
    ///
    /// # Errors
    /// When nobody listens there, or shows a certificate that is trusted.
    pub fn to(door: &Door, timeout: Duration) -> io::Result<Self> {
        let address = &door.address;
        let resolved = address.to_socket_addrs()?.next();
        let resolved = resolved.ok_or_else(|| invalid(format!("{address} has no address")))?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let sender = runtime.block_on(within(timeout, connect(resolved, door)))?;
        Ok(Self { runtime, sender, door: door.clone(), timeout })
    }

    /// Fetches `path` and returns the body of a 200 answer. After an error the connection is of no
    /// more use.
    ///
    /// # Errors
    /// When the answer does not come in time, is not 200, does not say how long it is or is longer
    /// than 4 MiB.
    pub fn get(&mut self, path: &str) -> io::Result<String> {
        let request = Request::get(path).body(String::new());
        self.exchange(request.map_err(io::Error::other)?, Length::Declared)
    }

    /// Sends JSON to `path` and returns the body of a 200 answer, as [`Connection::get`].
    ///
    /// # Errors
    /// As [`Connection::get`].
    pub fn post(&mut self, path: &str, json: &str) -> io::Result<String> {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        let request = request.body(json.to_owned());
        self.exchange(request.map_err(io::Error::other)?, Length::Declared)
    }

    fn exchange(&mut self, request: Request<String>, length: Length) -> io::Result<String> {
        let answer = accepted(self.send(request)?, length)?;
        self.read(answer)
    }

    /// Sends a request, and returns the head of its answer.
    fn send(&mut self, mut request: Request<String>) -> io::Result<Response<Incoming>> {
        let host = HeaderValue::from_str(&self.door.address).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        self.door.authorize(&mut request);
        let sender = &mut self.sender;
        self.runtime.block_on(within(self.timeout, async {
            sender.ready().await.map_err(|error| failed(&error))?;
            sender.send_request(request).await.map_err(|error| failed(&error))
        }))
    }

    fn read(&self, answer: Response<Incoming>) -> io::Result<String> {
        self.runtime.block_on(read(answer.into_body(), self.timeout))
    }
}

async fn connect(address: SocketAddr, door: &Door) -> io::Result<SendRequest<String>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let Some(trust) = &door.trust else { return speak(stream).await };
    let connector = TlsConnector::from(trust.config());
    speak(connector.connect(door.server_name()?, stream).await?).await
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> io::Result<SendRequest<String>> {
    let (sender, connection) = http1::Builder::new()
        .max_header_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    // Errors of the connection reach whoever waits for an answer.
    tokio::spawn(connection);
    Ok(sender)
}

/// The answer, unless it is not 200 or its length is not accepted.
fn accepted(answer: Response<Incoming>, length: Length) -> io::Result<Response<Incoming>> {
    if answer.status() != StatusCode::OK {
        let (version, status) = (answer.version(), answer.status());
        let hint = match status {
            StatusCode::UNAUTHORIZED => ": it asks for a token, or for another one",
            _ => "",
        };
        return Err(invalid(format!("it answered '{version:?} {status}'{hint}")));
    }
    let said = answer.body().size_hint().exact();
    if length == Length::Declared && said.is_none_or(|bytes| bytes > ANSWER_BYTES_MAX) {
        return Err(invalid("the answer has no length".to_owned()));
    }
    Ok(answer)
}

/// The whole body as text; every part of it has `timeout` to come.
async fn read(mut body: Incoming, timeout: Duration) -> io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let part = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let part =
            within(timeout, async { part.await.transpose().map_err(|error| failed(&error)) })
                .await?;
        let Some(part) = part else { break };
        bytes.extend_from_slice(part.data_ref().map_or(&[][..], |data| data));
        if bytes.len() as u64 > ANSWER_BYTES_MAX {
            return Err(invalid("the answer is too long".to_owned()));
        }
    }
    String::from_utf8(bytes).map_err(|error| invalid(error.to_string()))
}

async fn within<T>(timeout: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    time::timeout(timeout, step).await.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {timeout:?}")))
    })
}

/// An error of the protocol or of the stream below it.
fn failed(error: &hyper::Error) -> io::Error {
    if error.is_parse() {
        return invalid("the answer is not HTTP".to_owned());
    }
    if error.is_incomplete_message() {
        return invalid("the answer ends within its head".to_owned());
    }
    let below = std::error::Error::source(&error);
    let system = below.and_then(|below| below.downcast_ref::<io::Error>());
    let kind = system.map_or(io::ErrorKind::InvalidData, io::Error::kind);
    io::Error::new(kind, system.map_or_else(|| error.to_string(), ToString::to_string))
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests;

//! One blocking `GET` over HTTP/1.1: all that asking a validator how it is needs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest answer read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Fetches `path` from `address` and returns the body of a 200 answer.
///
/// # Errors
/// When nobody answers within `patience` per step, or the answer is not 200.
pub fn get(address: &str, path: &str, patience: Duration) -> io::Result<String> {
    let resolved = address.to_socket_addrs()?.next();
    let resolved = resolved.ok_or_else(|| invalid(format!("{address} has no address")))?;
    let mut stream = TcpStream::connect_timeout(&resolved, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    body_of(&answer).map(str::to_owned)
}

fn body_of(answer: &str) -> io::Result<&str> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| invalid("the answer is not HTTP".to_owned()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        Ok(body)
    } else {
        Err(invalid(format!("it answered '{status}'")))
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::body_of;

    #[test]
    fn only_200_has_a_body() {
        assert_eq!(body_of("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}").expect("a body"), "{}");
        let error = body_of("HTTP/1.1 404 Not Found\r\n\r\n").expect_err("refused");
        assert_eq!(error.to_string(), "it answered 'HTTP/1.1 404 Not Found'");
        let error = body_of("SSH-2.0\r\n").expect_err("refused");
        assert_eq!(error.to_string(), "the answer is not HTTP");
    }
}

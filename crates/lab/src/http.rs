//! Blocking `GET` and `POST` over HTTP/1.1: all that asking a validator how it is, or its gateway, needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest answer read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Longest head of an answer read, in bytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024;

/// Fetches `path` from `address` and returns the body of a 200 answer.
///
/// # Errors
/// When nobody answers within `patience` per step, or the answer is not 200.
pub fn get(address: &str, path: &str, patience: Duration) -> io::Result<String> {
    let mut stream = connect(address, patience)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    body_of(&answer).map(str::to_owned)
}

/// A connection on which many requests follow one another.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    /// Connects to `address`; no step on it will take longer than `patience`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn open(address: &str, patience: Duration) -> io::Result<Self> {
        let stream = connect(address, patience)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned() })
    }

    /// Fetches `path` and returns the body of a 200 answer. After an error the connection is of no
    /// more use.
    ///
    /// # Errors
    /// When the answer does not come in time, is not 200 or does not say how long it is.
    pub fn get(&mut self, path: &str) -> io::Result<String> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    /// Sends JSON to `path` and returns the body of a 200 answer, as [`Connection::get`].
    ///
    /// # Errors
    /// As [`Connection::get`].
    pub fn post(&mut self, path: &str, json: &str) -> io::Result<String> {
        let (address, length) = (&self.address, json.len());
        self.exchange(&format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{json}"
        ))
    }

    fn exchange(&mut self, request: &str) -> io::Result<String> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = (&mut self.stream).take(HEAD_BYTES_MAX).read_line(&mut head)?;
            if read == 0 || head.len() as u64 > HEAD_BYTES_MAX {
                return Err(invalid("the answer ends within its head".to_owned()));
            }
        }
        body_of(&head)?;
        let length = length_of(&head).filter(|length| *length <= ANSWER_BYTES_MAX);
        let length = length.ok_or_else(|| invalid("the answer has no length".to_owned()))?;
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body)?;
        String::from_utf8(body).map_err(|error| invalid(error.to_string()))
    }
}

fn length_of(head: &str) -> Option<u64> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|field| field.0.eq_ignore_ascii_case("content-length"));
    lengths.next()?.1.trim().parse().ok()
}

fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let resolved = address.to_socket_addrs()?.next();
    let resolved = resolved.ok_or_else(|| invalid(format!("{address} has no address")))?;
    let stream = TcpStream::connect_timeout(&resolved, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
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
    use super::{Connection, body_of};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn only_200_has_a_body() {
        assert_eq!(body_of("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}").expect("a body"), "{}");
        let error = body_of("HTTP/1.1 404 Not Found\r\n\r\n").expect_err("refused");
        assert_eq!(error.to_string(), "it answered 'HTTP/1.1 404 Not Found'");
        let error = body_of("SSH-2.0\r\n").expect_err("refused");
        assert_eq!(error.to_string(), "the answer is not HTTP");
    }

    /// Answers one connection with these texts, one for each request.
    fn serve(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            for answer in answers {
                let mut request = [0; 1_024];
                assert!(stream.read(&mut request).expect("a request") > 0);
                stream.write_all(answer.as_bytes()).expect("written");
            }
        });
        address
    }

    #[test]
    fn one_connection_carries_many_requests() {
        let address = serve(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno",
        ]);
        let mut connection =
            Connection::open(&address, Duration::from_secs(10)).expect("connected");
        assert_eq!(connection.get("/a").expect("an answer"), "first");
        assert_eq!(connection.post("/b", "{}").expect("an answer"), "");
        let error = connection.get("/c").expect_err("not 200").to_string();
        assert!(error.contains("404"), "{error}");
        let error = connection.get("/d").expect_err("closed");
        assert!(!error.to_string().is_empty());
    }

    #[test]
    fn an_answer_without_a_length_or_an_end_is_refused() {
        for (answers, reason) in [
            (&["HTTP/1.1 200 OK\r\n\r\nbody"][..], "no length"),
            (&["HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"], "no length"),
            (&["HTTP/1.1 200 OK\r\n"], "within its head"),
        ] {
            let patience = Duration::from_secs(10);
            let mut connection = Connection::open(&serve(answers), patience).expect("connected");
            let error = connection.get("/").expect_err("no whole answer").to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}

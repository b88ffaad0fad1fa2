//! A gateway over HTTP, without a library.

use super::{TIMEOUT, edit};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// A gateway as a caller sees it.
pub(crate) struct Door {
    pub(crate) address: String,
    pub(crate) token: Option<&'static str>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The JSON of an answer that has this status.
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn number(&self, header: &str) -> Option<u64> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(name, _)| name.eq_ignore_ascii_case(header));
        values.next().map(|(_, value)| value.parse().expect("a number"))
    }
}

impl Door {
    pub(crate) fn ask(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask_with(&format!("Host: {}\r\n", self.address), method, path, body)
    }

    /// Asks with these lines of the head besides the token and what the body needs.
    pub(crate) fn ask_with(
        &self,
        lines: &str,
        method: &str,
        path: &str,
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let token = self.token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let kind = if method == "POST" { "Content-Type: application/json\r\n" } else { "" };
        let lines = format!("{lines}{kind}{}", token.unwrap_or_default());
        self.ask_plainly(&lines, method, path, body)
    }

    /// Asks with no other lines of the head than these and the body's length.
    pub(crate) fn ask_plainly(
        &self,
        lines: &str,
        method: &str,
        path: &str,
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let length = body.as_ref().len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(&self.address).expect("a gateway");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream.write_all(&[head.as_bytes(), body.as_ref()].concat()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let body = answer.split_off(end + 4);
        let head = String::from_utf8(answer).expect("text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.expect("a status"), head, body }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }
}

/// Names the gateway's address in a configuration.
pub(crate) fn open_gateway(config: &Path, address: &str) {
    let line = format!("gateway = \"{address}\"");
    edit(config, "# gateway = \"127.0.0.1:9200\"", &line);
}

/// The same for a gateway that asks for no token.
pub(crate) fn open_gateway_to_all(config: &Path, address: &str) {
    open_gateway(config, address);
    edit(config, "gateway_open = false", "gateway_open = true");
}

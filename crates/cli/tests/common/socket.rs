//! A WebSocket of JSON-RPC, without a library.

use super::TIMEOUT;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// An open WebSocket.
pub(crate) struct Socket(TcpStream);

impl Socket {
    /// Asks for a WebSocket with these lines in the head; the status, where it is refused.
    pub(crate) fn open(address: &str, lines: &str) -> Result<Self, u16> {
        let head = format!(
            "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{lines}\r\n"
        );
        let mut stream = TcpStream::connect(address).expect("a door");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            answer.push(byte[0]);
        }
        let answer = String::from_utf8(answer).expect("text");
        match super::tls::status_of(&answer) {
            101 => Ok(Self(stream)),
            status => Err(status),
        }
    }

    /// Sends a call and waits for the next message.
    pub(crate) fn call(&mut self, call: &str) -> Value {
        self.send(call);
        self.next()
    }

    /// Sends a text frame, masked with zeros as RFC 6455 §5.3 lets one.
    pub(crate) fn send(&mut self, text: &str) {
        let length = u16::try_from(text.len()).expect("a short text").to_be_bytes();
        let frame = [&[0x81, 0x80 | 126][..], &length, &[0; 4], text.as_bytes()].concat();
        self.0.write_all(&frame).expect("sent");
    }

    /// The next text.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let [head, length] = self.read();
            let length = match length {
                126 => u16::from_be_bytes(self.read()).into(),
                127 => u64::from_be_bytes(self.read()),
                short => u64::from(short),
            };
            let mut content = vec![0; usize::try_from(length).expect("a length")];
            self.0.read_exact(&mut content).expect("a frame");
            if head & 0xf == 1 {
                return serde_json::from_slice(&content).expect("JSON");
            }
        }
    }

    fn read<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).expect("a frame's head");
        bytes
    }
}

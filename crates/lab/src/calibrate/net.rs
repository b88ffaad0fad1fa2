//! Frames: encoded, encrypted, through a socket, decrypted, decoded.

use super::{figures, line, microseconds};
use quorate_crypto::{Digest, IdentitySecret};
use quorate_engine::Message;
use quorate_model::NetPrices;
use quorate_node::tls::{self, Dialer};
use quorate_types::{BodyRef, ReplicaId};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A small frame, such as a vote, and a large one: what a link gathers into one write at most is
/// larger, but a socket on one thread must hold it.
const SMALL: usize = 200;
const LARGE: usize = 128 * 1024;

pub(super) fn measure() -> io::Result<NetPrices> {
    let mut pair = Pair::connect()?;
    let (small, large) = (pair.pass(SMALL)?, pair.pass(LARGE)?);
    let point = |bytes: usize, us: f64| (bytes as f64, us);
    let (send_frame_us, send_byte_us) = line(point(SMALL, small.0), point(LARGE, large.0));
    let (receive_frame_us, receive_byte_us) = line(point(SMALL, small.1), point(LARGE, large.1));
    let (codec_us, codec_byte_us) = codec();
    Ok(NetPrices {
        send_frame_us,
        send_byte_ns: figures(send_byte_us * 1e3),
        receive_frame_us,
        receive_byte_ns: figures(receive_byte_us * 1e3),
        codec_us,
        codec_byte_ns: figures(codec_byte_us * 1e3),
    })
}

/// Two ends of a connection through this machine's loopback, as validators have them.
struct Pair {
    client: StreamOwned<ClientConnection, TcpStream>,
    server: StreamOwned<ServerConnection, TcpStream>,
}

impl Pair {
    fn connect() -> io::Result<Self> {
        let (ours, theirs) =
            (IdentitySecret::from_seed([2; 32]), IdentitySecret::from_seed([3; 32]));
        let listener = tls::listener(&theirs).map_err(io::Error::other)?;
        let dialer = Dialer::new(&ours).and_then(|dialer| dialer.to(theirs.public()));
        let dialer = dialer.map_err(io::Error::other)?;
        let client = ClientConnection::new(dialer, tls::no_name()).map_err(io::Error::other)?;
        let server = ServerConnection::new(listener).map_err(io::Error::other)?;
        let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let here = TcpStream::connect(door.local_addr()?)?;
        let (there, _) = door.accept()?;
        here.set_nodelay(true)?;
        there.set_nodelay(true)?;
        let accept = std::thread::spawn(move || {
            let mut server = StreamOwned::new(server, there);
            server.read_exact(&mut [0])?;
            io::Result::Ok(server)
        });
        let mut client = StreamOwned::new(client, here);
        client.write_all(&[0])?;
        client.flush()?;
        let server = accept.join().map_err(|_| io::Error::other("a handshake panicked"))??;
        Ok(Self { client, server })
    }

    /// Sending and receiving so many bytes, each in microseconds: the least of the means of some
    /// spans.
    fn pass(&mut self, bytes: usize) -> io::Result<(f64, f64)> {
        let content = vec![7; bytes];
        let mut heard = vec![0; bytes];
        let mut best = (f64::INFINITY, f64::INFINITY);
        for _ in 0..super::SPANS {
            let (mut sent, mut received, mut times) = (Duration::ZERO, Duration::ZERO, 0_u32);
            while times < 20 || sent + received < super::SPAN {
                // In parts that the socket holds, since one thread does both.
                let part = 16 * 1024;
                for (out, into) in content.chunks(part).zip(heard.chunks_mut(part)) {
                    let began = Instant::now();
                    self.client.write_all(out)?;
                    self.client.flush()?;
                    let between = Instant::now();
                    self.server.read_exact(into)?;
                    sent += between - began;
                    received += between.elapsed();
                }
                times += 1;
            }
            let mean = |all: Duration| all.as_secs_f64() * 1e6 / f64::from(times);
            best = (best.0.min(mean(sent)), best.1.min(mean(received)));
        }
        Ok(best)
    }
}

/// Encoding a message, from two lists of names of bodies. Decoding is its mirror.
fn codec() -> (f64, f64) {
    let encoded = |names: u64| {
        let name = |sequence| BodyRef { author: ReplicaId(1), sequence, digest: Digest::ZERO };
        let message = Message::Announce((0..names).map(name).collect());
        (message.frame().len() as f64, microseconds(|| message.frame()))
    };
    line(encoded(1), encoded(80))
}

//! The transport: one frame to every peer.

use super::ring::Ring;
use crate::process::processor_seconds;
use serde::{Deserialize, Serialize};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

/// Peers of committees of 4 and of 20.
const PEERS: [usize; 2] = [3, 19];

/// Bytes of frames that are measured.
const FRAMES: [usize; 2] = [1 << 10, 64 << 10];

/// Turns of each way, one after the other, and rounds in one.
const TURNS: usize = 5;
const ROUNDS: usize = 200;

/// Figures of one way to send one size of frames to a number of peers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SocketsRow {
    frame_bytes: usize,
    peers: usize,
    way: String,
    /// A frame to one peer, its way through loopback included.
    processor_us: f64,
}

impl SocketsRow {
    pub(crate) const HEADS: [&str; 4] = ["frame, KiB", "peers", "way", "processor µs a frame"];

    pub(crate) fn cells(&self) -> Vec<String> {
        vec![
            (self.frame_bytes >> 10).to_string(),
            self.peers.to_string(),
            self.way.clone(),
            format!("{:.2}", self.processor_us),
        ]
    }
}

pub(super) fn measure() {
    let mut ring = Ring::new().expect("this system has io_uring");
    for peers in PEERS {
        let (mut receiver, sockets) = connected(peers);
        for frame_bytes in FRAMES {
            let frame = vec![0x5a; frame_bytes];
            let mut spent = [0.0; 2];
            for turn in 0..2 * TURNS {
                for _ in 0..ROUNDS {
                    // Whoever receives has taken the last round: what is measured waits for nobody.
                    sleep(Duration::from_micros((500 + peers * frame_bytes / 256) as u64));
                    let began = processor_seconds();
                    match turn % 2 {
                        0 => sockets.iter().for_each(|mut to| to.write_all(&frame).expect("sends")),
                        _ => ring.send(&sockets, &frame),
                    }
                    spent[turn % 2] += processor_seconds() - began;
                }
            }
            for (way, spent) in ["send each", "io_uring, one submission"].iter().zip(spent) {
                let processor_us = spent * 1e6 / (TURNS * ROUNDS * peers) as f64;
                let row = SocketsRow { frame_bytes, peers, way: (*way).to_owned(), processor_us };
                println!("{}", serde_json::to_string(&row).expect("figures"));
            }
        }
        drop(sockets);
        receiver.wait().expect("ends");
    }
}

/// A process that drains connections, and these.
fn connected(peers: usize) -> (Child, Vec<TcpStream>) {
    let mut receiver = Command::new(env::current_exe().expect("its own path"))
        .args(["uring", "drain", &peers.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut address = String::new();
    let said = receiver.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut address).expect("says where");
    let connect = |_| {
        let socket = TcpStream::connect(address.trim()).expect("connects");
        socket.set_nodelay(true).expect("is set");
        socket
    };
    (receiver, (0..peers).map(connect).collect())
}

/// Takes what comes, until all connections are closed.
pub(super) fn drain(connections: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let (mut socket, _) = listener.accept().expect("somebody");
            thread::spawn(move || {
                let mut buffer = vec![0; 256 << 10];
                while socket.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("ends"));
}

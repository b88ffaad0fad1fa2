//! A crowd of strangers at a validator's doors, while a bench runs.

use crate::crowd::{Crowd, HALF_A_HANDSHAKE, HALF_A_HEAD, make_room_for};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Idle connections at each door; of those to HTTP half begin a head that they never end.
const IDLE: usize = 4_000;

/// Connections that begin a TLS handshake with the peer port and stop.
const HALF_OPEN: usize = 1_500;

/// The time between two bytes of a connection, and between two visits of those shut out.
const PAUSE: Duration = Duration::from_secs(1);

/// Connections that come again in a [`PAUSE`]: more would be a load and not a crowd.
const COMING_AGAIN: usize = 300;

/// Addresses at which strangers reach a validator.
#[derive(Clone, Debug)]
pub(super) struct Doors {
    /// Of peers and clients, over TLS.
    pub(super) peers: String,
    /// Status and metrics, and the gateway if there is one.
    pub(super) http: Vec<String>,
}

/// A crowd at a validator's doors. Dropping it lets it go.
#[derive(Debug)]
pub(super) struct Siege {
    /// Nothing is sent: its end is the sign.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Siege {
    /// Gathers the crowd on a thread of its own.
    pub(super) fn begin(doors: Doors) -> io::Result<Self> {
        make_room_for(connections(&doors))?;
        let (end, ended) = channel();
        let hold = move || hold(&doors, &ended);
        let thread = thread::Builder::new().name("crowd".to_owned()).spawn(hold)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Siege {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn connections(doors: &Doors) -> usize {
    IDLE * (1 + doors.http.len()) + HALF_OPEN
}

fn hold(doors: &Doors, ended: &Receiver<()>) {
    let mut crowd = Crowd::default();
    for http in &doors.http {
        let _ = crowd.gather(http, IDLE / 2, b"");
        let _ = crowd.gather(http, IDLE / 2, HALF_A_HEAD);
    }
    let _ = crowd.gather(&doors.peers, IDLE, b"");
    let _ = crowd.gather(&doors.peers, HALF_OPEN, HALF_A_HANDSHAKE);
    while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        crowd.trickle();
        crowd.come_again(COMING_AGAIN);
    }
}

//! A crowd at the door: connections of strangers that say nothing, or never end what they say.
//!
//! What they cost is to be nothing: [`mod@crate::bench`] measures the throughput beside them, and
//! tests hold that everything is answered meanwhile.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The head of a request that never ends (slowloris).
pub const HALF_A_HEAD: &[u8] = b"GET /status HTTP/1.1\r\nX-Slow: ";

/// The head of a TLS record that announces a handshake of 512 bytes, and its first byte.
pub const HALF_A_HANDSHAKE: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01];

/// Descriptors that whoever holds a crowd needs besides it.
const OTHER_DESCRIPTORS: u64 = 1_000;

/// A door that has not taken a connection for so long takes no more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that are held open. Dropping it closes them.
#[derive(Debug, Default)]
pub struct Crowd(Vec<Guest>);

#[derive(Debug)]
struct Guest {
    address: SocketAddr,
    greeting: Vec<u8>,
    stream: TcpStream,
}

impl Guest {
    fn arrive(address: SocketAddr, greeting: &[u8]) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        // A door may have closed it already: then it is held as it is.
        let _ = stream.write_all(greeting);
        stream.set_nonblocking(true)?;
        Ok(Self { address, greeting: greeting.to_owned(), stream })
    }

    fn is_shut_out(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

impl Crowd {
    /// Opens `count` connections to a door, or as many as are taken, and says `greeting` on each.
    /// Those that the other end closes again are held all the same.
    ///
    /// # Errors
    /// When this is no address of the form `IP:PORT`.
    pub fn gather(&mut self, address: &str, count: usize, greeting: &[u8]) -> io::Result<()> {
        let address = address.parse().map_err(|_| {
            io::Error::new(ErrorKind::InvalidInput, format!("{address} is not IP:PORT"))
        })?;
        let arrive = |_| Guest::arrive(address, greeting).ok();
        self.0.extend((0..count).map_while(arrive));
        Ok(())
    }

    /// Adds a byte to what every connection said.
    pub fn trickle(&mut self) {
        for guest in &mut self.0 {
            let _ = guest.stream.write(b"x");
        }
    }

    /// Has up to `most` of those that were shut out come again.
    pub fn come_again(&mut self, most: usize) {
        for guest in self.0.iter_mut().filter(|guest| guest.is_shut_out()).take(most) {
            if let Ok(again) = Guest::arrive(guest.address, &guest.greeting) {
                *guest = again;
            }
        }
    }
}

/// Raises this process's limit of open descriptors to the highest that it may have.
///
/// # Errors
/// When that is too low to hold a crowd of so many, or the system refuses.
pub fn make_room_for(crowd: usize) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let needed = crowd as u64 + OTHER_DESCRIPTORS;
    if maximum.is_some_and(|most| most < needed) {
        let rule = format!("holding {crowd} connections needs `ulimit -Hn` of {needed}");
        return Err(io::Error::new(ErrorKind::QuotaExceeded, rule));
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[cfg(test)]
mod tests;

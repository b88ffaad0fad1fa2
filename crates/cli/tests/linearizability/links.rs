//! Links between validators that can be cut.
//!
//! Every validator gets a committee file of its own in which the others have the addresses of
//! relays here, one for each pair and direction. A relay hands bytes on as they come; while its
//! link is cut it holds them back, as a network does that loses packets until TCP sends them again.

use std::fs;
use std::net::TcpListener as Socket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Bytes that a relay takes at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The links of a committee.
pub(crate) struct Links {
    links: Vec<Link>,
}

/// From one member to another: the connections that the first makes.
struct Link {
    from: usize,
    to: usize,
    is_open: watch::Sender<bool>,
    is_used: Arc<AtomicBool>,
}

impl Links {
    /// Puts relays between the validators of these configurations, on the runtime of `handle`.
    pub(crate) fn between(configs: &[PathBuf], handle: &Handle) -> Self {
        let _on = handle.enter();
        let addresses = addresses(&configs[0]);
        let mut links = Vec::new();
        for (from, config) in configs.iter().enumerate() {
            let mut committee = fs::read_to_string(shared_committee(config)).expect("a file");
            for (to, address) in addresses.iter().enumerate().filter(|(to, _)| *to != from) {
                let (link, relay) = Link::open(from, to, address);
                committee = replace_once(&committee, &quoted(address), &quoted(&relay));
                links.push(link);
            }
            write_own_committee(config, &committee);
        }
        Self { links }
    }

    /// Cuts or mends the links that `concern` picks by their ends.
    pub(crate) fn set(&self, is_open: bool, concern: impl Fn(usize, usize) -> bool) {
        for link in self.links.iter().filter(|link| concern(link.from, link.to)) {
            link.is_open.send_replace(is_open);
        }
    }

    /// The ends of links that nothing ever passed: cutting them would be no fault.
    pub(crate) fn unused(&self) -> Vec<(usize, usize)> {
        let unused = self.links.iter().filter(|link| !link.is_used.load(Ordering::Relaxed));
        unused.map(|link| (link.from, link.to)).collect()
    }
}

impl Link {
    /// A link to `target`, and the address of its relay.
    fn open(from: usize, to: usize, target: &str) -> (Self, String) {
        let socket = Socket::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket");
        let relay = socket.local_addr().expect("an address").to_string();
        let listener = TcpListener::from_std(socket).expect("within a runtime");
        let (is_open, watched) = watch::channel(true);
        let is_used = Arc::<AtomicBool>::default();
        let gate = Gate { is_open: watched, is_used: Arc::clone(&is_used) };
        tokio::spawn(listen(listener, target.to_owned(), gate));
        (Self { from, to, is_open, is_used }, relay)
    }
}

/// Gate that the bytes of a link pass.
#[derive(Clone)]
struct Gate {
    is_open: watch::Receiver<bool>,
    is_used: Arc<AtomicBool>,
}

impl Gate {
    /// Waits while the link is cut. `None`: nobody can mend it any more.
    async fn pass(&mut self) -> Option<()> {
        self.is_open.wait_for(|is_open| *is_open).await.ok().map(drop)
    }
}

async fn listen(listener: TcpListener, target: String, gate: Gate) {
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(relay(near, target.clone(), gate.clone()));
    }
}

/// Both directions of one connection, until either ends.
async fn relay(near: TcpStream, target: String, mut gate: Gate) -> Option<()> {
    gate.pass().await?;
    let far = TcpStream::connect(target).await.ok()?;
    near.set_nodelay(true).ok()?;
    far.set_nodelay(true).ok()?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        ended = pump(near_in, far_out, gate.clone()) => ended,
        ended = pump(far_in, near_out, gate) => ended,
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut gate: Gate) -> Option<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let count @ 1.. = from.read(&mut chunk).await.ok()? {
        gate.pass().await?;
        to.write_all(&chunk[..count]).await.ok()?;
        gate.is_used.store(true, Ordering::Relaxed);
    }
    Some(())
}

fn shared_committee(config: &Path) -> PathBuf {
    config.with_file_name("../committee.toml")
}

/// The addresses of all members, in order.
fn addresses(config: &Path) -> Vec<String> {
    let committee = fs::read_to_string(shared_committee(config)).expect("a file");
    let address =
        |line: &str| Some(line.strip_prefix("address = \"")?.strip_suffix('"')?.to_owned());
    committee.lines().filter_map(address).collect()
}

fn write_own_committee(config: &Path, committee: &str) {
    fs::write(config.with_file_name("committee.toml"), committee).expect("written");
    let text = fs::read_to_string(config).expect("a file");
    let own =
        replace_once(&text, "committee = \"../committee.toml\"", "committee = \"committee.toml\"");
    fs::write(config, own).expect("written");
}

fn quoted(address: &str) -> String {
    format!("\"{address}\"")
}

fn replace_once(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from} is there once");
    text.replace(from, to)
}

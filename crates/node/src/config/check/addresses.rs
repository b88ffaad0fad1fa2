//! Names, addresses and ports.

use super::Notes;
use super::source::Source;
use crate::config::NodeConfig;
use quorate_types::CommitteeFile;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;

/// The members' addresses: well formed, no two alike, known to the resolver.
pub(super) fn members(committee: &Source, file: &CommitteeFile, notes: &mut Notes) {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, member) in file.members.iter().enumerate() {
        let section = format!("members[{index}]");
        let place = committee.at(&section, "address");
        if let Some(first) = owners.insert(&member.address, index) {
            let problem =
                format!("members {first} and {index} have the same address {}", member.address);
            notes.error(place, problem, "give each member the address that it listens on");
        }
    }
    let problems: Vec<Option<io::Error>> = thread::scope(|scope| {
        let asked: Vec<_> = file
            .members
            .iter()
            .map(|member| scope.spawn(|| resolve(&member.address).err()))
            .collect();
        asked.into_iter().map(|answer| answer.join().expect("resolving does not panic")).collect()
    });
    for (index, problem) in problems.into_iter().enumerate() {
        let Some(error) = problem else { continue };
        let section = format!("members[{index}]");
        let place = committee.at(&section, "address");
        let problem = format!("member {index}: '{}': {error}", file.members[index].address);
        if error.kind() == ErrorKind::InvalidInput {
            notes.error(place, problem, "write a host and a port: \"host:7000\"");
        } else {
            // No reason not to start: a name that cannot be resolved now is tried again.
            let hint = "this machine does not find that host: check the name, or the resolver";
            notes.warning(place, problem, hint);
        }
    }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let nothing = || io::Error::new(ErrorKind::NotFound, "the name has no address");
    address.to_socket_addrs()?.next().ok_or_else(nothing)
}

/// Checks the addresses that this validator listens on.
pub(super) fn own(source: &Source, config: &NodeConfig, listen: Option<&str>, notes: &mut Notes) {
    let http = config.http.parse::<SocketAddr>().ok();
    let listen = listen.and_then(|listen| resolve(listen).ok());
    if let (Some(http), Some(listen)) = (http, listen)
        && http.port() == listen.port()
        && http.port() != 0
        && (http.ip() == listen.ip() || http.ip().is_unspecified() || listen.ip().is_unspecified())
    {
        let problem = format!("http and the address for peers are both port {}", http.port());
        notes.error(source.at("", "http"), problem, "give one of them another port");
        return;
    }
    let gateway = config.gateway.as_ref().and_then(|gateway| gateway.parse::<SocketAddr>().ok());
    let key = if config.listen.is_some() { "listen" } else { "committee" };
    for (key, address, purpose) in [
        (key, listen, "peers and clients"),
        ("http", http, "status and metrics"),
        ("gateway", gateway, "the gateway"),
    ] {
        if let Some(address) = address {
            try_port(source, (key, address, purpose), notes);
        }
    }
}

/// Takes the port for a moment.
fn try_port(source: &Source, (key, address, purpose): (&str, SocketAddr, &str), notes: &mut Notes) {
    let Err(error) = TcpListener::bind(address) else { return };
    let place = source.at("", key);
    match error.kind() {
        ErrorKind::AddrInUse => {
            let problem = format!("{address}, for {purpose}, is in use");
            let hint = "fine if this validator is running now; if not, stop the other program or \
                        choose another port";
            notes.warning(place, problem, hint);
        }
        ErrorKind::AddrNotAvailable => {
            let problem = format!("{address}, for {purpose}, is no address of this machine");
            let hint = "set `listen` to one of its addresses, or to \"0.0.0.0:PORT\"";
            notes.error(place, problem, hint);
        }
        ErrorKind::PermissionDenied => {
            let problem = format!("{address}, for {purpose}: {error}");
            notes.error(place, problem, "choose a port from 1024 on");
        }
        _ => notes.error(place, format!("{address}, for {purpose}: {error}"), ""),
    }
}

//! Programs of different versions in one committee: a change to a version of what is executed that
//! the program lacks, and a member that speaks another version of the wire.

use crate::common::{self, Net, json, processes, quorate, stderr, text, wait_for};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile};
use quorate_lab::status::ask_all;
use quorate_node::bring_change;
use quorate_node::config::{load_committee, read_committee_file};
use quorate_node::ports::free_ports;
use quorate_node::tls::{self, Dialer};
use quorate_node::transport::hello::{Answer, Hello};
use quorate_types::{Change, Committee, Height, Lane, ReplicaId, SignedChange};
use rustls::{ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What everybody says whose program lacks the version.
const LACKS: &str =
    "the committee executes 'ordered-log' by version 2, and this program has version 1 alone";

/// The change to version 2, signed by keys as no program would that is honest about its versions.
fn change(ends: &Committee, net: &Net) -> SignedChange {
    let file = read_committee_file(&net.folder().join("committee.toml")).expect("a committee file");
    let mut file = file.next_epoch(ends.network());
    file.settings.execution_version = 2;
    let (network, epoch) = (ends.network(), ends.epoch());
    let (not_before, expires) = (Height(0), Height(1_000_000));
    let change = Change { network, epoch, file, not_before, expires };
    let next = change.check(ends).expect("a sound change");
    let key = |config: &PathBuf| KeyFile::read(&config.with_file_name("key.toml")).expect("a key");
    let keys: Vec<KeyFile> = net.configs.iter().map(key).collect();
    let members = || (0..).map(ReplicaId).zip(&keys);
    let approve = |(member, keys): (_, &KeyFile)| change.approve(ends, member, &keys.identity);
    let accept = |(member, keys): (_, &KeyFile)| {
        change.accept((ends, &next), (member, Height(0)), (&keys.identity, &keys.voting))
    };
    let (approvals, acceptances) =
        (members().map(approve).collect(), members().map(accept).collect());
    SignedChange { change, approvals, acceptances }
}

/// Waits until a validator has ended by itself, as one does whose program lacks the version.
fn expect_stopped(net: &mut Net) {
    let (index, status) = wait_for("one to stop", || net.processes.find_exited());
    let said = net.processes.log_tail(index, 5);
    assert_eq!(status.code(), Some(6), "{said}");
    for part in [LACKS, "install a newer version of the program and start it again", "its disk"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let data = net.configs[index].with_file_name("data");
    assert!(data.join("epochs/00000001.handover").exists(), "{said}");
    net.processes.kill(index).expect("it is gone");
}

/// Nobody accepts the change by this program, not for a validator of it either; where members were
/// said to have the version and lack it, all stop at the border of the epoch, as often as they are
/// started.
#[test]
fn a_version_that_the_program_lacks_is_not_accepted_and_stops_it_at_the_border() {
    let mut net = Net::start(4, "ed25519");
    net.wait_connected();
    let (folder, draft) = (net.folder(), net.folder().join("change.toml"));
    let run = |arguments: &[&str]| {
        quorate(&[&["committee"], arguments, &["--net", text(&folder)]].concat())
    };
    let drafted = run(&["draft", "--version", "2", "--out", text(&draft)]);
    let said = common::stdout(&drafted);
    for part in ["execution_version, setting: 1 → 2\n", &format!("Mind: {LACKS}.")] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let written = fs::read(&draft).expect("a change");
    let key = net.configs[0].with_file_name("key.toml");
    let accept = ["accept", text(&draft), "--key", text(&key)];
    for (state, asked) in
        [(["--executed", "1"], ""), (["--status", &net.http[1]], "the validator that was asked: ")]
    {
        let refused = run(&[&accept[..], &state].concat());
        assert_eq!(refused.status.code(), Some(6));
        let sentence = format!("error: {asked}{LACKS}: install a newer version first");
        assert!(stderr(&refused).starts_with(&sentence), "{}", stderr(&refused));
    }
    assert_eq!(fs::read(&draft).expect("a change"), written);

    let committee = load_committee(&folder.join("committee.toml"), KeyCache::On);
    let committee = Arc::new(committee.expect("a committee"));
    let identity = IdentitySecret::from_seed([9; 32]);
    let brought = bring_change(&committee, &identity, &change(&committee, &net));
    assert!(!brought.expect("all asked").taken.is_empty());
    (0..4).for_each(|_| expect_stopped(&mut net));
    net.processes.start_one(2).expect("started");
    expect_stopped(&mut net);
}

/// A member whose program speaks another version of the wire: it listens at the member's address
/// with the member's key, and turns away whoever dials, as any release does with a hello of a
/// version that it does not know.
struct OtherVersion {
    key: KeyFile,
    answered: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OtherVersion {
    fn listen(address: &str, key: KeyFile) -> Self {
        let listener = TcpListener::bind(address).expect("the member's port");
        listener.set_nonblocking(true).expect("a plain socket");
        let config = tls::listener(&key.identity).expect("a good key");
        let (answered, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, over) = (Arc::clone(&answered), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let Ok((tcp, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                if turn_away(tcp, &config).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { key, answered, is_over, thread: Some(thread) }
    }

    /// Dials a member with a hello of the next version; returns the byte that comes back.
    fn dial(&self, committee: &Committee, to: ReplicaId) -> u8 {
        let expected = *committee.identity(to).expect("a member");
        let config = Dialer::new(&self.key.identity).and_then(|dialer| dialer.to(expected));
        let tcp = TcpStream::connect(committee.address(to).expect("a member")).expect("it listens");
        let connection = ClientConnection::new(config.expect("good keys"), tls::no_name());
        let mut stream = StreamOwned::new(connection.expect("a name"), tcp);
        let mut hello = Hello::to(committee, Lane::Votes).encode();
        hello[7] += 1;
        stream.write_all(&hello).expect("sent");
        let mut answer = [0];
        stream.read_exact(&mut answer).expect("an answer");
        answer[0]
    }

    fn wait_answered(&self, more: usize) {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        wait_for("dialers", || (self.answered.load(Ordering::Relaxed) >= goal).then_some(()));
    }

    fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().expect("one thread").join().expect("it ended well");
    }
}

fn turn_away(tcp: TcpStream, config: &Arc<ServerConfig>) -> io::Result<()> {
    tcp.set_nonblocking(false)?;
    tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, tcp);
    stream.read_exact(&mut [0; 49])?;
    stream.write_all(&[Answer::Unknown as u8])?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Both are told so, nobody else is disturbed, and the member is back as soon as its program speaks
/// the committee's version.
#[test]
fn a_member_that_speaks_another_version_is_turned_away_and_the_others_go_on() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let base = free_ports(14).expect("free ports").to_string();
    let options = ["-n", "4", "--scheme", "ed25519", "--service", "kv", "--base-port", &base];
    let written = json(&[&["testnet", text(&folder), "--json"], &options[..]].concat());
    let configs: Vec<PathBuf> = serde_json::from_value(written["configs"].clone()).expect("paths");
    let http: Vec<String> = serde_json::from_value(written["http"].clone()).expect("addresses");
    let committee = load_committee(&folder.join("committee.toml"), KeyCache::On).expect("a file");
    let key = KeyFile::read(&configs[3].with_file_name("key.toml")).expect("a key");
    let address = committee.address(ReplicaId(3)).expect("a member").to_owned();

    let other = OtherVersion::listen(&address, key);
    let mut processes = processes(&configs[..3]);
    let puts = |colour: &str| {
        let kv = ["kv", "--timeout", "60", "--net", text(&folder), "--json", "put", "colour"];
        json(&[&kv[..], &[colour]].concat());
    };
    puts("red");
    wait_for("validator 0 to say so", || {
        processes.log_tail(0, 1_000).contains("it speaks another version").then_some(())
    });
    assert_eq!(other.dial(&committee, ReplicaId(0)), Answer::Unknown as u8);
    assert_eq!(Answer::Unknown.refusal(), Some("it speaks another version"));
    // They try again, and go on without it meanwhile.
    other.wait_answered(4);
    puts("green");
    assert!(processes.find_exited().is_none(), "nobody stopped");

    other.end();
    let _fourth = common::processes(&configs[3..]);
    let roots = || {
        let looks = ask_all(&http, Duration::from_secs(5));
        let looks: Option<Vec<_>> = looks.into_iter().map(Result::ok).collect();
        let looks = looks.filter(|looks| looks.iter().all(|look| look.operations == 2))?;
        looks.iter().all(|look| look.root == looks[0].root).then_some(())
    };
    wait_for("the fourth to be level with them", roots);
}

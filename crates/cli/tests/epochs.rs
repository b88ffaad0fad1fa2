//! Clients, gateways and receipts of real validators over the end of an epoch.

use crate::common::door::{Door, open_gateway_to_all};
use crate::common::operators::{Operators, entry};
use crate::common::{
    Learner, Net, copy_all, forget_learners, json, processes, quorate, stderr, text, wait_for,
};
use quorate_crypto::{Bitmap, KeyCache, KeyFile, Policy};
use quorate_lab::status::ask;
use quorate_node::NodeConfig;
use quorate_node::config::{load_committee, read_committee_file};
use quorate_node::ports::free_ports;
use quorate_node::unix_ms;
use quorate_types::{
    BlockId, Committee, HandOver, HandedOver, Header, Height, Purpose, SignedHandOver,
};
use serde_json::{Value, json as value};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Four validators of the key-value store; member 0 has a gateway.
fn start() -> (Net, Door) {
    let address = format!("127.0.0.1:{}", free_ports(1).expect("a free port"));
    let net = Net::start_with(4, "ed25519", &["--service", "kv"], |configs| {
        open_gateway_to_all(&configs[0], &address);
    });
    net.wait_connected();
    let door = Door { address, token: None };
    wait_for("the gateway to be open", || TcpStream::connect(&door.address).ok());
    wait_for("the gateway to be connected", || {
        (door.get("/v1/status").json(200)["members_connected"] == 4).then_some(())
    });
    (net, door)
}

/// A key-value store with the committee file that founded the network.
struct Store {
    folder: PathBuf,
}

impl Store {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a value until that has a receipt, in a file of this name: what had to be sent again
    /// has none. The hand-overs are in another one.
    fn prove(&self, name: &str) -> Value {
        let (receipt, history) = (self.path(name), self.path(&format!("{name}.history")));
        wait_for("a write with its receipt", || {
            let keep = ["--receipt", text(&receipt), "--history", text(&history)];
            let put = ["kv", "--net", text(&self.folder), "--timeout", "60", "put", name, "x"];
            quorate(&[&put[..], &keep].concat()).status.success().then_some(())
        });
        let receipt = fs::read(&receipt).expect("a receipt");
        serde_json::from_slice(&receipt).expect("JSON")
    }

    /// Checks a receipt offline over these hand-overs; the reason where it proves nothing.
    fn verify(&self, name: &str, history: Option<&Path>) -> Result<(), String> {
        let receipt = self.path(name);
        let verify = ["receipt", "verify", text(&receipt), "--net", text(&self.folder)];
        let over = history.map(|path| ["--history", text(path)]);
        let output = quorate(&[&verify[..], over.as_ref().map_or(&[], |over| &over[..])].concat());
        if output.status.success() { Ok(()) } else { Err(stderr(&output)) }
    }
}

/// Asks for the gateway's status on a connection that stays open.
fn status_on(stream: &TcpStream) -> Value {
    let mut stream = BufReader::new(stream);
    stream
        .get_mut()
        .write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("sent");
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("a line") > 0, "the connection ended");
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// The gateway serves on over the border, on connections that are open too; who has the first
/// committee file follows; receipts of both epochs verify over the hand-overs, and the later one
/// does not without.
#[test]
fn clients_gateways_and_receipts_go_with_their_network() {
    let (net, door) = start();
    let open = TcpStream::connect(&door.address).expect("a gateway");
    assert_eq!(status_on(&open)["epoch"], 1);
    door.ask("PUT", "/v1/kv/before", "green").json(200);
    let store = Store { folder: net.folder() };
    let first = store.prove("first.json");

    let mut operators = Operators::of(net.folder(), &net.configs);
    operators.change(&["--protocol", "hotstuff"], &[]);
    operators.watch();
    let (folder, change) = (net.folder(), net.folder().join("change-1.toml"));
    let watch = ["committee", "watch", text(&change), "--net", text(&folder), "--timeout"];
    let late = quorate(&[&watch[..], &["0", "--http", "127.0.0.1:1"]].concat());
    assert_eq!(late.status.code(), Some(1));
    assert!(stderr(&late).contains("not in epoch 2 yet: 127.0.0.1:1"), "{}", stderr(&late));
    let epoch = || (status_on(&open)["epoch"] == 2).then_some(());
    wait_for("the gateway to follow", epoch);
    let read = door.get("/v1/kv/before?consistency=linearizable");
    assert_eq!((read.status, &*read.text()), (200, "green"));
    let second = store.prove("second.json");
    assert_eq!((&first["epoch"], &second["epoch"]), (&value!(1), &value!(2)));

    let written = store.path("second.json.history");
    let kept = net.configs[2].with_file_name("data").join("epochs");
    for history in [&written, &kept] {
        for receipt in ["first.json", "second.json"] {
            assert_eq!(store.verify(receipt, Some(history)), Ok(()), "{receipt}");
        }
    }
    assert_eq!(store.verify("first.json", None), Ok(()));
    let error = store.verify("second.json", None).expect_err("its epoch is not known");
    assert!(error.contains("the hand-overs that are known here lead to epoch 1"), "{error}");
    let error = store.verify("first.json", Some(&store.path("first.json")));
    let error = error.expect_err("a file of something else");
    assert!(error.contains("has no hand-overs"), "{error}");
    for receipt in [first, second] {
        let verified = door.ask("POST", "/v1/receipts/verify", receipt.to_string()).json(200);
        assert_eq!(verified["epoch"], receipt["epoch"]);
    }
    let shown = json(&[
        "receipt",
        "verify",
        text(&written.with_extension("")),
        "--net",
        text(&store.folder),
        "--history",
        text(&kept),
        "--json",
    ]);
    assert_eq!(shown["receipt"]["epoch"], 2);
}

/// Receipts of every epoch, and the hand-overs between, long after and far from the network.
struct Archive {
    _place: TempDir,
    store: Store,
    /// Folder of the hand-overs.
    steps: PathBuf,
    /// Committee and keys of all members of the first epoch.
    former: (Committee, Vec<KeyFile>),
}

impl Archive {
    /// Four epochs of a network, which is gone then.
    fn make() -> Self {
        let (net, _) = start();
        let place = tempfile::tempdir().expect("a folder");
        let live = Store { folder: net.folder() };
        let mut operators = Operators::of(net.folder(), &net.configs);
        live.prove("1.json");
        for (receipt, protocol) in [("2.json", "hotstuff"), ("3.json", "sbft"), ("4.json", "pbft")]
        {
            operators.change(&["--protocol", protocol], &[]);
            operators.watch();
            live.prove(receipt);
        }
        let store = Store { folder: place.path().to_owned() };
        for file in ["1.json", "2.json", "3.json", "4.json", "committee.toml"] {
            fs::copy(live.path(file), store.path(file)).expect("copied");
        }
        let steps = store.path("shown");
        copy_all(&net.configs[2].with_file_name("data").join("epochs"), &steps);
        let keys = |config: &PathBuf| KeyFile::read(&config.with_file_name("key.toml"));
        let keys = net.configs.iter().map(keys).collect::<Result<_, _>>().expect("keys");
        let committee = load_committee(&store.path("committee.toml"), KeyCache::On);
        let former = (committee.expect("a committee"), keys);
        Self { _place: place, store, steps, former }
    }

    /// Other members after the first epoch, by all keys of it, and now.
    fn fork(&self) -> PathBuf {
        let (committee, keys) = &self.former;
        let founding = read_committee_file(&self.store.path("committee.toml")).expect("a file");
        let mut file = founding.next_epoch(committee.network());
        file.members.rotate_left(1);
        let now_ms = unix_ms();
        let header = Header { height: Height(9), proposed_at_ms: now_ms, ..Header::default() };
        let (height, root, file_digest) = (header.height, header.root(), file.digest());
        let content = HandOver { height, root, file: file_digest, stop: BlockId::default() };
        let statement = content.statement(committee.scope());
        let sign = |keys: &KeyFile| committee.sign(Purpose::HandOver, &keys.voting, &statement);
        let shares: Vec<_> = keys.iter().map(sign).enumerate().collect();
        let (scheme, _) = committee.scheme(Purpose::HandOver);
        let nobody = Bitmap::new(committee.size());
        let signed = scheme.combine(&statement, &shares, &nobody, Policy::Aggregate);
        let certificate = signed.certificate.expect("good shares");
        let signed = SignedHandOver { content, certificate };
        let path = self.store.path("fork");
        let steps = vec![HandedOver { signed, header, file }];
        fs::write(&path, borsh::to_vec(&steps).expect("encoded")).expect("written");
        path
    }
}

/// Makes a file one that was fetched so many days ago.
fn age(path: &Path, days: u64) {
    let file = File::options().write(true).open(path);
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    file.and_then(|file| file.set_modified(then)).expect("a time");
}

/// Every receipt of a network that went on for three epochs verifies from files alone, and no
/// hand-over between may differ in any byte. Beyond the trusting period nobody is followed from the
/// first file on, be it who leaked all keys of its members or who has the true hand-overs; from
/// newer ones, which come from a source that is trusted, receipts verify again, and a fork is one.
#[test]
fn receipts_of_long_ago_verify_offline() {
    let archive = Archive::make();
    let Archive { store, steps, .. } = &archive;
    let receipts = ["1.json", "2.json", "3.json", "4.json"];
    for receipt in receipts {
        assert_eq!(store.verify(receipt, Some(steps)), Ok(()), "{receipt}");
    }
    let second = steps.join("00000002.handover");
    let sound = fs::read(&second).expect("a hand-over");
    for place in (0..sound.len()).step_by(sound.len() / 5) {
        let mut altered = sound.clone();
        altered[place] ^= 1;
        fs::write(&second, altered).expect("written");
        for receipt in receipts {
            assert!(store.verify(receipt, Some(steps)).is_err(), "{receipt}, byte {place}");
        }
    }
    fs::write(&second, sound).expect("written");

    let fork = archive.fork();
    assert_eq!(store.verify("1.json", Some(&fork)), Ok(()), "nobody knows better yet");
    age(&store.path("committee.toml"), 181);
    for shown in [&fork, steps] {
        let error = store.verify("1.json", Some(shown)).expect_err("it is too late");
        assert!(error.contains("what is known here of epoch e1 is 181 days old"), "{error}");
        assert!(error.contains("copy the folder epochs in the data folder"), "{error}");
    }
    assert_eq!(store.verify("1.json", None), Ok(()), "no hand-over is asked for");
    copy_all(steps, &store.path("epochs"));
    for receipt in receipts {
        assert_eq!(store.verify(receipt, None), Ok(()), "{receipt}");
    }
    let error = store.verify("1.json", Some(&fork)).expect_err("a fork");
    assert!(error.contains("it is of another history"), "{error}");
}

/// A client with a committee file older than the trusting period says why it does not follow, and
/// follows from the hand-overs that its owner puts beside the file.
#[test]
fn an_old_committee_file_is_renewed() {
    let (net, _) = start();
    let mut operators = Operators::of(net.folder(), &net.configs);
    operators.change(&["--protocol", "hotstuff"], &[]);
    operators.watch();
    let place = tempfile::tempdir().expect("a folder");
    let committee = place.path().join("committee.toml");
    fs::copy(net.folder().join("committee.toml"), &committee).expect("copied");
    age(&committee, 181);
    let put = |timeout| {
        let put = ["kv", "--committee", text(&committee), "--timeout", timeout, "put", "a", "b"];
        quorate(&put)
    };
    let refused = put("3");
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains("its members are trusted for 180 days"), "{said}");
    assert!(said.contains("beside the committee file"), "{said}");
    let kept = net.configs[2].with_file_name("data").join("epochs");
    copy_all(&kept, &place.path().join("epochs"));
    let done = put("60");
    assert!(done.status.success(), "{}", stderr(&done));
}

/// Who is to be a member follows from when its change waits at the members, which need not list it
/// as a learner.
#[test]
fn a_newcomer_follows_by_the_change_that_names_it() {
    let options = ["--service", "kv", "--learners", "1"];
    let net = Net::start_with(4, "ed25519", &options, forget_learners);
    net.wait_connected();
    let store = Store { folder: net.folder() };
    store.prove("before");
    let Learner { config, address } = &net.learners[0];
    let _newcomer = processes(std::slice::from_ref(config));
    let key = config.with_file_name("key.toml");
    let (_, address) = address.split_once('@').expect("an address");
    let add = format!("--add={}", text(&entry(&key, address)));
    let keys = net.configs.iter().map(|config| config.with_file_name("key.toml"));
    let keys = keys.chain([key]).collect();
    // The epoch goes on: nobody is in the next one, where it would be known as a member.
    Operators::of(net.folder(), &net.configs).change_to(&[&add, "--not-before=5000"], keys);
    let http = NodeConfig::load(config).expect("a configuration").http;
    wait_for("the newcomer to follow", || {
        let look = ask(&http, Duration::from_secs(5)).ok()?;
        (look.executed > 0 && look.config.epoch == 1 && look.config.learner).then_some(())
    });
}

//! Clients, gateways and receipts of real validators over the end of an epoch.

mod common;

use common::door::{Door, open_gateway_to_all};
use common::operators::Operators;
use common::{Net, json, quorate, stderr, stdout, text, wait_for};
use quorate_node::ports::free_ports;
use serde_json::{Value, json as value};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

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

    Operators::of(net.folder(), &net.configs).change(&["--protocol", "hotstuff"], &[]);
    let (folder, change) = (net.folder(), net.folder().join("change-1.toml"));
    let watch = ["committee", "watch", text(&change), "--net", text(&folder), "--timeout"];
    let watched = quorate(&[&watch[..], &["60"]].concat());
    assert!(watched.status.success(), "{}", stderr(&watched));
    assert!(stdout(&watched).ends_with("All are in epoch 2.\n"), "{}", stdout(&watched));
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

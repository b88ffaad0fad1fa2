//! Two wallets by hand: real authorities, real processes.

mod common;

use common::{json, quorate, stderr, stdout, wait_for};
use quorate_lab::ports::free_ports;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An authority's process, killed with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("started"))
    }
}

/// A network of four, the issuer's wallet beside its file, and Anne's and Bob's.
struct Place {
    folder: TempDir,
    configs: Vec<String>,
    authorities: Vec<Process>,
}

impl Place {
    fn new(anne_begins_with: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let wallet = |name: &str| folder.path().join(name).display().to_string();
        let anne = json(&["pay", "keys", &wallet("anne"), "--json"]);
        json(&["pay", "keys", &wallet("bob"), "--json"]);
        let address = anne["address"].as_str().expect("an address");
        let endowment = format!("{address}={anne_begins_with}");
        let port = free_ports(8).expect("free ports").to_string();
        let net = folder.path().join("net");
        let net = net.to_str().expect("a plain path");
        let testnet = ["pay", "testnet", net, "--base-port", &port, "--genesis", &endowment];
        let testnet = json(&[&testnet[..], &["--json"]].concat());
        let configs: Vec<Vec<String>> =
            serde_json::from_value(testnet["configs"].clone()).expect("paths");
        // Where every wallet finds it: beside its folder.
        let network = testnet["network"].as_str().expect("a path");
        fs::copy(network, folder.path().join("network.toml")).expect("copied");
        let issuer = Path::new(net).join("issuer").display().to_string();
        json(&["pay", "keys", &issuer, "--existing", "--json"]);
        let configs = configs.into_iter().flatten().collect();
        Self { folder, configs, authorities: Vec::new() }
    }

    fn start(&mut self, authorities: std::ops::Range<usize>) {
        for config in &self.configs[authorities] {
            self.authorities.push(Process::start(&["pay", "run", "--config", config]));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A command of a wallet that must succeed.
    fn of(&self, wallet: &str, arguments: &[&str]) -> Value {
        let place = ["-w", &self.text(wallet), "--json"];
        json(&[&["pay"], arguments, &place[..]].concat())
    }

    fn address(&self, wallet: &str) -> String {
        self.of(wallet, &["address"])["address"].as_str().expect("an address").to_owned()
    }

    fn free(&self, wallet: &str) -> u64 {
        self.of(wallet, &["balance"])["free"].as_u64().expect("a number")
    }

    /// The exit code and words of a command that is refused.
    fn refused(&self, wallet: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let output = quorate(&[&["pay"], arguments, &["-w", &self.text(wallet)]].concat());
        (output.status.code(), stderr(&output))
    }
}

#[test]
fn two_wallets_by_hand() {
    let mut place = Place::new(1_000);
    place.start(0..4);
    let (anne, bob) = (place.address("anne"), place.address("bob"));
    assert_eq!(place.of("anne", &["genesis"])["added"], 1_000);
    assert_eq!(place.of("anne", &["genesis"])["added"], 0);

    // The issuer makes money for Bob, who takes it in.
    let receipt = place.text("issued.json");
    let issue = ["issue", "--to", &bob, "--value", "50", "--receipt", &receipt];
    assert_eq!(place.of("net/issuer", &issue)["state"], "certified");
    assert_eq!(place.of("bob", &["receive", &receipt])["added"], 50);
    assert_eq!(place.of("bob", &["receive", &receipt])["added"], 0, "a duplicate is harmless");
    let (code, words) = place.refused("anne", &["issue", "--to", &bob, "--value", "1"]);
    assert!(code == Some(2) && words.contains("only the network's issuer"), "{words}");

    // Bob asks, Anne pays; again with the same key it is the same payment.
    let request = place.text("request.json");
    let asked = ["request", "--value", "300", "--memo", "invoice 7", "--output", &request];
    let asked = quorate(&[&["pay"], &asked[..], &["-w", &place.text("bob")]].concat());
    assert!(asked.status.success(), "{}", stderr(&asked));
    let receipt = place.text("paid.json");
    let send = ["send", "--request", &request, "--key", "order-1", "--receipt", &receipt];
    let paid = place.of("anne", &send);
    assert_eq!((&paid["state"], &paid["value"]), (&"certified".into(), &300.into()));
    assert_eq!(place.of("anne", &send)["id"], paid["id"]);
    assert_eq!(place.free("anne"), 700);
    let other = ["send", "--to", &bob, "--value", "300", "--key", "order-1"];
    let (code, words) = place.refused("anne", &other);
    assert!(code == Some(2) && words.contains("use a new key"), "{words}");

    // From here on nobody answers: receiving and checking need no authority.
    place.authorities.clear();
    let network = ["--network", &place.text("network.toml")];
    let verify =
        |file: &str| quorate(&[&["pay", "receipt", "verify", file], &network[..]].concat());
    let good = verify(&receipt);
    assert!(good.status.success() && stdout(&good).contains("invoice 7"), "{}", stdout(&good));
    let forged = place.text("forged.json");
    let text = fs::read_to_string(&receipt).expect("read");
    fs::write(&forged, text.replacen("\"value\": 300", "\"value\": 301", 1)).expect("written");
    let bad = verify(&forged);
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("its 'value' is not what its proof shows"), "{}", stderr(&bad));
    assert_eq!(verify("absent.json").status.code(), Some(2));
    let (code, words) = place.refused("anne", &["receive", &receipt]);
    assert!(code == Some(1) && words.contains("not this wallet"), "{words}");
    assert_eq!(place.of("bob", &["receive", &receipt])["payer"], anne);
    assert_eq!(place.free("bob"), 350);

    let table = quorate(&["pay", "export", "-w", &place.text("anne")]);
    let table = stdout(&table);
    assert!(table.lines().count() == 3 && table.contains(",out,pay,300,"), "{table}");
    assert_eq!(place.of("bob", &["history"]).as_array().expect("lines").len(), 2);
}

#[test]
fn a_copy_of_a_wallet_spends_nothing_twice_and_leaves_evidence() {
    let mut place = Place::new(100);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    fs::create_dir(place.path("copy")).expect("made");
    for file in ["key.toml", "wallet"] {
        fs::copy(place.path("anne").join(file), place.path("copy").join(file)).expect("copied");
    }
    let (bob, issuer) = (place.address("bob"), place.address("net/issuer"));
    place.of("anne", &["send", "--to", &bob, "--value", "60"]);
    let (code, words) = place.refused("copy", &["send", "--to", &issuer, "--value", "60"]);
    assert!(code == Some(1) && words.contains("is a double spend"), "{words}");
    let balance = place.of("copy", &["balance"]);
    assert_eq!((balance["free"].as_u64(), balance["frozen"].as_u64()), (Some(0), Some(100)));

    let evidence = words.rsplit("Evidence: ").next().expect("a path").trim().to_owned();
    let network = ["--network", &place.text("network.toml")];
    let verify =
        |file: &str| quorate(&[&["pay", "evidence", "verify", file], &network[..]].concat());
    let proven = verify(&evidence);
    assert!(proven.status.success(), "{}", stderr(&proven));
    assert!(stdout(&proven).contains(&place.address("anne")), "{}", stdout(&proven));
    let text = fs::read_to_string(&evidence).expect("read");
    let slander = place.text("slander.json");
    fs::write(&slander, text.replacen(&place.address("anne"), &bob, 1)).expect("written");
    assert_eq!(verify(&slander).status.code(), Some(1));
}

#[test]
fn a_send_that_is_killed_is_finished_by_retry() {
    let mut place = Place::new(100);
    // Two of four: no quorum, so that the payment is stored, shown, and not final.
    place.start(0..2);
    place.of("anne", &["genesis"]);
    let bob = place.address("bob");
    let wallet = place.path("anne").join("wallet");
    let size = || fs::metadata(&wallet).expect("there").len();
    let before = size();
    let anne = place.text("anne");
    let send = ["pay", "send", "--to", &bob, "--value", "30", "--key", "order-1", "-w", &anne];
    let mut sending = Process::start(&send);
    wait_for("the payment to be stored", || (size() > before).then_some(()));
    let (code, words) = place.refused("anne", &["balance"]);
    assert!(code == Some(1) && words.contains("in use by another process"), "{words}");
    sending.0.kill().expect("killed");
    sending.0.wait().expect("gone");
    let balance = place.of("anne", &["balance"]);
    assert_eq!((balance["free"].as_u64(), balance["reserved"].as_u64()), (Some(0), Some(100)));
    let (code, words) = place.refused("anne", &["retry", "--patience", "1"]);
    assert!(code == Some(1) && words.contains("not known yet"), "{words}");

    place.start(2..4);
    let retried = place.of("anne", &["retry", "--patience", "60"]);
    let payment = &retried["payments"][0];
    assert_eq!((&payment["state"], &payment["key"]), (&"certified".into(), &"order-1".into()));
    let id = payment["id"].as_str().expect("a name");
    let receipt = place.path("anne").join(format!("receipt-{}.json", &id[..16]));
    assert_eq!(place.of("bob", &["receive", receipt.to_str().expect("plain")])["added"], 30);
    assert_eq!((place.free("anne"), place.free("bob")), (70, 30));
}

//! Two wallets by hand: real authorities, real processes.

mod changing;
mod loading;
mod releasing;
mod restoring;

use crate::common::{TIMEOUT, json, quorate, stderr, stdout, wait_for};
use quorate_node::ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A process, killed with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One request over HTTP with a token, or without: the status, and the answer's JSON.
fn ask_as(token: &str, address: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let shown =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    ask(address, method, path, &shown, body)
}

/// One request over HTTP: the status, and the answer's JSON.
fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("a wallet that serves");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {}\r\nContent-Type: application/json\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (_, content) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (status.expect("a status"), serde_json::from_str(content).expect("JSON"))
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("started"))
    }
}

/// Longer timeouts for payments, which a slow machine needs.
fn timeout(arguments: &[&str]) -> &'static [&'static str] {
    if matches!(arguments[0], "send" | "issue") { &["--timeout", "60"] } else { &[] }
}

/// A network of four, the issuer's wallet beside its file, and Anne's and Bob's.
struct Place {
    folder: TempDir,
    configs: Vec<String>,
    authorities: Vec<Process>,
    /// Validators that order releases, where there are some.
    _committee: Vec<Process>,
}

impl Place {
    fn new(anne_begins_with: u64) -> Self {
        Self::with(anne_begins_with, &[], 8)
    }

    /// A network with these options of `pay testnet` and so many ports. Validators are started.
    fn with(anne_begins_with: u64, options: &[&str], ports: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let wallet = |name: &str| folder.path().join(name).display().to_string();
        let anne = json(&["pay", "keys", &wallet("anne"), "--json"]);
        json(&["pay", "keys", &wallet("bob"), "--json"]);
        let address = anne["address"].as_str().expect("an address");
        let endowment = format!("{address}={anne_begins_with}");
        let port = free_ports(ports).expect("free ports").to_string();
        let net = folder.path().join("net");
        let net = net.to_str().expect("a plain path");
        let testnet = ["pay", "testnet", net, "--base-port", &port, "--genesis", &endowment];
        let testnet = json(&[&testnet[..], options, &["--json"]].concat());
        let configs: Vec<Vec<String>> =
            serde_json::from_value(testnet["configs"].clone()).expect("paths");
        // Where every wallet finds it: beside its folder.
        let network = testnet["network"].as_str().expect("a path");
        fs::copy(network, folder.path().join("network.toml")).expect("copied");
        if let Some(committee) = testnet["committee"].as_str() {
            fs::copy(committee, folder.path().join("committee.toml")).expect("copied");
        }
        let validators = testnet["validators"].as_array().into_iter().flatten();
        let validators = validators.map(|config| config.as_str().expect("a path"));
        let validate = |config| Process::start(&["run", "--config", config]);
        let _committee = validators.map(validate).collect();
        let issuer = Path::new(net).join("issuer").display().to_string();
        json(&["pay", "keys", &issuer, "--existing", "--json"]);
        let configs = configs.into_iter().flatten().collect();
        Self { folder, configs, authorities: Vec::new(), _committee }
    }

    fn start(&mut self, authorities: std::ops::Range<usize>) {
        for config in &self.configs[authorities] {
            self.authorities.push(Process::start(&["pay", "run", "--config", config]));
        }
    }

    /// Address of an authority's status pages.
    fn door(&self, authority: usize) -> String {
        let text = fs::read_to_string(&self.configs[authority]).expect("read");
        let line = text.lines().find_map(|line| line.strip_prefix("http = ")).expect("a door");
        line.trim_matches('"').to_owned()
    }

    /// Inputs that are locked at an authority, if it answers.
    fn locked_at(&self, authority: usize) -> Option<u64> {
        let door = self.door(authority);
        TcpStream::connect(&door).ok()?;
        ask(&door, "GET", "/status", "", "").1["locked_inputs"].as_u64()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Copies Anne's wallet, key and all.
    fn copy_anne(&self) {
        fs::create_dir(self.path("copy")).expect("made");
        for file in ["key.toml", "wallet", "wallet.mark"] {
            fs::copy(self.path("anne").join(file), self.path("copy").join(file)).expect("copied");
        }
    }

    /// A command of a wallet that must succeed.
    fn of(&self, wallet: &str, arguments: &[&str]) -> Value {
        let place = ["-w", &self.text(wallet), "--json"];
        json(&[&["pay"], arguments, timeout(arguments), &place[..]].concat())
    }

    fn address(&self, wallet: &str) -> String {
        self.of(wallet, &["address"])["address"].as_str().expect("an address").to_owned()
    }

    fn free(&self, wallet: &str) -> u64 {
        self.of(wallet, &["balance"])["free"].as_u64().expect("a number")
    }

    /// The exit code and words of a command that is refused.
    fn refused(&self, wallet: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let place = ["-w", &self.text(wallet)];
        let output = quorate(&[&["pay"], arguments, timeout(arguments), &place[..]].concat());
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
    place.copy_anne();
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
    let (code, words) = place.refused("anne", &["retry", "--timeout", "1"]);
    assert!(code == Some(1) && words.contains("not known yet"), "{words}");

    place.start(2..4);
    let retried = place.of("anne", &["retry", "--timeout", "60"]);
    let payment = &retried["payments"][0];
    assert_eq!((&payment["state"], &payment["key"]), (&"certified".into(), &"order-1".into()));
    let id = payment["id"].as_str().expect("a name");
    let receipt = place.path("anne").join(format!("receipt-{}.json", &id[..16]));
    assert_eq!(place.of("bob", &["receive", receipt.to_str().expect("plain")])["added"], 30);
    assert_eq!((place.free("anne"), place.free("bob")), (70, 30));
}

/// A shop: paid over HTTP while too few authorities run, killed, started again.
#[test]
fn a_served_wallet_that_is_killed_finishes_its_payment_when_it_is_served_again() {
    let mut place = Place::new(100);
    place.start(0..2);
    place.of("anne", &["genesis"]);
    let bob = place.address("bob");
    let tokens = place.text("tokens.toml");
    let token = add_token(&tokens, "owner", &["--right", "all"]);
    let address = format!("127.0.0.1:{}", free_ports(1).expect("a free port"));
    let anne = place.text("anne");
    let listen = ["--listen", &address, "--timeout", "1"];
    let serve = [&["pay", "serve", "-w", &anne, "--tokens-file", &tokens], &listen[..]].concat();
    let start = || {
        let till = Process::start(&serve);
        wait_for("the wallet to serve", || TcpStream::connect(&address).ok());
        till
    };
    let till = start();
    let body = format!(r#"{{"to": "{bob}", "value": 30, "memo": "table 4"}}"#);
    let key = &format!("Idempotency-Key: till-1\r\nAuthorization: Bearer {token}\r\n");
    let (status, open) = ask(&address, "POST", "/v1/payments", key, &body);
    assert_eq!((status, &open["state"]), (202, &"unfinished".into()));
    drop(till);

    place.start(2..4);
    let _till = start();
    let path = format!("/v1/payments/{}", open["id"].as_str().expect("a name"));
    let paid = wait_for("the payment to be final", || {
        let (status, payment) = ask_as(&token, &address, "GET", &path, "");
        (status == 200 && payment["state"] == "certified").then_some(payment)
    });
    let (status, again) = ask(&address, "POST", "/v1/payments", key, &body);
    assert_eq!((status, &again["id"]), (200, &paid["id"]));
    assert_eq!(ask_as(&token, &address, "GET", "/v1/balance", "").1["free"], 70);
    let receipt = place.text("receipt.json");
    fs::write(&receipt, paid["receipt"].to_string()).expect("written");
    assert_eq!(place.of("bob", &["receive", &receipt])["added"], 30);
}

/// Makes a token for a user of a wallet.
fn add_token(file: &str, name: &str, options: &[&str]) -> String {
    let made = json(&[&["pay", "token", "add", file, name, "--json"], options].concat());
    made["token"].as_str().expect("a token").to_owned()
}

/// A till asks, a customer pays by hand and brings the receipt without a token; refunds have a
/// limit; a token that was removed is worth nothing after SIGHUP.
#[test]
fn a_till_is_paid_by_whoever_brings_the_receipt() {
    let mut place = Place::new(1_000);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    let tokens = place.text("tokens.toml");
    let till = add_token(&tokens, "till-1", &["--right", "request"]);
    let limits = ["--right", "pay", "--payment-max", "20", "--day-max", "30"];
    let refunds = add_token(&tokens, "refunds", &limits);
    let address = format!("127.0.0.1:{}", free_ports(1).expect("a free port"));
    let shop = place.text("bob");
    let serve = ["pay", "serve", "-w", &shop, "--tokens-file", &tokens, "--listen", &address];
    let start = || {
        let serving = Process::start(&serve);
        wait_for("the wallet to serve", || TcpStream::connect(&address).ok());
        serving
    };
    let serving = start();
    let body = r#"{"value": 300, "memo": "table 4"}"#;
    let (status, request) = ask_as(&till, &address, "POST", "/v1/requests", body);
    assert_eq!((status, &request["state"]), (201, &"open".into()));
    let (status, refused) = ask_as(&till, &address, "GET", "/v1/balance", "");
    assert!(status == 403 && refused["error"].to_string().contains("for 'request'"), "{refused}");

    let file = place.text("request.json");
    fs::write(&file, request["request"].to_string()).expect("written");
    let receipt = place.text("paid.json");
    place.of("anne", &["send", "--request", &file, "--receipt", &receipt]);
    let receipt = fs::read_to_string(&receipt).expect("read");
    let (status, taken) = ask_as("", &address, "POST", "/v1/receipts", &receipt);
    assert_eq!((status, &taken["request"]), (200, &request["id"]), "{taken}");
    let path = format!("/v1/requests/{}", request["id"].as_str().expect("a name"));
    let (_, paid) = ask_as(&till, &address, "GET", &path, "");
    assert_eq!(paid["state"], "paid");
    assert_eq!(paid["paid"]["payer"], place.address("anne"));

    let refund = |key: &str, value: u64| {
        let to = place.address("anne");
        let body = format!(r#"{{"to": "{to}", "value": {value}}}"#);
        let headers = format!("Idempotency-Key: {key}\r\nAuthorization: Bearer {refunds}\r\n");
        ask(&address, "POST", "/v1/payments", &headers, &body)
    };
    assert_eq!(refund("a", 20).1["by"], "refunds");
    let (status, refused) = refund("b", 11);
    assert!(status == 403 && refused["error"].to_string().contains("has paid 20"), "{refused}");

    let removed = quorate(&["pay", "token", "remove", &tokens, "till-1"]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(ask_as(&till, &address, "GET", &path, "").0, 200, "it is not read again yet");
    let process = Pid::from_child(&serving.0);
    kill_process(process, Signal::HUP).expect("told");
    wait_for("the token to be worth nothing", || {
        (ask_as(&till, &address, "GET", &path, "").0 == 401).then_some(())
    });

    // What was paid counts after a restart, and the history says who ordered it.
    drop(serving);
    let serving = start();
    let (status, refused) = refund("b", 11);
    assert!(status == 403 && refused["error"].to_string().contains("has paid 20"), "{refused}");
    drop(serving);
    let history = place.of("bob", &["history"]);
    assert_eq!(history[0]["memo"], request["request"]["memo"]);
    assert_eq!(history[1]["by"], "refunds");
    let listed = json(&["pay", "token", "list", &tokens, "--json"]);
    assert_eq!(listed["tokens"][0]["day_max"], 30);
}

//! Real validators, started as a person would, killed as the power does.

use crate::common::{Net, TIMEOUT, json, quorate, stderr, stdout, wait_for};
use bytes::Bytes;
use quorate_node::{CallResult, Client, Completed, Completion};
use quorate_types::{Height, Outcome};
use std::collections::BTreeMap;

/// Position of one operation: the ordered log answers with it.
fn position(completion: &Completion) -> (u64, Height) {
    match &completion.result {
        CallResult::Completed(Completed { outcome: Outcome::Applied(bytes), height, .. }) => {
            let bytes = bytes.get(..8).expect("a position of eight bytes");
            (u64::from_le_bytes(bytes.try_into().expect("eight bytes")), *height)
        }
        other => panic!("operation {} was not executed: {other:?}", completion.tag),
    }
}

fn submit_one(client: &Client, operation: &'static str) -> (u64, Height) {
    client.submit(0, 0, Bytes::from(operation)).expect("taken");
    position(&client.completions().recv_timeout(TIMEOUT).expect("answered"))
}

/// Operations handed in so far, and where those that were answered took effect.
#[derive(Default)]
struct Ledger {
    submitted: u64,
    acknowledged: BTreeMap<u64, u64>,
}

impl Ledger {
    /// Hands in operations, a few at a time, until `more` of them have been answered.
    fn load_until(&mut self, client: &Client, more: usize) {
        let goal = self.acknowledged.len() + more;
        wait_for("answers under load", || {
            self.submit(client, 10);
            self.collect(client);
            (self.acknowledged.len() >= goal).then_some(())
        });
    }

    fn submit(&mut self, client: &Client, count: u64) {
        for tag in self.submitted..self.submitted + count {
            let session = usize::from(tag % 2 == 1);
            client.submit(session, tag, Bytes::from(format!("operation {tag}"))).expect("taken");
        }
        self.submitted += count;
    }

    fn collect(&mut self, client: &Client) {
        for completion in client.completions().try_iter() {
            let (position, _) = position(&completion);
            let before = self.acknowledged.insert(completion.tag, position);
            assert_eq!(before, None, "operation {} was answered twice", completion.tag);
        }
    }

    /// Waits until everything handed in is answered.
    fn settle(&mut self, client: &Client) {
        wait_for("the last answers", || {
            self.collect(client);
            (self.acknowledged.len() as u64 == self.submitted).then_some(())
        });
    }

    fn assert_each_took_effect_once(&self) {
        let mut positions: Vec<u64> = self.acknowledged.values().copied().collect();
        positions.sort_unstable();
        let before = positions.len();
        positions.dedup();
        assert_eq!(positions.len(), before, "two operations were given one position");
    }
}

#[test]
fn four_validators_run_by_hand_agree() {
    let net = Net::start(4, "bls");
    net.wait_connected();
    let client = net.client(&[1], 0);
    submit_one(&client, "hello");
    net.wait_level(1);

    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    let status = json(&["status", folder, "--json"]);
    let validators = status["validators"].as_array().expect("a list");
    assert_eq!(validators.len(), 4);
    for (id, validator) in validators.iter().enumerate() {
        assert_eq!(validator["status"]["id"], id);
        assert_eq!(validator["status"]["operations"], 1);
        assert_eq!(validator["agrees"], true);
    }
    let table = stdout(&quorate(&["status", folder]));
    let validators: Vec<&str> = table.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.contains("operations") && validators.len() == 5, "{table}");
    let agree = |line: &&&str| line.contains(" yes ") || line.contains(" yes, ");
    assert_eq!(validators.iter().filter(agree).count(), 4, "{table}");
}

/// A threshold signature proves that enough members signed and not which ones: a receipt that it
/// carries names none. One of a scheme that proves its signers does.
#[test]
fn a_receipt_names_signers_where_its_signature_proves_them() {
    for (scheme, protocol, words) in [
        ("bls-threshold", "sbft", "so many members say so that an honest one is among them"),
        ("ed25519", "pbft", "members ["),
    ] {
        let options = ["--protocol", protocol, "--service", "kv"];
        let net = Net::start_with(4, scheme, &options, |_| {});
        net.wait_connected();
        let (folder, file) = (net.folder(), net.folder().join("receipt.json"));
        let folder = folder.to_str().expect("a plain path");
        let file = file.to_str().expect("a plain path");
        let put = quorate(&["kv", "--net", folder, "put", "colour", "green", "--receipt", file]);
        assert!(put.status.success(), "{}", stderr(&put));
        let proven = scheme != "bls-threshold";
        let shown = json(&["receipt", "verify", file, "--net", folder, "--json"]);
        assert_eq!(shown["valid"], true);
        assert_eq!(shown["receipt"]["signers"].is_array(), proven, "{shown}");
        let said = stdout(&quorate(&["receipt", "verify", file, "--net", folder]));
        assert!(said.contains(words), "{said}");
        assert_eq!(said.contains("members ["), proven, "{said}");
    }
}

#[test]
fn a_killed_validator_is_shown_and_catches_up() {
    let mut net = Net::start(4, "ed25519");
    net.wait_connected();
    let client = net.client(&[1, 2], 0);
    let mut ledger = Ledger::default();
    ledger.load_until(&client, 50);

    net.processes.kill(0).expect("killed");
    let status = quorate(&["status", net.folder().to_str().expect("a plain path")]);
    assert_eq!(status.status.code(), Some(1));
    assert!(stdout(&status).contains("silent"), "{}", stdout(&status));
    ledger.load_until(&client, 200);

    net.processes.start_one(0).expect("started again");
    ledger.load_until(&client, 50);
    ledger.settle(&client);
    net.wait_level(ledger.submitted);
    ledger.assert_each_took_effect_once();
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_executed_twice() {
    let mut net = Net::start(4, "ed25519");
    net.wait_connected();
    let first = submit_one(&net.client(&[7], 0), "once");
    let client = net.client(&[1, 2], 0);
    let mut ledger = Ledger::default();
    ledger.load_until(&client, 100);

    // One dies; then, with load under way, all of them at once.
    net.processes.kill(0).expect("killed");
    ledger.load_until(&client, 100);
    ledger.submit(&client, 200);
    for index in 1..4 {
        net.processes.kill(index).expect("killed");
    }
    ledger.collect(&client);
    for index in 0..4 {
        net.processes.start_one(index).expect("started again");
    }

    // The same request with the same number, as after a crash of the client: the same answer.
    assert_eq!(submit_one(&net.client(&[7], 0), "once"), first);

    ledger.load_until(&client, 100);
    ledger.settle(&client);
    ledger.assert_each_took_effect_once();
    assert!(ledger.acknowledged.values().all(|position| *position != first.0));
    net.wait_level(ledger.submitted + 1);
}

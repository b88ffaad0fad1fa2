//! A committee behind a payment network, as its operators run it: real processes, one of which is
//! killed.

use crate::common::{TIMEOUT, edit, json, processes, quorate, stderr, text, wait_for, works};
use quorate_crypto::IdentitySecret;
use quorate_node::payments::{PayClient, PayFeed, PreparedOrder, ReleaseCommittee, read_network};
use quorate_node::ports::free_ports;
use quorate_payments::release::{Decision, Freeze, ReleaseStep};
use quorate_payments::{Coin, Network, Origin, Output, PaymentOutcome, Transaction, Verdict};
use quorate_types::ReplicaId;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// An authority's process, killed when it is dropped.
struct Authority(Child);

impl Authority {
    fn start(config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let command = command.args(["pay", "run", "--config", text(config)]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("started"))
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn owner() -> IdentitySecret {
    IdentitySecret::from_seed([9; 32])
}

fn paths(of: &Value) -> Vec<PathBuf> {
    serde_json::from_value(of.clone()).expect("paths")
}

/// A payment network with a committee in a folder.
fn testnet(folder: &Path) -> Value {
    let port = free_ports(16).expect("free ports").to_string();
    let genesis = format!("{}=5", owner().public());
    let options = ["--base-port", &port, "--genesis", &genesis, "--durability", "os", "--json"];
    json(&[&["pay", "testnet", text(folder), "--committee=linear-pbft"], &options[..]].concat())
}

/// Shows a transaction to one authority alone, which votes for it.
async fn show(network: &Network, transaction: &Transaction, authority: u16) {
    let mut feed = PayFeed::open(network, &owner(), (ReplicaId(authority), 0)).expect("opened");
    feed.sender()(&PreparedOrder::new(transaction));
    let verdict = feed.answer().await.expect("an answer").verdict;
    assert!(matches!(verdict, Verdict::Vote(_)), "{verdict:?}");
}

/// One authority is never there, and of the three one is killed while the committee waits for its
/// report: what one of them voted for is decided, and final.
#[test]
fn half_a_payment_is_finished_though_an_authority_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = testnet(&folder.path().join("net"));
    let validators = paths(&written["validators"]);
    let checked: Vec<&str> = validators.iter().map(|path| text(path)).collect();
    works(&[&["config", "check", "--allow-warnings"], &checked[..]].concat());
    let authorities: Vec<PathBuf> =
        written["configs"].as_array().expect("a list").iter().flat_map(paths).collect();
    let mut running: Vec<Authority> =
        authorities[..3].iter().map(|config| Authority::start(config)).collect();
    let _committee = processes(&validators);

    let path = Path::new(written["network"].as_str().expect("a path"));
    let network = Arc::new(read_network(path).expect("a network"));
    let (id, output) = network.genesis_outputs().next().expect("one");
    let coin = Coin { id, output, origin: Origin::Genesis };
    let to = Output { owner: IdentitySecret::from_seed([8; 32]).public(), value: 5 };
    let half = Transaction::spend(&network, &owner(), std::slice::from_ref(&coin), vec![to]);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(show(&network, &half, 0));

    running.pop();
    let file = Path::new(written["committee"].as_str().expect("a path"));
    let committee = ReleaseCommittee::connect(file).expect("connected").with_timeout(TIMEOUT);
    let freeze = Freeze::by_owner(&network, &owner(), vec![coin]);
    assert_eq!(committee.submit(&ReleaseStep::Freeze(freeze)).expect("ordered"), Ok(vec![]));
    wait_for("two reports", || (committee.standing(id).ok()?.reports.len() == 2).then_some(()));
    assert_eq!(committee.standing(id).expect("proven").decision, None, "too few have reported");
    running.pop();
    running.extend(authorities[1..3].iter().map(|config| Authority::start(config)));
    let decision = wait_for("a decision", || committee.standing(id).ok()?.decision);
    assert_eq!(decision, Decision::Spend(half.id(network.id())));
    let outcome = runtime.block_on(async {
        let client = PayClient::start(Arc::clone(&network), &owner()).expect("starts");
        tokio::time::timeout(TIMEOUT, client.pay(Arc::new(half))).await.expect("an outcome")
    });
    assert!(matches!(outcome, PaymentOutcome::Certified(_)), "{outcome:?}");
}

#[test]
fn an_authority_does_not_start_with_another_networks_committee() {
    let folder = tempfile::tempdir().expect("a folder");
    let [own, other] = ["own", "other"].map(|name| testnet(&folder.path().join(name)));
    let config = &paths(&own["configs"][0])[0];
    let foreign = other["committee"].as_str().expect("a path");
    edit(config, "../committee.toml", foreign);
    let refused = quorate(&["pay", "run", "--config", text(config)]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("this committee does not order the releases of payment network"),
        "{said}"
    );
    edit(config, foreign, "../missing.toml");
    let refused = quorate(&["pay", "run", "--config", text(config)]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

/// What it is not for is said: other commands that make committees do not make such ones.
#[test]
fn a_committee_for_releases_is_written_with_its_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let net = folder.path().join("net");
    let refused = quorate(&["testnet", text(&net), "--service", "payments"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("`quorate pay testnet --committee`"), "{said}");
    testnet(&net);
    let refused = quorate(&["status", text(folder.path())]);
    assert_eq!(refused.status.code(), Some(2), "there is no committee one folder up");
    let shown = quorate(&["status", text(&net)]);
    assert!(!stderr(&shown).contains("is not a testnet"), "{}", stderr(&shown));
}

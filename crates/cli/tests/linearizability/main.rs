//! Linearizability of real validators that are killed, paused and cut off, as clients see them.
//!
//! Four processes replicate the key-value store. Clients get, put, delete and compare-and-swap a
//! few keys and record what they asked and were told, and when; meanwhile a nemesis breaks one
//! member after another. Then a checker that shares no code with the store looks for an order of
//! the calls of each key that explains all replies, and the recorded history is spoilt in several
//! ways that the checker must notice.
//!
//! Links are cut by relays between the validators that hold back what passes ([`links`]), not in
//! network namespaces: no privileges are needed. A cut delays bytes and lets connections time out;
//! no packet is lost. Clients reach all members at all times. Disks do not fail here, and no member
//! lies: the simulator has both.
//!
//! Another run ends three epochs under way, with a member that is killed at each border
//! ([`borders`]).
//!
//! The seed gives the faults and what clients ask for. When what happens is up to the machine, so a
//! failure prints the calls that show it; it need not come again.

#[path = "../common/mod.rs"]
mod common;

mod borders;
mod certified;
mod checker;
mod clients;
mod history;
mod links;
mod nemesis;
mod spoil;

use clients::{CALM_CALLS, Client, KEYS};
use common::{Net, wait_for};
use history::{Action, History, Reply};
use links::Links;
use nemesis::{FAULTS, Fault};
use quorate_crypto::KeyCache;
use quorate_node::config::load_committee;
use quorate_types::Committee;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

const SEED: u64 = 20;
const CLIENTS: usize = 8;

/// Time that clients wait for a call, whatever the machine does besides.
const TIMEOUT: Duration = Duration::from_secs(30);

/// So long does the client wait that is there to leave calls open: about as long as a call takes.
const IMPATIENCE: Duration = Duration::from_millis(60);

/// One committee at a time: two would share the machine and see faults that nobody planned.
static MACHINE: Mutex<()> = Mutex::new(());

#[test]
fn what_clients_see_of_jolteon_with_ed25519_is_linearizable() {
    check_committee_of("ed25519", "jolteon");
}

#[test]
fn what_clients_see_of_hotstuff_with_bls_is_linearizable() {
    check_committee_of("bls", "hotstuff");
}

#[test]
fn what_clients_see_over_three_changes_of_committee_is_linearizable() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::new().expect("a runtime");
    let options = ["--service", "kv", "--learners", "1"];
    let mut net = Net::start_with(4, "ed25519", &options, |_| {});
    net.wait_connected();
    let (_newcomer, history) = under_load(&runtime, &mut net, |net| borders::cross(net, SEED));
    check(&net, &history);
}

fn check_committee_of(scheme: &str, protocol: &str) {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::new().expect("a runtime");
    let mut links = None;
    let cut_in = |configs: &[_]| links = Some(Links::between(configs, runtime.handle()));
    let mut net = Net::start_with(4, scheme, &["--service", "kv", "--protocol", protocol], cut_in);
    let links = links.expect("links");
    net.wait_connected();

    let strike = |net: &mut Net| nemesis::strike(net, &links, SEED);
    let (struck, history) = under_load(&runtime, &mut net, strike);
    println!("{struck:?}");
    check_struck(&struck);
    assert_eq!(links.unused(), [], "links that nothing passed");
    check(&net, &history);
}

/// What `happen` returns, and what clients saw meanwhile.
fn under_load<T>(
    runtime: &Runtime,
    net: &mut Net,
    happen: impl FnOnce(&mut Net) -> T,
) -> (T, History) {
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = start_clients(runtime, net, &is_over);
    let happened = happen(net);
    is_over.store(true, Ordering::Relaxed);
    (happened, runtime.block_on(collect(clients)))
}

fn check(net: &Net, history: &History) {
    println!("{}", figures(history));
    check_progress(history);
    check_committee(net, history);
    check_order(history);
    spoil::check_that_it_is_noticed(history);
}

fn start_clients(
    runtime: &Runtime,
    net: &Net,
    is_over: &Arc<AtomicBool>,
) -> Vec<JoinHandle<History>> {
    let committee = load_committee(&net.folder().join("committee.toml"), KeyCache::On);
    let committee: Arc<Committee> = Arc::new(committee.expect("a committee"));
    let began = Instant::now();
    let client = |index, timeout| Client::new(index, &committee, timeout, SEED, began);
    let patient =
        (0..CLIENTS).map(|index| runtime.spawn(client(index, TIMEOUT).run(Arc::clone(is_over))));
    let impatient = client(CLIENTS, IMPATIENCE).run_impatiently(Arc::clone(is_over));
    patient.chain([runtime.spawn(impatient)]).collect()
}

async fn collect(clients: Vec<JoinHandle<History>>) -> History {
    let mut history = History::default();
    for client in clients {
        history.add(client.await.expect("a client that saw nothing impossible"));
    }
    history
}

fn figures(history: &History) -> String {
    let kinds = KINDS.map(|(kind, fits)| format!("{kind} {}", history.count(fits))).join(", ");
    let (calls, open, proven) = (history.calls.len(), history.open(), history.proven());
    let (reads, unread) = (history.reads.len(), history.unread);
    format!(
        "{calls} calls: {kinds}, open {open}, with a receipt {proven}; \
         {reads} certified reads, {unread} failed"
    )
}

type Fits = fn(Action, Reply) -> bool;

/// Kinds of calls that came to something.
const KINDS: [(&str, Fits); 6] = [
    ("get", |action, _| action == Action::Get),
    ("put", |action, _| matches!(action, Action::Put(_))),
    ("delete", |action, _| action == Action::Delete),
    ("delete that removed", |action, reply| {
        action == Action::Delete && reply == Reply::Done { replaced: true }
    }),
    ("swap", |_, reply| reply == Reply::Swapped),
    ("refused swap", |_, reply| matches!(reply, Reply::NotSwapped { .. })),
];

fn check_struck(struck: &[(Fault, usize)]) {
    for fault in FAULTS {
        assert!(struck.iter().any(|(kind, _)| *kind == fault), "no {fault:?} in {struck:?}");
    }
}

/// A committee that does nothing is consistent too.
fn check_progress(history: &History) {
    for (kind, fits) in KINDS {
        let count = history.count(fits);
        assert!(count >= 10, "only {count} of: {kind}");
    }
    let (calm, figures) = (CLIENTS * CALM_CALLS, figures(history));
    assert!(history.calls.len() > calm, "hardly anything under faults: {figures}");
    assert!(history.reads.len() >= 20 && history.proven() >= 20, "{figures}");
}

/// All validators come to one state, and what was answered is in it once.
fn check_committee(net: &Net, history: &History) {
    let level = wait_for("all to be at one point", || net.level());
    let (all, open) = (history.calls.len() as u64, history.open() as u64);
    let executed = level.operations;
    assert!(
        (all - open..=all).contains(&executed),
        "{executed} of {all} calls, {open} of them open"
    );
    assert_eq!(net.wait_looks().iter().map(|look| look.faults).sum::<u64>(), 0);
}

fn check_order(history: &History) {
    if let Some((first, second)) = certified::find_disorder(&history.calls) {
        panic!("heights do not follow time:\n{first}\n{second}");
    }
    for key in 0..KEYS {
        let of_key = history.of_key(key);
        if let Err(violation) = checker::check(&of_key.calls) {
            panic!("key {key}: {violation}");
        }
        assert_eq!(certified::check(&of_key), Ok(()), "key {key}");
    }
}

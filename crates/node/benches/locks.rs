//! Time in which an authority recovers ten million locked inputs, and what each takes in memory and
//! on disk: `cargo bench -p quorate-node --bench locks [-- LOCKS]`.
//!
//! Twice: from the log alone, and from a checkpoint with the log after it.

use quorate_crypto::{IdentityKey, Signature, hash};
use quorate_node::payments::recover;
use quorate_payments::{Core, Lock, OutputId, TxId};
use quorate_storage::{LogConfig, Owner};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Locks in a group: what a busy authority syncs together.
const GROUP: u64 = 256;

fn main() {
    let number = std::env::args().filter_map(|argument| argument.parse().ok()).next();
    let locks: u64 = number.unwrap_or(10_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let config = || LogConfig { retention_bytes: 1 << 28, ..LogConfig::default() };

    let began = Instant::now();
    let mut open = recover(folder.path(), &Owner::nobody(), config()).expect("opens");
    let before = resident_bytes();
    for sequence in 0..locks {
        let lock = lock(sequence);
        open.append(&lock).expect("appends");
        open.spent().lock(&lock);
        if sequence % GROUP == GROUP - 1 {
            open.commit().expect("commits");
        }
    }
    open.commit().expect("commits");
    let rate = locks as f64 / began.elapsed().as_secs_f64();
    let memory = resident_bytes().saturating_sub(before) as f64 / locks as f64;
    println!(
        "{locks} locks of one input, {rate:.0} a second with a sync for every {GROUP}; {memory:.0} B of memory each"
    );
    drop(open);
    report(folder.path(), config(), "as it was left");

    let mut open = recover(folder.path(), &Owner::nobody(), config()).expect("opens");
    let began = Instant::now();
    open.checkpoint().expect("writes");
    println!("a checkpoint of all: {:.1} s to write", began.elapsed().as_secs_f64());
    drop(open);
    report(folder.path(), config(), "after a checkpoint of all");
}

fn report(folder: &Path, config: LogConfig, what: &str) {
    let began = Instant::now();
    let open = recover(folder, &Owner::nobody(), config).expect("opens");
    let (seconds, found) = (began.elapsed().as_secs_f64(), open.spent().len());
    let (log, checkpoint) = (bytes(&folder.join("locks")), bytes(&folder.join("checkpoints")));
    println!(
        "{what}: {found} inputs found again in {seconds:.1} s, from {:.2} GB of log and {:.2} GB of checkpoint",
        log as f64 / 1e9,
        checkpoint as f64 / 1e9
    );
}

fn lock(sequence: u64) -> Lock {
    let number = sequence.to_le_bytes();
    let input = OutputId { tx: TxId(hash(&number)), index: 1 };
    let core = Core {
        id: TxId(hash(&[&b"spends"[..], &number].concat())),
        payer: IdentityKey([7; 32]),
        locks: vec![input],
        kind: CoreKind::Spend,
        outputs: hash(&[&b"outputs"[..], &number].concat()),
        signature: Signature([9; 64]),
    };
    Lock { sequence, core }
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
}

/// Resident memory of this process; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

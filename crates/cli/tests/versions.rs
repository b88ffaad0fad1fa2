//! A change to a version of what is executed that the program lacks.

mod common;

use common::{Net, quorate, stderr, text, wait_for};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile};
use quorate_node::bring_change;
use quorate_node::config::{load_committee, read_committee_file};
use quorate_types::{Change, Committee, Height, ReplicaId, SignedChange};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

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

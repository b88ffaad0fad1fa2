//! Transcripts: every input and output of a small committee, in the words of the papers.
//!
//! A file in `transcripts/` each for the normal case and the view change of every protocol, to be
//! read as an example and, after a change, as a diff. `QUORATE_TRANSCRIPTS=write` writes them anew.

mod cluster;
mod diff;
mod words;

use cluster::{Cluster, Loses};
use quorate_consensus::{Message, ProtocolKind, chained, windowed};
use std::fs;
use std::path::{Path, PathBuf};

/// Variable that has transcripts written instead of compared.
const VARIABLE: &str = "QUORATE_TRANSCRIPTS";

/// Longest transcript, in lines: what a reader takes in.
const LINES_MAX: usize = 120;

fn path(protocol: ProtocolKind, case: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    folder.join(format!("{protocol}-{case}.txt"))
}

/// Compares a transcript with its file, or writes the file.
#[track_caller]
fn check(protocol: ProtocolKind, case: &str, transcript: &str) {
    let path = path(protocol, case);
    assert!(transcript.lines().count() <= LINES_MAX, "{} is too long to read", path.display());
    if std::env::var(VARIABLE).is_ok_and(|value| value == "write") {
        fs::write(&path, transcript).expect("the folder of transcripts is writable");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == transcript,
        "{} differs ('-' as it was, '+' as it is; {VARIABLE}=write writes it):\n{}",
        path.display(),
        diff::lines(&expected, transcript)
    );
}

/// One request, ordered while nothing fails.
fn normal_case(protocol: ProtocolKind) {
    let mut cluster = Cluster::new(protocol, |_, _, _| false);
    cluster.title(&format!("{protocol}, normal case: four members order one request, A."));
    cluster.submit();
    cluster.deliver();
    cluster.assert_decided();
    check(protocol, "normal-case", cluster.transcript());
}

/// The leader of the first view fails after `loses` kept a request from being decided.
fn view_change(protocol: ProtocolKind, told: &str, loses: Loses) {
    let mut cluster = Cluster::new(protocol, loses);
    cluster.title(&format!("{protocol}, view change: {told}"));
    cluster.submit();
    cluster.deliver();
    cluster.crash_leader();
    cluster.run_until_decided();
    check(protocol, "view-change", cluster.transcript());
}

fn is_chained(message: &Message, wanted: fn(&chained::Message) -> bool) -> bool {
    message.chained().is_some_and(wanted)
}

fn is_windowed(message: &Message, wanted: fn(&windowed::Message) -> bool) -> bool {
    message.windowed().is_some_and(wanted)
}

/// The first leader's block reaches nobody.
fn lost_proposal(from: u16, _: u16, message: &Message) -> bool {
    from == 1 && is_chained(message, |it| matches!(it, chained::Message::Proposal(_)))
}

/// Nobody learns that anybody votes to commit.
fn lost_commits(_: u16, _: u16, message: &Message) -> bool {
    message.view().0 == 1
        && is_windowed(message, |it| matches!(it, windowed::Message::CommitShare(_)))
}

/// Collectors of the first view show nobody what they made.
fn lost_proofs(_: u16, _: u16, message: &Message) -> bool {
    message.view().0 == 1 && is_windowed(message, |it| matches!(it, windowed::Message::Proof(_)))
}

#[test]
fn transcripts_of_jolteon() {
    normal_case(ProtocolKind::Jolteon);
    let told = "member 1 crashes as it proposes; a timeout certificate leads on.";
    view_change(ProtocolKind::Jolteon, told, lost_proposal);
}

#[test]
fn transcripts_of_hotstuff() {
    normal_case(ProtocolKind::HotStuff);
    let told = "member 1 crashes as it proposes; a quorum of complaints leads on.";
    view_change(ProtocolKind::HotStuff, told, lost_proposal);
}

#[test]
fn transcripts_of_basic_hotstuff() {
    normal_case(ProtocolKind::HotStuffBasic);
    let told = "member 1 crashes as it proposes; a quorum of complaints leads on.";
    view_change(ProtocolKind::HotStuffBasic, told, lost_proposal);
}

#[test]
fn transcripts_of_pbft() {
    normal_case(ProtocolKind::Pbft);
    let told = "A is prepared, votes to commit are lost, primary 1 crashes; A stands.";
    view_change(ProtocolKind::Pbft, told, lost_commits);
}

#[test]
fn transcripts_of_linear_pbft() {
    normal_case(ProtocolKind::LinearPbft);
    let told = "A is prepared, votes to commit are lost, primary 1 crashes; A stands.";
    view_change(ProtocolKind::LinearPbft, told, lost_commits);
}

#[test]
fn transcripts_of_sbft() {
    normal_case(ProtocolKind::Sbft);
    let told = "all accept A, the fast proof is lost, primary 1 crashes; A stands.";
    view_change(ProtocolKind::Sbft, told, lost_proofs);
}

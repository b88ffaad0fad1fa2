//! A start without the bodies, a root from elsewhere, and a chain that does not get decided.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::DecidedBlock;
use crate::chained::messages::{Timeout, Vote, encode};
use crate::chained::proposing::LADEN_MAX;
use crate::chained::{Block, Chained, Message, verify_run};
use crate::verify::check_anchor;
use crate::{Input, Output, ProposeRequest, ProtocolView};
use bytes::Bytes;
use quorate_types::{BlockId, BodyRef, Height, Machine, Rejected, ReplicaId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

fn drain(machine: &mut Chained) -> Vec<Output> {
    std::iter::from_fn(|| machine.poll()).collect()
}

fn votes(outputs: &[Output]) -> Vec<Vote> {
    let vote = |output: &Output| match output {
        Output::Send { message: crate::Message::Jolteon(Message::Vote(vote)), .. } => {
            Some(vote.clone())
        }
        _ => None,
    };
    outputs.iter().filter_map(vote).collect()
}

fn start(keys: &Keys, id: u16, safety: Option<Bytes>, stored: BTreeSet<BodyRef>) -> Chained {
    let mut machine = Chained::new(keys.config(id, &keys.verifier()));
    let recovered =
        Input::Recovered { slots: Vec::new(), safety, executed: None, decided: Vec::new(), stored };
    machine.handle(Time(0), recovered);
    machine
}

/// Lets the view's time pass; returns the timeout that it says.
fn time_out(machine: &mut Chained) -> Option<Timeout> {
    machine.handle(Time(1), Input::Work(true));
    machine.handle_timeout(machine.next_timeout()?);
    drain(machine).into_iter().find_map(|output| match output {
        Output::Send { message: crate::Message::Jolteon(Message::Timeout(timeout)), .. } => {
            Some(timeout)
        }
        _ => None,
    })
}

/// ★ A vote says that the bodies are stored. With their files gone it is said again only when they
/// are.
pub(super) fn check_no_vote_is_repeated_without_its_bodies() -> Check {
    let mut cluster = Cluster::new();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    cluster.tell(3, 0, cluster.keys.propose(&block))?;
    let vote = cluster.node(3).votes().pop().ok_or("it votes")?;
    let safety = cluster.node(3).safety.clone();

    let mut whole = start(&cluster.keys, 3, safety.clone(), BTreeSet::from([body(7)]));
    ensure(votes(&drain(&mut whole)) == [vote.clone()], "with its bodies it says it again")?;

    let mut wiped = start(&cluster.keys, 3, safety.clone(), BTreeSet::new());
    let outputs = drain(&mut wiped);
    ensure(votes(&outputs).is_empty(), "a vote for bodies that are gone")?;
    let wants = |output: &Output| match output {
        Output::RequestBodies { block: id, .. } => *id == block.id(),
        _ => false,
    };
    ensure(outputs.iter().any(wants), "it asks for them")?;
    wiped.on_message(Time(1), ReplicaId(0), cluster.keys.propose(&block));
    ensure(votes(&drain(&mut wiped)).is_empty(), "nor when the proposal comes again")?;
    wiped.handle(Time(2), Input::Stored(block.id()));
    ensure(votes(&drain(&mut wiped)) == [vote], "then it says it again, byte for byte")?;
    wiped.handle(Time(3), Input::Stored(block.id()));
    ensure(votes(&drain(&mut wiped)).is_empty(), "once")?;

    let mut late = start(&cluster.keys, 3, safety, BTreeSet::new());
    drain(&mut late);
    let timeout = time_out(&mut late).ok_or("its view times out")?;
    ensure(timeout.last_vote.is_none(), "its timeout does not show the vote")?;
    late.handle(Time(2), Input::Stored(block.id()));
    ensure(votes(&drain(&mut late)).is_empty(), "and no vote follows a timeout")
}

#[test]
fn no_vote_is_repeated_without_its_bodies() {
    check_no_vote_is_repeated_without_its_bodies().unwrap();
}

/// Two blocks in consecutive views and the certificate of the second: the first is decided.
fn decided(keys: &Keys, height: u64) -> (DecidedBlock, DecidedBlock) {
    let first = keys.block(1, &keys.genesis(), height, &[]);
    let second = keys.block(2, &keys.certify(&first), height + 1, &[]);
    let third = keys.block(3, &keys.certify(&second), height + 2, &[]);
    let (commit, next) = (keys.certify(&second), keys.certify(&third));
    (DecidedBlock::new(first, commit), DecidedBlock::new(second, next))
}

#[test]
fn a_root_from_elsewhere_is_where_it_goes_on() {
    let keys = Keys::new(4);
    let (record, _) = decided(&keys, 50);
    let mut machine = start(&keys, 3, None, BTreeSet::new());
    drain(&mut machine);
    machine.handle(Time(0), Input::Installed(Bytes::from(encode(&record))));
    assert_eq!(machine.tip(), record.block.id());
    let outputs = drain(&mut machine);
    let decides = |output: &Output| matches!(output, Output::Decided(_));
    assert!(!outputs.iter().any(decides), "what the state holds is not decided again");
    let is_behind = |output: &Output| match output {
        Output::Behind { target, .. } => *target == record.commit.id,
        _ => false,
    };
    assert!(outputs.iter().any(is_behind), "it asks for what is certified after it");
    // The same again, or an older one, changes nothing.
    let (older, _) = decided(&keys, 49);
    machine.handle(Time(0), Input::Installed(Bytes::from(encode(&older))));
    assert_eq!(machine.tip(), record.block.id());
}

/// ★ A block that nothing decided is no state to go on from.
pub(super) fn check_an_anchor_is_decided() -> Check {
    let keys = Keys::new(4);
    let (record, _) = decided(&keys, 50);
    // Its child is certified, and that alone decides nothing.
    let undecided = DecidedBlock { commit: keys.certify(&record.block), ..record };
    let records = [Bytes::from(encode(&undecided))];
    let anchor = check_anchor(Height(50), &records, &keys.verifier());
    ensure(anchor.is_err(), "a certified block is taken for a decided one")
}

#[test]
fn an_anchor_is_decided() {
    check_an_anchor_is_decided().unwrap();
}

/// The record of a snapshot's height proves itself, and what it carries was checked.
#[test]
fn an_anchor_is_a_decided_block_of_its_height() {
    let keys = Keys::new(4);
    let (first, second) = decided(&keys, 50);
    let records = |records: &[&DecidedBlock]| -> Vec<Bytes> {
        records.iter().map(|record| Bytes::from(encode(*record))).collect()
    };
    let check = |height, list: &[&DecidedBlock]| {
        check_anchor(Height(height), &records(list), &keys.verifier())
    };
    assert_eq!(check(50, &[&first]), Ok(Bytes::from(encode(&first))));
    // Proven by a later one, with a certificate of its own that nobody looked at: it is replaced.
    let made_up = DecidedBlock { commit: keys.genesis(), ..first.clone() };
    let proven = DecidedBlock { commit: second.commit.clone(), ..first.clone() };
    assert_eq!(check(50, &[&made_up, &second]), Ok(Bytes::from(encode(&proven))));
    assert!(matches!(check(50, &[&made_up]), Err(Rejected::RuleBroken(_))));
    assert!(matches!(check(51, &[&first]), Err(Rejected::RuleBroken(_))));
    assert!(matches!(check(50, &[]), Err(Rejected::RuleBroken(_))));
    assert!(matches!(check(50, &[&second, &first]), Err(Rejected::RuleBroken(_))));
    let few = DecidedBlock {
        commit: keys.certify_by(&keys.block(2, &keys.certify(&first.block), 51, &[]), &[0]),
        ..first.clone()
    };
    assert_eq!(check(50, &[&few]), Err(Rejected::BelowThreshold));
}

/// History is fetched from whoever has it: its blocks are linked by their hashes, from the one that
/// the asker decided to the one whose certificate proves them all, and on to the one asked for.
#[test]
fn a_run_is_linked_from_end_to_end() {
    let keys = Keys::new(4);
    let (first, second) = decided(&keys, 1);
    let third = keys.block(3, &keys.certify(&second.block), 3, &[]);
    let stranger = keys.block(2, &keys.genesis(), 2, &[]);
    let genesis = keys.verifier().genesis();
    let check = |after: BlockId, records: &[&DecidedBlock], tail: &[&Block], target: BlockId| {
        let records: Vec<Bytes> =
            records.iter().map(|record| Bytes::from(encode(*record))).collect();
        let tail: Vec<Bytes> = tail.iter().map(|block| Bytes::from(encode(*block))).collect();
        verify_run(Height(0), Some(after), target, &records, &tail, &keys.verifier()).err()
    };
    let of = |block: &Block| block.id();
    assert_eq!(check(genesis, &[&first, &second], &[&third], of(&third)), None);
    let link = Some(Rejected::RuleBroken("each block of a run extends the one before"));
    assert_eq!(check(genesis, &[&second], &[], of(&second.block)), link, "the first is missing");
    assert_eq!(check(genesis, &[&second, &first], &[], of(&first.block)), link, "out of order");
    assert_eq!(check(genesis, &[&first, &first], &[], of(&first.block)), link, "twice");
    assert_eq!(check(genesis, &[&first], &[&third], of(&third)), link, "a gap before the tail");
    assert_eq!(check(genesis, &[], &[&stranger, &third], of(&third)), link, "within the tail");
    let end = Some(Rejected::RuleBroken("a run's tail ends in the block that was asked for"));
    assert_eq!(check(genesis, &[&first, &second], &[&third], of(&stranger)), end);
    let tail = verify_run(
        Height(0),
        None,
        of(&third),
        &[],
        &[Bytes::from(encode(&third))],
        &keys.verifier(),
    );
    let rule = Rejected::RuleBroken("a run from an unknown block has no tail");
    assert_eq!(tail.err(), Some(rule));
}

/// With too many undecided blocks before it a block orders nothing, but it is proposed.
#[test]
fn a_long_undecided_chain_gets_no_heavier() {
    let keys = Keys::new(4);
    let request_after = |length: u64, bodies: &[u64]| -> ProposeRequest {
        let mut machine = start(&keys, keys.leader(2 * length + 2), None, BTreeSet::new());
        let mut justify = keys.genesis();
        for k in 1..=length {
            // A gap before every one: certified, and nothing is decided by it.
            let block = keys.block(2 * k, &justify, k, bodies);
            justify = keys.certify(&block);
            machine.tree.insert(Arc::new(block));
        }
        machine.high_qc = justify;
        machine.view = quorate_types::View(2 * length + 2);
        drain(&mut machine);
        machine.request_payload();
        let request = drain(&mut machine).into_iter().find_map(|output| match output {
            Output::RequestPayload(request) => Some(request),
            _ => None,
        });
        request.expect("it leads")
    };
    let full = LADEN_MAX as u64;
    assert!(!request_after(full - 1, &[7]).nothing);
    for bodies in [&[7][..], &[]] {
        let request = request_after(full, bodies);
        assert!(request.nothing && request.at_once, "{request:?}");
        assert_ne!(request.parent, BlockId::default());
    }
}

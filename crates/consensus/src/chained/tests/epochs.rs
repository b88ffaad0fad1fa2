//! The end of an epoch and the beginning of one: stop blocks and anchors.

use super::harness::{Check, Cluster, Envelope, Keys, TIMEOUT, body, certificates, ensure};
use crate::block_tree::TreeBlock;
use crate::chained::messages::encode;
use crate::chained::{Block, DecidedBlock, Message, Run, verify_run};
use crate::{Input, ProtocolKind, ProtocolView, Rule, VerifiedRun};
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_types::machine::Halt;
use quorate_types::{Anchor, EpochId, Height, Payload, Rejected};

fn change() -> Digest {
    hash(b"a change")
}

/// The leader's stop block of `view` on the block that `justify` certifies.
fn stop(keys: &Keys, view: u64, justify: &crate::chained::Qc, height: u64) -> Block {
    let mut block = keys.block(view, justify, height, &[7]);
    block.payload = block.payload.ending_epoch(change());
    block
}

/// A stop block and three that follow it, each in the next view.
fn stop_and_three(keys: &Keys) -> [Block; 4] {
    let first = stop(keys, 1, &keys.genesis(), 1);
    let second = keys.block(2, &keys.certify(&first), 2, &[]);
    let third = keys.block(3, &keys.certify(&second), 3, &[]);
    let fourth = keys.block(4, &keys.certify(&third), 4, &[]);
    [first, second, third, fourth]
}

fn records(records: &[&DecidedBlock]) -> Vec<Bytes> {
    records.iter().map(|record| Bytes::from(encode(*record))).collect()
}

fn run_of(keys: &Keys, decided: &[&DecidedBlock]) -> Result<Run, Rejected> {
    let genesis = keys.verifier().genesis();
    let target = decided.last().expect("some").block.id();
    verify_run(Height(0), Some(genesis), target, &records(decided), &[], &keys.verifier())
}

/// Every member ends with the same stop block, of whatever protocol, and orders nothing after it.
#[test]
fn all_end_with_the_stop_block() {
    for protocol in ProtocolKind::CHAINED {
        let mut cluster = Cluster::running(protocol);
        cluster.submit(1);
        cluster.run("the first", |c| c.all_decided(&[1])).unwrap();
        cluster.change = Some(change());
        cluster.submit(2);
        let all_ended = |c: &Cluster| c.nodes.iter().all(super::harness::Node::has_ended);
        cluster.run("the end", all_ended).unwrap();
        let decided = cluster.node(0).decided.len();
        cluster.submit(3);
        while cluster.pass() {
            cluster.deliver();
        }
        cluster.ensure_agreement().unwrap();
        assert!(cluster.nodes.iter().all(|node| node.decided.len() == decided), "{protocol}");
        assert!(!cluster.node(0).bodies().contains(&body(3)), "{protocol}");
        assert!(cluster.nodes.iter().all(|node| node.misbehaviour.is_empty()), "{protocol}");
    }
}

/// The stop block is work until it is decided, also where nothing else is and a leader is dead.
#[test]
fn a_stop_block_is_decided_past_a_dead_leader() {
    for protocol in ProtocolKind::CHAINED {
        for dead in 0..4 {
            let mut cluster = Cluster::running(protocol);
            cluster.nodes[dead].up = false;
            cluster.change = Some(change());
            cluster.submit(1);
            let living_ended = |c: &Cluster| c.up().iter().all(|id| c.node(*id).has_ended());
            cluster.run("the end", living_ended).unwrap();
            cluster.ensure_agreement().unwrap();
        }
    }
}

/// Who missed the end hears of it from whoever it sends anything to.
#[test]
fn who_missed_the_end_is_shown_it() {
    for protocol in ProtocolKind::CHAINED {
        let mut cluster = Cluster::running(protocol);
        cluster.cut = Box::new(|envelope: &Envelope| {
            envelope.to == 3 && matches!(envelope.message, Message::Certificates { .. })
        });
        cluster.change = Some(change());
        cluster.submit(1);
        let others = |c: &Cluster| (0..3).all(|id| c.node(id).has_ended());
        cluster.run("the end of the others", others).unwrap();
        cluster.cut = Box::new(|_| false);
        cluster.run("its end", |c| c.node(3).has_ended()).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// ★ One certificate decides a stop block and its child: the child is void.
pub(super) fn check_delivery_ends_at_the_stop() -> Check {
    let mut cluster = Cluster::new();
    let [first, second, third, _] = stop_and_three(&cluster.keys);
    let tail = vec![first.clone(), second.clone(), third.clone()];
    let run = Run { decided: Vec::new(), proof: None, tail, conflicts: false };
    cluster.feed(3, Input::Run(Box::new(VerifiedRun::Chained(run))));
    let commit = cluster.keys.certify(&third);
    ensure(commit.base_id == second.id(), "the child is decided with it")?;
    cluster.tell(3, 0, certificates(&commit, None))?;
    let decided = cluster.node(3).decided.iter().map(|decided| decided.block).collect::<Vec<_>>();
    ensure(decided == [first.id()], format!("delivered: {decided:?}"))?;

    // Whoever is behind takes it from its record alone.
    let record = cluster.node(3).records[0].clone();
    ensure(cluster.node(3).machine.servable(std::slice::from_ref(&record)) == 1, "served")?;
    let decoded: DecidedBlock = borsh::from_slice(&record).map_err(|error| error.to_string())?;
    let run = run_of(&cluster.keys, &[&decoded]).map_err(|reason| reason.to_string())?;
    cluster.feed(2, Input::Run(Box::new(VerifiedRun::Chained(run))));
    ensure(cluster.node(2).has_ended(), "and ends")?;
    ensure(cluster.node(2).machine.has_block(commit.id), "and misses nothing")?;
    cluster.ensure_agreement()
}

#[test]
fn delivery_ends_at_the_stop() {
    check_delivery_ends_at_the_stop().unwrap();
}

/// ★ Whoever decided the stop block neither votes nor times out any more. It answers with the
/// decision, but not whoever shows that it knows.
pub(super) fn check_nothing_is_signed_after_the_stop() -> Check {
    let mut cluster = Cluster::new();
    let [first, second, third, _] = stop_and_three(&cluster.keys);
    for block in [&first, &second] {
        cluster.tell(3, block.author.0, cluster.keys.propose(block))?;
    }
    let votes = cluster.node(3).votes().len();
    ensure(votes == 2, "votes before the end")?;
    let shown = certificates(&cluster.keys.certify(&second), None);
    cluster.tell(3, 0, shown.clone())?;
    ensure(cluster.node(3).has_ended(), "it has decided")?;
    ensure(cluster.node(3).machine_timeout().is_none(), "no timer runs")?;

    let said = cluster.node(3).said.len();
    cluster.tell(3, 0, shown)?;
    ensure(cluster.node(3).said.len() == said, "who shows the decision is not answered")?;
    let proposal = cluster.keys.propose(&third);
    for expected in [1, 1] {
        cluster.tell(3, third.author.0, proposal.clone())?;
        let answers = &cluster.node(3).said[said..];
        ensure(answers.len() == expected, format!("answers: {answers:?}"))?;
    }
    cluster.now = cluster.now + TIMEOUT;
    cluster.tell(3, third.author.0, proposal)?;
    let answers: Vec<&Message> = cluster.node(3).sent().skip(said - 2).collect();
    let is_answer = |message: &&Message| matches!(message, Message::Certificates { .. });
    ensure(cluster.node(3).said.len() == said + 2, "and again after a while")?;
    ensure(answers.iter().rev().take(2).all(is_answer), format!("{answers:?}"))?;
    ensure(cluster.node(3).votes().len() == votes, "no vote follows")
}

#[test]
fn nothing_is_signed_after_the_stop() {
    check_nothing_is_signed_after_the_stop().unwrap();
}

/// ★ A block after an undecided stop block gets no vote if it orders anything, and no leader makes
/// one.
pub(super) fn check_what_follows_a_stop_orders_nothing() -> Check {
    for laden in [Payload::new(Height(2), 0, vec![body(8)]), empty().ending_epoch(change())] {
        let mut cluster = Cluster::new();
        let first = stop(&cluster.keys, 1, &cluster.keys.genesis(), 1);
        let mut second = cluster.keys.block(2, &cluster.keys.certify(&first), 2, &[]);
        second.payload = laden;
        for block in [&first, &second] {
            cluster.tell(3, block.author.0, cluster.keys.propose(block))?;
        }
        ensure(cluster.node(3).votes().len() == 1, "a vote for what would be void")?;
        let expected = [(second.author, Rule::PayloadAfterStop)];
        ensure(cluster.node(3).misbehaviour == expected, "and its author is named")?;
    }
    let mut cluster = Cluster::new();
    let first = stop(&cluster.keys, 1, &cluster.keys.genesis(), 1);
    let leader = cluster.keys.leader(2);
    cluster.tell(leader, first.author.0, cluster.keys.propose(&first))?;
    cluster.pending.push(body(8));
    let certified = certificates(&cluster.keys.certify(&first), None);
    cluster.tell(leader, first.author.0, certified)?;
    let proposed = cluster.node(leader).proposals();
    let empty = |proposal: &crate::chained::Proposal| proposal.block.payload.is_empty();
    ensure(proposed.len() == 1 && proposed.iter().all(empty), "the leader's own is empty")
}

fn empty() -> Payload {
    Payload::new(Height(2), 0, Vec::new())
}

#[test]
fn what_follows_a_stop_orders_nothing() {
    check_what_follows_a_stop_orders_nothing().unwrap();
}

/// ★ Nothing is taken as decided in an epoch that stands behind its stop block.
pub(super) fn check_a_run_ends_with_the_stop() -> Check {
    let keys = Keys::new(4);
    let [first, second, third, _] = stop_and_three(&keys);
    let stop = DecidedBlock::new(first.clone(), keys.certify(&second));
    ensure(run_of(&keys, &[&stop]).is_ok(), "the stop block itself")?;
    let behind = DecidedBlock::new(second.clone(), keys.certify(&third));
    let refusal = run_of(&keys, &[&stop, &behind]).err();
    let rule = Rejected::RuleBroken("nothing follows a stop block in its epoch");
    ensure(refusal.as_ref() == Some(&rule), format!("{refusal:?}"))?;
    let (genesis, tail) = (keys.verifier().genesis(), [Bytes::from(encode(&second))]);
    let decided = records(&[&stop]);
    let run = verify_run(Height(0), Some(genesis), second.id(), &decided, &tail, &keys.verifier());
    ensure(run.err() == Some(rule), "nor undecided blocks")
}

#[test]
fn a_run_ends_with_the_stop() {
    check_a_run_ends_with_the_stop().unwrap();
}

/// The void blocks in a stop block's record link it to what its certificate decides.
#[test]
fn a_stop_block_is_proven_through_what_is_void() {
    let keys = Keys::new(4);
    let [first, second, third, fourth] = stop_and_three(&keys);
    let commit = keys.certify(&fourth);
    assert_eq!(commit.base_id, third.id());
    let record = |void: &[&Block]| DecidedBlock {
        block: first.clone(),
        commit: commit.clone(),
        void: void.iter().map(|block| (*block).clone()).collect(),
    };
    assert!(run_of(&keys, &[&record(&[&second, &third])]).is_ok());
    let unproven =
        Some(Rejected::RuleBroken("a run's last decided block is committed by its proof"));
    let laden = keys.block(2, &keys.certify(&first), 2, &[9]);
    for void in [&[&second][..], &[&third], &[&third, &second], &[&laden, &third], &[]] {
        assert_eq!(run_of(&keys, &[&record(void)]).err(), unproven);
    }
    let plain = keys.block(1, &keys.genesis(), 1, &[7]);
    let child = keys.block(2, &keys.certify(&plain), 2, &[]);
    let commit = keys.certify(&keys.block(3, &keys.certify(&child), 3, &[]));
    let void = DecidedBlock { block: plain, commit, void: vec![child] };
    let rule = Rejected::RuleBroken("nothing is void before a stop block");
    assert_eq!(run_of(&keys, &[&void]).err(), Some(rule));
}

/// A member that comes back after the end says nothing, and answers.
#[test]
fn an_end_survives_a_restart() {
    for protocol in ProtocolKind::CHAINED {
        let mut cluster = Cluster::running(protocol);
        cluster.change = Some(change());
        cluster.submit(1);
        let all_ended = |c: &Cluster| c.nodes.iter().all(super::harness::Node::has_ended);
        cluster.run("the end", all_ended).unwrap();
        let restarts: [fn(&mut Cluster); 2] = [|c| c.restart(2), |c| c.restart_executed(2)];
        for restart in restarts {
            restart(&mut cluster);
            assert_eq!(cluster.node(2).machine_timeout(), None, "{protocol}");
            assert!(cluster.node(2).said.is_empty(), "{protocol}");
            let timeout = cluster.keys.timeout(1, 9, &cluster.keys.genesis(), None);
            let _ = cluster.give(2, 1, Message::Timeout(timeout));
            assert!(cluster.node(2).sent().count() <= 1, "{protocol}");
        }
    }
}

/// ★ After a restart a vote for a stop block is said again once its change was checked again.
#[test]
fn a_change_is_checked_again_after_a_restart() {
    let mut cluster = Cluster::new();
    let first = stop(&cluster.keys, 1, &cluster.keys.genesis(), 1);
    cluster.tell(3, first.author.0, cluster.keys.propose(&first)).unwrap();
    let voted = cluster.node(3).votes();
    assert_eq!(voted.len(), 1);
    cluster.node_mut(3).has_bodies = false;
    cluster.restart(3);
    assert!(cluster.node(3).votes().is_empty());
    cluster.tell(3, first.author.0, cluster.keys.propose(&first)).unwrap();
    assert!(cluster.node(3).votes().is_empty(), "nor when the proposal comes again");
    cluster.feed(3, Input::Stored(first.id()));
    assert_eq!(cluster.node(3).votes(), voted);
}

/// A record of a block that another epoch decided stops the replica, executed or not.
#[test]
fn another_epochs_record_is_refused_at_the_start() {
    let restarts: [fn(&mut Cluster); 2] = [|c| c.restart(2), |c| c.restart_executed(2)];
    for restart in restarts {
        let mut cluster = Cluster::new();
        cluster.submit(1);
        cluster.run("the first", |c| c.all_decided(&[1])).unwrap();
        let records = &mut cluster.node_mut(2).records;
        let mut last: DecidedBlock = borsh::from_slice(&records.pop().expect("one")).unwrap();
        last.block.epoch = EpochId([9; 32]);
        records.push(Bytes::from(encode(&last)));
        restart(&mut cluster);
        let halted = cluster.node(2).halted.clone();
        assert!(matches!(halted, Some(Halt::CorruptRecovery(_))), "{halted:?}");
    }
}

/// An epoch's first block follows the last one before it, in height and in time.
#[test]
fn an_epoch_begins_after_its_anchor() {
    for protocol in ProtocolKind::CHAINED {
        let anchor = Anchor { height: Height(41), proposed_at_ms: 3_000 };
        let keys = Keys::new(4).running(protocol).starting_after(anchor);
        let mut cluster = Cluster::with(keys, |_| {});
        cluster.nodes[3].up = false;
        cluster.submit(1);
        cluster.run("the first", |c| c.all_decided(&[1])).unwrap();
        let first = cluster.node(0).decided[0].payload.header;
        assert_eq!(first.height, Height(42), "{protocol}");
        assert!(first.proposed_at_ms >= 3_000, "{protocol}: {first:?}");
        cluster.restart(0);
        cluster.nodes[3].up = true;
        cluster.submit(2);
        cluster.run("the second", |c| c.all_decided(&[1, 2])).unwrap();
        cluster.ensure_agreement().unwrap();
    }
}

/// Two decisions are recognised after the end as before it.
#[test]
fn another_decision_halts_after_the_end() {
    let mut cluster = Cluster::new();
    let [first, second, ..] = stop_and_three(&cluster.keys);
    for block in [&first, &second] {
        cluster.tell(3, block.author.0, cluster.keys.propose(block)).unwrap();
    }
    cluster.tell(3, 0, certificates(&cluster.keys.certify(&second), None)).unwrap();
    assert!(cluster.node(3).has_ended() && cluster.node(3).halted.is_none());
    let said = cluster.node(3).said.len();
    let other = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[9]);
    let child = cluster.keys.block(2, &cluster.keys.certify(&other), 2, &[]);
    cluster.tell(3, 0, certificates(&cluster.keys.certify(&child), None)).unwrap();
    assert!(cluster.node(3).halted.is_some());
    assert_eq!(cluster.node(3).said.len(), said, "nothing follows a halt");
}

//! Voting, locking, deciding and entering views (PODC 2019, Algorithms 1 and 2).

use super::{after_timeouts, certify, four, phase_message, show, show_phase, voted_in};
use crate::block_tree::TreeBlock;
use crate::chained::tests::harness::{Check, Cluster, Recorded, body, certificates, ensure};
use crate::chained::tests::voting::check_durable_first;
use crate::chained::{Lock, Message, Phase, PhaseVote};
use crate::{Ignored, MessageKind, ProtocolKind, ProtocolView, Rule};
use quorate_types::{Recipients, Rejected, ReplicaId, View};

const PHASES: [Phase; 3] = [Phase::Prepare, Phase::PreCommit, Phase::Commit];

/// Each certificate asks for the vote of the next phase, and the last one decides (★) and ends the
/// view.
pub(super) fn check_the_third_phase_decides() -> Check {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block)?;
    for phase in PHASES {
        let before = cluster.node(3).decided.len();
        ensure(before == 0, format!("decided before the certificate of {phase:?}"))?;
        ensure(cluster.node(3).view() == 1, format!("left the view before {phase:?} was over"))?;
        ensure(
            voted_in(&cluster, 3).last() == Some(&(1, phase)),
            format!("votes before the certificate of {phase:?}: {:?}", voted_in(&cluster, 3)),
        )?;
        show_phase(&mut cluster, 3, phase, &block)?;
    }
    ensure(cluster.node(3).decided.len() == 1, "not decided")?;
    ensure(cluster.node(3).view() == 2, "the decision ends the view")?;
    ensure(voted_in(&cluster, 3) == PHASES.map(|phase| (1, phase)), "other votes than these")
}

#[test]
fn the_third_phase_decides() {
    check_the_third_phase_decides().unwrap();
}

/// All votes go to the view's own leader, and the new-view to the next one.
#[test]
fn votes_go_to_the_views_own_leader() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    for phase in PHASES {
        show_phase(&mut cluster, 3, phase, &block).unwrap();
    }
    let hears: Vec<(u16, bool)> = cluster
        .wire
        .iter()
        .map(|envelope| (envelope.to, matches!(envelope.message, Message::NewView(_))))
        .collect();
    assert_eq!(hears, [(0, false), (0, false), (0, false), (1, true)]);
}

/// One vote for each view and phase, whatever is shown again (★).
pub(super) fn check_one_vote_a_phase() -> Check {
    let mut cluster = four();
    let genesis = cluster.keys.genesis();
    let block = cluster.keys.block(1, &genesis, 1, &[7]);
    let other = cluster.keys.block(1, &genesis, 1, &[8]);
    show(&mut cluster, 3, &block)?;
    show(&mut cluster, 3, &other)?;
    for phase in [Phase::Prepare, Phase::PreCommit] {
        show_phase(&mut cluster, 3, phase, &block)?;
        show_phase(&mut cluster, 3, Phase::Prepare, &block)?;
    }
    let voted = voted_in(&cluster, 3);
    ensure(voted == PHASES.map(|phase| (1, phase)), format!("votes: {voted:?}"))
}

#[test]
fn one_vote_a_phase() {
    check_one_vote_a_phase().unwrap();
}

/// A later phase needs nothing of the earlier ones: a replica that missed them votes all the same,
/// and never goes back.
#[test]
fn a_missed_phase_is_passed_over() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    show_phase(&mut cluster, 3, Phase::PreCommit, &block).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &block).unwrap();
    assert_eq!(voted_in(&cluster, 3), [(1, Phase::Prepare), (1, Phase::Commit)]);
}

/// What is signed in one phase is nothing in another (★): no certificate, nor any vote.
pub(super) fn check_no_phase_passes_for_another() -> Check {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block)?;
    let [prepared, locked, decided] = PHASES.map(|phase| certify(&cluster.keys, phase, &block));
    // Once as it is, so that it is remembered as checked.
    cluster.tell(3, 0, certificates(&prepared, None))?;
    let bad = [
        ("a prepareQC as a precommitQC", Message::PreCommitted(prepared)),
        ("a commitQC as a precommitQC", Message::PreCommitted(decided)),
        ("a precommitQC as a new-view", Message::NewView(locked.clone())),
    ];
    for (what, message) in bad {
        ensure(cluster.give(3, 0, message).is_err(), format!("{what} was taken"))?;
    }
    let mut other = four();
    let passed = other.give(3, 0, certificates(&locked, None));
    ensure(passed.is_err(), "a precommitQC was taken for a prepareQC")?;
    check_no_vote_passes_for_another()
}

fn check_no_vote_passes_for_another() -> Check {
    let mut cluster = four();
    cluster.submit(7);
    cluster.wire.clear();
    let block = cluster.node(0).proposals().pop().ok_or("it leads view 1")?.block;
    for signer in [1, 2, 3] {
        let vote = cluster.keys.vote(signer, &block);
        let phase = Phase::PreCommit;
        cluster.tell(0, signer, Message::PhaseVote(PhaseVote { phase, vote }))?;
    }
    let misbehaviour = &cluster.node(0).misbehaviour;
    ensure(
        misbehaviour.contains(&(ReplicaId(1), Rule::InvalidShare)),
        format!("{misbehaviour:?}"),
    )?;
    let shown = cluster.node(0).sent().any(|message| matches!(message, Message::PreCommitted(_)));
    ensure(!shown, "votes for the block became a certificate of pre-commit votes")
}

#[test]
fn no_phase_passes_for_another() {
    check_no_phase_passes_for_another().unwrap();
}

/// A protocol of one phase knows no other; and the first phase's votes are not said as a later
/// one's.
#[test]
fn later_phases_are_of_protocols_that_have_them() {
    let refused = |cluster: &mut Cluster, message| {
        let refusal = cluster.give(0, 3, message).unwrap_err();
        assert!(matches!(refusal, Rejected::RuleBroken(_)), "{refusal}");
    };
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::HotStuff] {
        let mut cluster = Cluster::running(protocol);
        let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        for phase in [Phase::PreCommit, Phase::Commit] {
            let vote = cluster.keys.vote_in(phase, 3, &block);
            refused(&mut cluster, Message::PhaseVote(PhaseVote { phase, vote }));
        }
        let qc = certify(&cluster.keys, Phase::PreCommit, &block);
        refused(&mut cluster, Message::PreCommitted(qc.clone()));
        refused(&mut cluster, Message::NewView(qc));
    }
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    let vote = cluster.keys.vote(3, &block);
    refused(&mut cluster, Message::PhaseVote(PhaseVote { phase: Phase::Prepare, vote }));
    let prepared = certify(&cluster.keys, Phase::Prepare, &block);
    refused(&mut cluster, Message::NewView(prepared));
}

/// PREPARE: no vote against the lock (★), but one for what extends it.
pub(super) fn check_the_lock_holds() -> Check {
    let mut cluster = four();
    let keys = &cluster.keys;
    let locked = keys.block(1, &keys.genesis(), 1, &[7]);
    let against = after_timeouts(keys, 2, &keys.genesis(), 1);
    let with = after_timeouts(keys, 3, &certify(keys, Phase::Prepare, &locked), 2);
    show(&mut cluster, 3, &locked)?;
    show_phase(&mut cluster, 3, Phase::PreCommit, &locked)?;
    let lock = cluster.node(3).promises().and_then(|promised| promised.lock);
    let wanted = Lock { view: View(1), id: locked.id() };
    ensure(lock == Some(wanted), format!("locked on {lock:?}"))?;
    show(&mut cluster, 3, &against)?;
    ensure(cluster.node(3).view() == 2, "the timeout certificate moves it")?;
    ensure(!voted_in(&cluster, 3).contains(&(2, Phase::Prepare)), "it voted against its lock")?;
    show(&mut cluster, 3, &with)?;
    ensure(voted_in(&cluster, 3).contains(&(3, Phase::Prepare)), "no vote for what extends it")
}

#[test]
fn the_lock_holds() {
    check_the_lock_holds().unwrap();
}

/// PREPARE: a certificate of a later view sets the lock aside. Nothing was decided against it.
#[test]
fn a_later_certificate_sets_the_lock_aside() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let locked = keys.block(1, &keys.genesis(), 1, &[7]);
    let other = after_timeouts(keys, 2, &keys.genesis(), 1);
    let next = after_timeouts(keys, 3, &certify(keys, Phase::Prepare, &other), 2);
    show(&mut cluster, 3, &locked).unwrap();
    show_phase(&mut cluster, 3, Phase::PreCommit, &locked).unwrap();
    show(&mut cluster, 3, &other).unwrap();
    show(&mut cluster, 3, &next).unwrap();
    let voted = voted_in(&cluster, 3);
    // The certificate of 2 comes before the timeout certificate that ends it, and asks for its
    // vote.
    let second = (2, Phase::PreCommit);
    assert_eq!(voted, [(1, Phase::Prepare), (1, Phase::Commit), second, (3, Phase::Prepare)]);
}

/// A prepareQC locks nobody: were it so, a lock that few know of could stop the next leader.
#[test]
fn the_first_phase_does_not_lock() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let prepared = keys.block(1, &keys.genesis(), 1, &[7]);
    let other = after_timeouts(keys, 2, &keys.genesis(), 1);
    show(&mut cluster, 3, &prepared).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &prepared).unwrap();
    show(&mut cluster, 3, &other).unwrap();
    assert!(voted_in(&cluster, 3).contains(&(2, Phase::Prepare)));
}

/// Votes of all phases, and the lock with the last one, are durable before they are said (★).
pub(super) fn check_nothing_leaves_before_it_is_durable() -> Check {
    check_durable_first(four())
}

#[test]
fn nothing_leaves_before_it_is_durable() {
    check_nothing_leaves_before_it_is_durable().unwrap();
}

/// A prepareQC of the view before is no way into the next: its leader might cut the phases short.
#[test]
fn a_view_does_not_end_with_its_first_certificate() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let one = keys.block(1, &keys.genesis(), 1, &[7]);
    let early = keys.block(2, &certify(keys, Phase::Prepare, &one), 2, &[8]);
    let due = keys.block(2, &certify(keys, Phase::Commit, &one), 2, &[8]);
    show(&mut cluster, 3, &one).unwrap();
    let refused = cluster.give(3, 1, cluster.keys.propose(&early)).unwrap_err();
    assert!(matches!(refused, Rejected::RuleBroken(why) if why.contains("timeout certificate")));
    assert_eq!(cluster.node(3).view(), 1);
    show(&mut cluster, 3, &due).unwrap();
    assert_eq!((cluster.node(3).view(), cluster.node(3).decided.len()), (2, 1));
    assert_eq!(voted_in(&cluster, 3), [(1, Phase::Prepare), (2, Phase::Prepare)]);
}

/// A leader that a decision led to its view proposes after a quorum's new-views, its own among
/// them.
pub(super) fn check_a_leader_waits_for_new_views() -> Check {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    let decided = certify(&cluster.keys, Phase::Commit, &block);
    show(&mut cluster, 1, &block)?;
    cluster.pending.push(body(8));
    show_phase(&mut cluster, 1, Phase::Commit, &block)?;
    for from in [2, 2, 3] {
        ensure(cluster.node(1).proposals().is_empty(), format!("it proposed before {from}"))?;
        cluster.tell(1, from, Message::NewView(decided.clone()))?;
    }
    ensure(cluster.node(1).proposals().len() == 1, "it proposes once")?;
    cluster.tell(1, 0, Message::NewView(decided))?;
    ensure(cluster.node(1).proposals().len() == 1, "it proposed again")
}

#[test]
fn a_leader_waits_for_new_views() {
    check_a_leader_waits_for_new_views().unwrap();
}

/// A leader that missed the decision hears of it with the new-views.
#[test]
fn new_views_move_the_next_leader() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 1, &block).unwrap();
    let decided = certify(&cluster.keys, Phase::Commit, &block);
    cluster.tell(1, 2, Message::NewView(decided)).unwrap();
    assert_eq!((cluster.node(1).view(), cluster.node(1).decided.len()), (2, 1));
}

/// A complaint reports the certificate of the view that it leaves, and so does the timeout
/// certificate.
#[test]
fn complaints_report_the_phases_of_their_own_view() {
    let mut cluster = four();
    cluster.submit(7);
    let block = cluster.node(0).proposals().pop().expect("it leads view 1").block;
    show(&mut cluster, 3, &block).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &block).unwrap();
    cluster.fire(3).unwrap();
    let said = cluster.node(3).timeouts().pop().expect("it complains");
    assert_eq!((said.view, said.high_qc.view, said.high_tc.as_ref()), (View(1), View(1), None));
    let prepared = certify(&cluster.keys, Phase::Prepare, &block);
    let tc = cluster.keys.tc(1, &prepared, &[(0, &[0]), (1, &[1, 3])]);
    cluster.tell(3, 0, certificates(&prepared, Some(&tc))).unwrap();
    assert_eq!(cluster.node(3).view(), 2);
    let beyond = cluster.keys.tc(2, &prepared, &[(1, &[0, 1]), (3, &[3])]);
    assert!(cluster.give(3, 0, certificates(&prepared, Some(&beyond))).is_err());
}

/// What a leader has shown of its view it shows again when it starts again.
#[test]
fn a_leader_that_restarts_goes_on() {
    for lost in PHASES {
        let mut cluster = four();
        let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
        let shown = phase_message(&cluster.keys, lost, &block);
        let is_lost = move |message: &Message| {
            std::mem::discriminant(message) == std::mem::discriminant(&shown)
        };
        cluster.cut = Box::new(move |envelope| envelope.from == 0 && is_lost(&envelope.message));
        cluster.submit(7);
        cluster.deliver();
        cluster.cut = Box::new(|_| false);
        cluster.restart(0);
        cluster.deliver();
        assert!(cluster.all_decided(&[7]), "{lost:?} was lost");
        cluster.ensure_agreement().unwrap();
    }
}

/// The phases begin with what the leader says to all.
#[test]
fn a_leader_shows_each_certificate_to_all() {
    let mut cluster = four();
    cluster.submit(7);
    cluster.deliver();
    let to_all: Vec<&Message> = cluster
        .node(0)
        .said
        .iter()
        .filter_map(|said| match said {
            Recorded::Send(Recipients::All, message) => Some(message.as_ref()),
            _ => None,
        })
        .collect();
    let is_phase = [
        matches!(to_all[0], Message::Proposal(_)),
        matches!(to_all[1], Message::Certificates { .. }),
        matches!(to_all[2], Message::PreCommitted(_)),
        matches!(to_all[3], Message::Certificates { .. }),
    ];
    assert_eq!((to_all.len(), is_phase), (4, [true; 4]));
}

/// A certificate of pre-commit votes is of use until its view is over.
#[test]
fn an_older_certificate_of_pre_commit_votes_is_refused() {
    for (view, expected) in [(2, Err(Rejected::Stale)), (3, Ok(())), (4, Ok(()))] {
        let mut cluster = four();
        let genesis = cluster.keys.genesis();
        let tc = cluster.keys.tc(2, &genesis, &[(0, &[0, 1, 2])]);
        cluster.tell(3, 0, certificates(&genesis, Some(&tc))).unwrap();
        let block = cluster.keys.block(view, &genesis, 1, &[]);
        let locks = phase_message(&cluster.keys, Phase::PreCommit, &block);
        assert_eq!(cluster.give(3, 0, locks), expected, "of view {view}");
    }
}

/// Said again, or to whoever has no use for it, each certificate is counted as ignored.
#[test]
fn certificates_that_bring_nothing_are_counted() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    for _ in 0..2 {
        show_phase(&mut cluster, 3, Phase::PreCommit, &block).unwrap();
    }
    let decided = certify(&cluster.keys, Phase::Commit, &block);
    cluster.tell(3, 2, Message::NewView(decided)).unwrap();
    let ignored = cluster.node(3).machine.ignored();
    let found: Vec<_> = ignored.iter().collect();
    let expected = [
        (MessageKind::PreCommitted, Ignored::AlreadyCertified, 1),
        (MessageKind::NewView, Ignored::NotLeader, 1),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(expected.iter().all(|count| found.contains(count)), "{found:?}");
}

/// A vote of a phase that has its certificate is ignored, in every phase.
#[test]
fn votes_after_the_certificate_of_their_phase_are_ignored() {
    let mut cluster = four();
    cluster.submit(7);
    let block = cluster.node(0).proposals().pop().expect("it leads view 1").block;
    let counts = |cluster: &Cluster| {
        let ignored = cluster.node(0).machine.ignored();
        let of = |kind| ignored.of(kind, Ignored::AlreadyCertified);
        (of(MessageKind::Vote), of(MessageKind::PhaseVote))
    };
    let expected = [(1, 0), (1, 1), (1, 2)];
    for (phase, expected) in PHASES.into_iter().zip(expected) {
        for signer in [1, 2, 3] {
            let vote = cluster.keys.vote_in(phase, signer, &block);
            let message = match phase {
                Phase::Prepare => Message::Vote(vote),
                Phase::PreCommit | Phase::Commit => Message::PhaseVote(PhaseVote { phase, vote }),
            };
            cluster.tell(0, signer, message).unwrap();
        }
        assert_eq!(counts(&cluster), expected, "after the votes of {phase:?}");
    }
    assert_eq!((cluster.node(0).view(), cluster.node(0).decided.len()), (2, 1));
    // What is decided needs no earlier phase.
    let vote = cluster.keys.vote_in(Phase::PreCommit, 3, &block);
    let message = Message::PhaseVote(PhaseVote { phase: Phase::PreCommit, vote });
    let mut missed = four();
    show(&mut missed, 1, &block).unwrap();
    show_phase(&mut missed, 1, Phase::Commit, &block).unwrap();
    missed.tell(1, 3, message).unwrap();
    let ignored = missed.node(1).machine.ignored();
    assert_eq!(ignored.of(MessageKind::PhaseVote, Ignored::AlreadyCertified), 1, "{ignored:?}");
}

/// Whoever makes a certificate without leading the view keeps it: phases begin with the leader's
/// word.
#[test]
fn the_leader_alone_begins_a_phase() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    for signer in [0, 1, 2] {
        let vote = cluster.keys.vote(signer, &block);
        cluster.tell(3, signer, Message::Vote(vote)).unwrap();
    }
    assert_eq!(cluster.node(3).machine.high_qc(), &certify(&cluster.keys, Phase::Prepare, &block));
    let is_for_all = |said: &Recorded| matches!(said, Recorded::Send(Recipients::All, _));
    assert!(!cluster.node(3).said.iter().any(is_for_all), "{:?}", cluster.node(3).said);
}

/// NEW-VIEW is for a view that a decision led to. One that timeouts led to has their certificate,
/// however well the views before it went.
#[test]
fn after_timeouts_nobody_says_new_view() {
    let mut cluster = four();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 0, &block).unwrap();
    show_phase(&mut cluster, 0, Phase::Commit, &block).unwrap();
    let said = |cluster: &Cluster| {
        cluster.node(0).sent().filter(|message| matches!(message, Message::NewView(_))).count()
    };
    assert_eq!((cluster.node(0).view(), said(&cluster)), (2, 1));
    let decided = certify(&cluster.keys, Phase::Commit, &block);
    let tc = cluster.keys.tc(2, &decided, &[(1, &[1, 2, 3])]);
    cluster.tell(0, 1, certificates(&decided, Some(&tc))).unwrap();
    assert_eq!((cluster.node(0).view(), said(&cluster)), (3, 1));
}

/// The record holds the votes of one view alone: those of a view whose first phase was passed over
/// take the place of the last one's.
#[test]
fn a_later_views_votes_replace_the_last_ones() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let locked = keys.block(1, &keys.genesis(), 1, &[7]);
    let other = after_timeouts(keys, 2, &keys.genesis(), 1);
    show(&mut cluster, 3, &locked).unwrap();
    show_phase(&mut cluster, 3, Phase::PreCommit, &locked).unwrap();
    show(&mut cluster, 3, &other).unwrap();
    show_phase(&mut cluster, 3, Phase::Prepare, &other).unwrap();
    let promised = cluster.node(3).promises().expect("it voted");
    let vote = cluster.keys.vote_in(Phase::PreCommit, 3, &other);
    let later = promised.later.expect("a view has several phases");
    assert_eq!(later.votes, [PhaseVote { phase: Phase::PreCommit, vote }]);
    assert_eq!((later.voted, promised.last_vote), (Phase::PreCommit, None));
}

//! Voting, locking and deciding (PODC 2019, Algorithm 4: `safeNode` and the chain of three).

use super::{chain, extend, four, show, voted_in};
use crate::block_tree::TreeBlock;
use crate::chained::tests::harness::{Check, Cluster, Keys, certificates, ensure};
use crate::{ProtocolKind, ProtocolView};
use quorate_types::{Height, Peer, Rejected, Verify};

/// A vote goes to the leader of the next view, once, and names block and grandparent.
pub(super) fn check_votes_go_to_the_next_leader() -> Check {
    let mut cluster = four();
    let blocks = chain(&cluster.keys, &[1, 2, 3], &cluster.keys.genesis(), 1);
    for (block, _) in &blocks {
        show(&mut cluster, 0, block)?;
    }
    let [first, _, third] = [0, 1, 2].map(|place| &blocks[place].0);
    let vote = cluster.node(0).votes().pop().ok_or("it votes")?;
    ensure(vote == cluster.keys.vote(0, third), format!("a vote of the view: {vote:?}"))?;
    ensure((vote.base_view, vote.base_id) == (first.view, first.id()), "it names another base")?;
    let collectors: Vec<u16> = cluster.wire.iter().map(|envelope| envelope.to).collect();
    ensure(collectors == [1, 2, 3], format!("{collectors:?} collect views 1 to 3"))
}

#[test]
fn votes_go_to_the_next_leader() {
    check_votes_go_to_the_next_leader().unwrap();
}

/// Vote: `v > voted` (★).
pub(super) fn check_one_vote_a_view() -> Check {
    let mut cluster = four();
    let genesis = cluster.keys.genesis();
    for k in [7, 8] {
        let block = cluster.keys.block(1, &genesis, 1, &[k]);
        show(&mut cluster, 3, &block)?;
    }
    ensure(cluster.node(3).votes().len() == 1, "two votes in one view")
}

#[test]
fn one_vote_a_view() {
    check_one_vote_a_view().unwrap();
}

/// Vote: the block extends the lock, or `justify.v > locked.v` (★): it is the certificate's view
/// that is compared. A block's own view is later than any lock, and would make every lock void.
pub(super) fn check_no_vote_below_the_lock() -> Check {
    let mut cluster = four();
    let keys = &cluster.keys;
    let main = chain(keys, &[1, 2, 3, 4], &keys.genesis(), 1);
    // QC(3) in block 4 locks block 2. The other block extends block 1 alone, with a certificate as
    // old.
    let below = extend(keys, 6, &main[0].1, 2);
    let beside = extend(keys, 7, &main[1].1, 3);
    for (block, _) in &main {
        show(&mut cluster, 3, block)?;
    }
    show(&mut cluster, 3, &below)?;
    ensure(voted_in(&cluster, 3) == [1, 2, 3, 4], "it voted against its lock")?;
    ensure(cluster.node(3).view() == 6, "the timeout certificate moved it")?;
    show(&mut cluster, 3, &beside)?;
    ensure(voted_in(&cluster, 3) == [1, 2, 3, 4, 7], "no vote for what extends its lock")
}

#[test]
fn no_vote_below_the_lock() {
    check_no_vote_below_the_lock().unwrap();
}

/// Vote: a certificate of a later view than the lock sets aside the lock: whoever signed it knew of
/// no decision against it. Otherwise one locked member could stop the others for ever.
#[test]
fn a_later_certificate_sets_a_lock_aside() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let main = chain(keys, &[1, 2, 3, 4], &keys.genesis(), 1);
    let other = chain(keys, &[5, 6], &main[0].1, 2);
    for (block, _) in &main {
        show(&mut cluster, 3, block).unwrap();
    }
    for (block, _) in &other {
        show(&mut cluster, 3, block).unwrap();
    }
    assert_eq!(voted_in(&cluster, 3), [1, 2, 3, 4, 6], "not for 5, whose parent is below the lock");
}

/// Decide: three consecutive views with the last of them certified, no two.
pub(super) fn check_three_in_a_row_decide() -> Check {
    let mut cluster = four();
    let blocks = chain(&cluster.keys, &[1, 2, 3, 4, 5], &cluster.keys.genesis(), 1);
    let mut decided = Vec::new();
    for (block, _) in &blocks {
        show(&mut cluster, 3, block)?;
        decided.push(cluster.node(3).decided.len());
    }
    ensure(decided == [0, 0, 0, 1, 2], format!("decided {decided:?} after views 1 to 5"))
}

#[test]
fn three_in_a_row_decide() {
    check_three_in_a_row_decide().unwrap();
}

/// Decide: what a body's place is does not depend on how many blocks are decided together. Two
/// blocks order one body; one member decides them one after the other, another, who gets the fifth
/// block before the fourth, together.
pub(super) fn check_deciding_together_or_apart_is_the_same() -> Check {
    let mut cluster = four();
    let mut justify = cluster.keys.genesis();
    let mut blocks = Vec::new();
    for view in 1..=5 {
        let block = cluster.keys.block(view, &justify, view, &[7]);
        justify = cluster.keys.certify(&block);
        blocks.push(block);
    }
    for (to, order) in [(3, [0, 1, 2, 3, 4]), (2, [0, 1, 2, 4, 3])] {
        for place in order {
            show(&mut cluster, to, &blocks[place])?;
        }
    }
    let ordered = |id: u16| -> Vec<usize> {
        cluster.node(id).decided.iter().map(|decided| decided.payload.bodies.len()).collect()
    };
    let (apart, together) = (ordered(3), ordered(2));
    ensure(apart.len() == 2, format!("{apart:?}"))?;
    ensure(apart == together, format!("{apart:?} one by one, {together:?} together"))
}

#[test]
fn deciding_together_or_apart_is_the_same() {
    check_deciding_together_or_apart_is_the_same().unwrap();
}

/// Decide: ★ consecutive views, not links alone. `a` in views 1, 2 and 4 is three links long and
/// all certified; and still everybody may vote for `b`, in views 3 and 5 to 7, which does not
/// extend it, since QC(3) is later than what the last vote for `a` locked. A replica that takes
/// links for enough decides both.
pub(super) fn check_links_without_consecutive_views_decide_nothing() -> Check {
    let mut cluster = four();
    let keys = &cluster.keys;
    let genesis = keys.genesis();
    let a = chain(keys, &[1, 2, 4], &genesis, 1);
    let b = chain(keys, &[3, 5, 6, 7], &genesis, 1);
    for (block, _) in [&a[0], &a[1], &b[0], &a[2]] {
        show(&mut cluster, 3, block)?;
    }
    cluster.tell(3, 0, certificates(&a[2].1, None))?;
    ensure(cluster.node(3).decided.is_empty(), "links over a gap decided")?;
    for (block, _) in &b[1..] {
        show(&mut cluster, 3, block)?;
    }
    cluster.tell(3, 0, certificates(&b[3].1, None))?;
    ensure(voted_in(&cluster, 3) == [1, 2, 3, 4, 5, 6, 7], "both are voted for")?;
    let heights: Vec<Height> =
        cluster.node(3).decided.iter().map(|decided| decided.payload.header.height).collect();
    ensure(heights == [Height(1), Height(2)], format!("decided {heights:?}"))?;
    ensure(cluster.node(3).decided[0].block == b[0].0.id(), "another block was decided")?;
    ensure(cluster.node(3).halted.is_none(), "it halted")
}

#[test]
fn links_without_consecutive_views_decide_nothing() {
    check_links_without_consecutive_views_decide_nothing().unwrap();
}

/// The chain below every valid block is looked at, voted for or not.
pub(super) fn check_blocks_without_votes_teach() -> Check {
    let keys = Keys::new(4).running(ProtocolKind::HotStuff);
    let mut cluster = Cluster::with(keys, |config| config.signs = false);
    let blocks = chain(&cluster.keys, &[1, 2, 3, 4], &cluster.keys.genesis(), 1);
    for (block, _) in &blocks {
        show(&mut cluster, 3, block)?;
    }
    ensure(cluster.node(3).said.is_empty(), "a member that signs nothing said something")?;
    ensure(cluster.node(3).decided.len() == 1, "nothing is decided without a vote")
}

#[test]
fn blocks_without_votes_teach() {
    check_blocks_without_votes_teach().unwrap();
}

/// A chain of three that is shown long after: nothing is decided twice, and nothing goes back.
#[test]
fn an_old_chain_of_three_arrives_late() {
    let mut cluster = four();
    let blocks = chain(&cluster.keys, &[1, 2, 3, 4, 5, 6, 7], &cluster.keys.genesis(), 1);
    for (block, _) in &blocks {
        show(&mut cluster, 3, block).unwrap();
    }
    let before = (cluster.node(3).machine.tip(), cluster.node(3).view());
    assert_eq!(cluster.node(3).decided.len(), 4);
    for (_, certificate) in &blocks[2..6] {
        cluster.tell(3, 0, certificates(certificate, None)).unwrap();
    }
    assert_eq!(cluster.node(3).decided.len(), 4);
    assert_eq!((cluster.node(3).machine.tip(), cluster.node(3).view()), before);
    assert_eq!(cluster.node(3).halted, None);
}

/// Block: what it extends after a timeout certificate is not for this check; in Jolteon it is.
#[test]
fn a_block_need_not_extend_what_its_timeout_certificate_reports() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let main = chain(keys, &[1, 2], &keys.genesis(), 1);
    let mut block = keys.block(4, &main[0].1, 2, &[]);
    block.tc = Some(keys.tc(3, &main[1].1, &[(2, &[0, 1, 2])]));
    show(&mut cluster, 3, &main[0].0).unwrap();
    show(&mut cluster, 3, &block).unwrap();
    assert_eq!(voted_in(&cluster, 3), [1, 4]);
}

/// A complaint binds to nothing: a proposal that comes after it gets its vote, and the next
/// complaint shows that.
#[test]
fn a_late_proposal_gets_a_vote_after_a_complaint() {
    let mut cluster = four();
    cluster.submit(7);
    cluster.fire(3).unwrap();
    let block = cluster.keys.block(1, &cluster.keys.genesis(), 1, &[7]);
    show(&mut cluster, 3, &block).unwrap();
    assert_eq!(voted_in(&cluster, 3), [1]);
    cluster.fire(3).unwrap();
    let shown: Vec<bool> =
        cluster.node(3).timeouts().iter().map(|timeout| timeout.last_vote.is_some()).collect();
    assert_eq!(shown, [false, true]);
}

/// Nothing of another protocol is let in (★).
pub(super) fn check_another_protocols_messages_are_refused() -> Check {
    let jolteon = Cluster::new();
    let block = jolteon.keys.block(1, &jolteon.keys.genesis(), 1, &[]);
    let raw = crate::Message::Jolteon(jolteon.keys.propose(&block));
    let from = Peer::Replica(block.author);
    let refused = crate::Message::verify(raw, from, four().node(3).verifier.as_ref());
    let ruled_out = Rejected::RuledOut { frame: "proposal".to_owned(), setting: "protocol" };
    ensure(refused == Err(ruled_out), format!("{refused:?}"))
}

/// And what it certifies means nothing here.
#[test]
fn another_protocols_messages_are_refused() {
    check_another_protocols_messages_are_refused().unwrap();
    let jolteon = Cluster::new();
    let block = jolteon.keys.block(1, &jolteon.keys.genesis(), 1, &[]);
    let proposal = jolteon.keys.propose(&block);
    let mut cluster = four();
    let genesis = Err(Rejected::RuleBroken("only genesis has view 0"));
    assert_eq!(cluster.give(3, 0, proposal), genesis, "under the other protocol's name");
}

/// Vote and Lock: a certificate no later than the lock neither sets it aside nor moves it. That of
/// another block in the lock's own view takes more faulty members than are tolerated; whoever holds
/// to its lock even then does nothing to make it worse.
#[test]
fn a_certificate_as_old_as_the_lock_leaves_it_alone() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let main = chain(keys, &[1, 2, 3], &keys.genesis(), 1);
    let twin = keys.block(1, &keys.genesis(), 1, &[9]);
    let beside = extend(keys, 5, &keys.certify(&twin), 2);
    let after = extend(keys, 6, &keys.certify(&beside), 3);
    let above = extend(keys, 7, &main[0].1, 2);
    show(&mut cluster, 3, &twin).unwrap();
    for (block, _) in &main {
        show(&mut cluster, 3, block).unwrap();
    }
    // QC(2) in block 3 locks block 1.
    show(&mut cluster, 3, &beside).unwrap();
    assert_eq!(voted_in(&cluster, 3), [1, 2, 3], "its certificate is no later than the lock");
    // Its certificate shows that the twin has a certified child: a lock of the same view.
    cluster.tell(3, 0, certificates(&after.justify, None)).unwrap();
    show(&mut cluster, 3, &above).unwrap();
    assert_eq!(voted_in(&cluster, 3), [1, 2, 3, 7], "it extends the lock");
}

/// Lock: a certificate may come before its block; then its lock comes with the block.
#[test]
fn a_certificate_before_its_block_locks_with_it() {
    let mut cluster = four();
    let main = chain(&cluster.keys, &[1, 2, 4], &cluster.keys.genesis(), 1);
    for (block, _) in &main[..2] {
        show(&mut cluster, 2, block).unwrap();
    }
    cluster.tell(2, 0, certificates(&main[2].1, None)).unwrap();
    show(&mut cluster, 2, &main[2].0).unwrap();
    cluster.submit(7);
    cluster.fire(2).unwrap();
    let lock = cluster.node(2).promises().and_then(|promised| promised.lock);
    assert_eq!(lock.map(|lock| (lock.view.0, lock.id)), Some((2, main[1].0.id())));
}

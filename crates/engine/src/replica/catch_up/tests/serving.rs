//! What it answers to members and learners that fell behind.

use super::super::BLOCKS_BYTES_MAX;
use super::{executed, read, start};
use crate::message::{Blocks, FetchBlocks, Kept, Offer};
use crate::replica::Replica;
use crate::replica::tests::give;
use crate::sync::BLOCKS_MAX;
use crate::testing::history::History;
use crate::testing::{body, certify_executed, content, identity, proposal, receive};
use crate::{Incoming, Message, Settings};
use bytes::Bytes;
use quorate_consensus::block_tree::TreeBlock;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash};
use quorate_types::machine::{ReadItem, Recovery};
use quorate_types::{
    BlockId, BodyRef, ClientId, Header, Height, Manifest, Payload, Peer, Recipients, ReplicaId,
};

const ASKER: Peer = Peer::Replica(ReplicaId(3));

fn learner() -> Peer {
    Peer::Learner(ClientId(identity(9).public()))
}

/// Member 1, which executed the history up to this height.
fn member(history: &History, height: u64) -> Replica {
    let recovery = Recovery { executed: Some(executed(history, height)), ..Recovery::default() };
    start(1, Settings::default(), recovery)
}

/// A disk with these heights of a history.
fn disk(history: &History, heights: impl Fn(u64) -> bool) -> impl Fn(ReadItem) -> Option<Bytes> {
    move |item| match item {
        ReadItem::Decided(Height(height)) if heights(height) => Some(history.record(height)),
        _ => None,
    }
}

/// The heights that were read at once.
fn heights(items: &[ReadItem]) -> (u64, u64) {
    let height = |item: &ReadItem| match item {
        ReadItem::Decided(Height(height)) => *height,
        other => panic!("{other:?}"),
    };
    let (first, last) = (height(&items[0]), height(items.last().expect("some")));
    assert_eq!(items.len() as u64, last + 1 - first, "each of them");
    (first, last)
}

/// The one answer among what was sent, to whoever asked.
fn answer(sent: Vec<(Recipients, Message)>, asker: Peer) -> Blocks {
    let mut blocks = sent.into_iter().filter_map(|(to, message)| match message {
        Message::Blocks(blocks) => Some((to, blocks)),
        _ => None,
    });
    let (to, found) = blocks.next().expect("an answer");
    assert_eq!((to, blocks.next()), (asker.into(), None), "one, to whoever asked");
    found
}

fn fetch(height: u64, after: Option<BlockId>, target: BlockId) -> FetchBlocks {
    FetchBlocks { height: Height(height), after, target }
}

#[test]
fn blocks_are_served_from_the_askers_last_one_on() {
    let history = History::empty(1..=10);
    let all = |_: u64| true;
    let records = |heights: std::ops::RangeInclusive<u64>| -> Vec<Bytes> {
        heights.map(|height| history.record(height)).collect()
    };
    let another = BlockId(hash(b"another"));
    for (after, has, first_read, expected) in [
        // It has what we have.
        (Some(history.id(4)), &all as &dyn Fn(u64) -> bool, 4, 5..=10),
        // It has another: it must see ours.
        (Some(another), &all, 4, 4..=10),
        // Ours is gone; what comes after it is not.
        (Some(history.id(4)), &|height| height > 4, 4, 5..=10),
        // It does not say what it has.
        (None, &all, 5, 5..=10),
        // The log ends early.
        (Some(history.id(4)), &|height| height < 8, 4, 5..=7),
    ] {
        let mut replica = member(&history, 10);
        let request = fetch(4, after, history.id(10));
        give(&mut replica, ASKER, &Message::FetchBlocks(request));
        let asked = read(&mut replica, 1, disk(&history, has));
        assert_eq!(asked.reads.len(), 1);
        assert_eq!(heights(&asked.reads[0]), (first_read, 10));
        let kept = Kept { oldest: Height(1), newest: Height(10) };
        let blocks = Blocks { request, decided: records(expected), tail: Vec::new(), kept };
        assert_eq!(answer(asked.sent, ASKER), blocks);
    }
}

/// The asker's own last one may be missing on the disk. The first that it lacks may not: what
/// comes after it would hang in the air.
#[test]
fn nothing_is_served_beyond_a_gap() {
    let history = History::empty(1..=10);
    for after in [None, Some(history.id(4))] {
        let mut replica = member(&history, 10);
        give(&mut replica, ASKER, &Message::FetchBlocks(fetch(4, after, history.id(10))));
        let asked = read(&mut replica, 1, disk(&history, |height| height > 5));
        assert_eq!(answer(asked.sent, ASKER).decided, Vec::<Bytes>::new());
    }
}

/// Blocks whose bodies are gone would only hold the asker up; it is told from where on they are
/// kept.
#[test]
fn blocks_are_not_served_whose_bodies_are_gone() {
    let history = History::empty(1..=10);
    for (oldest, served) in [(5, 6), (6, 0)] {
        let mut replica = member(&history, 10);
        let request = fetch(4, Some(history.id(4)), history.id(10));
        give(&mut replica, ASKER, &Message::FetchBlocks(request));
        let blocks = answer(read(&mut replica, oldest, disk(&history, |_| true)).sent, ASKER);
        assert_eq!(blocks.kept, Kept { oldest: Height(oldest), newest: Height(10) });
        assert_eq!(blocks.decided.len(), served, "kept from {oldest} on");
    }
}

/// A long stretch that one certificate decided is read further and further, up to a bound; where
/// blocks are gone, or nothing more is decided, the answer is given at once.
#[test]
fn a_long_stretch_is_read_as_far_as_its_proof() {
    let unproven = |item: ReadItem| {
        matches!(item, ReadItem::Decided(_)).then(|| Bytes::from_static(b"proven later"))
    };
    let many = [(1, 65), (1, 513), (1, 4_097)];
    for (decided, oldest, expected) in [
        (4_500, 1, &many[..]),
        (66, 1, &[(1, 65), (1, 66)]),
        (65, 1, &many[..1]),
        (4_500, 3, &many[..1]),
    ] {
        let mut replica = member(&History::empty(decided..=decided), decided);
        let request = fetch(1, Some(BlockId(hash(b"one"))), BlockId(hash(b"target")));
        give(&mut replica, ASKER, &Message::FetchBlocks(request));
        let asked = read(&mut replica, oldest, unproven);
        let reads: Vec<(u64, u64)> = asked.reads.iter().map(|items| heights(items)).collect();
        assert_eq!(reads, expected, "of {decided} decided, {oldest} kept");
        assert_eq!(answer(asked.sent, ASKER).decided, Vec::<Bytes>::new());
    }
}

/// With a proof in the first part that part is served, however much there is.
#[test]
fn a_part_is_served_up_to_its_last_proof() {
    let history = History::empty(1..=200);
    let mut replica = member(&history, 200);
    let request = fetch(1, Some(history.id(1)), history.id(200));
    give(&mut replica, ASKER, &Message::FetchBlocks(request));
    let proven = |item| match item {
        ReadItem::Decided(Height(height)) => Some(history.record_by(height, height.max(60))),
        _ => None,
    };
    // What comes after the last that proves itself is not served: the next part has its proof.
    let disk = |item| match item {
        ReadItem::Decided(Height(height)) if height > 62 => Some(history.record_by(height, 200)),
        other => proven(other),
    };
    let asked = read(&mut replica, 1, disk);
    assert_eq!(asked.reads.iter().map(|items| heights(items)).collect::<Vec<_>>(), [(1, 65)]);
    let blocks = answer(asked.sent, ASKER);
    let served: Vec<Bytes> = (2..=62).map(|h| history.record_by(h, h.max(60))).collect();
    assert_eq!(blocks.decided, served);
    let checked = receive(&Message::Blocks(blocks), Peer::Replica(ReplicaId(1)));
    let Incoming::Blocks(_, _, run) = checked.expect("it proves itself").into_inner() else {
        panic!("blocks");
    };
    assert_eq!(run.heights(), Some((Height(2), Height(62))));
}

/// More than half of what one answer may hold, in the names of bodies alone.
fn large(height: u64) -> Vec<BodyRef> {
    let names = BLOCKS_BYTES_MAX as u64 / 2 / 42 + 1;
    let name = |sequence| BodyRef { author: ReplicaId(0), sequence, digest: Digest::ZERO };
    if (2..=4).contains(&height) { (0..names).map(name).collect() } else { Vec::new() }
}

#[test]
fn an_answer_is_no_larger_than_its_bound() {
    let history = History::new(1..=5, large);
    let mut replica = member(&history, 5);
    let request = fetch(1, Some(history.id(1)), history.id(5));
    give(&mut replica, ASKER, &Message::FetchBlocks(request));
    let blocks = answer(read(&mut replica, 1, disk(&history, |_| true)).sent, ASKER);
    assert_eq!(blocks.decided, [history.record(2)], "two would be too much");
}

/// A whole part of blocks that name as many bodies as they may is one answer.
#[test]
fn the_largest_part_fits_one_answer() {
    let name = |sequence| BodyRef { author: ReplicaId(0), sequence, digest: Digest::ZERO };
    let most = Payload::BODIES_MAX as u64;
    let full = |height: u64| (height * most..(height + 1) * most).map(name).collect();
    let history = History::new(1..=BLOCKS_MAX + 9, full);
    let mut replica = member(&history, BLOCKS_MAX + 9);
    let request = fetch(1, Some(history.id(1)), history.id(BLOCKS_MAX));
    give(&mut replica, ASKER, &Message::FetchBlocks(request));
    let asked = read(&mut replica, 1, disk(&history, |_| true));
    assert_eq!(asked.reads.len(), 1);
    let blocks = Message::Blocks(answer(asked.sent, ASKER));
    assert!(content(&blocks).len() <= blocks.tag().rules().bytes_max);
    let checked = receive(&blocks, Peer::Replica(ReplicaId(1)));
    let Incoming::Blocks(_, _, run) = checked.expect("it proves itself").into_inner() else {
        panic!("blocks");
    };
    assert_eq!(run.heights(), Some((Height(2), Height(1 + BLOCKS_MAX))));
}

/// Whoever asks for what comes after the last decided height gets what is undecided, from memory.
#[test]
fn undecided_blocks_are_served_at_the_tip() {
    let mut replica = start(1, Settings::default(), Recovery::default());
    let genesis = History::empty(1..=1).id(0);
    let proposal = proposal(Vec::new());
    let quorate_consensus::Message::Jolteon(quorate_consensus::chained::Message::Proposal(said)) =
        &proposal
    else {
        panic!("{proposal:?}");
    };
    let block = said.block.clone();
    give(&mut replica, Peer::Replica(ReplicaId(0)), &Message::Consensus(proposal));
    let request = fetch(0, Some(genesis), block.id());
    give(&mut replica, ASKER, &Message::FetchBlocks(request));
    let asked = read(&mut replica, 0, |_| None);
    assert!(asked.reads.is_empty(), "nothing is on disk");
    let blocks = answer(asked.sent, ASKER);
    assert_eq!(blocks.tail, [Bytes::from(borsh::to_vec(&block).expect("into memory"))]);
    assert_eq!(blocks.kept, Kept { oldest: Height(0), newest: Height(0) });
    let elsewhere = fetch(0, Some(BlockId(hash(b"elsewhere"))), block.id());
    give(&mut replica, ASKER, &Message::FetchBlocks(elsewhere));
    assert!(answer(read(&mut replica, 0, |_| None).sent, ASKER).tail.is_empty());
}

/// At the last decided height nothing is read, below it something is.
#[test]
fn only_what_is_decided_is_read() {
    let history = History::empty(1..=10);
    for (height, reads) in [(9, 1), (10, 0), (11, 0)] {
        let mut replica = member(&history, 10);
        let request = fetch(height, Some(history.id(9)), history.id(10));
        give(&mut replica, ASKER, &Message::FetchBlocks(request));
        let asked = read(&mut replica, 1, disk(&history, |_| true));
        assert_eq!(asked.reads.len(), reads, "{height}");
        answer(asked.sent, ASKER);
    }
}

/// A learner hears what its heights must have come to as it asks for more: each once, and the last
/// one again. Members are shown that by others.
#[test]
fn a_learner_is_shown_what_its_heights_came_to() {
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    let mut replica = start(1, settings, Recovery::default());
    for height in 1..=80 {
        let header = Header { height: Height(height), ..Header::default() };
        let proof = Message::ExecutionProof(certify_executed(header));
        give(&mut replica, Peer::Replica(ReplicaId(0)), &proof);
    }
    read(&mut replica, 1, |_| None);
    let id = BlockId(hash(b"some block"));
    let mut shown = |from: Peer, height, after| {
        give(&mut replica, from, &Message::FetchBlocks(fetch(height, after, id)));
        let sent = read(&mut replica, 1, |_| None).sent;
        let proof = |(to, message): &(Recipients, Message)| match message {
            Message::ExecutionProof(proof) if *to == from.into() => Some(proof.header.height.0),
            _ => None,
        };
        sent.iter().filter_map(proof).collect::<Vec<u64>>()
    };
    assert_eq!(shown(ASKER, 3, Some(id)), []);
    assert_eq!(shown(learner(), 3, None), [], "it does not stand there");
    assert_eq!(shown(learner(), 3, Some(id)), [1, 2, 3]);
    assert_eq!(shown(learner(), 5, Some(id)), [4, 5]);
    assert_eq!(shown(learner(), 5, Some(id)), [5], "it may have been lost");
    let other = Peer::Learner(ClientId(identity(8).public()));
    assert_eq!(shown(other, 80, Some(id)), (17..=80).collect::<Vec<_>>(), "no more at once");
}

fn manifest(height: u64) -> Manifest {
    Manifest {
        service: "noop".into(),
        header: Header { height: Height(height), ..Header::default() },
        operations: 1,
        chunks: vec![hash(b"one")],
    }
}

/// Proofs that were read, as their first and last heights, and snapshots that were offered.
type Offers = (Vec<(u64, u64)>, Vec<(Manifest, Vec<Bytes>)>);

/// Asks a member that decided so much for its snapshots beyond a height.
fn offers(
    history: &History,
    decided: u64,
    above: u64,
    record: impl Fn(u64) -> Option<Bytes>,
) -> Offers {
    let mut replica = member(history, decided);
    give(&mut replica, ASKER, &Message::FetchSnapshots(Height(above)));
    let asked = read(&mut replica, 1, |item| match item {
        ReadItem::Manifest(0) => Some(Bytes::from(manifest(128).encode())),
        ReadItem::Manifest(1) => Some(Bytes::from(manifest(64).encode())),
        ReadItem::Decided(Height(height)) => record(height),
        other => panic!("{other:?}"),
    });
    let proofs = asked.reads[1..].iter().map(|items| heights(items)).collect();
    let offer = |(to, message)| match message {
        Message::Offer(offer) => {
            assert_eq!(to, Recipients::from(ASKER));
            Some((Manifest::decode(&offer.manifest).expect("one"), offer.proof))
        }
        _ => None,
    };
    (proofs, asked.sent.into_iter().filter_map(offer).collect())
}

/// A snapshot goes out with the shortest proof that its height is decided.
#[test]
fn snapshots_are_offered_with_their_proof() {
    let history = History::empty(60..=200);
    let record = |height| Some(history.record_by(height, if height < 130 { 130 } else { height }));
    let proof = |first: u64| -> Vec<Bytes> { (first..=130).filter_map(record).collect() };
    let (read, offered) = offers(&history, 200, 64, record);
    assert_eq!(read, [(128, 128 + BLOCKS_MAX - 1)]);
    assert_eq!(offered, [(manifest(128), proof(128))], "the asker has the other");
    let offer = Offer { manifest: Bytes::from(manifest(128).encode()), proof: proof(128) };
    assert!(receive(&Message::Offer(offer), Peer::Replica(ReplicaId(1))).is_ok());
    let (read, offered) = offers(&history, 150, 63, record);
    assert_eq!(read, [(128, 150), (64, 64 + BLOCKS_MAX - 1)], "as far as it is decided");
    assert_eq!(offered, [(manifest(128), proof(128))], "the other's proof is too far away");
    let (read, offered) = offers(&history, 200, 128, record);
    assert!(read.is_empty() && offered.is_empty(), "{read:?}");
}

/// Without a proof, or with one that is too large, nothing is offered.
#[test]
fn a_snapshot_that_is_not_proven_is_not_offered() {
    let history = History::new(120..=200, |height| large(height.saturating_sub(126)));
    let (_, offered) = offers(&history, 200, 64, |height| Some(history.record(height)));
    assert_eq!(offered, [(manifest(128), vec![history.record(128)])]);
    let late = |height| Some(history.record_by(height, height.max(129)));
    assert_eq!(offers(&history, 200, 64, late).1, [], "two such records are too much");
    assert_eq!(offers(&history, 200, 64, |_| None).1, []);
}

#[test]
fn chunks_are_served_as_they_are_on_disk() {
    let mut replica = start(1, Settings::default(), Recovery::default());
    let snapshot = manifest(128).digest();
    let chunk = Bytes::from_static(b"chunk");
    for (found, expected) in [(Some(chunk.clone()), chunk), (None, Bytes::new())] {
        give(&mut replica, learner(), &Message::FetchChunk(snapshot, 7));
        let asked = read(&mut replica, 1, |_| found.clone());
        assert_eq!(asked.reads, [[ReadItem::Chunk(snapshot, 7)]]);
        let [(to, Message::Chunk(sent))] = &asked.sent[..] else { panic!("{:?}", asked.sent) };
        assert_eq!(*to, Recipients::from(learner()));
        assert_eq!((sent.snapshot, sent.index, &sent.bytes), (snapshot, 7, &expected));
    }
}

/// ★ Whatever shows certificates leaves behind the records of what was signed: this replica's own
/// share is among those of a decision that it collected, and its host may lose the promise.
fn check_blocks_wait_for_records() {
    let request = FetchBlocks { height: Height(0), after: None, target: BlockId(hash(b"a block")) };
    let kept = Kept { oldest: Height(0), newest: Height(1) };
    let blocks = Blocks { request, decided: Vec::new(), tail: Vec::new(), kept };
    assert!(Message::Blocks(blocks).waits());
}

#[test]
fn blocks_wait_for_records() {
    check_blocks_wait_for_records();
    assert!(!Message::Body(body(0, 1, 10)).waits(), "it is nobody's promise");
}

#[test]
fn promises_shown_too_early_are_noticed() {
    mutants::assert_noticed(Mutant::ShowBeforePersist, check_blocks_wait_for_records);
}

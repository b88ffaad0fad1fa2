use super::*;
use crate::config::load_committee;
use crate::{Testnet, TestnetPlan};
use crossbeam_channel::{Receiver, Sender, unbounded};
use quorate_consensus::Message::Jolteon;
use quorate_consensus::chained::{self, Qc};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, Digest, KeyCache, KeyFile, Policy, SchemeKind, Share,
};
use quorate_engine::message::{Busy, Chain, FetchBlocks};
use quorate_engine::{Comparison, FrameTag, Message, Settings, Truncation};
use quorate_types::machine::CombineId;
use quorate_types::{BlockId, Body, BodyRef, Committee, Height, Purpose, ReplicaId, View};
use std::thread;

const LIAR: Peer = Peer::Replica(ReplicaId(3));
const VOTER: Peer = Peer::Replica(ReplicaId(1));

#[derive(Debug)]
struct Nowhere;

impl MessageSink for Nowhere {
    fn message(&self, _from: Peer, _urgent: bool, _message: Verified<Incoming>) -> bool {
        true
    }
}

/// Tells who sent what passed its check, in the order of the checks.
#[derive(Debug)]
struct Passed(Sender<Peer>);

impl MessageSink for Passed {
    fn message(&self, from: Peer, _urgent: bool, _message: Verified<Incoming>) -> bool {
        self.0.send(from).is_ok()
    }

    fn has_room(&self, _urgent: bool) -> bool {
        true
    }
}

/// A pool of a committee of four whose threads have not begun.
struct Idle {
    committee: Arc<Committee>,
    pool: Pool,
    workers: Vec<Worker>,
    metrics: Arc<Metrics>,
    sink: Arc<Passed>,
    passed: Receiver<Peer>,
    /// A share that is a good one, over something else.
    share: Share,
}

impl Idle {
    fn new(scheme: SchemeKind) -> Self {
        Self::with(scheme, &Settings::default())
    }

    fn with(scheme: SchemeKind, settings: &Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = TestnetPlan { members: 4, scheme, ..TestnetPlan::default() };
        let testnet = Testnet::create(&folder.path().join("net"), &plan).unwrap();
        let committee = Arc::new(load_committee(&testnet.committee, KeyCache::On).unwrap());
        let key = folder.path().join("net/validator-3/key.toml");
        let share = KeyFile::read(&key).unwrap().voting.sign(b"something else");
        let verifier = Arc::new(Verifier::new(Arc::clone(&committee), settings));
        let metrics = Arc::new(Metrics::new());
        let (pool, workers) = Pool::without_combining(&verifier, &metrics, 1);
        let (sender, passed) = unbounded();
        Self { committee, pool, workers, metrics, sink: Arc::new(Passed(sender)), passed, share }
    }

    /// Queues a message; `false` when the pool takes none from this peer.
    fn deliver(&self, from: Peer, message: chained::Message) -> bool {
        let message = Message::Consensus(Jolteon(message));
        self.pool.deliver(Delivery { from, sink: self.sink.clone(), ..delivery(&message) })
    }

    /// As [`Idle::deliver`], from a reader that checks it itself where it may.
    fn bring(&self, from: Peer, message: chained::Message) -> bool {
        let message = Message::Consensus(Jolteon(message));
        let delivery = Delivery { from, sink: self.sink.clone(), ..delivery(&message) };
        self.pool.check_or_deliver(delivery)
    }

    /// Begins to check; the first that passes is this peer's.
    fn expect_first(&mut self, from: Peer) {
        for worker in self.workers.drain(..) {
            thread::spawn(worker);
        }
        assert_eq!(self.passed.recv(), Ok(from));
    }

    /// Queues frames of the tag of chains, a MiB each, in the lane of votes.
    fn deliver_chains(&self, count: usize, content: &Bytes) {
        for _ in 0..count {
            let delivery = Delivery {
                from: LIAR,
                lane: Lane::Votes,
                content: content.clone(),
                sink: self.sink.clone(),
                ..delivery(&Message::Announce(Vec::new()))
            };
            assert!(self.pool.deliver(delivery));
        }
    }

    fn waiting(&self) -> [usize; 2] {
        self.pool.backlog().waiting().map(|(_, frames)| frames)
    }

    /// Starts the thread that checks votes, and no other.
    fn check_votes(&mut self) {
        thread::spawn(self.workers.remove(0));
    }

    fn refused(&self, from: Peer) -> u64 {
        self.metrics.rejections(from, &Rejected::BadSignature(""))
    }

    /// A certificate of a quorum that never signed it.
    fn bogus(&self, number: u64) -> chained::Message {
        let mut id = Digest::ZERO;
        id.0[..8].copy_from_slice(&number.to_le_bytes());
        let signers = Bitmap::from_indices(4, 0..3);
        let aggregate = Aggregate(self.share.0.clone());
        let certificate = Certificate { signers, aggregate };
        let (base_view, base_id) = (View(0), BlockId::default());
        let high_qc = Qc { view: View(2), id: BlockId(id), base_view, base_id, certificate };
        chained::Message::Certificates { high_qc, high_tc: None }
    }

    fn vote(&self, from: Peer) -> chained::Message {
        chained::Message::Vote(chained::Vote {
            view: View(2),
            id: BlockId::default(),
            base_view: View(0),
            base_id: BlockId::default(),
            signer: from.replica().unwrap(),
            share: self.share.clone(),
        })
    }
}

/// ★ From outside: 2,000 bogus certificates held up another member's vote by as many pairings, 9.5
/// s. It waits for one, and the rest are not checked at all.
#[test]
fn a_vote_waits_for_one_check_of_a_member_that_floods() {
    let mut idle = Idle::new(SchemeKind::Bls);
    for number in 0..2_000 {
        assert!(idle.deliver(LIAR, idle.bogus(number)));
    }
    assert!(idle.deliver(VOTER, idle.vote(VOTER)));
    idle.expect_first(VOTER);
    assert!(idle.refused(LIAR) <= 1, "{} were checked before the vote", idle.refused(LIAR));
    while idle.refused(LIAR) == 0 {
        thread::yield_now();
    }
    while !idle.pool.is_barred(LIAR) {
        thread::yield_now();
    }
    assert!(!idle.deliver(LIAR, idle.bogus(0)), "nothing more is taken from it");
    assert_eq!(idle.pool.backlog().waiting().map(|(_, frames)| frames), [0, 0]);
    assert_eq!(idle.refused(LIAR), 1);
}

#[test]
fn a_reader_checks_what_it_brings_while_nothing_is_ahead_of_it() {
    let mut idle = Idle::new(SchemeKind::Ed25519);
    for _ in 0..2 {
        assert!(idle.bring(VOTER, idle.vote(VOTER)));
        assert_eq!(idle.passed.try_recv(), Ok(VOTER), "no thread of the pool has begun");
    }
    assert!(idle.deliver(LIAR, idle.vote(LIAR)));
    assert!(idle.bring(VOTER, idle.vote(VOTER)));
    assert_eq!(idle.waiting(), [2, 0], "it goes behind what waits");
    idle.check_votes();
    let both: Vec<_> = (0..2).map(|_| idle.passed.recv().unwrap()).collect();
    assert!(both.contains(&VOTER) && both.contains(&LIAR));
}

/// ★ What a reader finds out holds as if the pool's thread had.
#[test]
fn a_member_whose_frame_its_reader_refuses_is_cut_off() {
    let idle = Idle::new(SchemeKind::Ed25519);
    assert!(idle.bring(LIAR, idle.bogus(0)));
    assert_eq!(idle.refused(LIAR), 1);
    assert!(idle.pool.is_barred(LIAR));
    assert!(!idle.bring(LIAR, idle.vote(LIAR)), "nothing more is taken from it");
    assert!(idle.passed.is_empty());
}

#[test]
fn a_reader_leaves_what_may_block_or_is_long_to_the_pool() {
    let idle = Idle::new(SchemeKind::Ed25519);
    let vote = delivery(&Message::Consensus(Jolteon(idle.vote(VOTER))));
    assert!(idle.pool.check_or_deliver(vote), "its sink does not say that it has room");
    assert_eq!(idle.waiting(), [1, 0]);
    let reference = BodyRef { author: ReplicaId(1), sequence: 1, digest: Digest::ZERO };
    let raw = Bytes::from(vec![0; INLINE_BYTES_MAX]);
    let body = Message::Body(Arc::new(Body { reference, raw, requests: Vec::new() }));
    assert!(idle.pool.check_or_deliver(Delivery { sink: idle.sink.clone(), ..delivery(&body) }));
    assert_eq!(idle.waiting(), [1, 1]);
}

/// A member sent chains where none travel: megabytes that were checked on the thread for votes.
/// They wait behind, and each is refused by its tag alone and counted for the member that sent it.
#[test]
fn chains_that_the_settings_rule_out_are_refused_unread_and_hold_up_no_vote() {
    let mut idle = Idle::new(SchemeKind::Ed25519);
    let mut content = vec![0xff; 1 << 20];
    content[0] = FrameTag::Chain.number();
    idle.deliver_chains(64, &content.into());
    assert!(idle.deliver(VOTER, idle.vote(VOTER)));
    assert_eq!(idle.waiting(), [1, 64]);
    idle.check_votes();
    assert_eq!(idle.passed.recv(), Ok(VOTER));
    let ruled_out = Rejected::RuledOut { frame: String::new(), setting: "" };
    assert_eq!(idle.metrics.rejections(LIAR, &ruled_out), 0, "none was checked before the vote");
    idle.workers.drain(..).for_each(|worker| drop(thread::spawn(worker)));
    // Content that decodes to nothing: had it been read, it would be refused as malformed.
    while idle.metrics.rejections(LIAR, &ruled_out) < 64 {
        thread::yield_now();
    }
    assert_eq!(idle.metrics.rejections(VOTER, &ruled_out), 0);
}

/// Where chains travel they are checked, but behind: not on the thread for votes.
#[test]
fn chains_that_the_settings_allow_hold_up_no_vote() {
    let comparison = Comparison { truncation: Truncation::Heights, ..Comparison::default() };
    let settings = Settings { comparison, ..Settings::default() };
    let mut idle = Idle::with(SchemeKind::Ed25519, &settings);
    let (heights, certificate) = (Vec::new(), Bytes::new());
    let chain = Chain { heights, certificate, blocks: Vec::new(), bodies: Vec::new() };
    idle.deliver_chains(64, &delivery(&Message::Chain(chain)).content);
    assert!(idle.deliver(VOTER, idle.vote(VOTER)));
    idle.check_votes();
    assert_eq!(idle.passed.recv(), Ok(VOTER));
    assert_eq!(idle.waiting(), [0, 64], "no chain was checked before the vote");
    idle.expect_first(LIAR);
}

/// A share that is bad alone is its sender's fault, found out when shares are combined.
#[test]
fn a_member_whose_share_is_refused_alone_is_cut_off() {
    let mut idle = Idle::new(SchemeKind::Ed25519);
    let (scheme, _) = idle.committee.scheme(Purpose::Vote);
    idle.pool.combine(CombineJob {
        id: CombineId { purpose: Purpose::Vote, number: 0 },
        scheme,
        message: b"a statement".to_vec(),
        shares: vec![(3, idle.share.clone())],
        suspects: Bitmap::new(4),
        policy: Policy::default(),
    });
    assert!(idle.deliver(VOTER, idle.vote(VOTER)));
    idle.expect_first(VOTER);
    assert!(idle.pool.is_barred(LIAR));
    assert!(!idle.pool.is_barred(VOTER));
}

fn goes_ahead(delivery: &Delivery) -> bool {
    is_urgent(delivery.lane, &delivery.content)
}

fn delivery(message: &Message) -> Delivery {
    let frame = message.frame();
    let mut content: Vec<u8> = frame.0.iter().flat_map(|piece| piece.iter().copied()).collect();
    content.drain(..4);
    Delivery {
        from: Peer::Replica(ReplicaId(1)),
        lane: message.lane(),
        content: content.into(),
        sink: Arc::new(Nowhere),
        cut: Arc::new(Notify::new()),
        received: Instant::now(),
        permit: Permit::new(None, None),
    }
}

#[test]
fn bodies_never_go_before_votes() {
    let reference = BodyRef { author: ReplicaId(0), sequence: 1, digest: Digest::ZERO };
    let body = Body { reference, raw: Bytes::from_static(b"raw"), requests: Vec::new() };
    let body = Message::Body(Arc::new(body));
    let fetch = FetchBlocks { height: Height(0), after: None, target: BlockId::default() };
    let busy = Message::Busy(Busy { sequence: 0, reason: String::new() });
    assert!(goes_ahead(&delivery(&Message::Announce(vec![reference]))));
    assert!(goes_ahead(&delivery(&Message::FetchBodies(vec![reference]))));
    assert!(goes_ahead(&delivery(&Message::FetchBlocks(fetch))));
    assert!(!goes_ahead(&delivery(&body)));
    assert!(!goes_ahead(&delivery(&busy)));
    let smuggled = Delivery { lane: Lane::Votes, ..delivery(&body) };
    assert!(!goes_ahead(&smuggled), "a body in the votes lane is still a body");
}

/// A chain carries blocks and bodies, megabytes of them with all their signatures.
#[test]
fn chains_never_go_before_votes() {
    let (heights, certificate) = (Vec::new(), Bytes::new());
    let chain = Chain { heights, certificate, blocks: Vec::new(), bodies: Vec::new() };
    let delivery = delivery(&Message::Chain(chain));
    assert_eq!(delivery.lane, Lane::Consensus);
    assert!(!goes_ahead(&delivery));
}

#[test]
fn one_connection_always_meets_the_same_thread() {
    for member in 0..50 {
        let peer = Peer::Replica(ReplicaId(member));
        let first = shard(peer, Lane::Bulk, 3);
        assert!(first < 3);
        assert_eq!(first, shard(peer, Lane::Bulk, 3));
    }
}

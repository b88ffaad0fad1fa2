use super::CHAIN_BYTES_MAX;
use crate::message::{Blocks, Chain, FetchBlocks, Kept};
use crate::replica::Replica;
use crate::replica::tests::{NOW, effects, give, sends};
use crate::testing::history::History;
use crate::testing::net::{ALL, Net};
use crate::testing::{self, config, receive, request};
use crate::{Comparison, Message, ReplicaConfig, Settings, Truncation};
use bytes::Bytes;
use quorate_consensus::chained::{self, Block};
use quorate_crypto::Digest;
use quorate_types::{
    BlockId, Body, BodyRef, Event, Height, Machine, Peer, Rejected, ReplicaId, Request,
};
use std::sync::Arc;

const PEER: Peer = Peer::Replica(ReplicaId(0));

fn settings(truncation: Truncation) -> Settings {
    let inline_bodies = truncation != Truncation::Ids;
    let comparison = Comparison { truncation, ..Comparison::default() };
    Settings { inline_bodies, comparison, ..Settings::default() }
}

fn is_question(message: &Message) -> bool {
    matches!(
        message,
        Message::FetchBlocks(_) | Message::FetchBodies(_) | Message::FetchSnapshots(_)
    )
}

/// Serves while one member hears nothing, then with it, every question of its lost.
fn rejoin(truncation: Truncation) -> Net {
    let mut net = Net::new(&settings(truncation), |from, to, _| from == 3 || to == 3);
    net.serve(12, &[0, 1, 2]);
    net.lost = |_, _, message| is_question(message);
    net
}

#[test]
fn who_was_away_is_brought_along_by_the_chain_alone() {
    for truncation in [Truncation::Heights, Truncation::Off] {
        let mut net = rejoin(truncation);
        net.serve_from(12, 12, &ALL);
        let views = net.statuses().iter().map(|status| status.executed.0).collect::<Vec<_>>();
        assert!(views.iter().all(|executed| *executed > 0), "{views:?}");
    }
}

/// The same with ids: whoever may not ask stays behind.
#[test]
fn ids_need_questions() {
    let mut net = rejoin(Truncation::Ids);
    net.serve_from(12, 12, &[0, 1, 2]);
    assert!(!net.is_done(&ALL));
}

fn chains(net: &Net) -> Vec<usize> {
    let records = |message: &Message| match message {
        Message::Chain(chain) => Some(chain.blocks.iter().map(|run| run.decided.len()).sum()),
        _ => None,
    };
    net.sent.iter().filter_map(|(_, _, message)| records(message)).collect()
}

/// Of a chain that is cut only what somebody may lack travels; one that is not grows with the
/// history.
#[test]
fn what_everybody_has_is_cut_off() {
    let mut whole = Net::new(&settings(Truncation::Off), |_, _, _| false);
    whole.serve(24, &ALL);
    let mut cut = Net::new(&settings(Truncation::Heights), |_, _, _| false);
    cut.serve(24, &ALL);
    let (whole, cut) = (chains(&whole), chains(&cut));
    let most = |chains: &[usize]| chains.iter().copied().max().unwrap_or(0);
    assert!(whole.len() > 2 * cut.len(), "votes carry it too: {} {}", whole.len(), cut.len());
    assert!(most(&whole) >= 10, "{}", most(&whole));
    assert!(most(&cut) <= 8, "{}", most(&cut));
    let mut ids = Net::new(&settings(Truncation::Ids), |_, _, _| false);
    ids.serve(24, &ALL);
    assert!(chains(&ids).is_empty());
}

/// Chains with decided blocks and with undecided ones, as some member sent them, no two to one
/// block.
fn both_kinds() -> [Chain; 2] {
    let mut net = Net::new(&settings(Truncation::Off), |_, _, _| false);
    net.serve(24, &ALL);
    let mut sent = net.sent.into_iter().filter_map(|(_, _, message)| match message {
        Message::Chain(chain) if chain.blocks.len() == 2 => Some(chain),
        _ => None,
    });
    let one = sent.next().expect("some message rests on an undecided block");
    let other = sent.find(|other| other.certificate != one.certificate);
    [one, other.expect("and so does a later one")]
}

fn refusal(chain: Chain) -> Option<Rejected> {
    receive(&Message::Chain(chain), Peer::Replica(ReplicaId(1))).err()
}

/// ★ Nobody asked for these blocks: those that are decided by nothing are taken in below a
/// certified one alone. Their links are hashes, so it proves them all.
#[test]
fn undecided_blocks_come_below_a_certified_one() {
    let [sound, other] = both_kinds();
    assert_eq!(refusal(sound.clone()), None);
    let nothing = Chain { certificate: Bytes::new(), ..sound.clone() };
    assert!(matches!(refusal(nothing), Some(Rejected::Malformed(_))));
    let anothers = Chain { certificate: other.certificate, ..sound };
    let reason = "a chain leads to a certified block";
    assert_eq!(refusal(anothers), Some(Rejected::RuleBroken(reason)));
}

#[test]
fn uncertified_blocks_are_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(Mutant::PlantUncertified, undecided_blocks_come_below_a_certified_one);
}

/// A decided run follows what its asker says: a sender that did could make it look like a fork.
#[test]
fn decided_blocks_of_a_chain_follow_nothing() {
    let [mut chain, _] = both_kinds();
    let run = &mut chain.blocks[0];
    assert!(!run.decided.is_empty() && run.request.after.is_none());
    run.request.height = run.kept.oldest;
    run.request.after = Some(BlockId::default());
    let reason = "a chain's decided blocks follow nothing";
    assert_eq!(refusal(chain), Some(Rejected::RuleBroken(reason)));
}

/// A run without blocks would tell its receiver nothing, and what travels undecided comes with the
/// bodies that its sender holds.
#[test]
fn no_run_of_a_chain_is_empty_and_undecided_blocks_bring_their_bodies() {
    let mut net = Net::new(&settings(Truncation::Off), |_, _, _| false);
    net.serve(24, &ALL);
    let (mut undecided, mut brought) = (0, 0);
    for (_, _, message) in &net.sent {
        let Message::Chain(chain) = message else { continue };
        for run in &chain.blocks {
            assert!(!run.decided.is_empty() || !run.tail.is_empty(), "{chain:?}");
        }
        let tail = chain.blocks.iter().flat_map(|run| &run.tail);
        let block = |bytes| borsh::from_slice::<Block>(bytes).expect("a block");
        for name in tail.flat_map(|bytes| block(bytes).payload.bodies) {
            undecided += 1;
            brought += usize::from(chain.bodies.iter().any(|body| body.reference == name));
        }
    }
    assert!(undecided > 0 && brought == undecided, "{brought} of {undecided}");
}

/// A replica of a committee in which chains travel, with so many undecided blocks of a thousand
/// names each; those of the last ones are of bodies that it holds.
fn with_undecided(blocks: u64, held: &[Arc<Body>]) -> Replica {
    let full = |height: u64| -> Vec<BodyRef> {
        let first = height * 1_024;
        let name = |sequence| BodyRef { author: ReplicaId(2), sequence, digest: Digest::ZERO };
        match blocks.checked_sub(height) {
            Some(0) => held.iter().map(|body| body.reference).collect(),
            _ => (first..first + 1_024).map(name).collect(),
        }
    };
    // Every other view timed out: nothing is decided.
    let history = History::with_views(1..=blocks, |height| 2 * height, full);
    let mut replica = Replica::new(config(1, settings(Truncation::Heights)));
    replica.handle(NOW, Event::Recovered(Box::default()));
    let high_qc = history.certificate(blocks);
    let certificates = chained::Message::Certificates { high_qc, high_tc: None };
    let message = quorate_consensus::Message::Jolteon(certificates);
    give(&mut replica, PEER, &Message::Consensus(message));
    let target = history.id(blocks);
    let request = FetchBlocks { height: Height(0), after: Some(history.id(0)), target };
    let tail = (1..=blocks).map(|height| history.undecided(height)).collect();
    let kept = Kept { oldest: Height(0), newest: Height(0) };
    give(&mut replica, PEER, &Message::Blocks(Blocks { request, decided: vec![], tail, kept }));
    for body in held {
        give(&mut replica, PEER, &Message::Body(Arc::clone(body)));
        replica.handle(NOW, Event::Stored(body.reference));
    }
    effects(&mut replica);
    replica
}

/// The chain that goes ahead of the timeout of its view.
fn chain_at_timeout(replica: &mut Replica) -> Chain {
    for _ in 0..1_000 {
        let due = replica.next_timeout().expect("its view times out");
        replica.handle_timeout(due);
        let sent = sends(effects(replica));
        let chain = sent.into_iter().find_map(|(_, _, message)| match message {
            Message::Chain(chain) => Some(chain),
            _ => None,
        });
        if let Some(chain) = chain {
            return chain;
        }
    }
    panic!("{:?}", replica.status().timers)
}

/// What goes ahead of one message is bounded: too long a tail of undecided blocks is left to be
/// fetched, and of bodies only as many go as there is room for.
#[test]
fn what_goes_ahead_of_a_message_is_bounded() {
    let requests = |first: u64| -> Vec<Request> {
        (first..first + 8).map(|sequence| request(sequence, Request::BYTES_MAX)).collect()
    };
    let sealed = |number: u64| Arc::new(Body::seal(ReplicaId(0), number, &requests(number * 8)));
    let held: Vec<Arc<Body>> = (1..=4).map(sealed).collect();
    let bytes = |bodies: &[Arc<Body>]| bodies.iter().map(|body| body.raw.len()).sum::<usize>();
    assert!(bytes(&held) > CHAIN_BYTES_MAX);

    let chain = chain_at_timeout(&mut with_undecided(30, &held));
    assert_eq!(chain.blocks.iter().map(|run| run.tail.len()).sum::<usize>(), 30);
    assert!((1..held.len()).contains(&chain.bodies.len()), "{}", chain.bodies.len());
    assert!(bytes(&chain.bodies) <= CHAIN_BYTES_MAX);
    assert_eq!(refusal(chain), None, "it fits its frame");

    let chain = chain_at_timeout(&mut with_undecided(60, &held));
    assert!(chain.blocks.is_empty() && chain.bodies.is_empty(), "{chain:?}");
}

/// Where no chains travel their frames are refused; one that comes through all the same counts as
/// a fault each time, and nothing of it is taken.
#[test]
fn a_chain_where_none_travels_is_a_fault() {
    let [chain, _] = both_kinds();
    let verifier = Arc::new(testing::verifier());
    let config = config(1, settings(Truncation::Ids));
    let mut replica = Replica::new(ReplicaConfig { verifier, ..config });
    replica.handle(NOW, Event::Recovered(Box::default()));
    effects(&mut replica);
    for faults in 1..=2 {
        give(&mut replica, PEER, &Message::Chain(chain.clone()));
        let status = replica.status();
        assert_eq!((status.faults, status.decided), (faults, Height(0)));
        assert!(effects(&mut replica).is_empty());
    }
}

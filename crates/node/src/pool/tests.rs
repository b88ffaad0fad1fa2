use super::*;
use crate::transport::frames::Permit;
use quorate_crypto::Digest;
use quorate_engine::Message;
use quorate_engine::message::{Busy, FetchBlocks};
use quorate_types::{BlockId, Body, BodyRef, Height, ReplicaId};

#[derive(Debug)]
struct Nowhere;

impl Inlet for Nowhere {
    fn message(&self, _from: Peer, _urgent: bool, _message: Verified<Incoming>) -> bool {
        true
    }
}

fn delivery(message: &Message) -> Delivery {
    let frame = message.frame();
    let mut content: Vec<u8> = frame.0.iter().flat_map(|piece| piece.iter().copied()).collect();
    content.drain(..4);
    Delivery {
        from: Peer::Replica(ReplicaId(1)),
        lane: message.lane(),
        content: content.into(),
        inlet: Arc::new(Nowhere),
        cut: Arc::new(Notify::new()),
        permit: Permit::none(),
    }
}

#[test]
fn bodies_never_go_before_votes() {
    let reference = BodyRef { author: ReplicaId(0), sequence: 1, digest: Digest::ZERO };
    let body = Body { reference, raw: Bytes::from_static(b"raw"), requests: Vec::new() };
    let body = Message::Body(Arc::new(body));
    let fetch = FetchBlocks { height: Height(0), after: None, target: BlockId::default() };
    let busy = Message::Busy(Busy { sequence: 0, reason: String::new() });
    assert!(is_urgent(&delivery(&Message::Announce(vec![reference]))));
    assert!(is_urgent(&delivery(&Message::FetchBodies(vec![reference]))));
    assert!(is_urgent(&delivery(&Message::FetchBlocks(fetch))));
    assert!(!is_urgent(&delivery(&body)));
    assert!(!is_urgent(&delivery(&busy)));
    let smuggled = Delivery { lane: Lane::Votes, ..delivery(&body) };
    assert!(!is_urgent(&smuggled), "a body in the votes lane is still a body");
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

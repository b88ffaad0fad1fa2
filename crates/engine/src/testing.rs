//! What the tests share: a committee with its keys, clients, requests and bodies.

use crate::{Incoming, Message, Verifier};
use bytes::Bytes;
use quorate_consensus::ProposalKey;
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind, VotingSecret};
use quorate_types::{
    Body, Committee, CommitteeFile, Epoch, Member, Peer, Rejected, ReplicaId, Request, Verified,
};
use std::sync::Arc;

pub(crate) fn identity(member: u8) -> IdentitySecret {
    IdentitySecret::from_seed([member + 1; 32])
}

pub(crate) fn voting(member: u8) -> VotingSecret {
    VotingSecret::from_seed(SchemeKind::Ed25519, &[member + 101; 32])
}

pub(crate) fn committee() -> Arc<Committee> {
    weighted(&[1; 4])
}

pub(crate) fn weighted(weights: &[u64]) -> Arc<Committee> {
    let member = |(i, weight): (u8, &u64)| Member {
        identity: identity(i).public().to_string(),
        voting: voting(i).public().to_string(),
        possession: String::new(),
        address: format!("member{i}:1"),
        weight: *weight,
    };
    let file = CommitteeFile {
        name: "test".into(),
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        members: (0..).zip(weights).map(member).collect(),
    };
    Arc::new(Committee::load_simulated(&file, KeyCache::Off).expect("a good file"))
}

pub(crate) fn verifier() -> Verifier {
    Verifier::new(committee(), ProposalKey::Identity)
}

pub(crate) fn client() -> IdentitySecret {
    IdentitySecret::from_seed([200; 32])
}

pub(crate) fn request(sequence: u64, bytes: usize) -> Request {
    let operation = Bytes::from(vec![7; bytes]);
    Request::sign(&client(), committee().chain(), sequence, &[operation]).expect("within limits")
}

pub(crate) fn body(author: u16, sequence: u64, bytes: usize) -> Arc<Body> {
    Arc::new(Body::seal(ReplicaId(author), sequence, &[request(sequence, bytes)]))
}

/// The message as its receiver gets it: framed, cut from the stream, checked.
pub(crate) fn receive(message: &Message, from: Peer) -> Result<Verified<Incoming>, Rejected> {
    Verified::check(content(message), from, &verifier())
}

/// A frame's content: what follows the length.
pub(crate) fn content(message: &Message) -> Bytes {
    let frame: Vec<u8> = message.frame().0.concat();
    let length = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
    assert_eq!(length, frame.len() - 4, "the length counts tag and content");
    Bytes::from(frame).slice(4..)
}

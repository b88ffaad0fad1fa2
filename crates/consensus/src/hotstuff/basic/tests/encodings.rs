//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::{certify, four};
use crate::block_tree::TreeBlock;
use crate::chained::{Message, Phase, PhaseVote};
use quorate_crypto::hash;

#[test]
fn golden_bytes() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let block = keys.block(1, &keys.genesis(), 1, &[7]);
    let said = |message: Message| hash(&borsh::to_vec(&keys.protocol.message(message)).unwrap());
    let later =
        |phase| said(Message::PhaseVote(PhaseVote { phase, vote: keys.vote_in(phase, 2, &block) }));
    let found = [
        ("genesis", keys.verifier().genesis().0),
        ("block", block.id().0),
        ("prepare vote", said(Message::Vote(keys.vote(2, &block)))),
        ("pre-commit vote", later(Phase::PreCommit)),
        ("commit vote", later(Phase::Commit)),
        ("precommitQC", said(Message::PreCommitted(certify(keys, Phase::PreCommit, &block)))),
        ("new-view", said(Message::NewView(certify(keys, Phase::Commit, &block)))),
    ]
    .map(|(name, digest)| (name, digest.to_hex()));
    cluster.submit(7);
    let safety = cluster.node(0).safety.clone().expect("it proposed");
    let found: Vec<(&str, String)> =
        found.into_iter().chain([("safety record", hash(&safety).to_hex())]).collect();
    assert_eq!(found, GOLDEN.map(|(name, pinned)| (name, pinned.to_owned())));
}

const GOLDEN: [(&str, &str); 8] = [
    ("genesis", "bed368924c7bf922afbd8c04645bebadff00814f23e4645cae7903af7b48db59"),
    ("block", "62bf9cf430cc1055b9934ae7a9c7744b8c053315452c999860b4abaab73335f2"),
    ("prepare vote", "e1f5fbc22a8f0e23435285c1247133126e652934ecd7e8f5edde80299909a4da"),
    ("pre-commit vote", "522cb3592be158b287982d686d4b16a88367230a278a95fa8068c54aa20527d1"),
    ("commit vote", "5d05a154f5f17bca6bb96b80a2307e63d2a1e053a7460140ae7592373d1ab792"),
    ("precommitQC", "340f30d9ee43757d92bb971ffc4075c77abc8f2ab6d192599cef0ee00639152f"),
    ("new-view", "cc85d5c01ec6aa1c432716f160ab14e7a63de8188c140657a59186654eec0ddd"),
    ("safety record", "8b5a3c999480ea65226f7252f3549621012421c1384199a9ddde61df136e4413"),
];

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
    ("genesis", "6d8b68c0fc227060affc6a5fc4f05d83871ce5e6bb5eed2c027c75a61b11e984"),
    ("block", "a1ae06173a419922e09be202f75ab95609ed4a6b60f0941ad057ec9ae006b432"),
    ("prepare vote", "6b35e0e2a8992707e1856c2bb1ad05053f1feeb167f3c10f7f2eb39f9b306ca1"),
    ("pre-commit vote", "ecdef48928d6e41060ab19572288a088bb5f6ffef6e89f70cd2ff075533c27a3"),
    ("commit vote", "229d83579b20ad2ffba9922ec74144eec6e8fd8fac140a1ed92fec5c3f8db207"),
    ("precommitQC", "11a30a156e175b2e6b602038cd945acba152f906d1fb1c08df889a6e515917f6"),
    ("new-view", "392e3645b5f7ae01ae53040dc046477a60f2441f84e28186cbb05257dd8eb069"),
    ("safety record", "251d2538797708a87224c157de47456b81df7e40cb8250dacb7245d90704f887"),
];

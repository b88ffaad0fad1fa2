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
    ("block", "8084bc9bbd69b984a318c055f37575b6fe04fe24c65a18c404cbf2aac24ec5f3"),
    ("prepare vote", "05a057900d582c2dd7c31219a6e562c03628fe8d4e9ca1986ad1a05e616c7b33"),
    ("pre-commit vote", "95bdcaf5c2371b769f586ed74354c0bfa9837566c162de4215a50b5064e0cda0"),
    ("commit vote", "8e7cc63bfadc894bb91ee0de231445e63f77b43ed3e6092ca0f169754ced8edd"),
    ("precommitQC", "f5e9db49eaed9ec05022f511922967a203e841b3002e6e986292d55dc6bc5320"),
    ("new-view", "1490576146999a6daf106046b2a5a6a6032516d1c8eddad0fec8af384ad55851"),
    ("safety record", "cd1b3b5a3016055020110b69bddd3d0c6e2cb11f4314b0526d3ac1ae3858716c"),
];

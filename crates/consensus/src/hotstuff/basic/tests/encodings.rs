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
    ("block", "8dbe4c5013e2426292010a631a14cdbdc39a4273edbe31d17cba3601795caa50"),
    ("prepare vote", "9c8d9d1bc59330c8a20a7e361db2ecaefa01be98bd7b145bf5002ec60c687774"),
    ("pre-commit vote", "b2434dbae002a3ddd73ed2af0768c1c3a686b246d826f554804e30c843410e05"),
    ("commit vote", "6d8729e2e9e0c83241051b048281faf16f3c783fde730a7faa402228677d55e9"),
    ("precommitQC", "0b665b437161749f0f3eca6549421351d89bf017b5a7c26e29f6adf28c8b756b"),
    ("new-view", "f5c97118c0430c91fe4e86924bb44683af13428c3477b3339496cb73d9ec576b"),
    ("safety record", "76639871f9052143fb2d40bed8ce0ce18b717badad27e7325ae5cdf5e4320d04"),
];

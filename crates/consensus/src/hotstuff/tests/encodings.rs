//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::{chain, four};
use crate::block_tree::TreeBlock;
use crate::chained::Message;
use quorate_crypto::hash;

#[test]
fn golden_bytes() {
    let mut cluster = four();
    let keys = &cluster.keys;
    let blocks = chain(keys, &[1, 2, 4], &keys.genesis(), 1);
    let genesis = keys.verifier().genesis().0.to_hex();
    let vote = keys.protocol.message(Message::Vote(keys.vote(2, &blocks[2].0)));
    let vote = hash(&borsh::to_vec(&vote).unwrap()).to_hex();
    cluster.submit(7);
    let safety = cluster.node(0).safety.clone().expect("it proposed");
    let found = [
        ("genesis", genesis),
        ("block after a timeout certificate", blocks[2].0.id().0.to_hex()),
        ("vote", vote),
        ("safety record", hash(&safety).to_hex()),
    ];
    assert_eq!(found, GOLDEN.map(|(name, pinned)| (name, pinned.to_owned())));
}

const GOLDEN: [(&str, &str); 4] = [
    ("genesis", "34b493207c8efaa83f144d1c58a8857375c795c0b6e30db52e5f0b6b04ddc20c"),
    (
        "block after a timeout certificate",
        "cb1a996ab8a434f9a03948084adc5ef98ea4507c5c1b56b57850ff162a85cfcd",
    ),
    ("vote", "8c2dce1821b08d6378121a35ddd1899d21b5fedcb92437d4c3fa74430044745c"),
    ("safety record", "76da9cd326f9249b5947aad5267f13b0a796e0216f2dfb36a581101c01c7e78a"),
];

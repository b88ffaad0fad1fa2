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
        "ba903b7239f270cab2c8f7a8029d810b1c1f14e9697f78593ca3d04a1a1b94c5",
    ),
    ("vote", "b1cefd2a9c99d5233d7fb40c807dda6b3c2512bd3a8ef3234f9c2f672f6a93cf"),
    ("safety record", "0680c5652a175ce56fa6a3baae6890dab5e4d3c2f5b43b12fc117e7118fab68e"),
];

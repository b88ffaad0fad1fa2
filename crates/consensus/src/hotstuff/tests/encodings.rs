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
    ("genesis", "248acc76bc6e2792f5260729a0eb9041f3dbc24280c12a48e13129c727d1d014"),
    (
        "block after a timeout certificate",
        "b249f1f0bb657b64cf6830f83afd1ddcc1708ada2aba38bc0440b9cd898d4e86",
    ),
    ("vote", "ff3fbb22f2dcc7d20a0b90a0c175f3b5b4773ec55de58b4c2bb2e91045bd3216"),
    ("safety record", "d83a98374ee9b606e73ed2455fbb41445663269b2d914b62b505b133e3577b1e"),
];

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
        "e65fd1ff33363d48d23943afb3cc5de40388e8e59b3748ca59fc0bf33a5b9140",
    ),
    ("vote", "b9719d6938e7f8945c513ea188b31b080407a0f827e18e00474cd5f44dddd4c7"),
    ("safety record", "ba4365bbe875d32116c612721e4071847d628a5bd906f40a651d8f06bda48340"),
];

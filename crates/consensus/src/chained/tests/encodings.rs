//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::statements::{proposal_message, timeout_message, vote_message};
use crate::chained::{Block, Message, Phase, genesis_id};
use quorate_types::{BlockId, ChainId, Epoch, View};

fn sample() -> (Keys, Block) {
    let keys = Keys::new(4);
    let one = keys.certify(&keys.block(1, &keys.genesis(), 1, &[]));
    let mut block = keys.block(3, &one, 2, &[7]);
    block.tc = Some(keys.tc(2, &one, &[(0, &[0]), (1, &[1, 2])]));
    (keys, block)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn golden_bytes() {
    let (keys, block) = sample();
    let one = &block.justify;
    let digest = |m: &Message| quorate_crypto::hash(&borsh::to_vec(m).unwrap()).to_hex();
    let vote = Message::Vote(keys.vote(2, &block));
    let timeout = Message::Timeout(keys.timeout(2, 3, one, block.tc.as_ref()));
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let safety = cluster.node(0).safety.clone().expect("it proposed");
    let found = [
        ("genesis", genesis_id(&crate::jolteon::RULES, ChainId([7; 32]), Epoch(1)).0.to_hex()),
        ("block", keys.block(1, &keys.genesis(), 1, &[7]).id().0.to_hex()),
        ("block after a timeout certificate", block.id().0.to_hex()),
        ("timeout certificate", block.tc.as_ref().expect("it has one").content().to_hex()),
        ("vote", hex(&borsh::to_vec(&vote).unwrap())),
        ("proposal", digest(&keys.propose(&block))),
        ("timeout", digest(&timeout)),
        ("certificates", digest(&certificates(one, block.tc.as_ref()))),
        ("safety record", quorate_crypto::hash(&safety).to_hex()),
    ];
    for ((name, found), pinned) in found.iter().zip(GOLDEN) {
        assert_eq!(found, pinned, "{name}");
    }
}

/// In the order of the test that reads them. A block id or a vote that changes makes another chain.
const GOLDEN: [&str; 9] = [
    "95b83d32707974358d376d4851fadcb520d36aa2daeb4483da161fe539d229f1",
    "020590784d532aa992c989881a647810655a1ef8cef05e188bfc083d0073c414",
    "395b9ed9a232b23aa4c19fcc9a5a3299df92439f0fcde7058d5b2ad62f3180d6",
    "523ebf24ee2c1777c4e1d2acab2479b84f1eec2a6622f086dd697614d7d5b94a",
    "010300000000000000395b9ed9a232b23aa4c19fcc9a5a3299df92439f0fcde7058d5b2ad62f3180d60100000000000000b69f1df0ac073d57729ea9a8ec14b78e5681edccf147a879800b88b3db49f6bf02001000000001d4e306fc1b5b77429fa8a29e7ec6c5",
    "569564f3ae9049d354df8e1d56a3c6af72795cd81bb483fc7e2eee46ab06f2df",
    "51ac71a99ba5ded6e8ec398f430ee1e98555b430dbc6c5b48f7e045e1c9b4d66",
    "03a8a358ea05b6883f91455de5df200e6ff4f48a850db496726eb6e4e0319aea",
    "ea764afe68b6b37145e7aeb4c6f8be1d55a3ae36efe8257d9dc1c7f824fd1179",
];

/// Statements of each kind are of one width, and start with kind, chain and epoch.
#[test]
fn golden_statements() {
    let (keys, _) = sample();
    let verifier = keys.verifier();
    let id = BlockId(quorate_crypto::hash(b"block"));
    let label = |kind: &str| format!("quorate/v1/{kind}").into_bytes();
    for (view, parent) in [(1, 0), (u64::MAX, u64::MAX - 1)] {
        let vote = vote_message(&verifier, Phase::Prepare, (View(view), id), (View(parent), id));
        let timeout = timeout_message(&verifier, View(view), View(parent));
        let proposal = proposal_message(&verifier, View(view), id);
        for (bytes, kind, payload) in [
            (vote, "VOTE/jolteon/", 8 + 32 + 8 + 32),
            (timeout, "TIMEOUT/jolteon/", 16),
            (proposal, "PROPOSE/", 40),
        ] {
            let label = label(kind);
            assert!(bytes.starts_with(&label));
            assert_eq!(bytes.len(), label.len() + 32 + 8 + payload);
        }
    }
}

#[test]
fn everything_decodes_to_itself() {
    let (keys, block) = sample();
    let one = &block.justify;
    let messages = [
        keys.propose(&block),
        Message::Vote(keys.vote(2, &block)),
        Message::Timeout(keys.timeout(2, 3, one, block.tc.as_ref())),
        certificates(one, None),
    ];
    for message in messages {
        let bytes = borsh::to_vec(&message).unwrap();
        assert_eq!(borsh::from_slice::<Message>(&bytes).unwrap(), message);
        assert!(borsh::from_slice::<Message>(&bytes[..bytes.len() - 1]).is_err());
    }
}

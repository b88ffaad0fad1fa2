//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::statements::{proposal_message, timeout_message, vote_message};
use crate::chained::{Block, Message, Phase, genesis_id};
use quorate_types::{BlockId, EpochId, NetworkId, Scope, View};

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

const SCOPE: Scope = Scope { network: NetworkId([7; 32]), epoch: EpochId([1; 32]) };

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
        ("genesis", genesis_id(&crate::jolteon::RULES, SCOPE).0.to_hex()),
        ("block", keys.block(1, &keys.genesis(), 1, &[7]).id().0.to_hex()),
        ("block after a timeout certificate", block.id().0.to_hex()),
        ("timeout certificate", block.tc.as_ref().expect("it has one").content().to_hex()),
        ("vote", hex(&borsh::to_vec(&vote).unwrap())),
        ("proposal", digest(&keys.propose(&block))),
        ("timeout", digest(&timeout)),
        ("certificates", digest(&certificates(one, block.tc.as_ref()))),
        ("safety record", quorate_crypto::hash(&safety).to_hex()),
    ];
    assert_eq!(found.map(|(_, text)| text), GOLDEN);
}

/// In the order of the test that reads them. A block id or a vote that changes makes another chain.
const GOLDEN: [&str; 9] = [
    "8af6998b54a5cb2cfd324ed9ca419c16601abb12b143b894b656e94341d2713a",
    "49a9e87c1aa79e146a024559f4a7b2935263dfb00f72091c4e4cefff5ea60a3d",
    "c20ab14ff75049ef3c17de6944dbb99825f26ef6741281408b1f1e1269d41ea8",
    "da5e1d3cc6e2468825556d27f989fdd18777099fd0448e2ffaf2eac1670cbdbe",
    "010300000000000000c20ab14ff75049ef3c17de6944dbb99825f26ef6741281408b1f1e1269d41ea8010000000000000081568246e6e2008f9ae51cf61132c2fb280c9232d2b3e606135c5651877a6bee0200100000009f74207fc23240a5792f1ecddb6e51b1",
    "f8601d91190485dc0d40c6c9182388b5b478dfa1475d00ecc7107dee3ac4f7df",
    "4820730ccd1951c2e160638a756cbbacb5112b3c5dd176f2598487f8f0b3b44b",
    "3ea533d7aa2701388340f2ac42685a325cd0f0bc977d47f3bfa62c1bdb2a9529",
    "175424b3ff87054c5e54be4bae8f4ade1cf98b08ff2073f57174c33e583b825b",
];

/// Statements of each kind are of one width, and start with kind, network and epoch.
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
            assert_eq!(bytes.len(), label.len() + 32 + 32 + payload);
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

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
    "4b47fc00b4a0c1b53cb480ba8b112dc4552eccb6e9f0c10b8fde2f34a86c25d0",
    "2f466450b937aa5a69b30a555c5c1ffc2384ea1f236cd65ac9f4d726f4bfbf2f",
    "1cf0d74d6ae1dc7ba90773cafc2a8c683b634953a3a08578b458e7450ae296bf",
    "0103000000000000002f466450b937aa5a69b30a555c5c1ffc2384ea1f236cd65ac9f4d726f4bfbf2f0100000000000000c012ac0cda15dc9cf0dddf85e5b8e1b0b200d44eafe02593ef81a9654715e574020010000000ce4dd3a760c40fa1fc25ece59aceeacb",
    "c666d55f7bdc0441201568e6467d23e91ad4f99cac1c19c19e8c1614f2e43738",
    "aa11c528fe796143175b17bd07eb05f2ae36a372234111ded2146175199f8f5d",
    "3fe1d80bf2c8900113d13c56604dbfccb35076336df4b67a2735c109347c4fd1",
    "d3fbc6bcd272c0479c35c3607ed329e89c5ac40d8a9a8d37e77a992af535d986",
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

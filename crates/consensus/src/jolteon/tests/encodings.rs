//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::jolteon::messages::{proposal_message, timeout_message, vote_message};
use crate::jolteon::{Block, Message, SafetyRecord, genesis_id};
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
fn golden_ids() {
    let (keys, block) = sample();
    assert_eq!(genesis_id(ChainId([7; 32]), Epoch(1)).to_string(), "GOLDEN_GENESIS");
    assert_eq!(keys.block(1, &keys.genesis(), 1, &[7]).id().to_string(), "GOLDEN_PLAIN");
    assert_eq!(block.id().to_string(), "GOLDEN_TC");
}

#[test]
fn golden_messages() {
    let (keys, block) = sample();
    let vote = Message::Vote(keys.vote(2, &block));
    assert_eq!(hex(&borsh::to_vec(&vote).unwrap()), "GOLDEN_VOTE");
    let digest = |m: &Message| quorate_crypto::hash(&borsh::to_vec(m).unwrap()).to_hex();
    assert_eq!(digest(&keys.propose(&block)), "GOLDEN_PROPOSAL");
    let one = &block.justify;
    let timeout = Message::Timeout(keys.timeout(2, 3, one, block.tc.as_ref()));
    assert_eq!(digest(&timeout), "GOLDEN_TIMEOUT");
    assert_eq!(digest(&certificates(one, block.tc.as_ref())), "GOLDEN_CERTIFICATES");
}

/// What is signed is of one width for each kind, and starts with kind, chain and epoch.
#[test]
fn golden_statements() {
    let (keys, _) = sample();
    let verifier = keys.verifier();
    let id = BlockId(quorate_crypto::hash(b"block"));
    let label = |kind: &str| format!("quorate/v1/{kind}").into_bytes();
    for (view, parent) in [(1, 0), (u64::MAX, u64::MAX - 1)] {
        let vote = vote_message(&verifier, View(view), id, View(parent), id);
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

#[test]
fn golden_safety_record() {
    let mut cluster = Cluster::new();
    cluster.submit(7);
    let bytes = cluster.node(0).safety.clone().expect("it proposed");
    let record: SafetyRecord = borsh::from_slice(&bytes).unwrap();
    assert_eq!(record.voted_view, View(1));
    assert_eq!(quorate_crypto::hash(&bytes).to_hex(), "GOLDEN_SAFETY");
}

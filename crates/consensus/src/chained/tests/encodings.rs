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
    "bf9923909da5e6468258791e643d22ca16d0e0a651f9b16bf494c23ba9547d7a",
    "551c15745c40743e66e9105030a30fdbc194bc4fbe1506901c0b60efdeb0a2b3",
    "36ccfbe664f3b19dd279b7c423da6729cb78ac9965daa352bb02b974a34b8981",
    "010300000000000000551c15745c40743e66e9105030a30fdbc194bc4fbe1506901c0b60efdeb0a2b30100000000000000e6f13085b7cd9c1df631c1b24d3c05628fe2dfdf96d3f91999f4d416543971a4020010000000f5e97bc59e6327227f39db21a7ce06d6",
    "18fc178e54fc1191460a862e79e12d80c2ab2822a5c7df34a29b70c204c70cd4",
    "a09b6b2b2523b27334e495e39a809fd181aa0a219436bdd6b792c69efbbd13e1",
    "d0d304a0b5a11888e1f69248a53222f9bd6fe8f034b79a19b20a902e90c89b7c",
    "1608dbb041f8f1d13c5c2993f800fadbff2eda968795fdb500e7043768866591",
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

//! Cost of a decided block to a committee in which nothing goes wrong: counted, and equal to the
//! formula.

use super::harness::{Cluster, Keys, Recorded};
use crate::ProtocolKind;
use crate::chained::Message;
use crate::chained::messages::encode;
use quorate_crypto::counts;
use quorate_types::{Recipients, ReplicaId};
use std::collections::BTreeMap;
use std::ops::Sub;

/// Messages between members and their bytes by kind, and signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cost {
    sent: BTreeMap<&'static str, (u64, u64)>,
    signatures: u64,
}

impl Sub for Cost {
    type Output = Self;

    fn sub(mut self, fewer: Self) -> Self {
        for (kind, (count, bytes)) in fewer.sent {
            let sent = self.sent.get_mut(kind).expect("a longer run has all kinds");
            *sent = (sent.0 - count, sent.1 - bytes);
        }
        Self { signatures: self.signatures - fewer.signatures, ..self }
    }
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::Proposal(_) => "proposal",
        Message::Vote(_) => "vote",
        Message::PhaseVote(_) => "phase vote",
        Message::Certificates { .. } => "certificates",
        Message::PreCommitted(_) => "pre-committed",
        Message::NewView(_) => "new-view",
        Message::Timeout(_) => "timeout",
    }
}

/// Of so many members, until they decided so many blocks of one body each.
fn run(protocol: ProtocolKind, members: u8, blocks: u64) -> Cost {
    let mut cluster = Cluster::with(Keys::of_ed25519(members).running(protocol), |_| {});
    counts::take();
    (0..blocks).for_each(|k| cluster.pending.push(super::harness::body(k)));
    cluster.submit(blocks);
    cluster.run("all blocks", |c| c.all_decided(&(0..=blocks).collect::<Vec<_>>())).unwrap();
    let mut cost = Cost { signatures: counts::take().ed25519_sign, ..Cost::default() };
    for (id, node) in cluster.nodes.iter().enumerate() {
        for said in &node.said {
            let Recorded::Send(to, message) = said else { continue };
            let receivers = match to {
                Recipients::All => u64::from(members) - 1,
                Recipients::One(ReplicaId(one)) => u64::from(usize::from(*one) != id),
                Recipients::Client(_) => 0,
            };
            let sent = cost.sent.entry(kind(message)).or_default();
            *sent =
                (sent.0 + receivers, sent.1 + receivers * encode(message.as_ref()).len() as u64);
        }
    }
    cost
}

/// Cost of each block more: the beginning and the end of runs are the same in both and fall out.
fn of_each_block(protocol: ProtocolKind, members: u8) -> (Cost, u64) {
    let more = 4 * u64::from(members);
    (run(protocol, members, 12 + more) - run(protocol, members, 12), more)
}

/// Messages by kind that members send each other for a block, and signatures, by formula.
fn formula(protocol: ProtocolKind, members: u64) -> (BTreeMap<&'static str, u64>, u64) {
    let others = members - 1;
    match protocol {
        // The leader's proposal; everybody's vote, to the next leader, who keeps its own.
        ProtocolKind::Jolteon | ProtocolKind::HotStuff => {
            (BTreeMap::from([("proposal", others), ("vote", others)]), 1 + members)
        }
        // Three phases of votes; a certificate of each to everybody, and the last to the next
        // leader from everybody else.
        ProtocolKind::HotStuffBasic => {
            let kinds = [
                ("proposal", others),
                ("vote", others),
                ("phase vote", 2 * others),
                ("certificates", 2 * others),
                ("pre-committed", others),
                ("new-view", others),
            ];
            (BTreeMap::from(kinds), 1 + 3 * members)
        }
        _ => unreachable!("no chained protocol"),
    }
}

/// Bytes that members send each other for a block of one body, frames apart: as borsh has them.
fn bytes(protocol: ProtocolKind, members: u64) -> u64 {
    let quorum = members - (members - 1) / 3;
    // Lengths of bitmap and signatures, the bitmap, a signature each.
    let certificate = 4 + 2 + members.div_ceil(8) + 64 * quorum;
    // Two views and two ids, in a certificate as in a vote; a vote's signer and share.
    let qc = 80 + certificate;
    let vote = 80 + 2 + (4 + 64);
    // Tag, epoch, view, author, no timeout certificate, no reputation, the payload's header, one
    // body's name, the author's signature.
    let proposal = 1 + 32 + 8 + 2 + 1 + 4 + 49 + (4 + 42) + (4 + 64) + qc;
    let phases = match protocol {
        ProtocolKind::Jolteon | ProtocolKind::HotStuff => 0,
        ProtocolKind::HotStuffBasic => 2 * (2 + vote) + 2 * (2 + qc) + (1 + qc) + (1 + qc),
        _ => unreachable!("no chained protocol"),
    };
    (members - 1) * (proposal + (1 + vote) + phases)
}

#[test]
fn a_block_costs_what_the_formula_says() {
    for protocol in ProtocolKind::CHAINED {
        for members in [4, 7, 10] {
            let (cost, blocks) = of_each_block(protocol, members);
            let (kinds, signatures) = formula(protocol, u64::from(members));
            let expected: BTreeMap<_, _> =
                kinds.iter().map(|(kind, count)| (*kind, count * blocks)).collect();
            let counted: BTreeMap<_, _> = cost
                .sent
                .iter()
                .filter(|(_, (count, _))| *count > 0)
                .map(|(kind, (count, _))| (*kind, *count))
                .collect();
            assert_eq!(counted, expected, "{protocol}, n = {members}");
            assert_eq!(cost.signatures, signatures * blocks, "{protocol}, n = {members}");
            let sent: u64 = cost.sent.values().map(|(_, bytes)| bytes).sum();
            assert_eq!(sent, blocks * bytes(protocol, u64::from(members)), "{protocol}");
        }
    }
}

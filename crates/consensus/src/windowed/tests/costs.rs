//! Costs of a slot in the good case: counted, compared with formulas, and as
//! docs/protocols/costs.md says.

use super::cluster::{Cluster, nothing};
use super::*;
use quorate_crypto::counts::{self, OpCounts};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The page with the tables below in it.
const PAGE: &str = include_str!("../../../../../docs/protocols/costs.md");

/// Slots that are counted, of which each costs a part.
const SLOTS: u64 = 20;

/// Cost of one slot, to all members together.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    messages: BTreeMap<&'static str, u64>,
    bytes: u64,
    signatures: u64,
    /// Signatures, or pairings of sums of them, that somebody checked.
    checks: u64,
    delays: u64,
}

fn committee_of(scheme: SchemeKind, members: u8, redundancy: u64) -> CommitteeFile {
    match scheme {
        SchemeKind::BlsThreshold => dealt_committee_file(members, redundancy),
        _ => committee_file(members, redundancy),
    }
}

fn count(protocol: ProtocolKind, scheme: SchemeKind, members: u8, redundancy: u64) -> Cost {
    let file = committee_of(scheme, members, redundancy);
    let mut first = Cluster::of(protocol, &file, nothing);
    first.order(1);
    let mut cluster = Cluster::of(protocol, &file, nothing);
    (cluster.sent, cluster.bytes) = (BTreeMap::new(), 0);
    let _ = counts::take();
    cluster.order(SLOTS);
    let counted = counts::take();
    cluster.reach(&(0..members).collect::<Vec<_>>(), SLOTS as usize);
    let status = cluster.status(0);
    let fast = protocol.windowed_rules().is_some_and(|rules| rules.fast_path);
    let paths = (status.fast_decisions, status.slow_decisions);
    assert_eq!(paths, if fast { (SLOTS, 0) } else { (0, SLOTS) });
    let OpCounts { ed25519_sign, ed25519_verify, ed25519_batch_items, .. } = counted;
    Cost {
        messages: cluster.sent.into_iter().map(|(kind, sent)| (kind, sent / SLOTS)).collect(),
        bytes: cluster.bytes / SLOTS,
        signatures: (ed25519_sign + counted.bls_sign) / SLOTS,
        checks: (ed25519_verify + ed25519_batch_items + counted.bls_verify) / SLOTS,
        delays: first.slowest(),
    }
}

/// The same by formula; bytes have none.
fn formula(protocol: ProtocolKind, scheme: SchemeKind, n: u64, c: u64) -> Cost {
    // Everybody's votes go to c+2 collectors; those who collect keep their own, and the primary's
    // first one travels with its value.
    let votes = (n - 1) * (c + 2) - (c + 1);
    let commits = n * (c + 2) - (c + 2);
    let quorum = n - (n - 1 - 2 * c) / 3 - c;
    let (kinds, rounds, delays) = match protocol {
        ProtocolKind::Pbft => {
            let all = ("sign-share", (n - 1) * (n - 1));
            (vec![("pre-prepare", n - 1), all, ("commit-share", n * (n - 1))], 2, 3)
        }
        ProtocolKind::LinearPbft => {
            let first = [("pre-prepare", n - 1), ("sign-share", votes), ("prepare", n - 1)];
            let second = [("commit-share", commits), ("proof", n - 1)];
            (first.into_iter().chain(second).collect(), 2, 5)
        }
        _ => (vec![("pre-prepare", n - 1), ("sign-share", votes), ("proof", n - 1)], 1, 3),
    };
    let deals = scheme == SchemeKind::BlsThreshold;
    let fast = rounds == 1;
    // With threshold keys a vote is signed for both paths.
    let each = if deals && fast { 2 } else { 1 };
    // Each certificate is checked by whoever makes it and by all others: as one signature, or as
    // its signers'.
    let signers = if fast { n - c } else { quorum };
    let certificate = if deals { 1 } else { signers };
    Cost {
        messages: kinds.into_iter().collect(),
        bytes: 0,
        signatures: 1 + rounds * each * n,
        checks: (n - 1) + rounds * n * certificate,
        delays,
    }
}

const SIZES: [(u8, u64); 5] = [(4, 0), (7, 0), (10, 0), (6, 1), (9, 1)];

fn all() -> impl Iterator<Item = (ProtocolKind, SchemeKind, u8, u64)> {
    let schemes = [SchemeKind::Ed25519, SchemeKind::BlsThreshold];
    let of = move |protocol: ProtocolKind| {
        let fast = protocol.windowed_rules().is_some_and(|rules| rules.fast_path);
        let sizes = SIZES.into_iter().filter(move |(_, redundancy)| *redundancy == 0 || fast);
        sizes.flat_map(move |(members, redundancy)| {
            schemes.map(|scheme| (protocol, scheme, members, redundancy))
        })
    };
    let shown = [ProtocolKind::Pbft, ProtocolKind::LinearPbft, ProtocolKind::Sbft];
    shown.into_iter().flat_map(of)
}

#[test]
fn a_slot_costs_what_the_formula_says() {
    for (protocol, scheme, members, redundancy) in all() {
        let counted = count(protocol, scheme, members, redundancy);
        let expected = formula(protocol, scheme, u64::from(members), redundancy);
        let expected = Cost { bytes: counted.bytes, ..expected };
        assert_eq!(counted, expected, "{protocol}, {scheme}, {members} members, c = {redundancy}");
    }
}

#[test]
fn the_page_says_what_was_counted() {
    let mut table = String::new();
    for (protocol, scheme, members, redundancy) in all() {
        let Cost { messages, bytes, signatures, checks, delays } =
            count(protocol, scheme, members, redundancy);
        let messages: u64 = messages.values().sum();
        writeln!(
            table,
            "| `{protocol}` | {scheme} | {members} | {redundancy} | {messages} | {bytes} | \
             {signatures} | {checks} | {delays} |"
        )
        .expect("memory");
    }
    assert!(PAGE.contains(&table), "docs/protocols/costs.md should say:\n{table}");
}

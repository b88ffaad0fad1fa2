//! Four replicas in virtual time: whatever becomes of acknowledgements and certificates, what
//! clients ask for is executed, everywhere in one order.

use crate::testing::net::{ALL, LATENCY, Lost, Net};
use crate::testing::{FIRST, body, certify};
use crate::{Availability, Message, Settings};
use quorate_types::ReplicaId;
use std::collections::BTreeSet;
use std::sync::Arc;

fn certified(lost: Lost) -> Net {
    Net::new(&Settings { availability: Availability::Certified, ..Settings::default() }, lost)
}

fn certificates(net: &Net) -> usize {
    net.sent.iter().filter(|(_, _, m)| matches!(m, Message::Available(_))).count()
}

#[test]
fn everything_is_certified_and_executed() {
    let mut net = certified(|_, _, _| false);
    net.serve(12, &ALL);
    assert!(certificates(&net) > 0);
    let views = net.statuses().into_iter().map(|status| status.view_changes);
    assert_eq!(views.collect::<Vec<_>>(), [0; 4], "no view waits for a certificate");
}

#[test]
fn one_member_may_acknowledge_nothing() {
    let mut net = certified(|from, _, m| from == 3 && matches!(m, Message::Acknowledgement(_)));
    net.serve(12, &ALL);
    assert!(certificates(&net) > 0, "the others are enough");
}

#[test]
fn nobody_need_acknowledge() {
    let mut net = certified(|_, _, m| matches!(m, Message::Acknowledgement(_)));
    net.serve(12, &ALL);
    assert_eq!(certificates(&net), 0);
}

#[test]
fn certificates_may_be_lost() {
    let mut net = certified(|_, _, m| matches!(m, Message::Available(_)));
    net.serve(12, &ALL);
    assert!(certificates(&net) > 0);
}

/// Some see a certificate and some do not: the others fetch the bodies or have them.
#[test]
fn certificates_may_reach_a_few() {
    let mut net =
        certified(|from, to, m| matches!(m, Message::Available(_)) && to != (from + 1) % 4);
    net.serve(12, &ALL);
}

/// A member that no author reaches votes by certificate and fetches what is decided of its signers.
#[test]
fn a_member_that_no_body_reaches_asks_the_signers() {
    let mut net = certified(|from, to, m| match m {
        Message::Body(body) => to == 3 && body.reference.author.index() == from,
        Message::Announce(_) => to == 3,
        _ => false,
    });
    net.serve(12, &ALL);
    let asked: BTreeSet<usize> = net
        .sent
        .iter()
        .filter(|(from, _, m)| *from == 3 && matches!(m, Message::FetchBodies(_)))
        .map(|(_, to, _)| *to)
        .collect();
    assert!(asked.len() > 1, "of several: {asked:?}");
}

/// An author that seals two bodies under one number, and certifies both with its own and one honest
/// member's word, stops nobody; and nobody acknowledges both.
#[test]
fn an_equivocating_author_stops_nobody() {
    let mut net = certified(|from, _, _| from == 3);
    let (one, other) = (body(3, FIRST, 10), body(3, FIRST, 11));
    for (to, sealed) in [(0, &one), (1, &other), (2, &other)] {
        net.forge(LATENCY, ReplicaId(3), to, &Message::Body(Arc::clone(sealed)));
    }
    let certified = [
        (0, certify(3, &[other.reference.digest], &[(1, 1), (3, 1)])),
        (1, certify(3, &[one.reference.digest], &[(0, 1), (3, 1)])),
        (2, certify(3, &[one.reference.digest], &[(0, 1), (3, 1)])),
    ];
    for (to, certificate) in certified {
        net.forge(5 * LATENCY, ReplicaId(3), to, &Message::Available(certificate));
    }
    net.serve(12, &[0, 1, 2]);
    for id in 0..3 {
        let links: BTreeSet<[u8; 32]> = net
            .sent
            .iter()
            .filter(|(from, to, _)| (*from, *to) == (id, 3))
            .filter_map(|(_, _, m)| match m {
                Message::Acknowledgement(given) => Some(given.available.link.0),
                _ => None,
            })
            .collect();
        assert_eq!(links.len(), 1, "{id} acknowledged {} chains", links.len());
    }
}

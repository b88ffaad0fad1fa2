//! The part of a replica that certifies bodies, alone.

use crate::availability::coverage::Coverage;
use crate::availability::{AvailabilityCertificate, Certifier, Covered};
use crate::testing::{FIRST, acknowledge, certify, committee, config};
use crate::{Availability, Message, Settings};
use quorate_crypto::{Digest, hash};
use quorate_types::{BodyRef, Recipients, ReplicaId, Time};
use std::time::Duration;

const NOW: Time = Time(1_000_000);
const ROUND: Duration = Duration::from_millis(10);
const MICRO: Duration = Duration::from_micros(1);

fn certifier(id: u8) -> Certifier {
    let availability = Availability::Certified;
    Certifier::new(&config(id, Settings { availability, ..Settings::default() }))
}

fn digests(count: u8) -> Vec<Digest> {
    (0..count).map(|k| hash(&[k])).collect()
}

fn name(author: u16, offset: u64, digest: Digest) -> BodyRef {
    BodyRef { author: ReplicaId(author), sequence: FIRST + offset, digest }
}

fn covered(certificate: AvailabilityCertificate) -> Covered {
    certificate.check(&committee(), 0).expect("a good certificate")
}

/// Bodies from this offset on, as a certificate covers them.
fn stretch(offset: u64, bodies: Vec<Digest>, signers: &[u16]) -> Covered {
    let signers = signers.iter().copied().map(ReplicaId).collect();
    Covered { author: ReplicaId(1), first: FIRST + offset, before: Digest::ZERO, bodies, signers }
}

/// Certificates that it sends when it is this late.
fn certificates(certifier: &mut Certifier, now: Time) -> Vec<AvailabilityCertificate> {
    certifier.due(now);
    std::iter::from_fn(|| certifier.poll())
        .filter_map(|(to, message)| match message {
            Message::Available(certificate) if to == Recipients::All => Some(certificate),
            _ => None,
        })
        .collect()
}

/// An author stores its next body, and one other member does too.
fn store_next(certifier: &mut Certifier, now: Time, bodies: &[Digest]) {
    let last = bodies.len() as u64 - 1;
    let sealed = name(0, last, bodies[bodies.len() - 1]);
    certifier.sealed(&sealed);
    certifier.stored(now, &sealed);
    certifier.on_acknowledgement(ReplicaId(2), &acknowledge(2, 0, bodies));
}

/// Nor does it certify its own, and nothing that was on its way out leaves: whoever stops signing
/// while bodies wait for their round (seed 702451 of SBFT).
#[test]
fn a_member_that_stops_signing_acknowledges_nothing_that_it_stored_before() {
    let bodies = digests(2);
    let acknowledges = |certifier: &mut Certifier, now: Time| {
        certifier.due(now);
        let said: Vec<_> = std::iter::from_fn(|| certifier.poll()).collect();
        said.iter().any(|(_, message)| matches!(message, Message::Acknowledgement(_)))
    };
    for stops in [false, true] {
        let (mut member, mut author) = (certifier(1), certifier(0));
        member.stored(NOW, &name(0, 0, bodies[0]));
        assert!(acknowledges(&mut member, NOW), "the first at once");
        member.stored(NOW, &name(0, 1, bodies[1]));
        store_next(&mut author, NOW, &bodies[..1]);
        if stops {
            member.stop_signing();
            author.stop_signing();
        }
        assert_eq!(acknowledges(&mut member, NOW + ROUND), !stops);
        assert_eq!(certificates(&mut author, NOW + ROUND).is_empty(), stops);
    }
}

/// The first after a pause is made at once, the next one a round later.
#[test]
fn certificates_are_paced() {
    let (mut author, bodies) = (certifier(0), digests(2));
    assert_eq!(author.deadline(), None);
    assert_eq!(certificates(&mut author, NOW), []);
    store_next(&mut author, NOW, &bodies[..1]);
    assert_eq!(author.deadline(), Some(Time(0)), "at once");
    assert_eq!(certificates(&mut author, NOW), [certify(0, &bodies[..1], &[(0, 1), (2, 1)])]);
    store_next(&mut author, NOW, &bodies);
    assert_eq!(author.deadline(), Some(NOW + ROUND));
    assert_eq!(certificates(&mut author, NOW + (ROUND - MICRO)), []);
    let both = certify(0, &bodies, &[(0, 2), (2, 2)]);
    assert_eq!(certificates(&mut author, NOW + ROUND), [both]);
    assert_eq!(author.deadline(), None, "nothing is left to certify");
}

/// What is decided is named by no later certificate; others' bodies have numbers of their own.
#[test]
fn a_certificate_leaves_out_what_was_decided() {
    let (mut author, bodies) = (certifier(0), digests(3));
    store_next(&mut author, NOW, &bodies[..1]);
    store_next(&mut author, NOW, &bodies[..2]);
    assert_eq!(certificates(&mut author, NOW).len(), 1);
    author.decided(&[name(0, 0, bodies[0]), name(1, 1, bodies[1])]);
    store_next(&mut author, NOW, &bodies);
    let made = certificates(&mut author, NOW + ROUND).pop().expect("one more is stored");
    assert_eq!((made.first, &made.bodies[..]), (FIRST + 1, &bodies[1..]));
}

/// Different signers for different bodies, and never oneself.
#[test]
fn whoever_acknowledged_a_body_is_asked_for_it() {
    let (mut member, bodies) = (certifier(2), digests(4));
    let certificate = covered(certify(1, &bodies, &[(0, 4), (2, 4), (3, 4)]));
    assert!(member.on_certificate(NOW, &certificate));
    let holders: Vec<Option<ReplicaId>> =
        (0..).zip(&bodies).map(|(k, digest)| member.holder(&name(1, k, *digest))).collect();
    assert_eq!(holders, [0, 3, 0, 3].map(|id| Some(ReplicaId(id))));
    assert_eq!(member.holder(&name(1, 0, hash(b"another"))), None, "the digest counts");
    assert_eq!(member.holder(&name(1, 4, bodies[0])), None, "it is not certified");
    let mut alone = Coverage::default();
    alone.add(&stretch(0, bodies.clone(), &[2]), &mut Vec::new());
    assert_eq!(alone.holder(&name(1, 0, bodies[0]), ReplicaId(2)), None, "nobody else signed");
}

/// Each tells what it covers that no certificate before it did, and what was executed is covered no
/// longer.
#[test]
fn coverage_lasts_until_a_body_is_executed() {
    let (mut member, bodies) = (certifier(2), digests(3));
    let names: Vec<BodyRef> = (0..).zip(&bodies).map(|(k, digest)| name(1, k, *digest)).collect();
    member.on_certificate(NOW, &covered(certify(1, &bodies[..2], &[(0, 2), (3, 2)])));
    assert_eq!(member.take_fresh(), names[..2]);
    member.on_certificate(NOW, &covered(certify(1, &bodies, &[(0, 3), (3, 3)])));
    assert_eq!(member.take_fresh(), names[2..]);
    member.executed(&names[..1]);
    assert_eq!(names.iter().map(|n| member.covers(n)).collect::<Vec<_>>(), [false, true, true]);
}

/// ★ The first digest under a number stands. That both were signed is told: the author sealed two
/// bodies under one number.
#[test]
fn two_certified_digests_under_one_number_are_a_contradiction() {
    let (mut member, bodies) = (certifier(2), digests(2));
    let one = covered(certify(1, &bodies, &[(0, 2), (3, 2)]));
    assert!(member.on_certificate(NOW, &one));
    assert!(member.on_certificate(NOW, &one), "once more it says the same");
    let other = [hash(b"another"), bodies[1]];
    assert!(!member.on_certificate(NOW, &covered(certify(1, &other, &[(0, 2), (3, 2)]))));
    assert!(member.covers(&name(1, 0, bodies[0])) && !member.covers(&name(1, 0, other[0])));
}

/// An author that certifies without end fills no memory: the oldest are forgotten.
#[test]
fn covered_bodies_are_remembered_up_to_a_bound() {
    let (mut coverage, mut fresh) = (Coverage::default(), Vec::new());
    for offset in [0, 1_024, 2_048, 3_072] {
        coverage.add(&stretch(offset, vec![hash(b""); 1_024], &[0, 3]), &mut fresh);
    }
    let contains = |coverage: &Coverage, offset| coverage.contains(&name(1, offset, hash(b"")));
    assert!((0..4_096).all(|offset| contains(&coverage, offset)));
    coverage.add(&stretch(4_096, vec![hash(b""); 10], &[0, 3]), &mut fresh);
    assert!((0..10).all(|offset| !contains(&coverage, offset)));
    assert!((10..4_106).all(|offset| contains(&coverage, offset)));
}

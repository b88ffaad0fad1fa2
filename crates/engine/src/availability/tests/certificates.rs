//! Certificates and chains, without a replica.

use super::{Check, ensure};
use crate::availability::chain::{Chain, Contradiction};
use crate::availability::collector::Collector;
use crate::availability::{AvailabilityCertificate, Covered};
use crate::message::Message;
use crate::testing::{FIRST, acknowledge, certify, committee, receive};
use quorate_crypto::{Digest, hash};
use quorate_types::{Available, BodyRef, Peer, Rejected, ReplicaId};

const AUTHOR: ReplicaId = ReplicaId(1);

fn digests(count: u8) -> Vec<Digest> {
    (0..count).map(|k| hash(&[k])).collect()
}

fn name(offset: u64, digest: Digest) -> BodyRef {
    BodyRef { author: AUTHOR, sequence: FIRST + offset, digest }
}

fn refusal(certificate: AvailabilityCertificate) -> Rejected {
    let message = Message::Available(certificate);
    receive(&message, Peer::Replica(AUTHOR)).expect_err("a bad certificate")
}

fn covered(certificate: AvailabilityCertificate) -> Covered {
    certificate.check(&committee(), 0).expect("a good certificate")
}

#[test]
fn a_certificate_needs_weak_weight() {
    check_a_certificate_needs_weak_weight().unwrap();
}

pub(super) fn check_a_certificate_needs_weak_weight() -> Check {
    let alone = certify(1, &digests(2), &[(1, 2)]);
    let found = alone.check(&committee(), 0).err();
    ensure(found == Some(Rejected::BelowThreshold), "one of four is no proof")
}

/// Found from outside: numbers near the end of their range are refused like others that nobody
/// signed.
#[test]
fn a_certificate_near_the_end_of_all_numbers_is_refused() {
    for (first, refused) in [
        (u64::MAX - 2, Rejected::BadSignature("a certificate of availability")),
        (
            u64::MAX - 1,
            Rejected::RuleBroken(
                "a certificate of availability names its signers in order and what they signed",
            ),
        ),
    ] {
        let mut far = certify(1, &digests(2), &[(0, 2), (2, 2)]);
        far.first = first;
        assert_eq!(refusal(far), refused);
    }
}

/// Weight is asked for before any signature is looked at.
#[test]
fn what_weighs_too_little_costs_no_cryptography() {
    let mut nobody = certify(1, &digests(2), &[(1, 2)]);
    nobody.acknowledged[0].signature.0[0] ^= 1;
    assert_eq!(refusal(nobody), Rejected::BelowThreshold);
    assert_eq!(refusal(certify(1, &digests(2), &[])), Rejected::BelowThreshold);
}

#[test]
fn a_certificate_names_distinct_members_and_what_they_signed() {
    let rule = Rejected::RuleBroken(
        "a certificate of availability names its signers in order and what they signed",
    );
    assert_eq!(refusal(certify(1, &digests(2), &[(1, 2), (1, 2)])), rule);
    assert_eq!(refusal(certify(1, &digests(2), &[(2, 2), (1, 2)])), rule);
    for count in [0, 3] {
        let mut beyond = certify(1, &digests(2), &[(1, 2), (2, 2)]);
        beyond.acknowledged[0].count = count;
        assert_eq!(refusal(beyond), rule);
    }
    let mut far = certify(1, &digests(2), &[(1, 2), (2, 2)]);
    far.first = u64::MAX;
    assert_eq!(refusal(far), rule);
    let mut strange = certify(1, &digests(2), &[(1, 2), (2, 2)]);
    strange.acknowledged[1].signer = ReplicaId(4);
    assert_eq!(refusal(strange), Rejected::NotAMember);
    let mut strange = certify(1, &digests(2), &[(1, 2), (2, 2)]);
    strange.author = ReplicaId(4);
    assert_eq!(refusal(strange), Rejected::NotAMember);
    let long = vec![hash(b""); 1_025];
    let large = Rejected::TooLarge("a certificate of availability");
    assert_eq!(refusal(certify(1, &long, &[(1, 1), (2, 1)])), large);
}

/// The digests that a certificate names are proven by the links that were signed, and so is the
/// link before the first of them.
#[test]
fn a_certificate_proves_the_list_that_it_brings() {
    let good = || certify(1, &digests(3), &[(1, 3), (2, 3)]);
    assert_eq!(covered(good()).bodies, digests(3));
    let forged = Rejected::BadSignature("a certificate of availability");
    let mut other = good();
    other.bodies[1] = hash(b"another");
    assert_eq!(refusal(other), forged);
    let mut moved = good();
    moved.first += 1;
    assert_eq!(refusal(moved), forged);
    let mut before = good();
    before.before = hash(b"another");
    assert_eq!(refusal(before), forged);
    let mut author = good();
    author.author = ReplicaId(2);
    assert_eq!(refusal(author), forged);
    let mut shortened = good();
    shortened.before = Available::link(shortened.before, FIRST, shortened.bodies.remove(0));
    shortened.first += 1;
    shortened.acknowledged.iter_mut().for_each(|one| one.count -= 1);
    assert_eq!(covered(shortened).bodies, digests(3)[1..], "it may begin anywhere");
}

/// Acknowledgements are cumulative: what is covered is what enough members reach together.
#[test]
fn acknowledgements_need_not_reach_equally_far() {
    let covered = covered(certify(1, &digests(4), &[(0, 2), (1, 4), (3, 1)]));
    assert_eq!(covered.bodies, digests(2));
    assert_eq!(covered.end(), FIRST + 2);
}

#[test]
fn what_is_known_is_not_checked_again() {
    let end = FIRST + 2;
    let mut known = certify(1, &digests(2), &[(1, 2), (2, 2)]);
    known.acknowledged[0].signature.0[0] ^= 1;
    assert_eq!(known.check(&committee(), end).err(), Some(Rejected::Stale));
    let longer = certify(1, &digests(3), &[(1, 3), (2, 3)]);
    assert!(longer.check(&committee(), end).is_ok());
}

#[test]
fn an_author_certifies_what_enough_members_reach() {
    let (committee, bodies) = (committee(), digests(5));
    let mut collector = Collector::new(AUTHOR);
    for (offset, digest) in (0..).zip(&bodies) {
        collector.seal(&name(offset, *digest));
    }
    let own = acknowledge(1, 1, &bodies[..1]);
    assert!(collector.acknowledge(ReplicaId(2), &acknowledge(2, 1, &bodies[..5])));
    assert!(!collector.acknowledge(ReplicaId(2), &acknowledge(2, 1, &bodies[..4])), "less");
    assert!(
        !collector.acknowledge(ReplicaId(0), &acknowledge(0, 1, &[bodies[1]])),
        "another chain"
    );
    assert!(!collector.acknowledge(ReplicaId(0), &acknowledge(0, 2, &bodies)), "another author");
    assert!(collector.acknowledge(ReplicaId(3), &acknowledge(3, 1, &bodies[..3])));
    assert!(collector.is_ripe(&committee, Some(&own.available)));
    let (certificate, _) = collector.certify(&committee, Some(&own)).expect("two of three");
    let reached = covered(certificate);
    assert_eq!(
        (&reached.bodies[..], reached.signers),
        (&bodies[..3], vec![ReplicaId(2), ReplicaId(3)])
    );
    assert_eq!(collector.certify(&committee, Some(&own)), None, "nothing new");
    let own = acknowledge(1, 1, &bodies);
    let (certificate, _) = collector.certify(&committee, Some(&own)).expect("with its own");
    assert_eq!(covered(certificate).bodies, bodies);
}

/// A certificate names everything that is not decided, so that a lost one is made good by the next;
/// and nothing older.
#[test]
fn a_certificate_names_what_is_undecided() {
    let (committee, bodies) = (committee(), digests(4));
    let mut collector = Collector::new(AUTHOR);
    for (offset, digest) in (0..).zip(&bodies) {
        collector.seal(&name(offset, *digest));
    }
    for (reached, decided, first) in [(1, None, 0), (2, Some(0), 0), (3, None, 1), (4, Some(2), 1)]
    {
        let own = acknowledge(1, 1, &bodies[..reached]);
        collector.acknowledge(ReplicaId(0), &acknowledge(0, 1, &bodies[..reached]));
        let (certificate, covered) = collector.certify(&committee, Some(&own)).expect("one more");
        assert_eq!(certificate.check(&committee, 0), Ok(covered.clone()));
        assert_eq!((covered.first, covered.end()), (FIRST + first, FIRST + reached as u64));
        if let Some(offset) = decided {
            collector.decide(FIRST + offset);
        }
    }
    let (last, names) = collector.help(FIRST, 64);
    assert!(last.is_some() && names.is_empty(), "all is certified");
    collector.seal(&name(4, hash(b"new")));
    let (last, names) = collector.help(FIRST + 4, 64);
    assert_eq!(
        (last, names),
        (None, vec![name(4, hash(b"new"))]),
        "all that is certified is known"
    );
}

#[test]
fn a_chain_grows_over_what_is_stored_without_a_gap() {
    let (bodies, mut chain) = (digests(3), Chain::new(AUTHOR, FIRST));
    assert_eq!(chain.available(), None);
    assert!(!chain.store(&name(1, bodies[1])) && chain.has_gap());
    assert!(!chain.store(&name(1, hash(b"a second"))));
    assert!(chain.store(&name(0, bodies[0])) && !chain.has_gap());
    assert_eq!(
        chain.available(),
        Some(acknowledge(0, 1, &bodies[..2]).available),
        "the first counts"
    );
    assert!(!chain.store(&name(0, hash(b"a second"))));
    assert!(chain.store(&name(2, bodies[2])));
    assert_eq!(chain.available(), Some(acknowledge(0, 1, &bodies).available));
}

#[test]
fn a_second_digest_under_a_number_is_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(
        Mutant::AcknowledgeLatest,
        a_chain_grows_over_what_is_stored_without_a_gap,
    );
}

#[test]
fn a_chain_goes_on_after_what_is_certified() {
    let bodies = digests(5);
    let mut chain = Chain::new(AUTHOR, FIRST);
    chain.store(&name(4, bodies[4]));
    let all = covered(certify(1, &bodies[..4], &[(1, 4), (2, 4)]));
    assert_eq!(chain.adopt(&all), Ok(true), "what is stored follows");
    assert_eq!(chain.available(), Some(acknowledge(0, 1, &bodies).available));
    assert_eq!(chain.adopt(&all), Ok(false), "nothing new");
    let mut behind = Chain::new(AUTHOR, FIRST);
    behind.store(&name(0, bodies[0]));
    assert_eq!(behind.adopt(&all), Ok(false));
    assert_eq!(behind.next(), FIRST + 4);
}

/// A certificate with another digest than the first one stored here is not gone by.
#[test]
fn a_chain_takes_up_no_second_digest() {
    let bodies = digests(3);
    let all = covered(certify(1, &bodies, &[(1, 3), (2, 3)]));
    let mut chained = Chain::new(AUTHOR, FIRST);
    chained.store(&name(0, hash(b"another")));
    assert_eq!(chained.adopt(&all), Err(Contradiction));
    let mut ahead = Chain::new(AUTHOR, FIRST);
    ahead.store(&name(1, hash(b"another")));
    assert_eq!(ahead.adopt(&all), Err(Contradiction));
    assert_eq!(ahead.next(), FIRST);
}

/// Memory beyond a gap is bounded, and what was forgotten is not chained again under another
/// digest.
#[test]
fn a_gap_holds_up_only_so_much() {
    let mut chain = Chain::new(AUTHOR, FIRST);
    for offset in 1..=1_025 {
        chain.store(&name(offset, hash(b"")));
    }
    assert!(chain.store(&name(0, hash(b""))));
    assert!(!chain.store(&name(1, hash(b"a second"))));
    assert_eq!(chain.next(), FIRST + 1);
}

/// As many as may wait beyond a gap are all chained once it closes.
#[test]
fn what_is_stored_ahead_is_kept_up_to_the_bound() {
    let mut chain = Chain::new(AUTHOR, FIRST);
    for offset in 1..=1_024 {
        assert!(!chain.store(&name(offset, hash(b""))));
        assert_eq!(chain.ahead() as u64, offset);
    }
    assert!(chain.store(&name(0, hash(b""))));
    assert_eq!((chain.next(), chain.ahead()), (FIRST + 1_025, 0));
}

/// ★ A certificate that begins right behind the chain must follow from it; one that begins further
/// on says nothing of what lies between.
#[test]
fn a_certificate_follows_from_what_is_chained() {
    let bodies = digests(3);
    let stretch = |offset: u64, before| Covered {
        author: AUTHOR,
        first: FIRST + offset,
        before,
        bodies: bodies[1..].to_vec(),
        signers: Vec::new(),
    };
    let chained = || {
        let mut chain = Chain::new(AUTHOR, FIRST);
        chain.store(&name(0, bodies[0]));
        chain
    };
    let link = chained().available().expect("one is stored").link;
    assert_eq!(chained().adopt(&stretch(1, hash(b"another"))), Err(Contradiction));
    for (offset, before) in [(1, link), (2, hash(b"unknown here"))] {
        let mut chain = chained();
        assert_eq!(chain.adopt(&stretch(offset, before)), Ok(false), "nothing ahead of it");
        assert_eq!(chain.next(), FIRST + offset + 2);
    }
}

/// An author keeps as many of its bodies as a certificate names, and all of those.
#[test]
fn an_author_keeps_what_a_certificate_may_name() {
    let mut collector = Collector::new(AUTHOR);
    let names: Vec<BodyRef> = (0..1_025).map(|offset| name(offset, hash(b""))).collect();
    names[..1_024].iter().for_each(|name| collector.seal(name));
    assert_eq!(collector.help(FIRST, usize::MAX).1, names[..1_024]);
    collector.seal(&names[1_024]);
    assert_eq!(collector.help(FIRST, usize::MAX).1, names[1..]);
    assert_eq!(collector.help(FIRST, 3).1, names[1..4]);
}

/// Its own word comes from its own chain, and from no message.
#[test]
fn an_author_takes_no_acknowledgement_of_its_own() {
    let (bodies, mut collector) = (digests(1), Collector::new(AUTHOR));
    collector.seal(&name(0, bodies[0]));
    assert!(!collector.acknowledge(AUTHOR, &acknowledge(1, 1, &bodies)));
    assert!(collector.acknowledge(ReplicaId(0), &acknowledge(0, 1, &bodies)));
}

/// Decided before it was certified, it is named until it is: whoever lacks it can chain on.
#[test]
fn what_is_decided_early_is_certified_all_the_same() {
    let (committee, bodies) = (committee(), digests(2));
    let mut collector = Collector::new(AUTHOR);
    for (offset, digest) in (0..).zip(&bodies) {
        collector.seal(&name(offset, *digest));
    }
    for reached in 1..=2 {
        collector.acknowledge(ReplicaId(0), &acknowledge(0, 1, &bodies[..reached]));
        let own = acknowledge(1, 1, &bodies[..reached]);
        let (made, _) = collector.certify(&committee, Some(&own)).expect("one more");
        assert_eq!(made.bodies, bodies[reached - 1..reached]);
        (0..2).for_each(|offset| collector.decide(FIRST + offset));
    }
}

#[test]
fn a_certificate_may_be_as_large_as_a_committee_and_the_list_allow() {
    let long = vec![hash(b""); 1_024];
    let all = certify(1, &long, &[(0, 1_024), (1, 1_024), (2, 1_024), (3, 1_024)]);
    assert_eq!(covered(all).bodies.len(), 1_024);
}

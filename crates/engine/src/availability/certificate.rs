//! Acknowledgements and certificates of availability: their wire forms and their checks.
//!
//! Acknowledgements are cumulative, so those in a certificate need not reach equally far: what is
//! covered is what members of `weak` weight reach together. A certificate names the digests of the
//! bodies, for whoever holds none of them. It need not prove that list, nor the link before it: the
//! list leads to the links that were signed, and no other list does.

use crate::frames::AVAILABLE_BODIES_MAX;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentityKey, Signature, verify_batch};
use quorate_types::{Available, BodyRef, Committee, Rejected, ReplicaId};

/// A member acknowledges an author's bodies, to the author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Acknowledgement {
    /// Bodies that are available, up to the last of them.
    pub available: Available,
    /// The sender's identity signature.
    pub signature: Signature,
}

/// Members of `weak` weight acknowledged an author's bodies up to some of these.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AvailabilityCertificate {
    /// Author of the bodies, a member.
    pub author: ReplicaId,
    /// The sequence number of the first one named.
    pub first: u64,
    /// The link before it.
    pub before: Digest,
    /// The bodies from there on.
    pub bodies: Vec<Digest>,
    /// Numbers of bodies acknowledged, by member, ascending.
    pub acknowledged: Vec<Acknowledged>,
}

/// One member's part in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Acknowledged {
    /// Member that signed the acknowledgement.
    pub signer: ReplicaId,
    /// Number of the certificate's bodies that it acknowledged; at least one.
    pub count: u32,
    /// Its identity signature over the link at the last of them.
    pub signature: Signature,
}

/// Bodies that a checked certificate covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Author of the bodies, a member.
    pub author: ReplicaId,
    /// The sequence number of the first one named.
    pub first: u64,
    /// The link before it.
    pub before: Digest,
    /// The bodies from there on that are covered.
    pub bodies: Vec<Digest>,
    /// The members that acknowledged them.
    pub signers: Vec<ReplicaId>,
}

impl AvailabilityCertificate {
    /// Checks form, weight and signatures, in this order: what weighs too little or is known
    /// already, before the number `known`, costs no cryptography (★).
    pub(crate) fn check(self, committee: &Committee, known: u64) -> Result<Covered, Rejected> {
        self.check_form(committee)?;
        let count = self.covered(committee)?;
        if self.first + count as u64 <= known {
            return Err(Rejected::Stale);
        }
        self.check_signatures(committee)?;
        Ok(self.into_covered(count))
    }

    /// As it is once checked, when `count` of its bodies are covered.
    pub(crate) fn into_covered(mut self, count: usize) -> Covered {
        self.bodies.truncate(count);
        Covered {
            author: self.author,
            first: self.first,
            before: self.before,
            bodies: self.bodies,
            signers: self.acknowledged.iter().map(|one| one.signer).collect(),
        }
    }

    fn check_form(&self, committee: &Committee) -> Result<(), Rejected> {
        if self.bodies.len() > AVAILABLE_BODIES_MAX || self.acknowledged.len() > committee.size() {
            return Err(Rejected::TooLarge("a certificate of availability"));
        }
        let signers = || self.acknowledged.iter().map(|one| one.signer);
        if !committee.contains(self.author) || !signers().all(|member| committee.contains(member)) {
            return Err(Rejected::NotAMember);
        }
        let ascending = signers().zip(signers().skip(1)).all(|(one, next)| one < next);
        let within = |one: &Acknowledged| (1..=self.bodies.len()).contains(&(one.count as usize));
        let last = self.first.checked_add(self.bodies.len() as u64);
        let one_start = last.is_some_and(|end| {
            Available::first_sequence(end) == Available::first_sequence(self.first)
        });
        let rule = "a certificate of availability names its signers in order and what they signed";
        let good = ascending && one_start && self.acknowledged.iter().all(within);
        if good { Ok(()) } else { Err(Rejected::RuleBroken(rule)) }
    }

    /// Number of its bodies that members of `weak` weight acknowledged.
    fn covered(&self, committee: &Committee) -> Result<usize, Rejected> {
        let mut reached: Vec<(u64, ReplicaId)> =
            self.acknowledged.iter().map(|one| (u64::from(one.count), one.signer)).collect();
        let enough = enough(committee, &mut reached);
        let last = match enough {
            None if mutants::active(Mutant::AvailableBelowWeak) => reached.last(),
            None => None,
            Some(members) => reached.get(members - 1),
        };
        let (count, _) = last.ok_or(Rejected::BelowThreshold)?;
        Ok(usize::try_from(*count).expect("no more than it names"))
    }

    fn check_signatures(&self, committee: &Committee) -> Result<(), Rejected> {
        let links: Vec<Digest> = links(self.first, self.before, &self.bodies).collect();
        let statement = |one: &Acknowledged| {
            let (sequence, link) =
                (self.first + u64::from(one.count) - 1, links[one.count as usize - 1]);
            Available { author: self.author, sequence, link }.statement(committee.scope())
        };
        let statements: Vec<Vec<u8>> = self.acknowledged.iter().map(statement).collect();
        let mut items: Vec<(IdentityKey, &[u8], Signature)> = Vec::with_capacity(statements.len());
        for (one, statement) in self.acknowledged.iter().zip(&statements) {
            let key = committee.identity(one.signer).ok_or(Rejected::NotAMember)?;
            items.push((*key, statement, one.signature));
        }
        verify_batch(&items).map_err(|_| Rejected::BadSignature("a certificate of availability"))
    }
}

impl Covered {
    /// The sequence number after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.bodies.len() as u64
    }

    /// The names of what it covers.
    pub(crate) fn names(&self) -> impl Iterator<Item = BodyRef> {
        let author = self.author;
        let numbered = self.bodies.iter().zip(self.first..);
        numbered.map(move |(digest, sequence)| BodyRef { author, sequence, digest: *digest })
    }

    /// The link before the body with this number, which is not before the first nor after the last.
    pub(crate) fn link_before(&self, sequence: u64) -> Digest {
        let count = usize::try_from(sequence - self.first).expect("within the certificate");
        links(self.first, self.before, &self.bodies[..count]).last().unwrap_or(self.before)
    }
}

/// The links at these bodies.
fn links(first: u64, before: Digest, bodies: &[Digest]) -> impl Iterator<Item = Digest> {
    // The bodies first: the last number may be the last of all.
    bodies.iter().zip(first..).scan(before, |link, (digest, sequence)| {
        *link = Available::link(*link, sequence, *digest);
        Some(*link)
    })
}

/// Sorts members by how far they reached, the farthest first; returns how many of the first weigh
/// so much that one of them is honest. Together they reached as far as the last of those.
pub(crate) fn enough(committee: &Committee, reached: &mut [(u64, ReplicaId)]) -> Option<usize> {
    reached.sort_unstable_by(|one, other| other.cmp(one));
    let mut weight = 0;
    let last = reached.iter().position(|(_, member)| {
        weight += committee.weight(*member);
        weight >= committee.weak()
    });
    Some(last? + 1)
}

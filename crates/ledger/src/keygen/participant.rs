//! One member's secrets, and what they have it do.

use super::ceremony::{Ceremony, Dealt};
use super::plan::Plan;
use super::step::{Deal, Opening, Phase, SignedStep, Step};
use quorate_crypto::{
    Contribution, EnvelopeSecret, IdentitySecret, SchemeKind, Sharing, VotingSecret, add_shares,
    contribute,
};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A member that takes part. All that it does follows from one secret seed and the order, so that
/// it goes on after a restart if it kept the seed.
pub struct Participant {
    plan: Arc<Plan>,
    member: u16,
    identity: IdentitySecret,
    seed: Zeroizing<[u8; 32]>,
    reader: EnvelopeSecret,
    contribution: Contribution,
}

/// Qualified dealers of which this member has no good share: it has no keys, though the committee
/// does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this member has no good share from {}: it was away when complaints were heard, and is one of \
     those that the committee does without", list(.0)
)]
pub struct MissingShares(pub Vec<u16>);

impl Participant {
    /// The member that `identity` is; `None` if it is no member. `seed` is 32 bytes of fresh
    /// randomness, kept from one start to the next and forgotten once the keys are safe.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        identity: IdentitySecret,
        seed: Zeroizing<[u8; 32]>,
    ) -> Option<Self> {
        let public = identity.public();
        let member = plan.identities.iter().position(|key| *key == public)?;
        let context = plan.dealer_context(member);
        let reader = EnvelopeSecret::derive(&seed, &context);
        let contribution = contribute(plan.members(), &plan.thresholds, &seed, &context);
        let contribution = contribution.expect("a plan's thresholds fit its members");
        let member = u16::try_from(member).expect("limited by the plan");
        Some(Self { plan, member, identity, seed, reader, contribution })
    }

    /// Index of the member that takes part.
    #[must_use]
    pub fn member(&self) -> u16 {
        self.member
    }

    /// Returns `true` if this member joined with the seed that it has now.
    #[must_use]
    pub fn is_known_to(&self, ceremony: &Ceremony) -> bool {
        ceremony.key_of(self.member) == Some(&self.reader.public())
    }

    /// Returns `true` if the members went on without the seed that this member has.
    #[must_use]
    pub fn is_left_out(&self, ceremony: &Ceremony) -> bool {
        let has_joined = || ceremony.joined().contains(&self.member);
        let has_begun = ceremony.phase() != Phase::Joining || has_joined();
        has_begun && !self.is_known_to(ceremony)
    }

    /// Returns `true` once the order says that this member gets no keys, however often it starts:
    /// its seed is of no use any more.
    #[must_use]
    pub fn gets_no_keys(&self, ceremony: &Ceremony) -> bool {
        match ceremony.result() {
            _ if self.is_left_out(ceremony) => true,
            Some(Ok(_)) => self.keys(ceremony).is_err(),
            Some(Err(_)) => true,
            None => false,
        }
    }

    /// Step that it has to take now; `None` if it has to wait.
    #[must_use]
    pub fn next_step(&self, ceremony: &Ceremony) -> Option<Step> {
        match ceremony.phase() {
            Phase::Joining if !ceremony.did_its_part(self.member) => {
                Some(Step::Join(self.reader.public()))
            }
            _ if !self.is_known_to(ceremony) => None,
            Phase::Dealing if !ceremony.did_its_part(self.member) => {
                Some(Step::Deal(Box::new(self.deal(ceremony))))
            }
            Phase::Checking if !ceremony.did_its_part(self.member) => {
                Some(Step::Check(self.complaints(ceremony)))
            }
            Phase::Answering if ceremony.owes_answer(self.member) => {
                Some(Step::Answer(self.openings(ceremony)))
            }
            _ => None,
        }
    }

    /// A step of this member as it is handed in.
    #[must_use]
    pub fn sign(&self, step: &Step) -> SignedStep {
        SignedStep::sign(&self.plan, &self.identity, self.member, step)
    }

    /// Its share of what was generated: the sum of what the qualified dealers gave it.
    ///
    /// # Errors
    /// [`MissingShares`].
    ///
    /// # Panics
    /// When nothing was generated.
    pub fn keys(&self, ceremony: &Ceremony) -> Result<VotingSecret, MissingShares> {
        let generated = ceremony.result().and_then(|result| result.as_ref().ok());
        let qualified = &generated.expect("keys were generated").qualified;
        let mut parts = Vec::with_capacity(qualified.len());
        let mut missing = Vec::new();
        for dealer in qualified {
            match self.share_from(ceremony, *dealer) {
                Some(share) => parts.push(share),
                None => missing.push(*dealer),
            }
        }
        if !missing.is_empty() {
            return Err(MissingShares(missing));
        }
        Ok(add_shares(&parts).expect("a sum of random numbers that is zero does not come up"))
    }

    fn deal(&self, ceremony: &Ceremony) -> Deal {
        let Contribution { shares, commitments, possession } = &self.contribution;
        let seal = |receiver: u16| {
            let (dealer, to) = (usize::from(self.member), usize::from(receiver));
            let context = self.plan.envelope_context(dealer, to);
            let key = ceremony.key_of(receiver).expect("it joined");
            // Nothing can be sealed for a key that is none; whoever published it complains in vain.
            let envelope = key.seal(&self.seed, &context, &shares[to].to_bytes());
            let nothing =
                || quorate_crypto::Envelope { encapsulated: [0; 32], ciphertext: Vec::new() };
            (receiver, envelope.unwrap_or_else(nothing))
        };
        let others = ceremony.joined().into_iter().filter(|member| *member != self.member);
        Deal {
            commitments: Sharing::ALL.map(|sharing| commitments.get(sharing).clone()),
            possession: Sharing::ALL.map(|sharing| possession.get(sharing).clone()),
            envelopes: others.map(seal).collect(),
        }
    }

    fn complaints(&self, ceremony: &Ceremony) -> Vec<u16> {
        let others = ceremony.dealt().iter().filter(|(dealer, _)| **dealer != self.member);
        let bad = others.filter(|(dealer, dealt)| self.open(**dealer, dealt).is_none());
        bad.map(|(dealer, _)| *dealer).collect()
    }

    fn openings(&self, ceremony: &Ceremony) -> Vec<Opening> {
        let open = |member: &u16| Opening {
            member: *member,
            shares: self.contribution.shares[usize::from(*member)].to_bytes().to_vec(),
        };
        ceremony.accused()[&self.member].iter().map(open).collect()
    }

    fn share_from(&self, ceremony: &Ceremony, dealer: u16) -> Option<VotingSecret> {
        if dealer == self.member {
            return Some(self.contribution.shares[usize::from(dealer)].clone());
        }
        let opened = ceremony.opened(dealer, self.member).cloned();
        opened.or_else(|| self.open(dealer, ceremony.dealt().get(&dealer)?))
    }

    /// Opens the shares that a dealer sealed for this member, if they are what it committed to.
    fn open(&self, dealer: u16, dealt: &Dealt) -> Option<VotingSecret> {
        let own = usize::from(self.member);
        let context = self.plan.envelope_context(usize::from(dealer), own);
        let plain = self.reader.open(dealt.envelopes.get(&self.member)?, &context)?;
        let shares = VotingSecret::from_bytes(SchemeKind::BlsThreshold, &plain).ok()?;
        dealt.commitments.holds(own, &shares).then_some(shares)
    }
}

fn list(dealers: &[u16]) -> String {
    let names: Vec<String> = dealers.iter().map(|dealer| format!("dealer {dealer}")).collect();
    names.join(", ")
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Participant({})", self.member)
    }
}

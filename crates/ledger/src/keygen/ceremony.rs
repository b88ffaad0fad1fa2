//! State machine of a key generation: the result of the steps in their order.

use super::plan::Plan;
use super::step::{Deal, Opening, Phase, SignedStep, Step};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    BySharing, Commitments, Digest, Envelope, EnvelopeKey, KeyError, PartsHasher, SchemeKind,
    Sharing, VotingKey, VotingSecret,
};
use quorate_types::{CommitteeFile, Groups};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Reason for which a step changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It does not decode, or its member did not sign it.
    #[error("the step does not decode, or its member did not sign it for this generation")]
    Unsigned,
    /// Its phase has not come, or is over.
    #[error("the step comes while the members are {0}")]
    Phase(Phase),
    /// The member never joined.
    #[error("the member has not joined")]
    NotJoined,
    /// The member did this before.
    #[error("the member did this before")]
    Repeated,
    /// A deal whose commitments or proofs are bad.
    #[error("the deal is refused: {0}")]
    Deal(KeyError),
    /// A deal without exactly one envelope for each other member that joined, in order.
    #[error("the deal is not sealed for each member that joined, in order")]
    Envelopes,
    /// Complaints that are out of order, or about members that dealt nothing.
    #[error("the complaints are not about others who dealt, in order")]
    Complaints,
    /// An answer of a dealer that nobody complained about.
    #[error("nobody complained about this dealer")]
    NotAccused,
    /// A member that has yet to do its part.
    #[error("a member that has not done its part does not close a phase")]
    OwnPart,
    /// Keys that belong to something else.
    #[error("the member's keys are not those of this generation")]
    OtherKeys,
}

/// Reason for which a dealer is disqualified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// f+1 members complained, one of whom is honest.
    Complaints,
    /// It opened something that it had not committed to, or not all that it was asked for.
    BadAnswer,
    /// It did not answer.
    Silence,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complaints => "too many complaints to be false",
            Self::BadAnswer => "a bad answer to a complaint",
            Self::Silence => "no answer to a complaint",
        })
    }
}

/// Keys that were generated: the same for whoever knows the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Members whose polynomials were added up.
    pub qualified: Vec<u16>,
    /// Public keys of the groups, by sharing.
    pub groups: BySharing<VotingKey>,
    /// Each member's public shares, of those who take no part too.
    pub publics: Vec<VotingKey>,
    /// Digest that stands for all of it.
    pub digest: Digest,
}

/// Reason for which there are no keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only {qualified} dealers are left and {needed} are needed, so that one of them is honest; \
     generate anew with a longer --timeout, or without the members that failed"
)]
pub struct Failure {
    /// Number of dealers left.
    pub qualified: usize,
    /// Number of dealers that it takes.
    pub needed: usize,
}

/// A dealer's deal, and its points.
#[derive(Debug)]
pub(super) struct Dealt {
    pub(super) commitments: Commitments,
    pub(super) envelopes: BTreeMap<u16, Envelope>,
}

/// The state: a function of the steps in their order. Cloning shares what is large.
#[derive(Clone, Debug)]
pub struct Ceremony {
    plan: Arc<Plan>,
    phase: Phase,
    joined: BTreeMap<u16, EnvelopeKey>,
    dealt: BTreeMap<u16, Arc<Dealt>>,
    checked: BTreeSet<u16>,
    /// Dealers with those who complained about them.
    accused: BTreeMap<u16, BTreeSet<u16>>,
    /// Shares that answers opened, by dealer and member; all of them are good.
    opened: BTreeMap<(u16, u16), VotingSecret>,
    answered: BTreeSet<u16>,
    out: BTreeMap<u16, Reason>,
    /// Members that said that the present phase lasts too long.
    closing: BTreeSet<u16>,
    result: Option<Result<Arc<Generated>, Failure>>,
    done: BTreeSet<u16>,
    /// Steps that were not refused, encoded.
    steps: Vec<Bytes>,
    /// Number of them that led to the result.
    decisive: usize,
    head: Digest,
}

impl Ceremony {
    /// A ceremony before anybody has joined.
    #[must_use]
    pub fn new(plan: Arc<Plan>) -> Self {
        Self {
            plan,
            phase: Phase::Joining,
            joined: BTreeMap::new(),
            dealt: BTreeMap::new(),
            checked: BTreeSet::new(),
            accused: BTreeMap::new(),
            opened: BTreeMap::new(),
            answered: BTreeSet::new(),
            out: BTreeMap::new(),
            closing: BTreeSet::new(),
            result: None,
            done: BTreeSet::new(),
            steps: Vec::new(),
            decisive: 0,
            head: Digest::ZERO,
        }
    }

    /// Takes the next step of the order in.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub fn apply(&mut self, signed: &SignedStep) -> Result<(), Refusal> {
        let step = signed.open(&self.plan).ok_or(Refusal::Unsigned)?;
        let member = signed.member;
        match step {
            Step::Join(key) => self.on_join(member, key),
            Step::Deal(deal) => self.on_deal(member, &deal),
            Step::Check(accused) => self.on_check(member, &accused),
            Step::Answer(openings) => self.on_answer(member, &openings),
            Step::Close(phase) => self.on_close(member, phase),
            Step::Done(digest) => self.on_done(member, digest),
        }?;
        self.note(signed);
        self.proceed();
        Ok(())
    }

    /// Plan that all who take part knew from the start.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Phase that the generation is in.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Members that joined, ascending.
    #[must_use]
    pub fn joined(&self) -> Vec<u16> {
        self.joined.keys().copied().collect()
    }

    /// Members that dealt, ascending.
    #[must_use]
    pub fn dealers(&self) -> Vec<u16> {
        self.dealt.keys().copied().collect()
    }

    /// Number of members that checked what was dealt to them.
    #[must_use]
    pub fn checked(&self) -> usize {
        self.checked.len()
    }

    /// Dealers with those who complained about them.
    #[must_use]
    pub fn accused(&self) -> &BTreeMap<u16, BTreeSet<u16>> {
        &self.accused
    }

    /// Dealers that are out, and why.
    #[must_use]
    pub fn out(&self) -> &BTreeMap<u16, Reason> {
        &self.out
    }

    /// Result of the generation; `None` before it is over.
    #[must_use]
    pub fn result(&self) -> Option<&Result<Arc<Generated>, Failure>> {
        self.result.as_ref()
    }

    /// Members that have their keys.
    #[must_use]
    pub fn done(&self) -> &BTreeSet<u16> {
        &self.done
    }

    /// Returns `true` if a member has said that the present phase lasts too long.
    #[must_use]
    pub fn wants_to_close(&self, member: u16) -> bool {
        self.closing.contains(&member)
    }

    /// The steps that led to the result, in their order; all so far before there is one.
    #[must_use]
    pub fn steps(&self) -> &[Bytes] {
        &self.steps[..self.decisive]
    }

    /// Number of steps taken in, and the hash that stands for them.
    #[must_use]
    pub fn head(&self) -> (u64, Digest) {
        (self.steps.len() as u64, self.head)
    }

    pub(super) fn key_of(&self, member: u16) -> Option<&EnvelopeKey> {
        self.joined.get(&member)
    }

    pub(super) fn dealt(&self) -> &BTreeMap<u16, Arc<Dealt>> {
        &self.dealt
    }

    pub(super) fn opened(&self, dealer: u16, member: u16) -> Option<&VotingSecret> {
        self.opened.get(&(dealer, member))
    }

    /// Returns `true` if a member has nothing left to do in the present phase, so that it may wait
    /// for others.
    #[must_use]
    pub fn did_its_part(&self, member: u16) -> bool {
        match self.phase {
            Phase::Joining => self.joined.contains_key(&member),
            Phase::Dealing => self.dealt.contains_key(&member),
            Phase::Checking => self.checked.contains(&member),
            Phase::Answering => self.joined.contains_key(&member) && !self.owes_answer(member),
            Phase::Over => self.done.contains(&member),
        }
    }

    /// Returns `true` if a dealer was complained about and has not answered.
    #[must_use]
    pub fn owes_answer(&self, dealer: u16) -> bool {
        self.phase == Phase::Answering
            && self.accused.contains_key(&dealer)
            && !self.answered.contains(&dealer)
            && !self.out.contains_key(&dealer)
    }

    // ---- steps ----------------------------------------------------------------------------------

    fn on_join(&mut self, member: u16, key: EnvelopeKey) -> Result<(), Refusal> {
        self.expect(Phase::Joining)?;
        if self.joined.contains_key(&member) {
            return Err(Refusal::Repeated);
        }
        self.joined.insert(member, key);
        Ok(())
    }

    fn on_deal(&mut self, dealer: u16, deal: &Deal) -> Result<(), Refusal> {
        self.expect(Phase::Dealing)?;
        self.expect_joined(dealer)?;
        if self.dealt.contains_key(&dealer) {
            return Err(Refusal::Repeated);
        }
        let receivers = deal.envelopes.iter().map(|(member, _)| member);
        if !receivers.eq(self.joined.keys().filter(|member| **member != dealer)) {
            return Err(Refusal::Envelopes);
        }
        let commitments = Commitments::read(
            &deal.commitments(),
            &deal.possession(),
            &self.plan.thresholds,
            &self.plan.dealer_context(usize::from(dealer)),
        );
        let commitments = commitments.map_err(Refusal::Deal)?;
        let envelopes = deal.envelopes.iter().cloned().collect();
        self.dealt.insert(dealer, Arc::new(Dealt { commitments, envelopes }));
        Ok(())
    }

    fn on_check(&mut self, member: u16, accused: &[u16]) -> Result<(), Refusal> {
        self.expect(Phase::Checking)?;
        self.expect_joined(member)?;
        if self.checked.contains(&member) {
            return Err(Refusal::Repeated);
        }
        let is_other = |dealer: &u16| *dealer != member && self.dealt.contains_key(dealer);
        if !accused.is_sorted_by(|one, next| one < next) || !accused.iter().all(is_other) {
            return Err(Refusal::Complaints);
        }
        self.checked.insert(member);
        for dealer in accused {
            self.accused.entry(*dealer).or_default().insert(member);
        }
        Ok(())
    }

    /// An answer counts once, good or bad.
    fn on_answer(&mut self, dealer: u16, openings: &[Opening]) -> Result<(), Refusal> {
        self.expect(Phase::Answering)?;
        if !self.owes_answer(dealer) {
            return Err(Refusal::NotAccused);
        }
        match self.read_answer(dealer, openings) {
            Some(opened) => self.opened.extend(opened),
            None => drop(self.out.insert(dealer, Reason::BadAnswer)),
        }
        self.answered.insert(dealer);
        Ok(())
    }

    /// Reads the shares that an answer opens, if they are all that was asked for and what was
    /// committed to (★).
    fn read_answer(
        &self,
        dealer: u16,
        openings: &[Opening],
    ) -> Option<Vec<((u16, u16), VotingSecret)>> {
        let complete =
            openings.iter().map(|opening| opening.member).eq(self.accused[&dealer].iter().copied());
        if !complete && !mutants::active(Mutant::DkgAnyAnswer) {
            return None;
        }
        let commitments = &self.dealt[&dealer].commitments;
        let read = |Opening { member, shares }: &Opening| {
            let shares = VotingSecret::from_bytes(SchemeKind::BlsThreshold, shares).ok()?;
            let good = commitments.holds(usize::from(*member), &shares)
                || mutants::active(Mutant::DkgAnyAnswer);
            good.then_some(((dealer, *member), shares))
        };
        openings.iter().map(read).collect()
    }

    fn on_close(&mut self, member: u16, phase: Phase) -> Result<(), Refusal> {
        self.expect(phase)?;
        if phase == Phase::Over {
            return Err(Refusal::Phase(phase));
        }
        if !self.did_its_part(member) {
            return Err(Refusal::OwnPart);
        }
        if !self.closing.insert(member) {
            return Err(Refusal::Repeated);
        }
        Ok(())
    }

    fn on_done(&mut self, member: u16, digest: Digest) -> Result<(), Refusal> {
        self.expect(Phase::Over)?;
        self.expect_joined(member)?;
        match &self.result {
            Some(Ok(generated)) if generated.digest == digest => {}
            _ => return Err(Refusal::OtherKeys),
        }
        if self.done.insert(member) { Ok(()) } else { Err(Refusal::Repeated) }
    }

    fn expect(&self, phase: Phase) -> Result<(), Refusal> {
        if self.phase == phase { Ok(()) } else { Err(Refusal::Phase(self.phase)) }
    }

    fn expect_joined(&self, member: u16) -> Result<(), Refusal> {
        if self.joined.contains_key(&member) { Ok(()) } else { Err(Refusal::NotJoined) }
    }

    fn note(&mut self, signed: &SignedStep) {
        let bytes = signed.encode();
        let mut hasher = PartsHasher::new("quorate v1 key generation");
        hasher.part(&self.head.0);
        hasher.part(&bytes);
        self.head = hasher.finish();
        self.steps.push(bytes);
        if self.result.is_none() {
            self.decisive = self.steps.len();
        }
    }

    // ---- phases ---------------------------------------------------------------------------------

    /// Goes from phase to phase for as long as nobody is waited for.
    fn proceed(&mut self) {
        while self.phase != Phase::Over && (self.all_did_their_part() || self.is_closed()) {
            self.closing.clear();
            self.phase = match self.phase {
                Phase::Joining => Phase::Dealing,
                Phase::Dealing => Phase::Checking,
                Phase::Checking => self.judge_complaints(),
                Phase::Answering => self.judge_silence(),
                Phase::Over => Phase::Over,
            };
            if self.phase == Phase::Over {
                self.conclude();
            }
        }
    }

    fn all_did_their_part(&self) -> bool {
        match self.phase {
            Phase::Joining => self.joined.len() == self.plan.members(),
            _ => self.joined.keys().all(|member| self.did_its_part(*member)),
        }
    }

    /// Returns `true` if a quorum waits no longer (★).
    fn is_closed(&self) -> bool {
        let needed = if mutants::active(Mutant::DkgCloseByFew) {
            self.plan.weak()
        } else {
            self.plan.quorum()
        };
        self.closing.len() >= needed
    }

    fn judge_complaints(&mut self) -> Phase {
        for (dealer, complaints) in &self.accused {
            if complaints.len() >= self.plan.weak() {
                self.out.insert(*dealer, Reason::Complaints);
            }
        }
        if self.accused.keys().any(|dealer| !self.out.contains_key(dealer)) {
            Phase::Answering
        } else {
            Phase::Over
        }
    }

    /// Whoever did not answer is out (★).
    fn judge_silence(&mut self) -> Phase {
        for dealer in self.accused.keys() {
            if !self.answered.contains(dealer) && !mutants::active(Mutant::DkgKeepSilent) {
                self.out.entry(*dealer).or_insert(Reason::Silence);
            }
        }
        Phase::Over
    }

    /// Adds up what is left, if that is enough for one of them to be honest (★).
    fn conclude(&mut self) {
        let is_left = |dealer: &&u16| !self.out.contains_key(dealer);
        let qualified: Vec<u16> = self.dealt.keys().filter(is_left).copied().collect();
        let needed = if mutants::active(Mutant::DkgFewDealers) { 1 } else { self.plan.weak() };
        self.result = Some(if qualified.len() < needed {
            Err(Failure { qualified: qualified.len(), needed })
        } else {
            Ok(Arc::new(self.generate(qualified)))
        });
    }

    fn generate(&self, qualified: Vec<u16>) -> Generated {
        let parts: Vec<_> =
            qualified.iter().map(|dealer| &self.dealt[dealer].commitments).collect();
        let sum = Commitments::sum(&parts);
        let groups = sum.groups();
        let publics: Vec<_> = (0..self.plan.members()).map(|member| sum.public(member)).collect();
        let mut hasher = PartsHasher::new("quorate v1 generated keys");
        hasher.part(&self.plan.scope.network.0);
        Sharing::ALL.iter().for_each(|sharing| hasher.part(&groups.get(*sharing).0));
        publics.iter().for_each(|key| hasher.part(&key.0));
        Generated { qualified, groups, publics, digest: hasher.finish() }
    }
}

impl Generated {
    /// The committee that votes with these keys: members and addresses of the one that generated
    /// them, in the epoch for which it did. That is the next one of a founding committee, and its
    /// own of a file for the next epoch of a network.
    #[must_use]
    pub fn committee(&self, generators: &CommitteeFile) -> CommitteeFile {
        let has_network = generators.network.is_some();
        let mut file = CommitteeFile {
            epoch: if has_network { generators.epoch } else { generators.epoch.next() },
            scheme: SchemeKind::BlsThreshold.to_string(),
            groups: Some(Groups::from(&self.groups)),
            ..generators.clone()
        };
        for (member, key) in file.members.iter_mut().zip(&self.publics) {
            member.voting = key.to_string();
            member.possession = String::new();
        }
        file
    }
}

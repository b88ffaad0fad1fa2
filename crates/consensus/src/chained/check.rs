//! Validity of messages, as far as no state is needed.

use super::messages::{Block, Message, PhaseVote, Proposal, Qc, Tc, Timeout, Vote};
use super::rules::{Phase, Rules};
use super::statements::{proposal_message, timeout_message, vote_message};
use crate::block_tree::TreeBlock;
use crate::verifier::{Verifier, WINDOW};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Certificate, Share};
use quorate_types::{BlockId, BodyRef, Purpose, Rejected, ReplicaId, View};

/// Views for which a proposal may be late: whoever collects votes may have those of a block, and of
/// the one after it, before either block has come on its leader's own link.
pub(super) const LATE_VIEWS: u64 = 4;

/// Checks a message from `from`; certificates in it come out as the copies that were checked.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify(message: Message, from: ReplicaId, verifier: &Verifier) -> Result<Message, Rejected> {
    check_phases(&message, verifier.rules())?;
    Ok(match message {
        Message::Proposal(proposal) => Message::Proposal(check_proposal(proposal, from, verifier)?),
        Message::Vote(vote) => {
            check_vote(&vote, Phase::Prepare, from, verifier)?;
            check_window(vote.view, verifier)?;
            Message::Vote(vote)
        }
        Message::PhaseVote(PhaseVote { phase, vote }) => {
            check_vote(&vote, phase, from, verifier)?;
            check_window(vote.view, verifier)?;
            Message::PhaseVote(PhaseVote { phase, vote })
        }
        Message::PreCommitted(qc) => {
            if qc.view < verifier.horizon() {
                return Err(Rejected::Stale);
            }
            Message::PreCommitted(check_phase_qc(Phase::PreCommit, qc, verifier)?)
        }
        Message::NewView(qc) => Message::NewView(check_new_view(qc, verifier)?),
        Message::Timeout(timeout) => Message::Timeout(check_timeout(timeout, from, verifier)?),
        Message::Certificates { high_qc, high_tc } => {
            let newest = high_tc.as_ref().map_or(high_qc.view, |tc| tc.view.max(high_qc.view));
            // One that decides may be news however old it is: a later one may have hidden it.
            if newest.next() < verifier.horizon() && !high_qc.is_commit(verifier.rules()) {
                return Err(Rejected::Stale);
            }
            Message::Certificates {
                high_qc: check_qc(high_qc, verifier)?,
                high_tc: high_tc.map(|tc| check_tc(tc, verifier)).transpose()?,
            }
        }
    })
}

/// Refuses mentions of phases where a view has only one, and votes of the first phase in the place
/// of others.
fn check_phases(message: &Message, rules: &Rules) -> Result<(), Rejected> {
    let is_later = match message {
        Message::Proposal(_)
        | Message::Vote(_)
        | Message::Timeout(_)
        | Message::Certificates { .. } => return Ok(()),
        Message::PhaseVote(vote) => vote.phase > Phase::Prepare,
        Message::PreCommitted(_) | Message::NewView(_) => true,
    };
    if !rules.is_phased() || !is_later {
        return Err(Rejected::RuleBroken("a later phase is of a protocol that has one"));
    }
    Ok(())
}

/// It shows what ended the view before, by a decision: whoever gave that view up has said so.
fn check_new_view(qc: Qc, verifier: &Verifier) -> Result<Qc, Rejected> {
    if qc.view.next() < verifier.horizon() {
        return Err(Rejected::Stale);
    }
    if !qc.is_commit(verifier.rules()) {
        return Err(Rejected::RuleBroken("a new-view shows what decided the view before"));
    }
    check_qc(qc, verifier)
}

fn check_proposal(
    proposal: Proposal,
    from: ReplicaId,
    verifier: &Verifier,
) -> Result<Proposal, Rejected> {
    let Proposal { block, signature } = proposal;
    if block.author != from {
        return Err(Rejected::ForeignSender);
    }
    // Blocks under the certificates that ended views may arrive after these certificates.
    if block.view.0.saturating_add(LATE_VIEWS) < verifier.horizon().0 {
        return Err(Rejected::Stale);
    }
    check_block_form(&block, verifier)?;
    check_proposal_signature(&block, &signature, verifier)?;
    let justify = check_qc(block.justify, verifier)?;
    let tc = block.tc.map(|tc| check_tc(tc, verifier)).transpose()?;
    let block = Block { justify, tc, ..block };
    check_succession(&block, verifier.rules())?;
    Ok(Proposal { block, signature })
}

pub(super) fn check_block_form(block: &Block, verifier: &Verifier) -> Result<(), Rejected> {
    if block.epoch != verifier.committee().epoch_id() {
        return Err(Rejected::ForeignEpoch);
    }
    if !block.payload.is_consistent() {
        return Err(Rejected::RuleBroken("a payload is what its header names, without repeats"));
    }
    let is_strange = |body: &BodyRef| !verifier.committee().contains(body.author);
    if block.payload.bodies.iter().any(is_strange) {
        return Err(Rejected::RuleBroken("a body's author is a member"));
    }
    Ok(())
}

fn check_proposal_signature(
    block: &Block,
    signature: &[u8],
    verifier: &Verifier,
) -> Result<(), Rejected> {
    let message = proposal_message(verifier, block.view, block.id());
    verifier.check_alone(block.author, &message, signature, "a proposal's signature")
}

/// The Block rule: (A) it follows its parent's view, or (B) a timeout certificate explains the gap
/// and, where the protocol's voters have no locks, its parent is no older than what that
/// certificate reports (★).
fn check_succession(block: &Block, rules: &Rules) -> Result<(), Rejected> {
    if block.view <= block.justify.view {
        return Err(Rejected::RuleBroken("a block's view is later than its parent's"));
    }
    let entered_by_qc = block.view == block.justify.leads_to(rules);
    let Some(tc) = &block.tc else {
        return entered_by_qc.then_some(()).ok_or(Rejected::RuleBroken(
            "a block follows its parent's view or carries a timeout certificate",
        ));
    };
    if entered_by_qc || block.view != tc.view.next() {
        return Err(Rejected::RuleBroken("a timeout certificate is of the view before, if needed"));
    }
    let stale = rules.extends_report && block.justify.view < tc.high_qc.view;
    if stale && !mutants::active(Mutant::JolteonStaleJustify) {
        return Err(Rejected::RuleBroken("a block extends what its timeout certificate reports"));
    }
    Ok(())
}

fn check_vote(
    vote: &Vote,
    phase: Phase,
    from: ReplicaId,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    if vote.signer != from {
        return Err(Rejected::ForeignSender);
    }
    check_base(phase, (vote.view, vote.id), (vote.base_view, vote.base_id), verifier)?;
    check_share_size(&vote.share, verifier)
}

/// A vote that the timeout of a view shows.
fn check_last_vote(
    vote: &Vote,
    view: View,
    from: ReplicaId,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    check_vote(vote, verifier.rules().phase_of(vote.view, vote.base_view), from, verifier)?;
    let rule = "a last vote is of this view or before";
    (vote.view <= view).then_some(()).ok_or(Rejected::RuleBroken(rule))
}

/// The base is older than the block; in the last of several phases it is the block.
fn check_base(
    phase: Phase,
    block: (View, BlockId),
    base: (View, BlockId),
    verifier: &Verifier,
) -> Result<(), Rejected> {
    let fits = verifier.rules().is_base(phase, block, base);
    fits.then_some(()).ok_or(Rejected::RuleBroken("a block's view is later than its ancestors'"))
}

fn check_share_size(share: &Share, verifier: &Verifier) -> Result<(), Rejected> {
    let fits = share.0.len() == verifier.voting().share_bytes();
    fits.then_some(()).ok_or(Rejected::BadSignature("a share of the wrong length"))
}

/// A vote is of use from the view before the current one (its collector may be ahead) to the end of
/// the window.
fn check_window(view: View, verifier: &Verifier) -> Result<(), Rejected> {
    let horizon = verifier.horizon();
    if view.next() < horizon {
        return Err(Rejected::Stale);
    }
    if view.0 > horizon.0.saturating_add(WINDOW) {
        return Err(Rejected::TooFarAhead);
    }
    Ok(())
}

/// A timeout for an older view gets an answer whatever it carries, so nothing in it is checked but
/// its sender; the machine takes nothing from it but a sound vote. One for a later view carries the
/// certificate that leads there, so it is never too far ahead.
fn check_timeout(
    timeout: Timeout,
    from: ReplicaId,
    verifier: &Verifier,
) -> Result<Timeout, Rejected> {
    if timeout.signer != from {
        return Err(Rejected::ForeignSender);
    }
    if timeout.view < verifier.horizon() {
        let is_sound = |vote: &Vote| check_last_vote(vote, timeout.view, from, verifier).is_ok();
        return Ok(Timeout { last_vote: timeout.last_vote.filter(is_sound), ..timeout });
    }
    check_share_size(&timeout.share, verifier)?;
    if let Some(vote) = &timeout.last_vote {
        check_last_vote(vote, timeout.view, from, verifier)?;
    }
    let leads_to = timeout.high_qc.leads_to(verifier.rules());
    let entered_by_qc = timeout.view == leads_to;
    let tc_fits = match &timeout.high_tc {
        None => entered_by_qc,
        Some(tc) => !entered_by_qc && timeout.view == tc.view.next(),
    };
    if !tc_fits || leads_to > timeout.view {
        return Err(Rejected::RuleBroken("a timeout shows the certificate that led to its view"));
    }
    let high_qc = check_qc(timeout.high_qc, verifier)?;
    let high_tc = timeout.high_tc.map(|tc| check_tc(tc, verifier)).transpose()?;
    Ok(Timeout { high_qc, high_tc, ..timeout })
}

/// QC valid: exactly genesis, or a quorum's votes for a block: those of the last phase if it says
/// so by its base, otherwise those of the first.
pub(super) fn check_qc(qc: Qc, verifier: &Verifier) -> Result<Qc, Rejected> {
    if qc.view == View(0) {
        return check_genesis(qc, verifier);
    }
    let phase = verifier.rules().phase_of(qc.view, qc.base_view);
    check_phase_qc(phase, qc, verifier)
}

/// A quorum of distinct signers with a good signature over what the votes of this phase sign (★).
fn check_phase_qc(phase: Phase, qc: Qc, verifier: &Verifier) -> Result<Qc, Rejected> {
    let (block, base) = ((qc.view, qc.id), (qc.base_view, qc.base_id));
    check_base(phase, block, base, verifier)?;
    let kind = verifier.rules().kind(phase);
    if let Some(known) = verifier.known_qc(kind, &qc) {
        return Ok(known);
    }
    let enough = verifier.committee().is_enough(Purpose::Vote, &qc.certificate);
    if !enough && !mutants::active(Mutant::SkipThreshold) {
        return Err(Rejected::BelowThreshold);
    }
    let message = vote_message(verifier, phase, block, base);
    verifier
        .voting()
        .verify(&message, &qc.certificate)
        .map_err(|_| Rejected::BadSignature("a certificate"))?;
    verifier.remember_qc(kind, &qc);
    Ok(qc)
}

fn check_genesis(qc: Qc, verifier: &Verifier) -> Result<Qc, Rejected> {
    let genesis = Qc::genesis(verifier.genesis(), verifier.committee().size());
    let exact = qc == genesis && qc.certificate == genesis.certificate;
    exact.then_some(qc).ok_or(Rejected::RuleBroken("only genesis has view 0"))
}

/// TC valid (★): a quorum of distinct signers, each reporting a view before this one, and the
/// certificate shown is the highest of them. Without the bound one signer claiming 2⁶⁴−1 makes a
/// certificate that no block can satisfy.
pub(super) fn check_tc(tc: Tc, verifier: &Verifier) -> Result<Tc, Rejected> {
    if let Some(known) = verifier.known_tc(&tc) {
        return Ok(known);
    }
    check_tc_form(&tc, verifier)?;
    let Tc { view, high_qc, groups } = tc;
    let high_qc = check_qc(high_qc, verifier)?;
    let messages: Vec<Vec<u8>> =
        groups.iter().map(|(reported, _)| timeout_message(verifier, view, *reported)).collect();
    let items: Vec<(&[u8], &Certificate)> = messages
        .iter()
        .map(Vec::as_slice)
        .zip(groups.iter().map(|(_, certificate)| certificate))
        .collect();
    verifier
        .voting()
        .verify_many(&items)
        .map_err(|_| Rejected::BadSignature("a timeout certificate"))?;
    let tc = Tc { view, high_qc, groups };
    verifier.remember_tc(&tc);
    Ok(tc)
}

pub(super) fn check_tc_form(tc: &Tc, verifier: &Verifier) -> Result<(), Rejected> {
    let committee = verifier.committee();
    let mut signers = Bitmap::new(committee.size());
    let ascending = tc.groups.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !ascending || tc.groups.is_empty() {
        return Err(Rejected::RuleBroken("a timeout certificate's groups ascend"));
    }
    for (reported, certificate) in &tc.groups {
        let unreported = verifier.rules().unreported_from(tc.view);
        if *reported >= unreported && !mutants::active(Mutant::ChainedUnboundedTc) {
            return Err(Rejected::RuleBroken("a timeout reports a view before its own"));
        }
        if certificate.signers.is_empty() {
            return Err(Rejected::RuleBroken("a timeout certificate's groups have signers"));
        }
        check_certificate_size(certificate, verifier)?;
        if !certificate.signers.iter().all(|signer| signers.insert(signer)) {
            return Err(Rejected::RuleBroken("a timeout certificate's signers are distinct"));
        }
    }
    let enough = committee.are_enough(Purpose::Vote, &signers);
    if !enough && !mutants::active(Mutant::SkipThreshold) {
        return Err(Rejected::BelowThreshold);
    }
    let highest = tc.groups.last().map(|(reported, _)| *reported);
    if highest != Some(tc.high_qc.view) && !mutants::active(Mutant::ChainedTcMaximum) {
        return Err(Rejected::RuleBroken("a timeout certificate shows the highest it reports"));
    }
    Ok(())
}

/// The bitmap is this committee's, and the signature as long as its signers make it.
pub(super) fn check_certificate_size(
    certificate: &Certificate,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    if certificate.signers.members() != verifier.committee().size() {
        return Err(Rejected::RuleBroken("a bitmap has one bit a member"));
    }
    let signed = match certificate.signers.count() {
        0 => 0,
        signers => verifier.voting().aggregate_bytes(signers),
    };
    let fits = certificate.aggregate.0.len() == signed;
    fits.then_some(()).ok_or(Rejected::BadSignature("a certificate of the wrong length"))
}

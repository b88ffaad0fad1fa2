//! Checks of messages that need no state: signatures, thresholds, shapes.

use super::collectors::primary;
use super::messages::{FastReport, Message, NewView, SlotReport, SlowReport, Status, ViewChange};
use super::rules::WINDOW;
use super::values::{
    DecidedSlot, Path, PrePrepare, Proof, Proposal, Shares, SlotCertificate, digest_of,
};
use crate::verifier::Verifier;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Share};
use quorate_types::{Kind, Payload, Purpose, Rejected, ReplicaId, View};

/// Checks a message of `from`. Votes are counted as their sender's, and so are those of a primary
/// in its pre-prepare, which nothing else ties to it: nobody may send another's.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify(message: &Message, from: ReplicaId, verifier: &Verifier) -> Result<(), Rejected> {
    match message {
        Message::PrePrepare(proposed) => {
            fresh(proposed.view, verifier)?;
            let is_its = from == primary(proposed.view, verifier.committee().size());
            if !is_its && !mutants::active(Mutant::PrePrepareOfAnybody) {
                return Err(Rejected::ForeignSender);
            }
            check_pre_prepare(proposed, verifier)?;
        }
        Message::SignShare(share) => {
            fresh(share.proposal.view, verifier)?;
            check_shares(&share.shares, verifier)?;
        }
        Message::Prepare(prepared) => {
            fresh(prepared.proposal.view, verifier)?;
            check_certificate(Kind::Prepare, Purpose::Vote, prepared, verifier)?;
        }
        Message::CommitShare(share) => {
            fresh(share.proposal.view, verifier)?;
            check_share(Purpose::Vote, &share.share, verifier)?;
        }
        Message::Proof(proof) => check_proof(proof, verifier)?,
        Message::Payload(payload) => check_payload(payload, verifier)?,
        Message::Decided(slot) => check_decided(slot, verifier)?,
        Message::ViewChange(change) => check_view_change(change, verifier)?,
        Message::NewView(new_view) => check_new_view(new_view, verifier)?,
        Message::FetchViewChanges(_, members) => {
            at_most(members.len(), verifier.committee().size(), "names of members")?;
        }
        Message::Status(status) => check_status(status)?,
        Message::Stable(checkpoint) => checkpoint.check(verifier.committee())?,
        Message::Suspicion(view) => fresh(*view, verifier)?,
        Message::Equivocation(both) => check_equivocation(&both.0, &both.1, verifier)?,
    }
    Ok(())
}

/// Refuses messages of views before the machine's own.
fn fresh(view: View, verifier: &Verifier) -> Result<(), Rejected> {
    if view < verifier.horizon() { Err(Rejected::Stale) } else { Ok(()) }
}

fn at_most(count: usize, most: usize, what: &'static str) -> Result<(), Rejected> {
    if count > most { Err(Rejected::TooLarge(what)) } else { Ok(()) }
}

pub(super) fn check_payload(payload: &Payload, verifier: &Verifier) -> Result<(), Rejected> {
    if !payload.is_consistent() || payload.header.height <= verifier.anchor().height {
        return Err(Rejected::RuleBroken("a payload is what its header names, without repeats"));
    }
    if payload.bodies.iter().any(|body| !verifier.committee().contains(body.author)) {
        return Err(Rejected::RuleBroken("a body's author is a member"));
    }
    Ok(())
}

fn check_pre_prepare(proposed: &PrePrepare, verifier: &Verifier) -> Result<(), Rejected> {
    check_payload(&proposed.payload, verifier)?;
    check_shares(&proposed.shares, verifier)?;
    let statement = verifier.statement(Kind::PrePrepare, &proposed.proposal());
    let signer = primary(proposed.view, verifier.committee().size());
    verifier.check_alone(signer, &statement, &proposed.signature, "a pre-prepare")
}

fn check_shares(shares: &Shares, verifier: &Verifier) -> Result<(), Rejected> {
    check_share(Purpose::Vote, &shares.slow, verifier)?;
    shares.fast.as_ref().map_or(Ok(()), |fast| check_share(Purpose::Fast, fast, verifier))
}

fn check_share(purpose: Purpose, share: &Share, verifier: &Verifier) -> Result<(), Rejected> {
    let (scheme, _) = verifier.committee().scheme(purpose);
    let fits = share.0.len() == scheme.share_bytes();
    fits.then_some(()).ok_or(Rejected::BadSignature("a share of the wrong length"))
}

/// Checks that a decided slot's payload is the one that its proof decides, and the proof.
pub(super) fn check_decided(slot: &DecidedSlot, verifier: &Verifier) -> Result<(), Rejected> {
    check_payload(&slot.payload, verifier)?;
    if !is_value_of(&slot.payload, &slot.proof.certificate.proposal) {
        return Err(Rejected::RuleBroken(
            "a decided slot's value is the one that its proof decides",
        ));
    }
    check_proof(&slot.proof, verifier)
}

fn is_value_of(payload: &Payload, proposal: &Proposal) -> bool {
    payload.header.height == proposal.slot && digest_of(payload) == proposal.digest
}

/// ★ Checks that a certificate has enough signers, and their signature over the proposal.
pub(super) fn check_certificate(
    kind: Kind,
    purpose: Purpose,
    certificate: &SlotCertificate,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    if verifier.knows_slot(kind, purpose, certificate) {
        return Ok(());
    }
    let committee = verifier.committee();
    if !committee.is_enough(purpose, &certificate.certificate)
        && !mutants::active(Mutant::SkipThreshold)
    {
        return Err(Rejected::BelowThreshold);
    }
    let (scheme, _) = committee.scheme(purpose);
    scheme
        .verify(&verifier.statement(kind, &certificate.proposal), &certificate.certificate)
        .map_err(|_| Rejected::BadSignature("a slot's certificate"))?;
    verifier.remember_slot(kind, purpose, certificate);
    Ok(())
}

pub(super) fn check_proof(proof: &Proof, verifier: &Verifier) -> Result<(), Rejected> {
    match proof.path {
        Path::Fast => check_fast(&proof.certificate, verifier),
        Path::Slow => check_certificate(Kind::Commit, Purpose::Vote, &proof.certificate, verifier),
    }
}

fn has_fast_path(verifier: &Verifier) -> bool {
    verifier.protocol().windowed_rules().is_some_and(|rules| rules.fast_path)
}

fn check_fast(certificate: &SlotCertificate, verifier: &Verifier) -> Result<(), Rejected> {
    if !has_fast_path(verifier) {
        return Err(Rejected::RuleBroken("nothing is decided fast where there is no fast path"));
    }
    let purpose =
        if mutants::active(Mutant::FastProofByQuorum) { Purpose::Vote } else { Purpose::Fast };
    check_certificate(Kind::Prepare, purpose, certificate, verifier)
}

/// ★ Checks a view change: of no earlier view, signed, of slots in its window, each once, all
/// evidence of views before its own and every certificate in it valid (PBFT §4.4, paper 002 §V-G).
fn check_view_change(change: &ViewChange, verifier: &Verifier) -> Result<(), Rejected> {
    fresh(change.view, verifier)?;
    let digest = change.digest();
    let statement = verifier.statement(Kind::ViewChange, &change.signed_content());
    verifier.check_alone(change.signer, &statement, &change.signature, "a view change")?;
    let name = (change.signer, digest);
    verifier.check_change_once(change.view, name, || check_evidence(change, verifier))
}

/// ★ Checks all that a view change reports.
fn check_evidence(change: &ViewChange, verifier: &Verifier) -> Result<(), Rejected> {
    if let Some(stable) = &change.stable {
        stable.check(verifier.committee())?;
    }
    let stable = change.stable_height(verifier.anchor());
    let ascending = change.slots.windows(2).all(|pair| pair[0].slot < pair[1].slot);
    let within = |report: &SlotReport| {
        stable < report.slot && report.slot.0 <= stable.0.saturating_add(WINDOW)
    };
    if !ascending || !change.slots.iter().all(within) {
        return Err(Rejected::RuleBroken("a view change is of the slots in its window, each once"));
    }
    change.slots.iter().try_for_each(|report| check_report(report, change.view, verifier))
}

fn check_report(report: &SlotReport, view: View, verifier: &Verifier) -> Result<(), Rejected> {
    let is_earlier = |of: View| of < view || mutants::active(Mutant::ViewChangeAnyEvidence);
    let earlier = |proposal: &Proposal| proposal.slot == report.slot && is_earlier(proposal.view);
    let rule = Rejected::RuleBroken("a view change reports earlier views of its slots");
    match &report.slow {
        SlowReport::Nothing => {}
        SlowReport::Prepared(certificate, value) if earlier(&certificate.proposal) => {
            check_prepared_value(value, &certificate.proposal, verifier)?;
            check_certificate(Kind::Prepare, Purpose::Vote, certificate, verifier)?;
        }
        SlowReport::Decided(certificate) if certificate.proposal.slot == report.slot => {
            check_certificate(Kind::Commit, Purpose::Vote, certificate, verifier)?;
        }
        _ => return Err(rule),
    }
    match &report.fast {
        FastReport::Nothing => Ok(()),
        FastReport::Accepted(..) if !has_fast_path(verifier) => {
            Err(Rejected::RuleBroken("nothing is reported fast where there is no fast path"))
        }
        FastReport::Accepted(accepted, _) if is_earlier(*accepted) => Ok(()),
        FastReport::Decided(certificate) if certificate.proposal.slot == report.slot => {
            check_fast(certificate, verifier)
        }
        _ => Err(rule),
    }
}

/// ★ Checks that a prepared certificate comes with its value: what is proposed again must be here,
/// whoever else has lost it.
fn check_prepared_value(
    value: &Payload,
    proposal: &Proposal,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    check_payload(value, verifier)?;
    if !is_value_of(value, proposal) && !mutants::active(Mutant::ViewChangeWithoutValue) {
        return Err(Rejected::RuleBroken("a prepared certificate comes with its value"));
    }
    Ok(())
}

/// ★ Checks a new view: signed by its primary, naming view changes of exactly `n−f` members. With
/// fewer a decision may be hidden; with more the primary could choose among results.
fn check_new_view(new_view: &NewView, verifier: &Verifier) -> Result<(), Rejected> {
    fresh(new_view.view, verifier)?;
    let committee = verifier.committee();
    let statement = verifier.statement(Kind::NewView, &new_view.signed_content());
    let signer = primary(new_view.view, committee.size());
    verifier.check_alone(signer, &statement, &new_view.signature, "a new view")?;
    let ascending = new_view.changes.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let known = new_view.changes.iter().all(|(member, _)| committee.contains(*member));
    if !ascending || !known {
        return Err(Rejected::RuleBroken("a new view names members, ascending"));
    }
    let named = new_view.changes.iter().map(|(member, _)| member.index());
    let weight = committee.weight_of(&Bitmap::from_indices(committee.size(), named));
    let honest = committee.weights().honest();
    if weight < honest && !mutants::active(Mutant::NewViewByFew) {
        return Err(Rejected::BelowThreshold);
    }
    if weight > honest {
        return Err(Rejected::RuleBroken("a new view names no more members than are honest"));
    }
    Ok(())
}

fn check_status(status: &Status) -> Result<(), Rejected> {
    at_most(status.has.len(), WINDOW as usize, "slots of a status")?;
    at_most(status.lacks.len(), WINDOW as usize, "values of a status")
}

/// Checks an equivocation: two values for one slot and view, signed by the same primary.
fn check_equivocation(
    one: &PrePrepare,
    other: &PrePrepare,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    fresh(one.view, verifier)?;
    let (first, second) = (one.proposal(), other.proposal());
    let same_slot = (first.view, first.slot) == (second.view, second.slot);
    if !same_slot || first.digest == second.digest {
        return Err(Rejected::RuleBroken("an equivocation is two values for one slot and view"));
    }
    check_pre_prepare(one, verifier)?;
    check_pre_prepare(other, verifier)
}

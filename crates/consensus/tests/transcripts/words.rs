//! Messages and outputs in words: views as `v1`, slots and heights as `s1`, values by the requests
//! in them, blocks by their views.

use quorate_consensus::chained::{self, Qc, SafetyRecord, Tc};
use quorate_consensus::windowed::{
    self, FastReport, Path, Proposal, SlotRecord, SlotReport, SlowReport, ViewRecord,
};
use quorate_consensus::{Message, Output};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::machine::{Record, RecordKind};
use quorate_types::{BlockId, BodyRef, Payload, Recipients, View};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Names given to values and blocks as they come up.
pub(crate) struct Names {
    request: BodyRef,
    known: RefCell<BTreeMap<Digest, String>>,
}

fn members(members: &Bitmap) -> String {
    members.iter().map(|member| member.to_string()).collect::<Vec<_>>().join(", ")
}

impl Names {
    pub(crate) fn new(request: BodyRef) -> Self {
        Self { request, known: RefCell::default() }
    }

    fn learn(&self, digest: Digest, name: String) -> String {
        self.known.borrow_mut().entry(digest).or_insert(name).clone()
    }

    fn name(&self, digest: Digest) -> String {
        let known = self.known.borrow().get(&digest).cloned();
        known.unwrap_or_else(|| "genesis".to_owned())
    }

    /// Name of what a payload orders, known from now on by its digest.
    pub(crate) fn payload(&self, payload: &Payload) -> String {
        let is_null = payload.bodies.is_empty() && payload.header.proposed_at_ms == 0;
        let name = if payload.bodies.contains(&self.request) {
            "A"
        } else if is_null {
            "null"
        } else {
            "empty"
        };
        self.learn(windowed::digest_of(payload), name.to_owned())
    }

    pub(crate) fn is_status(message: &Message) -> bool {
        matches!(message.windowed(), Some(windowed::Message::Status(_)))
    }

    pub(crate) fn message(&self, message: &Message) -> String {
        match (message.chained(), message.windowed()) {
            (Some(message), _) => self.chained(message),
            (_, Some(message)) => self.windowed(message),
            _ => String::new(),
        }
    }

    /// Words for an output; `None` for those that are left out.
    pub(crate) fn output(&self, output: &Output) -> Option<String> {
        Some(match output {
            Output::Send { message, .. } if Self::is_status(message) => return None,
            Output::Send { to, message } => {
                format!("-> {}: {}", recipients(*to), self.message(message))
            }
            Output::Persist(record) => format!("persist {}", self.record(record)),
            Output::Combine(job) => {
                let signers: Vec<String> =
                    job.shares.iter().map(|(signer, _)| signer.to_string()).collect();
                format!("combine the shares of {}", signers.join(", "))
            }
            Output::RequestPayload(request) => {
                format!("ask for a payload for s{} in v{}", request.height.0, request.view.0)
            }
            Output::RequestBodies { block, .. } => {
                format!("store the bodies of {}", self.id(*block))
            }
            Output::Decided(decided) => {
                let value = self.payload(&decided.payload);
                format!("decide {value} at s{}", decided.payload.header.height.0)
            }
            other => format!("{other:?}"),
        })
    }

    fn id(&self, block: BlockId) -> String {
        self.name(block.0)
    }

    // ---- windowed -------------------------------------------------------------------------------

    fn proposal(&self, proposal: &Proposal) -> String {
        format!("v{} s{} {}", proposal.view.0, proposal.slot.0, self.name(proposal.digest))
    }

    fn windowed(&self, message: &windowed::Message) -> String {
        use windowed::Message;
        match message {
            Message::PrePrepare(proposed) => {
                self.payload(&proposed.payload);
                format!("PrePrepare {}", self.proposal(&proposed.proposal()))
            }
            Message::SignShare(share) => format!("SignShare {}", self.proposal(&share.proposal)),
            Message::Prepare(prepared) => {
                let signers = members(&prepared.certificate.signers);
                format!("Prepare {} by {signers}", self.proposal(&prepared.proposal))
            }
            Message::CommitShare(share) => {
                format!("CommitShare {}", self.proposal(&share.proposal))
            }
            Message::Proof(proof) => {
                let path = if proof.path == Path::Fast { "fast" } else { "slow" };
                let signers = members(&proof.certificate.certificate.signers);
                let proposal = self.proposal(&proof.certificate.proposal);
                format!("Proof ({path}) {proposal} by {signers}")
            }
            Message::ViewChange(change) => {
                let reports: Vec<String> =
                    change.slots.iter().map(|report| self.report(report)).collect();
                let reports =
                    if reports.is_empty() { "nothing".into() } else { reports.join("; ") };
                format!("ViewChange v{}: {reports}", change.view.0)
            }
            Message::NewView(new_view) => {
                let names = new_view.changes.iter().map(|(signer, _)| signer.0.to_string());
                let names: Vec<String> = names.collect();
                format!("NewView v{} from {}", new_view.view.0, names.join(", "))
            }
            other => format!("{other:?}"),
        }
    }

    fn report(&self, report: &SlotReport) -> String {
        let mut text = format!("s{}", report.slot.0);
        if let SlowReport::Prepared(certificate, _) = &report.slow {
            let Proposal { view, digest, .. } = certificate.proposal;
            write!(text, " prepared {} in v{}", self.name(digest), view.0).expect("memory");
        }
        if let FastReport::Accepted(view, digest) = &report.fast {
            write!(text, " accepted {} in v{}", self.name(*digest), view.0).expect("memory");
        }
        let slow = matches!(report.slow, SlowReport::Decided(_));
        let fast = matches!(report.fast, FastReport::Decided(_));
        text + if slow || fast { " decided" } else { "" }
    }

    fn record(&self, record: &Record) -> String {
        if let RecordKind::Slot(_) = record.kind {
            let slot: SlotRecord = borsh::from_slice(&record.bytes).expect("a slot's record");
            return self.slot_record(&slot);
        }
        if let Ok(view) = borsh::from_slice::<ViewRecord>(&record.bytes) {
            let state = if view.in_view_change { "in view change" } else { "begun" };
            return format!("v{}, {state}", view.view.0);
        }
        self.safety(&borsh::from_slice(&record.bytes).expect("a safety record"))
    }

    fn slot_record(&self, record: &SlotRecord) -> String {
        let mut text = format!("s{}:", record.slot.0);
        if let Some((view, digest)) = record.accepted {
            write!(text, " accepted {} in v{}", self.name(digest), view.0).expect("memory");
        }
        if let Some(prepared) = &record.prepared {
            write!(text, ", prepared in v{}", prepared.proposal.view.0).expect("memory");
        }
        text
    }

    // ---- chained --------------------------------------------------------------------------------

    fn safety(&self, record: &SafetyRecord) -> String {
        let mut text = format!("voted in v{}, {}", record.voted_view.0, self.qc(&record.high_qc));
        if record.timeout_view > View(0) {
            write!(text, ", timed out v{}", record.timeout_view.0).expect("memory");
        }
        if let Some(lock) = &record.lock {
            write!(text, ", locked on {}", self.id(lock.id)).expect("memory");
        }
        if let Some(later) = &record.later {
            write!(text, ", voted {:?}", later.voted).expect("memory");
        }
        text
    }

    fn qc(&self, qc: &Qc) -> String {
        format!("QC({})", self.id(qc.id))
    }

    fn tc(tc: Option<&Tc>) -> String {
        tc.map(|tc| format!(", TC(v{})", tc.view.0)).unwrap_or_default()
    }

    fn chained(&self, message: &chained::Message) -> String {
        use chained::Message;
        use quorate_consensus::block_tree::TreeBlock;
        match message {
            Message::Proposal(proposal) => {
                let block = &proposal.block;
                let name = self.learn(block.id().0, format!("B{}", block.view.0));
                let orders = self.payload(&block.payload);
                let (qc, tc) = (self.qc(&block.justify), Self::tc(block.tc.as_ref()));
                format!("Proposal v{} {name} of {orders}, {qc}{tc}", block.view.0)
            }
            Message::Vote(vote) => format!("Vote v{} {}", vote.view.0, self.id(vote.id)),
            Message::PhaseVote(vote) => {
                let phase = vote.phase;
                format!("Vote v{} {} ({phase:?})", vote.vote.view.0, self.id(vote.vote.id))
            }
            Message::Timeout(timeout) => {
                let (qc, tc) = (self.qc(&timeout.high_qc), Self::tc(timeout.high_tc.as_ref()));
                format!("Timeout v{}, {qc}{tc}", timeout.view.0)
            }
            Message::Certificates { high_qc, high_tc } => {
                format!("Certificates {}{}", self.qc(high_qc), Self::tc(high_tc.as_ref()))
            }
            Message::PreCommitted(qc) => format!("PreCommitted {}", self.id(qc.id)),
            Message::NewView(qc) => format!("NewView {}", self.qc(qc)),
        }
    }
}

fn recipients(to: Recipients) -> String {
    match to {
        Recipients::All => "all".to_owned(),
        Recipients::One(one) => one.0.to_string(),
        Recipients::Client(_) => "a client".to_owned(),
    }
}

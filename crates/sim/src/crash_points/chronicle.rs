//! Chronicle of a run: everything said and written so far, and the judges who heard it.

use super::model::Model;
use super::offers::Heard;
use crate::epoch::EpochConfig;
use crate::oracles::{
    Audit, Availability, Borders, ExactlyOnce, FalseAccusations, Observation, Oracle, Prefix,
    Slots, Violation,
};
use bytes::Bytes;
use quorate_engine::{Availability as Proof, Message};
use quorate_storage::Entry;
use quorate_storage::disk::UnsyncedWrite;
use quorate_types::machine::RecordKind;
use quorate_types::{Epoch, Height, ReplicaId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// One thread's chronicle, shared by the hosts of one committee.
pub(super) type SharedChronicle = Rc<RefCell<Chronicle>>;

/// The end of what was written to each of a disk's files.
pub(super) type Ends = BTreeMap<String, u64>;

/// Everything that a verdict depends on. A copy goes on from the same past.
#[derive(Clone)]
pub(super) struct Chronicle {
    subject: usize,
    prefix: Prefix,
    false_accusations: FalseAccusations,
    exactly_once: ExactlyOnce,
    borders: Borders,
    epochs: BTreeMap<Epoch, EpochChronicle>,
    /// The last epoch in which each host said or wrote anything.
    acted_in: BTreeMap<usize, Epoch>,
    /// Model of the subject's logs.
    pub(super) model: Model,
    written: Ends,
    /// Ends of the subject's log of records at its last sync but one, and at its last.
    pub(super) synced: [Ends; 2],
    /// The subject's last executed height.
    executed: Height,
    /// An operation that is waited for, until the subject has its effect.
    pub(super) awaited: Option<Bytes>,
    /// Height at which it was ordered.
    ordered_at: Option<Height>,
    /// Grows with everything that a later verdict depends on.
    pub(super) version: u64,
    /// The first thing that is wrong.
    pub(super) complaint: Option<Violation>,
}

/// What was said in one epoch, by its members' indices, and those who judge that.
#[derive(Clone)]
struct EpochChronicle {
    audit: Audit,
    slots: Slots,
    availability: Availability,
    heard: Heard,
}

impl EpochChronicle {
    fn new(epoch: &EpochConfig) -> Self {
        let rules = epoch.settings.protocol.windowed_rules();
        let has_fast_path = rules.is_some_and(|rules| rules.fast_path);
        Self {
            audit: Audit::default(),
            slots: Slots::new(epoch.committee.size(), 0, has_fast_path),
            availability: Availability::new(Proof::Stored),
            heard: Heard::default(),
        }
    }
}

/// A host with its epoch: whose doing an observation is.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) host: usize,
    pub(super) id: ReplicaId,
    pub(super) epoch: &'a EpochConfig,
}

impl Who<'_> {
    /// Name to those who judge the whole run.
    pub(super) fn name(&self) -> ReplicaId {
        ReplicaId(u16::try_from(self.host).expect("few hosts"))
    }
}

impl Chronicle {
    /// Of a run in which this host is looked at.
    pub(super) fn new(subject: usize) -> Self {
        Self {
            subject,
            prefix: Prefix::default(),
            false_accusations: FalseAccusations::default(),
            exactly_once: ExactlyOnce::default(),
            borders: Borders::default(),
            epochs: BTreeMap::new(),
            acted_in: BTreeMap::new(),
            model: Model::default(),
            written: Ends::new(),
            synced: Default::default(),
            executed: Height(0),
            awaited: None,
            ordered_at: None,
            version: 0,
            complaint: None,
        }
    }

    pub(super) fn shared(self) -> SharedChronicle {
        Rc::new(RefCell::new(self))
    }

    pub(super) fn complain(&mut self, oracle: &'static str, text: String) {
        self.complaint.get_or_insert(Violation { oracle, text });
    }

    /// Shows what a host did to those who judge the whole run, and to those of its epoch.
    pub(super) fn observe(&mut self, who: Who<'_>, observation: &Observation<'_>) {
        self.version += 1;
        if let Observation::Began { epoch, .. } = observation
            && let Err(violation) = self.comes_back(who.host, *epoch)
        {
            self.complaint.get_or_insert(violation);
        }
        let of_run: [&mut dyn Oracle; 4] = [
            &mut self.prefix,
            &mut self.false_accusations,
            &mut self.exactly_once,
            &mut self.borders,
        ];
        show(&mut self.complaint, of_run, observation);
        let Some(observation) = observation.in_epoch(who.id) else { return };
        let epoch = self.epochs.entry(who.epoch.number());
        let epoch = epoch.or_insert_with(|| EpochChronicle::new(who.epoch));
        let of_epoch: [&mut dyn Oracle; 3] =
            [&mut epoch.audit, &mut epoch.slots, &mut epoch.availability];
        show(&mut self.complaint, of_epoch, &observation);
    }

    /// A message left its host.
    pub(super) fn said(&mut self, who: Who<'_>, message: &Message) {
        let (replica, number) = (who.name(), who.epoch.number());
        self.observe(who, &Observation::Released { replica, message, tag: 0, bytes: 0 });
        let by_subject = who.host == self.subject;
        self.acted(who.host, number);
        if let Some(epoch) = self.epochs.get_mut(&number) {
            epoch.heard.hear(who.id, by_subject, message);
        }
    }

    /// Statements heard in an epoch.
    pub(super) fn heard(&self, epoch: Epoch) -> Heard {
        self.epochs.get(&epoch).map(|epoch| epoch.heard.clone()).unwrap_or_default()
    }

    fn acted(&mut self, host: usize, epoch: Epoch) {
        let last = self.acted_in.entry(host).or_default();
        *last = epoch.max(*last);
    }

    /// ★ A host comes back in this epoch: in no earlier one than it acted in.
    pub(super) fn comes_back(&self, host: usize, epoch: Epoch) -> Result<(), Violation> {
        match self.acted_in.get(&host) {
            Some(last) if epoch < *last => {
                let text = format!("host {host} acted in {last}, and came back in {epoch}");
                Err(Violation { oracle: "borders", text })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn executed(&mut self, who: Who<'_>, observation: &Observation<'_>) {
        self.observe(who, observation);
        let (height, operations) = match observation {
            Observation::Executed { height, operations, .. } => (*height, *operations),
            Observation::Installed { height, .. } => (*height, &[][..]),
            _ => return,
        };
        let is_awaited = |(_, operation): &(_, Bytes)| Some(operation) == self.awaited.as_ref();
        if operations.iter().any(is_awaited) {
            self.ordered_at = Some(height);
        }
        if who.host == self.subject {
            self.executed = height;
        }
        if self.ordered_at.is_some_and(|ordered_at| self.executed >= ordered_at) {
            self.awaited = None;
        }
    }

    /// ★ The record of a hand-over is durable before its host hears of it.
    pub(super) fn handed_over(&mut self, host: usize) {
        if host == self.subject && !self.model.keeps(RecordKind::HandOver) {
            self.complain("durability", "handed over without a durable record of it".to_owned());
        }
    }

    pub(super) fn wrote(&mut self, (host, epoch): (usize, Epoch), entry: &Entry) {
        self.acted(host, epoch);
        if host == self.subject {
            self.version += 1;
            self.model.wrote(entry);
        }
    }

    /// So far the subject's log of records was written.
    pub(super) fn reached(&mut self, host: usize, last: UnsyncedWrite) {
        if host == self.subject {
            self.written.insert(last.file, last.offset + last.bytes as u64);
        }
    }

    pub(super) fn synced(&mut self, by: usize, records: bool, bodies: bool) {
        if by != self.subject {
            return;
        }
        self.version += 1;
        self.model.synced(records, bodies);
        if records {
            self.synced.swap(0, 1);
            self.synced[1] = self.written.clone();
        }
    }
}

/// Keeps the first complaint.
fn show<const N: usize>(
    complaint: &mut Option<Violation>,
    judges: [&mut dyn Oracle; N],
    observation: &Observation<'_>,
) {
    for judge in judges {
        if let Err(text) = judge.observe(observation) {
            let oracle = judge.name();
            complaint.get_or_insert(Violation { oracle, text });
        }
    }
}

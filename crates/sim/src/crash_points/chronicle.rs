//! Chronicle of a run: everything said and written so far, and the judges who heard it.

use super::model::Model;
use super::offers::Heard;
use crate::oracles::{
    Audit, Availability, ExactlyOnce, FalseAccusations, Observation, Oracle, Prefix, Slots,
    Violation,
};
use bytes::Bytes;
use quorate_engine::{Availability as Proof, Message, ProtocolKind};
use quorate_storage::Entry;
use quorate_storage::disk::UnsyncedWrite;
use quorate_types::{Height, ReplicaId};
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
    subject: ReplicaId,
    audit: Audit,
    slots: Slots,
    prefix: Prefix,
    availability: Availability,
    false_accusations: FalseAccusations,
    exactly_once: ExactlyOnce,
    pub(super) heard: Heard,
    /// Model of the subject's logs.
    pub(super) model: Model,
    written: Ends,
    /// Ends of the subject's log of records at its last sync but one, and at its last.
    pub(super) synced: [Ends; 2],
    /// The subject's last executed height.
    pub(super) executed: Height,
    /// An operation that is waited for, until the subject executes it.
    pub(super) awaited: Option<Bytes>,
    /// Grows with everything that a later verdict depends on.
    pub(super) version: u64,
    /// The first thing that is wrong.
    pub(super) complaint: Option<Violation>,
}

impl Chronicle {
    /// Of a committee of so many, one of whom is looked at.
    pub(super) fn new(subject: ReplicaId, members: u16, protocol: ProtocolKind) -> Self {
        let has_fast_path = protocol.windowed_rules().is_some_and(|rules| rules.fast_path);
        Self {
            subject,
            audit: Audit::default(),
            slots: Slots::new(usize::from(members), 0, has_fast_path),
            prefix: Prefix::default(),
            availability: Availability::new(Proof::Stored),
            false_accusations: FalseAccusations::default(),
            exactly_once: ExactlyOnce::default(),
            heard: Heard::default(),
            model: Model::default(),
            written: Ends::new(),
            synced: Default::default(),
            executed: Height(0),
            awaited: None,
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

    pub(super) fn observe(&mut self, observation: &Observation<'_>) {
        self.version += 1;
        let judges: [&mut dyn Oracle; 6] = [
            &mut self.audit,
            &mut self.slots,
            &mut self.prefix,
            &mut self.availability,
            &mut self.false_accusations,
            &mut self.exactly_once,
        ];
        for judge in judges {
            if let Err(text) = judge.observe(observation) {
                let oracle = judge.name();
                self.complaint.get_or_insert(Violation { oracle, text });
            }
        }
    }

    /// A message left its host.
    pub(super) fn said(&mut self, replica: ReplicaId, message: &Message) {
        self.heard.hear(replica, replica == self.subject, message);
        self.observe(&Observation::Released { replica, message, tag: 0, bytes: 0 });
    }

    pub(super) fn executed(&mut self, observation: &Observation<'_>) {
        self.observe(observation);
        if let Observation::Executed { replica, height, operations, .. } = observation
            && *replica == self.subject
        {
            self.executed = *height;
            let arrived = |(_, operation): &(_, Bytes)| Some(operation) == self.awaited.as_ref();
            if operations.iter().any(arrived) {
                self.awaited = None;
            }
        }
    }

    pub(super) fn wrote(&mut self, replica: ReplicaId, entry: &Entry) {
        if replica == self.subject {
            self.version += 1;
            self.model.wrote(entry);
        }
    }

    /// So far the subject's log of records was written.
    pub(super) fn reached(&mut self, replica: ReplicaId, last: UnsyncedWrite) {
        if replica == self.subject {
            self.written.insert(last.file, last.offset + last.bytes as u64);
        }
    }

    pub(super) fn synced(&mut self, by: ReplicaId, records: bool, bodies: bool) {
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

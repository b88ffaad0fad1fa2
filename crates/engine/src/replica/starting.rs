//! The start of a replica: what it takes up of an earlier run, and the number of this one, under
//! which a member counts its bodies.
//!
//! The record of the last start names its epoch, but for a network's first: so whoever starts knows
//! whether it started in this epoch before, and what else is on disk is of an epoch before. It goes
//! on naming the former epoch until the bodies of that are off the disk for certain: these lie in a
//! log of their own, and a power cut may leave them there and not take the record.

use super::{ProtocolRecords, Replica, mempool};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{ExecutedUpTo, Record, RecordKind, Recovery, Release};
use quorate_types::{Available, BodyRef, Effect, EpochId, Header, Height, ReplicaId, Time};
use std::collections::BTreeSet;

/// The last start, as its record has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastStart {
    number: u64,
    /// Absent in a network's first epoch.
    epoch: Option<EpochId>,
}

impl LastStart {
    fn decode(record: &[u8]) -> Option<Self> {
        let (number, epoch) = record.split_first_chunk()?;
        let epoch = (!epoch.is_empty()).then(|| epoch.try_into().map(EpochId)).transpose();
        Some(Self { number: u64::from_le_bytes(*number), epoch: epoch.ok()? })
    }

    fn encode(self) -> Bytes {
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend(self.epoch.iter().flat_map(|epoch| epoch.0));
        bytes.into()
    }
}

impl Replica {
    pub(super) fn on_recovered(&mut self, now: Time, recovery: Recovery) {
        let mut recovery = self.config.verifier.start().own_part(recovery);
        let incarnation = self.begin_incarnation(&mut recovery);
        self.mempool = mempool(&self.config, incarnation);
        let stored: BTreeSet<BodyRef> = recovery.bodies.iter().copied().collect();
        self.certifier.recover(&recovery.bodies);
        self.bodies.recover(recovery.bodies);
        let begun = self.config.verifier.start().height();
        let height = recovery.executed.as_ref().map_or(Height(0), ExecutedUpTo::height);
        self.schedule.resume(height, begun);
        if let Some(executed) = &recovery.executed {
            self.root = executed.root();
            self.operations = executed.operations;
            self.recall(executed);
            self.resume_at(now, &executed.header);
        }
        self.recover_hand_over(recovery.hand_over.as_ref());
        self.snapshots_on_disk = recovery.snapshots;
        self.snapshots.recover(recovery.staged);
        let last = recovery.decided.last().map(|record| record.height);
        self.on_disk = last.unwrap_or(self.schedule.decided());
        self.heartbeat.decided(now);
        self.own_signatures.begin(now, &self.config, incarnation);
        let records = ProtocolRecords {
            safety: recovery.safety,
            slots: recovery.slots,
            executed: recovery.executed.map(|executed| executed.decided).filter(|r| !r.is_empty()),
            decided: recovery.decided.into_iter().map(|record| record.bytes).collect(),
            stored,
        };
        self.recover_protocol(now, records);
    }

    /// The state is that of this height, from an earlier run or another member. What it came to is
    /// signed anew, if it is of this epoch: ★ nobody signs in two epochs what one height came to.
    pub(super) fn resume_at(&mut self, now: Time, header: &Header) {
        let is_own = header.height > self.config.verifier.start().height();
        if is_own || mutants::active(Mutant::SignFormerHeight) {
            self.execution.resume(now, *header);
            self.checkpoints.executed(now, header);
            self.note_last(header);
        }
    }

    /// Returns `true` if the committee owes a height, be there anything to order or not.
    pub(super) fn owes_height(&self, now: Time) -> bool {
        self.owes_first_height() || self.heartbeat.is_due(now)
    }

    /// An epoch after the first begins with a height, though nobody has anything to order: with it
    /// its members show that they are there, and reads find a state that they vouch for.
    pub(super) fn owes_first_height(&self) -> bool {
        let start = self.config.verifier.start();
        start.follows() && self.schedule.decided() == start.height()
    }

    /// The number of this start, on its way to the disk.
    ///
    /// Bodies that were stored in an epoch before are let go: what was ordered there is executed,
    /// and what was not, its authors are asked for again.
    ///
    /// ★ They are let go again at each start until something that was stored behind that is
    /// durable.
    fn begin_incarnation(&mut self, recovery: &mut Recovery) -> u64 {
        let (id, verifier) = (self.config.id, &self.config.verifier);
        let epoch = verifier.start().follows().then(|| verifier.committee().epoch_id());
        let last = recovery.incarnation.as_deref().and_then(LastStart::decode).unwrap_or_default();
        let number = unused(last.number, id, &recovery.bodies);
        let mut start = LastStart { number, epoch };
        if last.epoch != epoch && !recovery.bodies.is_empty() {
            let bodies = vec![(verifier.start().height(), std::mem::take(&mut recovery.bodies))];
            self.start_in_epoch = Some(start.encode());
            if !mutants::active(Mutant::FormerBodiesForgotten) {
                start.epoch = last.epoch;
            }
            self.effects.push_back(Effect::Release(Release { below: Height(0), bodies }));
        }
        let bytes = start.encode();
        self.effects.push_back(Effect::Persist(Record { kind: RecordKind::Incarnation, bytes }));
        number
    }
}

/// The next start's number. Records and bodies are in two logs: a power cut may take the number of
/// a start and leave a body that was sealed under it, and no number is given to two bodies.
fn unused(former: u64, author: ReplicaId, stored: &[BodyRef]) -> u64 {
    let own = stored.iter().filter(|name| name.author == author);
    let used: BTreeSet<u64> = own.map(|name| name.sequence >> Available::SEQUENCE_BITS).collect();
    let unused = (former + 1..).find(|incarnation| !used.contains(incarnation));
    unused.expect("fewer bodies than numbers")
}

//! Numbers of a member's starts, under which it counts its bodies.
//!
//! The record of the last start names its epoch, but for a network's first: so whoever starts knows
//! whether it started in this epoch before, and what else is on disk is of an epoch before. It goes
//! on naming the former epoch until the bodies of that are off the disk for certain: these lie in a
//! log of their own, and a power cut may leave them there and not take the record.

use crate::Replica;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{Record, RecordKind, Recovery, Release};
use quorate_types::{Available, BodyRef, Effect, EpochId, Height, ReplicaId};
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
    /// The number of this start, on its way to the disk.
    ///
    /// Bodies that were stored in an epoch before are let go: what was ordered there is executed,
    /// and what was not, its authors are asked for again.
    ///
    /// ★ They are let go again at each start until something that was stored behind that is
    /// durable.
    pub(crate) fn begin_incarnation(&mut self, recovery: &mut Recovery) -> u64 {
        let (id, verifier) = (self.config().id, &self.config().verifier);
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
            self.effect(Effect::Release(Release { below: Height(0), bodies }));
        }
        let bytes = start.encode();
        self.effect(Effect::Persist(Record { kind: RecordKind::Incarnation, bytes }));
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

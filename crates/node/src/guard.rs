//! A monotonic guard (★): a file beside the key that remembers the last record of the log.
//!
//! A log that was set back to an older copy, cut, or exchanged for another is whole in itself.
//! Whoever signs on top of it signs against what it had promised since. What remembers the last
//! record outside the data folder notices: the log must have that record, or its member follows
//! without signing, at every start: the guard remembers that it was missing, however far that log
//! grows. Put back byte for byte, the newest folder is taken again.
//!
//! # When it is written
//!
//! After the log's sync of each group (★), in place, without a sync of its own: in microseconds,
//! where a sync takes hundreds or thousands. So it is never ahead of a durable log, which would be
//! a false alarm for ever, and a power cut can only leave it behind, as if the groups since had
//! been none: a log set back by no more than that is not noticed. A log that nobody syncs
//! (`durability = "os"`) may be behind it after a power cut: its validator follows from then on.
//! Its two [slots](crate::slots) take turns: a torn write leaves the other.
//!
//! It is synced at every start and when the validator stops. It also says in which boot of the
//! machine it was written: if that is still the present one, or it was closed, then it lags behind
//! nothing, and what the log lacks at its end may be taken from the second copy of the promises
//! ([`Witnessed::is_exact`]).
//!
//! # Another witness
//!
//! [`Guard`] is what the log's thread sees. A counter in a TPM, or a witness on another machine,
//! takes this file's place by it: durable before [`Guard::advance`] returns, it would notice after
//! a power cut too, at the price of its own delay in each group.

use crate::NodeError;
use crate::slots::{Found, SlotFile};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::{LogMark, Room, StorageError, Witnessed};
use quorate_types::NetworkId;
use std::fs;
use std::path::Path;

/// Digits of a key that are shown.
const SHOWN_DIGITS: usize = 16;

/// Witness of a log outside its folder. Never ahead of what is durable there.
pub(crate) trait Guard: Send {
    /// Remembers that this record, and all before it, are committed.
    fn advance(&mut self, mark: LogMark) -> Result<(), StorageError>;

    /// Makes durable what it remembers: nothing more is committed before the next start.
    fn close(&mut self) -> Result<(), StorageError>;
}

/// The file beside the key.
#[derive(Debug)]
pub(crate) struct FileGuard {
    slots: SlotFile,
    found: Option<Slot>,
    next: Slot,
}

/// Extension of a guard's name.
pub(crate) const EXTENSION: &str = "guard";

/// What a slot says.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Slot {
    network: [u8; 32],
    member: [u8; 32],
    sequence: u64,
    checksum: [u8; 16],
    /// Boot of the machine in which it was written; empty where that is not known.
    boot: String,
    is_closed: bool,
    /// A log without this record was found at a start.
    is_missed: bool,
}

impl FileGuard {
    /// Opens the guard of a key file; without one it begins with the first [`Guard::advance`].
    pub(crate) fn beside(
        key: &Path,
        network: NetworkId,
        member: &IdentityKey,
    ) -> Result<Self, NodeError> {
        let path = key.with_extension(EXTENSION);
        let failed = |source| NodeError::Marker { action: "open", path: path.clone(), source };
        let (slots, found): (_, Found<Slot>) =
            SlotFile::open(path.clone(), "quorate v1 key guard").map_err(failed)?;
        if found.is_damaged {
            tracing::warn!(guard = %path.display(), "it is damaged and begins anew");
        }
        let found = found.slots.into_iter().find(|slot| slot.network == network.0);
        if let Some(slot) = found.as_ref().filter(|slot| slot.member != member.0) {
            return Err(StorageError::Foreign {
                place: path.display().to_string(),
                owner: shown(&slot.member),
                claimant: shown(&member.0),
            }
            .into());
        }
        let next = Slot {
            network: network.0,
            member: member.0,
            sequence: 0,
            checksum: [0; 16],
            boot: boot(),
            is_closed: false,
            is_missed: false,
        };
        Ok(Self { slots, found, next })
    }

    /// The same, whose writes wait for room as those of the log do.
    pub(crate) fn within(self, room: &Room) -> Self {
        Self { slots: self.slots.within(room), ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        self.slots.path()
    }

    /// What it remembered when it was opened.
    pub(crate) fn witnessed(&self) -> Option<Witnessed> {
        let found = self.found.as_ref()?;
        let is_same_boot = !found.boot.is_empty() && found.boot == self.next.boot;
        let mark = LogMark { sequence: found.sequence, checksum: found.checksum };
        let is_exact = found.is_closed || is_same_boot;
        Some(Witnessed { mark, is_exact, is_missed: found.is_missed })
    }

    /// Remembers this record durably, before anything is signed after it. Both slots say so: what
    /// an earlier run left in one of them must not be all that a torn write leaves of this run.
    pub(crate) fn begin(&mut self, mark: LogMark) -> Result<(), StorageError> {
        self.put_both(mark)
    }

    /// ★ Remembers durably that the log lacks this record: it may grow past it, and still lacks it.
    pub(crate) fn miss(&mut self, mark: LogMark) -> Result<(), StorageError> {
        self.next.is_missed = !mutants::active(Mutant::ForgetSetBack);
        self.put_both(mark)
    }

    fn put_both(&mut self, mark: LogMark) -> Result<(), StorageError> {
        (self.next.sequence, self.next.checksum) = (mark.sequence, mark.checksum);
        self.slots.put_both(&self.next)
    }
}

impl Guard for FileGuard {
    fn advance(&mut self, mark: LogMark) -> Result<(), StorageError> {
        (self.next.sequence, self.next.checksum) = (mark.sequence, mark.checksum);
        self.slots.put(&self.next)
    }

    fn close(&mut self) -> Result<(), StorageError> {
        self.next.is_closed = true;
        self.slots.put(&self.next)?;
        self.slots.sync_all()
    }
}

/// Identity of the present boot; empty where the system has none.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().chars().take(64).collect()
}

fn shown(member: &[u8; 32]) -> String {
    format!("validator {}…", &hex::encode(member)[..SHOWN_DIGITS])
}

#[cfg(test)]
mod tests;

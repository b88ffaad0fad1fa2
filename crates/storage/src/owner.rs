//! Whose files these are: the first record of every log, snapshot and checkpoint, and of a state
//! store.
//!
//! ```text
//!  0  magic "QOWN"              12       the owner, n bytes in borsh
//!  4  format of the file u32    12 + n   checksum of all before it [16]
//!  8  n u32
//! ```
//!
//! Numbers are little-endian. The checksum is BLAKE3, cut to 16 bytes: of a damaged record nobody
//! says that it names somebody else.

use crate::StorageError;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::NetworkId;
use std::fmt;

const MAGIC: [u8; 4] = *b"QOWN";
const HEAD_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 16;

/// Digits of a key or a network that are shown: enough to find it in a committee file.
const SHOWN_DIGITS: usize = 16;

/// Whoever keeps its promises in a file. Nobody else may read them as its own, nor go on without
/// them (★).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Owner {
    /// Identity of the committee, or of the payment network, with its epoch and keys.
    pub network: NetworkId,
    /// Identity key of the member, learner or authority.
    pub member: IdentityKey,
    /// Part that it has in the network.
    pub role: Role,
    /// Protocol, or scheme of payments, in whose words the promises are written.
    pub protocol: String,
    /// Parts and protocols of this owner in earlier epochs of the network: files may be of those
    /// too, for what is in them names its epoch. Not in the record.
    #[borsh(skip)]
    pub formerly: Vec<(Role, String)>,
}

/// Part in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Role {
    /// A member that votes, or followed without a vote for a while.
    Validator,
    /// A follower that is no member.
    Learner,
    /// One shard of a payment authority, by its number.
    Shard(u16),
    /// A wallet, as the owner of its archive's index.
    Wallet,
}

/// An owner's record as it stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerRecord {
    format: u32,
    owner: Owner,
}

impl Owner {
    /// An owner for files that a measurement or a test throws away.
    #[must_use]
    pub fn nobody() -> Self {
        Self {
            network: NetworkId([0; 32]),
            member: IdentityKey([0; 32]),
            role: Role::Validator,
            protocol: String::new(),
            formerly: Vec::new(),
        }
    }

    /// Returns `true` if a file that says this of its owner is this one's.
    fn accounts_for(&self, found: &Self) -> bool {
        let parts = self.formerly.iter().cloned();
        let mut parts = std::iter::once((self.role, self.protocol.clone())).chain(parts);
        let is_same = self.network == found.network && self.member == found.member;
        is_same && parts.any(|(role, protocol)| role == found.role && protocol == found.protocol)
    }

    /// The record of this owner for a file of this format.
    pub(crate) fn record(&self, format: u32) -> Vec<u8> {
        let owner = borsh::to_vec(self).expect("encoding into memory cannot fail");
        let length = u32::try_from(owner.len()).expect("some hundred bytes");
        let mut bytes = Vec::with_capacity(HEAD_BYTES + owner.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&format.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&owner);
        let checksum = checksum(&bytes);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// What follows the record at the start of a file of this owner; all of the file where there is
    /// no whole record, as earlier versions wrote it.
    pub(crate) fn strip<'a>(
        &self,
        place: &str,
        format: u32,
        file: &'a [u8],
    ) -> Result<&'a [u8], StorageError> {
        match OwnerRecord::split(file) {
            Some((found, rest)) => found.check(place, format, self).map(|()| rest),
            None => Ok(file),
        }
    }
}

impl OwnerRecord {
    /// Most bytes that are read for a record.
    pub(crate) const BYTES_MAX: usize = 1024;

    /// The record that begins `bytes`, and what follows it; `None` where none does, or it is
    /// damaged.
    pub(crate) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let length = usize::try_from(number(8)?).ok()?;
        let (checked, rest) = bytes.split_at_checked(HEAD_BYTES.checked_add(length)?)?;
        let (found, rest) = rest.split_at_checked(CHECKSUM_BYTES)?;
        if checked[..4] != MAGIC || checksum(checked) != *found {
            return None;
        }
        let owner = Owner::try_from_slice(&checked[HEAD_BYTES..]).ok()?;
        Some((Self { format: number(4)?, owner }, rest))
    }

    /// Format of the file, which this program may not know.
    pub(crate) fn format(&self) -> u32 {
        self.format
    }

    /// The owner, whoever it is, of a file at `place` that is of this network.
    pub(crate) fn owner_in(
        self,
        place: &str,
        format: u32,
        network: NetworkId,
    ) -> Result<Owner, StorageError> {
        let anybody = Owner { network, ..self.owner.clone() };
        let owner = self.owner.clone();
        self.check(place, format, &anybody).map(|()| owner)
    }

    /// ★ Refuses a file at `place` that another version wrote, or somebody else than `owner`.
    pub(crate) fn check(self, place: &str, format: u32, owner: &Owner) -> Result<(), StorageError> {
        if self.format != format {
            let (file, found) = (place.to_owned(), self.format);
            return Err(StorageError::Format { file, found, expected: format });
        }
        if !owner.accounts_for(&self.owner) && !mutants::active(Mutant::OpenForeign) {
            return Err(StorageError::Foreign {
                place: place.to_owned(),
                owner: self.owner.to_string(),
                claimant: owner.to_string(),
            });
        }
        Ok(())
    }
}

/// Cut from 32 bytes: this guards against accidents, not against whoever can write the file.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = blake3::derive_key("quorate v1 owner record", bytes);
    *hash.first_chunk().expect("32 bytes")
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8; 32]| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}…", &digits[..SHOWN_DIGITS])
        };
        let (member, network) = (shown(&self.member.0), shown(&self.network.0));
        match self.role {
            Role::Validator => write!(f, "validator {member}")?,
            Role::Learner => write!(f, "learner {member}")?,
            Role::Shard(shard) => write!(f, "shard {shard} of authority {member}")?,
            Role::Wallet => write!(f, "wallet {member}")?,
        }
        write!(f, " of network {network} ({})", self.protocol)
    }
}

#[cfg(test)]
mod tests;

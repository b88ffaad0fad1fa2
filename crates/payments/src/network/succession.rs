//! From the network of one epoch to that of the next.

use super::{Network, NetworkError, NetworkFile};
use crate::change::{Change, ChangeError};
use quorate_crypto::{Digest, KeyCache, hash_parts};
use quorate_types::{BlockId, Committee, Height, sign};
use std::sync::Arc;

impl Network {
    /// The network of the next epoch, if this one's authorities changed to it so. It knows the
    /// certificates of this epoch and of all before.
    ///
    /// # Errors
    /// What is wrong with the change.
    pub fn succeed(&self, change: &Change) -> Result<Self, ChangeError> {
        self.check_next(&change.next)?;
        // Before the next authorities' keys are looked at, which costs more.
        let signers = change.check_present(self)?;
        let next = self.load_next(&change.next)?;
        change.check_next(self, &next, signers)?;
        Ok(next)
    }

    /// The network of a file for the next epoch, whoever agreed to it.
    ///
    /// # Errors
    /// When the file is refused, or is not this network's next.
    pub fn load_next(&self, file: &NetworkFile) -> Result<Self, ChangeError> {
        self.check_next(file)?;
        let committee = file.committee();
        let begun = self.hand_over(file.digest(), committee.digest());
        let committee =
            Committee::load_after(&committee, &begun, KeyCache::On).map_err(NetworkError::from)?;
        let epochs = |epoch, own| self.epochs.next(epoch, own);
        let next = Self::with_committee(file, Arc::new(committee), epochs)?;
        let is_same = (&next.name, next.shards, next.issuer, &next.genesis)
            == (&self.name, self.shards, self.issuer, &self.genesis);
        if is_same { Ok(next) } else { Err(ChangeError::OtherMoney) }
    }

    fn check_next(&self, file: &NetworkFile) -> Result<(), ChangeError> {
        let (found, expected) = (file.epoch, self.epoch().next());
        let is_next = file.network == Some(self.id()) && found == expected;
        if is_next { Ok(()) } else { Err(ChangeError::NotNext { found, expected }) }
    }

    /// Content that the id of the next epoch is the hash of (★): this epoch's, and the whole file.
    /// Votes of another chain of changes are none of it.
    fn hand_over(&self, file: Digest, committee: Digest) -> quorate_types::HandOver {
        let stop = hash_parts("quorate v1 payment epoch ended", &[&self.scope().epoch.0]);
        quorate_types::HandOver {
            height: Height(self.epoch().0),
            stop: BlockId(stop),
            root: file,
            file: committee,
        }
    }

    /// Statement that authorities of this epoch and of the next sign to change to a file.
    pub(crate) fn change_statement(&self, file: Digest) -> Vec<u8> {
        sign::statement(quorate_types::Kind::TxChange, self.scope(), &file)
    }
}

//! Following a network to its later epochs by asking its authorities, while a wallet runs or before
//! it begins.
//!
//! ```text
//! authorities ──▶ changes after an epoch ──▶ Network::succeed (★) ──▶ network.epoch-N.toml
//! ```
//!
//! * ★ One authority's word is enough to learn of a change, and none's to believe it: it is signed
//!   by quorums of both epochs ([`Network::succeed`]).
//! * ★ Authorities are believed for the trusting period after the last time at which their epoch is
//!   known to have been in force. Those of long ago may have lost their keys together, and whoever
//!   has these signs another way on. A file from a source that is trusted leads on at any age.
//! * The date of the newest file is that time: when somebody put it there, when a quorum of its
//!   authorities last said that no change is known after it (★), or, of one that was followed to,
//!   the date of the file before.
//! * Two changes from one epoch that hold both prove that a quorum signed two. The one that is here
//!   stays, and nothing is followed any more.

mod looking;

pub use looking::{Followed, follow_network, look_for_changes};

use super::epochs::{change_beside, publish_change};
use super::network_files::succeed;
use super::{AuthorityConfigError, NetworkChain};
use crate::NodeError;
use crate::clock::ms_since_1970;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_payments::change::Change;
use quorate_payments::{Network, WalletRequest};
use quorate_types::{Epoch, ReplicaId, TrustingPeriod};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Time after which a newer confirmation is worth a write.
const DATE_EVERY_MS: u64 = 60 * 60 * 1_000;

/// Reason that a network is not followed to its next epoch.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// A file of the network is refused.
    #[error(transparent)]
    Files(#[from] AuthorityConfigError),
    /// Authorities that nobody heard of for too long.
    #[error(
        "authorities of epoch {epoch} show a change to the next one, and they are not believed: their epoch was \
         last known to be in force {age_days} days ago, and keys of so long ago ({period_days} days) may be in \
         anybody's hands. Get {} from a source that you trust, and put it there", next.display()
    )]
    TooOld {
        /// Epoch of these authorities.
        epoch: Epoch,
        /// Days since it was last known to be in force.
        age_days: u64,
        /// Days for which authorities are believed.
        period_days: u64,
        /// Path of the file that leads on.
        next: PathBuf,
    },
    /// Two changes to one epoch.
    #[error(
        "two changes to epoch {epoch} are both signed by enough authorities, one to the file {first}, one to {second}: \
         more authorities are faulty than the network tolerates. {} stays as it is, and no later epoch is \
         followed; ask the operators which one they follow", path.display()
    )]
    Forked {
        /// Epoch that both begin.
        epoch: Epoch,
        /// Digest of the network file that is here.
        first: Digest,
        /// Digest of the other network file.
        second: Digest,
        /// Path of the change that is here.
        path: PathBuf,
    },
    /// A change that cannot be written.
    #[error("a change of the network cannot be written to {path}: {source}", path = path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The connections were not opened.
    #[error(transparent)]
    Connect(#[from] NodeError),
}

/// A network as its files tell it, and what its authorities say of later epochs.
#[derive(Debug)]
pub struct NetworkFollower {
    chain: NetworkChain,
    /// Last time at which the newest epoch is known to have been in force.
    known_ms: u64,
    /// Date of the newest file.
    dated_ms: u64,
    /// Authorities of the newest epoch that know of no later one.
    content: BTreeSet<usize>,
    /// The other change to the newest epoch, once it was shown.
    fork: Option<Digest>,
}

impl NetworkFollower {
    /// Reads a network file and the changes beside it.
    ///
    /// # Errors
    /// When one of them cannot be read or is refused.
    pub fn open(path: &Path) -> Result<Self, AuthorityConfigError> {
        let chain = NetworkChain::open(path)?;
        let dated_ms = date_of(&chain.newest_path());
        let (known_ms, content) = (dated_ms, BTreeSet::new());
        Ok(Self { chain, known_ms, dated_ms, content, fork: None })
    }

    /// Network of the newest epoch that is known.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        self.chain.newest()
    }

    /// Request for later changes, and for the last one that is known, of which there must be one.
    #[must_use]
    pub fn request(&self) -> WalletRequest {
        let newest = self.network().epoch();
        let before = self.chain.last_change().map(|(_, before)| before.epoch());
        WalletRequest::Changes { after: before.unwrap_or(newest) }
    }

    /// Takes the changes that an authority of epoch `asked` shows; `true` where a later epoch is
    /// known by them. They are written beside the network file before anybody goes by them.
    ///
    /// # Errors
    /// Why nothing is followed: [`FollowError::TooOld`] and [`FollowError::Forked`] above all. What
    /// does not hold by itself is no error, but a liar's.
    pub fn take(
        &mut self,
        (asked, from): (Epoch, ReplicaId),
        changes: Vec<Change>,
        now_ms: u64,
    ) -> Result<bool, FollowError> {
        // Others may have written it meanwhile, or somebody who knows.
        self.refresh()?;
        for change in changes {
            if !self.take_one(change, from, now_ms)? {
                break;
            }
        }
        let newest = self.network().epoch();
        if newest == asked {
            self.content.insert(from.index());
            self.confirm(now_ms);
        }
        Ok(newest > asked)
    }

    /// Takes a change in; `false` where those behind it lead nowhere.
    fn take_one(
        &mut self,
        change: Change,
        from: ReplicaId,
        now_ms: u64,
    ) -> Result<bool, FollowError> {
        self.check_fork(&change)?;
        let epoch = self.network().epoch();
        if change.next.epoch <= epoch {
            return Ok(true);
        }
        match succeed(self.network(), &change) {
            Ok(next) => {
                self.check_age(now_ms)?;
                self.write(change, next)?;
                Ok(true)
            }
            Err(error) => {
                tracing::warn!(authority = %from, %epoch, %error, "an authority shows a false change");
                Ok(false)
            }
        }
    }

    /// Goes on over changes that were put beside the network file meanwhile.
    ///
    /// # Errors
    /// When one of them is refused.
    pub fn refresh(&mut self) -> Result<(), FollowError> {
        let before = self.network().epoch();
        self.chain.read_on(Epoch(u64::MAX))?;
        if self.network().epoch() > before {
            self.enter(date_of(&self.chain.newest_path()));
        }
        Ok(())
    }

    fn enter(&mut self, dated_ms: u64) {
        (self.dated_ms, self.known_ms) = (dated_ms, self.known_ms.max(dated_ms));
        self.content.clear();
    }

    /// Checks that a change is the one that is known, if its epoch is the newest.
    fn check_fork(&mut self, change: &Change) -> Result<(), FollowError> {
        let Some((first, before)) = self.chain.last_change() else { return Ok(()) };
        let (epoch, digest) = (first.next.epoch, first.next.digest());
        let is_other = change.next.epoch == epoch && change.next.digest() != digest;
        if is_other && before.succeed(change).is_ok() {
            self.fork = Some(change.next.digest());
        }
        let Some(second) = self.fork else { return Ok(()) };
        Err(FollowError::Forked { epoch, first: digest, second, path: self.chain.newest_path() })
    }

    /// ★ Checks that the authorities of the newest epoch are believed still.
    fn check_age(&self, now_ms: u64) -> Result<(), FollowError> {
        if self.is_trusted(now_ms) || mutants::active(Mutant::PayFollowForEver) {
            return Ok(());
        }
        let epoch = self.network().epoch();
        Err(FollowError::TooOld {
            epoch,
            age_days: TrustingPeriod::days_between(self.known_ms, now_ms),
            period_days: self.network().committee().trusting_period().days,
            next: change_beside(self.chain.path(), epoch.next()),
        })
    }

    fn is_trusted(&self, now_ms: u64) -> bool {
        self.network().committee().trusting_period().covers(self.known_ms, now_ms)
    }

    /// Writes a change, dated as the file before: nobody knows for how long the epoch has been in
    /// force that it begins. Whoever wrote one first has written it for all.
    fn write(&mut self, change: Change, next: Network) -> Result<(), FollowError> {
        let path = change_beside(self.chain.path(), change.next.epoch);
        let written = publish_change(&path, &change, date(self.known_ms));
        match written.map_err(|source| FollowError::Write { path, source })? {
            true => {
                tracing::info!(epoch = %next.epoch(), "the network is followed to its next epoch");
                self.chain.push(change, next);
                self.enter(self.known_ms);
                Ok(())
            }
            false => {
                self.refresh()?;
                self.check_fork(&change)
            }
        }
    }

    /// ★ Notes that the newest epoch is in force once a quorum of its authorities know of no later
    /// one. Whoever is not believed any more says nothing by that.
    fn confirm(&mut self, now_ms: u64) {
        let committee = self.network().committee();
        let content = Bitmap::from_indices(committee.size(), self.content.iter().copied());
        let is_quorum = committee.weight_of(&content) >= committee.quorum();
        if (is_quorum || mutants::active(Mutant::PayConfirmByFewer)) && self.is_trusted(now_ms) {
            self.content.clear();
            self.known_ms = self.known_ms.max(now_ms);
            self.date_newest();
        }
    }

    /// Dates the newest file, as far as its owner lets us: else it is known while we run.
    fn date_newest(&mut self) {
        if self.known_ms < self.dated_ms.saturating_add(DATE_EVERY_MS) {
            return;
        }
        let path = self.chain.newest_path();
        let dated = File::options().append(true).open(&path);
        match dated.and_then(|file| file.set_modified(date(self.known_ms))) {
            Ok(()) => self.dated_ms = self.known_ms,
            Err(error) => tracing::debug!(path = %path.display(), %error, "a file is not dated"),
        }
    }
}

fn date_of(path: &Path) -> u64 {
    std::fs::metadata(path).and_then(|file| file.modified()).map_or(0, ms_since_1970)
}

fn date(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

#[cfg(test)]
mod tests;

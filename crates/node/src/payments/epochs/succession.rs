//! Epochs after the present one, as the committee ordered their beginnings, and this shard's way
//! into them.
//!
//! Changes are checked by their signatures, whatever the committee says (★), and written beside the
//! network file. A shard begins the epochs up to the newest that its authority votes in, one after
//! the other: a newcomer inherits of all of them.

use super::change_file::publish_change;
use super::gather::{Around, Gathering};
use super::inheritance::is_whole;
use super::{PayEpochError, begin, mark_name};
use crate::NodeError;
use crate::payments::mark::Mark;
use crate::payments::network_files::succeed;
use crate::payments::{
    AuthorityConfig, AuthorityConfigError, NetworkChain, change_beside, read_change,
    read_network_before,
};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{IdentitySecret, KeyFile};
use quorate_payments::Network;
use quorate_payments::change::{Border, Change, ChangeStep};
use quorate_payments::committee::Ordered;
use quorate_types::{Epoch, ReplicaId};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::runtime::Handle;

/// The borders that were ordered, and how far this shard has come.
#[derive(Debug)]
pub(in crate::payments) struct Succession {
    config: AuthorityConfig,
    identity: IdentitySecret,
    founding: Arc<Network>,
    /// Newest epoch that this shard has begun, or that the network was founded with.
    present: Epoch,
    borders: Vec<OrderedBorder>,
    gathering: Option<Gathering>,
    runtime: Handle,
}

#[derive(Debug)]
struct OrderedBorder {
    ended: Arc<Network>,
    next: Arc<Network>,
    change: Box<Change>,
    border: Border,
}

/// An epoch that a shard can begin, once nothing runs in the one before.
#[derive(Debug)]
pub struct Beginning {
    change: Box<Change>,
    /// Folders of reports.
    reports: Vec<PathBuf>,
}

/// Reason that an authority's shard has ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// The next epoch can begin here.
    Superseded(Beginning),
}

impl Beginning {
    /// Begins the epoch.
    ///
    /// # Errors
    /// As [`begin()`].
    pub(in crate::payments) fn begin(
        &self,
        config: &AuthorityConfig,
        keys: &KeyFile,
    ) -> Result<(), NodeError> {
        let begun = begin(config, keys, &self.change, &self.reports)?;
        tracing::info!(
            epoch = self.change.next.epoch.0,
            reports = self.reports.len(),
            locked = begun.locked,
            admitted = begun.admitted,
            contested = begun.contested,
            "an epoch begins",
        );
        Ok(())
    }
}

/// Progress from the epoch that a shard is in to the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextEpoch {
    /// Number of the next epoch.
    pub epoch: u64,
    /// Closing reports that were ordered.
    pub reported: usize,
    /// Those of them that are here.
    pub gathered: usize,
    /// Shards of the next epoch's authorities that vote in it.
    pub entered: usize,
    /// `true` once a quorum of its authorities does: whoever leaves may stop.
    pub has_begun: bool,
}

/// The newest network that this shard has begun the epoch of: that of the newest file, where no
/// committee says when to begin.
///
/// # Errors
/// When a network file or a change cannot be read or is refused.
pub(in crate::payments) fn network_in_force(
    config: &AuthorityConfig,
) -> Result<Network, AuthorityConfigError> {
    let chain = NetworkChain::open(&config.network)?;
    let begun = |network: &&Arc<Network>| {
        network.is_founding() || is_whole(&config.data_dir, network.epoch())
    };
    let network = match config.committee {
        Some(_) => chain.networks().rev().find(begun).expect("the network was founded"),
        None => chain.newest(),
    };
    Ok(Network::clone(network))
}

impl Succession {
    /// Succession of a shard, whose `present` network is the newest that it has begun.
    pub(in crate::payments) fn new(
        config: &AuthorityConfig,
        identity: &IdentitySecret,
        present: &Network,
        runtime: &Handle,
    ) -> Result<Self, AuthorityConfigError> {
        let founding = read_network_before(&config.network, present.founding_epoch().next())?;
        Ok(Self {
            config: config.clone(),
            identity: identity.clone(),
            founding: Arc::new(founding),
            present: present.epoch(),
            borders: Vec::new(),
            gathering: None,
            runtime: runtime.clone(),
        })
    }

    /// The order is read from its beginning.
    pub(in crate::payments) fn rewind(&mut self) {
        self.borders.clear();
        self.gathering = None;
    }

    /// Takes what was ordered of a border.
    ///
    /// # Errors
    /// When a change does not hold, or is another than the one beside the network file.
    pub(in crate::payments) fn take(&mut self, ordered: &Ordered) -> Result<(), NodeError> {
        let step = match ordered {
            Ordered::Release(_) => return Ok(()),
            Ordered::Change(ChangeStep::Change(change)) => return self.end(change),
            Ordered::Change(step) => step,
        };
        if let Some(last) = self.borders.last_mut() {
            // Refused is what was ordered before: it counts once.
            let _ = last.border.apply(step);
        }
        Ok(())
    }

    /// Notes that the newest epoch ended, and what is the next.
    fn end(&mut self, change: &Change) -> Result<(), NodeError> {
        let newest = self.borders.last().map_or(&self.founding, |border| &border.next);
        let ended = Arc::clone(newest);
        let epoch = change.next.epoch;
        let next = succeed(&ended, change);
        let next = next.map_err(|source| PayEpochError::Change { epoch, source })?;
        self.keep(change)?;
        let change = Box::new(change.clone());
        let mut border = Border::default();
        let _ = border.apply(&ChangeStep::Change(change.clone()));
        self.borders.push(OrderedBorder { ended, next: Arc::new(next), change, border });
        Ok(())
    }

    /// Writes a change beside the network file, unless it is there.
    fn keep(&self, change: &Change) -> Result<(), NodeError> {
        let (epoch, path) =
            (change.next.epoch, change_beside(&self.config.network, change.next.epoch));
        if !path.exists() {
            let written = publish_change(&path, change, SystemTime::now());
            written.map_err(|source| PayEpochError::Io { path: path.clone(), source })?;
        }
        let is_same = read_change(&path)?.next.digest() == change.next.digest();
        if is_same { Ok(()) } else { Err(PayEpochError::OtherChange { epoch, path }.into()) }
    }

    /// Border at which this shard's epoch ended.
    fn coming(borders: &[OrderedBorder], present: Epoch) -> Option<&OrderedBorder> {
        borders.iter().find(|border| border.ended.epoch() == present)
    }

    /// Goes on towards the newest epoch that this shard's authority votes in: fetches reports of
    /// the coming border. Returns the epoch's beginning once they are here.
    ///
    /// # Errors
    /// When the reports' authorities cannot be connected to.
    pub(in crate::payments) fn advance(&mut self) -> Result<Option<Beginning>, NodeError> {
        let Some(coming) = Self::coming(&self.borders, self.present) else { return Ok(None) };
        let newest = &self.borders.last().expect("the coming one").next;
        let votes = |network: &Network| self.index_in(network).is_some();
        if !votes(&coming.next) && !votes(newest) {
            return Ok(None);
        }
        self.check_memory(coming)?;
        let gathering = match &mut self.gathering {
            Some(gathering) if gathering.asks(newest) => gathering,
            none => {
                let around = Around { ended: &coming.ended, next: &coming.next, newest };
                none.insert(Gathering::start(&self.identity, &around, &self.runtime)?)
            }
        };
        for shard in 0..coming.ended.shards() {
            coming.border.closings(shard).for_each(|one| gathering.fetch(&self.config, one));
        }
        let change = &coming.change;
        Ok(gathering.ready().map(|reports| Beginning { change: change.clone(), reports }))
    }

    fn index_in(&self, network: &Network) -> Option<ReplicaId> {
        network.committee().find(&self.identity.public())
    }

    /// ★ Refuses to begin an epoch that this shard votes in already, as was ordered, and has
    /// forgotten since: its disks were lost.
    fn check_memory(&self, coming: &OrderedBorder) -> Result<(), NodeError> {
        let AuthorityConfig { key, shard, durability, .. } = &self.config;
        let Some(me) = self.index_in(&coming.next) else { return Ok(()) };
        let has_entered = coming.border.entered(*shard).any(|one| one == me);
        let mark = Mark::beside(key, (mark_name(&coming.next), *shard), *durability)?;
        match mark.missing() {
            Some(mark) if has_entered && !mutants::active(Mutant::PayBeginForgotten) => {
                let (ended, epoch) = (coming.ended.epoch(), coming.next.epoch());
                let (data_dir, mark) = (self.config.data_dir.clone(), mark.to_owned());
                Err(PayEpochError::Forgotten { ended, epoch, data_dir, mark }.into())
            }
            _ => Ok(()),
        }
    }

    /// Progress to the epoch after this shard's, once that has ended.
    pub(in crate::payments) fn next(&self) -> Option<NextEpoch> {
        let OrderedBorder { next, border, .. } = Self::coming(&self.borders, self.present)?;
        let shards = 0..next.shards();
        Some(NextEpoch {
            epoch: next.epoch().0,
            reported: shards.clone().map(|shard| border.closings(shard).count()).sum(),
            gathered: self.gathering.as_ref().map_or(0, Gathering::count),
            entered: shards.map(|shard| border.entered(shard).count()).sum(),
            has_begun: border.has_begun(next.shards(), next.committee().weights()),
        })
    }

    /// Returns `true` while the epoch of this shard has ended and no next one has begun.
    pub(in crate::payments) fn is_at_border(&self) -> bool {
        self.next().is_some_and(|next| !next.has_begun)
    }
}

//! What an authority inherits of the epochs before, on disk: a layer for each border, the newest
//! asked first.
//!
//! ```text
//! epoch-N/inherited/locks       input → transaction        runs
//! epoch-N/inherited/admitted    transaction → nothing      runs
//! epoch-N/inherited/contested   inputs with several candidates; written last: the layer is whole
//! ```

use super::passes::{in_order, place_of};
use super::report::ClosedReport;
use super::{PayEpochError, later_folder};
use crate::durable;
use crate::payments::locks::cold::{item, key, locked};
use borsh::BorshDeserialize;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash_parts};
use quorate_payments::change::{Before, Claimed, Claims, Counting, Inherited, Prospect};
use quorate_payments::{Lock, Locked, LookupFailed, Network, OutputId, TxId};
use quorate_storage::{Owner, RealDisk, Runs, StorageError};
use quorate_types::{Epoch, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Index in the place of an output's, under which a transaction is admitted.
const ADMITTED: u16 = u16::MAX;

/// Inputs with several candidates.
type Contested = BTreeMap<OutputId, Vec<TxId>>;

/// One border's layer.
#[derive(Debug)]
struct Layer {
    locks: Runs,
    admitted: Runs,
    contested: Contested,
}

/// Layers of all borders so far, oldest first.
#[derive(Debug, Default)]
pub(in crate::payments) struct DiskInheritance {
    layers: Vec<Layer>,
}

/// Folder of what an epoch inherits.
pub(super) fn layer_folder(data_dir: &Path, epoch: Epoch) -> PathBuf {
    later_folder(data_dir, epoch).join("inherited")
}

/// File that a layer's folder has once the layer is whole.
fn contested_file(data_dir: &Path, epoch: Epoch) -> PathBuf {
    layer_folder(data_dir, epoch).join("contested")
}

/// Returns `true` if what an epoch inherits is there, whole.
pub(super) fn is_whole(data_dir: &Path, epoch: Epoch) -> bool {
    contested_file(data_dir, epoch).exists()
}

impl DiskInheritance {
    /// Opens what the epoch of `network` inherits (★: all of it, or an error).
    ///
    /// # Errors
    /// When a layer is missing, damaged or not `owner`'s.
    pub(in crate::payments) fn open(
        data_dir: &Path,
        network: &Network,
        owner: &Owner,
    ) -> Result<Self, PayEpochError> {
        let mut layers = Vec::new();
        if mutants::active(Mutant::PayBeginWithNothing) {
            return Ok(Self { layers });
        }
        let mut epoch = network.epoch();
        for _ in 0..network.former_epochs() {
            layers.push(Layer::open(data_dir, epoch, owner)?);
            epoch = Epoch(epoch.0 - 1);
        }
        layers.reverse();
        Ok(Self { layers })
    }

    /// Candidates of an input by the newest layer that has it.
    fn find(&self, input: OutputId) -> Result<Vec<TxId>, StorageError> {
        for layer in self.layers.iter().rev() {
            if let Some(several) = layer.contested.get(&input) {
                return Ok(several.clone());
            }
            if let Some(value) = layer.locks.get(&key(input))? {
                return Ok(vec![locked(&value).tx]);
            }
        }
        Ok(Vec::new())
    }

    fn is_admitted(&self, tx: TxId) -> Result<bool, StorageError> {
        let name = key(OutputId { tx, index: ADMITTED });
        for layer in &self.layers {
            if layer.admitted.get(&name)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn before(&self, input: OutputId) -> Result<Before, StorageError> {
        let candidates = self.find(input)?;
        let is_admitted = match candidates[..] {
            [tx] => self.is_admitted(tx)?,
            _ => false,
        };
        Ok(Before { candidates, is_admitted })
    }

    /// Inputs that any layer has several candidates of.
    fn contested(&self) -> impl Iterator<Item = OutputId> {
        self.layers.iter().flat_map(|layer| layer.contested.keys().copied())
    }
}

impl Inherited for DiskInheritance {
    fn candidates(&self, input: OutputId) -> Result<Vec<TxId>, LookupFailed> {
        self.find(input).map_err(|error| LookupFailed(error.to_string()))
    }

    fn admits(&self, tx: TxId) -> Result<bool, LookupFailed> {
        self.is_admitted(tx).map_err(|error| LookupFailed(error.to_string()))
    }
}

/// Owner of a layer: the shard that reads it, and the epoch that inherits it.
fn layer_owner(owner: &Owner, epoch: Epoch) -> Owner {
    Owner { protocol: format!("inherited by epoch {}", epoch.0), ..owner.clone() }
}

impl Layer {
    fn open(data_dir: &Path, epoch: Epoch, owner: &Owner) -> Result<Self, PayEpochError> {
        let folder = layer_folder(data_dir, epoch);
        let missing = || PayEpochError::NotBegun { folder: folder.clone(), epoch };
        let file = contested_file(data_dir, epoch);
        let bytes = fs::read(&file).map_err(|_| missing())?;
        let owner = layer_owner(owner, epoch);
        let contested = decode_contested(&bytes, &owner).ok_or_else(|| StorageError::Corrupt {
            file: file.display().to_string(),
            offset: 0,
            reason: "it is not what this shard wrote when the epoch began".into(),
        })?;
        let (locks, admitted) = open_runs(&folder, &owner)?;
        Ok(Self { locks, admitted, contested })
    }
}

/// Encodes inputs with several candidates, behind a hash over them and their owner.
fn encode_contested(contested: &Contested, owner: &Owner) -> Vec<u8> {
    let content = borsh::to_vec(contested).expect("encoding into memory cannot fail");
    [&contested_digest(&content, owner).0[..], &content].concat()
}

fn decode_contested(bytes: &[u8], owner: &Owner) -> Option<Contested> {
    let (digest, content) = bytes.split_first_chunk::<32>()?;
    let is_whole = contested_digest(content, owner).0 == *digest;
    is_whole.then(|| Contested::try_from_slice(content).ok()).flatten()
}

fn contested_digest(content: &[u8], owner: &Owner) -> Digest {
    let owner = borsh::to_vec(owner).expect("encoding into memory cannot fail");
    hash_parts("quorate v1 payments: contested inputs", &[&owner, content])
}

fn open_runs(folder: &Path, owner: &Owner) -> Result<(Runs, Runs), StorageError> {
    let open = |name: &str| {
        let disk = RealDisk::open(&folder.join(name))?.without_zeroing();
        Runs::open(Box::new(disk), owner)
    };
    Ok((open("locks")?, open("admitted")?))
}

/// Reports of one shard, and what they can say.
pub(super) struct ShardReports<'a> {
    pub(super) reports: &'a [ClosedReport],
    pub(super) counting: Counting,
    pub(super) weights: &'a Weights,
}

/// A layer that is made.
pub(super) struct LayerWriter<'a> {
    before: &'a DiskInheritance,
    contested_file: PathBuf,
    owner: Owner,
    locks: Runs,
    admitted: Runs,
    contested: Contested,
}

/// Sizes of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerSizes {
    pub(super) locked: u64,
    pub(super) admitted: u64,
    pub(super) contested: u64,
}

impl<'a> LayerWriter<'a> {
    /// Begins the layer of an epoch over those of the epochs before.
    pub(super) fn begin(
        data_dir: &Path,
        epoch: Epoch,
        owner: &Owner,
        before: &'a DiskInheritance,
    ) -> Result<Self, PayEpochError> {
        let owner = layer_owner(owner, epoch);
        let (locks, admitted) = open_runs(&layer_folder(data_dir, epoch), &owner)?;
        let (contested_file, contested) = (contested_file(data_dir, epoch), Contested::new());
        Ok(Self { before, contested_file, owner, locks, admitted, contested })
    }

    /// Takes in the reports of all shards, one after the other, and ends the layer.
    pub(super) fn write(
        mut self,
        shards: &[ShardReports<'_>],
    ) -> Result<LayerSizes, PayEpochError> {
        for shard in shards {
            self.write_locks(shard)?;
        }
        let contested = self.contesting()?;
        for shard in shards {
            self.write_admitted(shard, &contested)?;
        }
        for runs in [&self.locks, &self.admitted] {
            while runs.is_merge_due() {
                runs.merge()?;
            }
        }
        let bytes = encode_contested(&self.contested, &self.owner);
        let path = self.contested_file;
        durable::replace(&path, &bytes).map_err(|source| PayEpochError::Io { path, source })?;
        Ok(LayerSizes {
            locked: self.locks.len(),
            admitted: self.admitted.len(),
            contested: self.contested.len() as u64,
        })
    }

    fn write_locks(&mut self, shard: &ShardReports<'_>) -> Result<(), PayEpochError> {
        let before = self.before;
        let read = |push: &mut dyn FnMut((OutputId, TxId, Prospect))| {
            shard.each(before, |tx, inputs, prospect| {
                inputs.iter().for_each(|input| push((*input, tx, prospect)));
                Ok(())
            })
        };
        let place = |(input, ..): &(OutputId, TxId, Prospect)| place_of(&input.tx);
        in_order(shard.entries(), place, read, |claims| self.settle(&claims))
    }

    /// Settles inputs, each with everything that names it.
    fn settle(&mut self, claims: &[(OutputId, TxId, Prospect)]) -> Result<(), PayEpochError> {
        let mut settled = Vec::new();
        for of_input in claims.chunk_by(|one, other| one.0 == other.0) {
            let input = of_input[0].0;
            let named: Vec<(TxId, Prospect)> =
                of_input.iter().map(|(_, tx, prospect)| (*tx, *prospect)).collect();
            let candidates = self.before.before(input)?.settle(&named);
            let known = self.find(input)?;
            match &candidates[..] {
                [] => {}
                [tx] if known.is_empty() => {
                    settled.push(item(input, Locked { tx: *tx, sequence: Lock::INHERITED }));
                }
                [tx] if known == [*tx] => {}
                // Or a report of another shard names the input, which belongs to one of them.
                _ => {
                    let all: BTreeSet<TxId> = candidates.into_iter().chain(known).collect();
                    self.contested.insert(input, all.into_iter().collect());
                }
            }
        }
        Ok(self.locks.add(0, settled.into_iter())?)
    }

    /// Transactions that some input is contested by still, this layer counted.
    fn contesting(&self) -> Result<BTreeSet<TxId>, StorageError> {
        let mut contesting: BTreeSet<TxId> = self.contested.values().flatten().copied().collect();
        for input in self.before.contested() {
            let before = self.before.find(input)?;
            if before.len() > 1 && self.find(input)?.is_empty() {
                contesting.extend(before);
            }
        }
        Ok(contesting)
    }

    /// Candidates of an input by the shards before.
    fn find(&self, input: OutputId) -> Result<Vec<TxId>, StorageError> {
        if let Some(several) = self.contested.get(&input) {
            return Ok(several.clone());
        }
        let known = self.locks.get(&key(input))?;
        Ok(known.map(|value| locked(&value).tx).into_iter().collect())
    }

    fn write_admitted(
        &mut self,
        shard: &ShardReports<'_>,
        contested: &BTreeSet<TxId>,
    ) -> Result<(), PayEpochError> {
        let (before, admitted) = (self.before, &self.admitted);
        let read = |push: &mut dyn FnMut(TxId)| {
            shard.each(before, |tx, _, prospect| {
                let counts = prospect == Prospect::Vouched && !contested.contains(&tx);
                // No key is in two runs: a transaction that spans shards, or is old, is there.
                if counts && !before.is_admitted(tx)? {
                    push(tx);
                }
                Ok(())
            })
        };
        in_order(shard.entries(), place_of, read, |txs| {
            let mut fresh = Vec::with_capacity(txs.len());
            for tx in txs {
                let name = OutputId { tx, index: ADMITTED };
                if admitted.get(&key(name))?.is_none() {
                    fresh.push(item(name, Locked { tx, sequence: Lock::INHERITED }));
                }
            }
            Ok(admitted.add(0, fresh.into_iter())?)
        })
    }
}

impl ShardReports<'_> {
    /// Number of entries in all reports, the most that there are to put into an order.
    fn entries(&self) -> u64 {
        self.reports.iter().map(|report| report.closing().count).sum()
    }

    /// Hands on every transaction that is named, with the inputs that it is named with.
    fn each(
        &self,
        before: &DiskInheritance,
        mut hand_on: impl FnMut(TxId, &[OutputId], Prospect) -> Result<(), StorageError>,
    ) -> Result<(), PayEpochError> {
        let weight = |report: &ClosedReport| self.weights.of(report.closing().authority.index());
        let reports = self.reports.iter().map(|report| (weight(report), report.entries()));
        for claimed in Claims::of(reports) {
            let Claimed { tx, inputs } = claimed?;
            for (taken, weight) in inputs {
                let mut prospect = self.counting.prospect(weight);
                for input in &taken {
                    if before.before(*input)?.excludes(*input, (tx, &taken)) {
                        prospect = Prospect::Impossible;
                    }
                }
                hand_on(tx, &taken, prospect)?;
            }
        }
        Ok(())
    }
}

//! The file that says which pieces count, and the directory in which it stands.

use super::files::{damaged, read_file};
use crate::disk::Disk;
use crate::{Owner, StorageError};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::hash_parts;
use std::collections::BTreeSet;
use std::io;

const MANIFEST: &str = "runs-";
const UNNAMED: &str = "unnamed";
const PIECE: &str = "piece-";
const INDEX: &str = "index-";
const HASH_BYTES: usize = 32;

/// Format of the manifest and of the pieces that it names, written at its start with the owner.
const FORMAT: u32 = 1;

/// The runs, each by its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Manifest {
    pub(super) covered: u64,
    pub(super) runs: Vec<Vec<PieceEntry>>,
}

/// A piece as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct PieceEntry {
    pub(super) number: u64,
    pub(super) items: u64,
    pub(super) index_hash: [u8; 32],
}

impl Manifest {
    fn pieces(&self) -> impl Iterator<Item = &PieceEntry> {
        self.runs.iter().flatten()
    }
}

impl PieceEntry {
    pub(super) fn name_of(number: u64) -> String {
        format!("{PIECE}{number:012}")
    }

    pub(super) fn name(&self) -> String {
        Self::name_of(self.number)
    }

    pub(super) fn index_name(&self) -> String {
        format!("{INDEX}{:012}", self.number)
    }
}

/// The disk, and what the next files on it are called.
pub(super) struct Directory {
    pub(super) disk: Box<dyn Disk>,
    /// Number of the newest manifest; 0 before the first.
    generation: u64,
    /// Number of the next piece, above that of any that is there.
    next: u64,
}

impl Directory {
    /// Finds the newest manifest; an empty one where there is none.
    pub(super) fn open(
        disk: Box<dyn Disk>,
        owner: &Owner,
    ) -> Result<(Self, Manifest), StorageError> {
        let names = disk.list().map_err(|error| failed(&*disk, "list", MANIFEST, &error))?;
        let numbers = |kind: &str| {
            let kind = kind.to_owned();
            names.iter().filter_map(move |name| name.strip_prefix(&kind)?.parse::<u64>().ok())
        };
        let generation = numbers(MANIFEST).max().unwrap_or(0);
        let next = numbers(PIECE).chain(numbers(INDEX)).max().map_or(0, |number| number + 1);
        let manifest = match generation {
            0 => Manifest::default(),
            _ => read_manifest(&*disk, &manifest_name(generation), owner)?,
        };
        Ok((Self { disk, generation, next }, manifest))
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Makes a manifest durable, in the place of the one before; the pieces that it names are, but
    /// for their names.
    pub(super) fn write(&mut self, manifest: &Manifest, owner: &Owner) -> Result<(), StorageError> {
        let name = manifest_name(self.generation + 1);
        // The names of the pieces come first.
        self.sync(&name)?;
        // Under its name only when it is whole: a crash leaves no half of one.
        let content = [owner.record(FORMAT), encode(manifest)].concat();
        let written = self.disk.write(UNNAMED, &content);
        let named = written.and_then(|()| self.disk.rename(UNNAMED, &name));
        named.map_err(|error| failed(&*self.disk, "write", &name, &error))?;
        self.sync(&name)?;
        self.generation += 1;
        Ok(())
    }

    /// Removes the manifest before the newest one, and the pieces that this one alone named. Others
    /// may be written just now.
    pub(super) fn replace(&mut self, old: &Manifest, new: &Manifest) -> Result<(), StorageError> {
        let kept: BTreeSet<u64> = new.pieces().map(|piece| piece.number).collect();
        let gone = old.pieces().filter(|piece| !kept.contains(&piece.number));
        for piece in gone {
            self.remove(&piece.name())?;
            self.remove(&piece.index_name())?;
        }
        match self.generation {
            1 => Ok(()),
            newest => self.remove(&manifest_name(newest - 1)),
        }
    }

    /// Removes all files of ours but the newest manifest, which is this one, and what it names.
    pub(super) fn remove_others(&mut self, manifest: &Manifest) -> Result<(), StorageError> {
        // The manifest was found under its name, which a crash may have come before the sync of.
        self.sync(MANIFEST)?;
        let names = self.disk.list();
        let names = names.map_err(|error| failed(&*self.disk, "list", MANIFEST, &error))?;
        let mut kept = BTreeSet::from([manifest_name(self.generation)]);
        for piece in manifest.pieces() {
            kept.extend([piece.name(), piece.index_name()]);
        }
        let is_ours = |name: &str| {
            [MANIFEST, PIECE, INDEX, UNNAMED].iter().any(|kind| name.starts_with(kind))
        };
        let gone = names.iter().filter(|name| is_ours(name) && !kept.contains(*name));
        gone.into_iter().try_for_each(|name| self.remove(name))
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        let removed = self.disk.remove(name);
        removed.map_err(|error| failed(&*self.disk, "remove", name, &error))
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        let synced = self.disk.sync_directory();
        synced.map_err(|error| failed(&*self.disk, "sync the directory of", name, &error))
    }
}

fn manifest_name(generation: u64) -> String {
    format!("{MANIFEST}{generation:020}")
}

fn encode(manifest: &Manifest) -> Vec<u8> {
    let content = borsh::to_vec(manifest).expect("encoding into memory cannot fail");
    [&hash_parts("quorate v1 runs manifest", &[&content]).0[..], &content].concat()
}

fn read_manifest(disk: &dyn Disk, name: &str, owner: &Owner) -> Result<Manifest, StorageError> {
    let file = read_file(disk, name)?;
    let bytes = owner.strip(&disk.locate(name), FORMAT, &file)?;
    let manifest =
        bytes.get(HASH_BYTES..).and_then(|content| Manifest::try_from_slice(content).ok());
    let sound = manifest.filter(|manifest| encode(manifest) == bytes);
    sound.ok_or_else(|| damaged(disk.locate(name), 0, "it is not what was written"))
}

fn failed(disk: &dyn Disk, action: &'static str, name: &str, error: &io::Error) -> StorageError {
    StorageError::io(action, disk.locate(name), error)
}

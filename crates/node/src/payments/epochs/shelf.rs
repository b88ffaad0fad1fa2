//! Closing reports that an authority's shard has, for those who begin the next epoch: its own, and
//! those that it began an epoch with itself.

use super::report::{CHUNK_BYTES_MAX, CLOSING, chunk_name};
use super::{gathered_folder, later_folder};
use crate::payments::{AuthorityConfig, change_beside, read_change};
use quorate_crypto::IdentityKey;
use quorate_payments::{Network, ReportPart};
use quorate_types::{Epoch, ReplicaId};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Reports on disk, for authorities of the present epoch and of the next.
#[derive(Debug)]
pub(in crate::payments) struct ReportShelf {
    config: AuthorityConfig,
    present: Arc<Network>,
    next: OnceLock<Network>,
}

impl ReportShelf {
    pub(in crate::payments) fn new(config: &AuthorityConfig, present: &Arc<Network>) -> Self {
        Self { config: config.clone(), present: Arc::clone(present), next: OnceLock::new() }
    }

    /// Returns `true` if this key may ask: a report is long, and a question short.
    pub(in crate::payments) fn serves(&self, from: IdentityKey) -> bool {
        let is_of = |network: &Network| network.committee().find(&from).is_some();
        is_of(&self.present) || self.next().is_some_and(is_of)
    }

    /// Network of the next epoch, once the change to it is beside the network file.
    fn next(&self) -> Option<&Network> {
        if self.next.get().is_none() {
            let beside = change_beside(&self.config.network, self.present.epoch().next());
            let next = self.present.succeed(&read_change(&beside).ok()?).ok()?;
            let _ = self.next.set(next);
        }
        self.next.get()
    }

    /// Bytes of a part; `None` where this shard does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::payments) fn read(&self, asked: &ReportPart) -> io::Result<Option<Vec<u8>>> {
        let place = (asked.authority, asked.shard);
        let begins = asked.ended.next();
        let folders =
            [self.own(asked.ended), gathered_folder(&self.config.data_dir, begins, place)];
        for folder in folders {
            if place_of(&folder)? == Some(place) {
                let name = asked.part.checked_sub(1).map_or(CLOSING.into(), chunk_name);
                return read_if_there(&folder.join(name));
            }
        }
        Ok(None)
    }

    /// Folder of what this shard itself reported at the end of an epoch.
    fn own(&self, ended: Epoch) -> PathBuf {
        let data_dir = &self.config.data_dir;
        let founding = self.present.founding_epoch();
        let folder =
            if ended == founding { data_dir.clone() } else { later_folder(data_dir, ended) };
        folder.join("report")
    }
}

/// Authority and shard of the report in a folder, which its file begins with.
fn place_of(folder: &Path) -> io::Result<Option<(ReplicaId, u16)>> {
    let mut head = [0; 4];
    match File::open(folder.join(CLOSING)).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let [a, b, c, d] = head;
    Ok(Some((ReplicaId(u16::from_le_bytes([a, b])), u16::from_le_bytes([c, d]))))
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Ok(file) if file.len() <= CHUNK_BYTES_MAX.max(REPORT_HEAD_MAX) => fs::read(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Bytes of what is signed of a report of two thousand million inputs, which an answer has room
/// for.
const REPORT_HEAD_MAX: u64 = 4 * 1024 * 1024;

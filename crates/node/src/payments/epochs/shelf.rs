//! Closing reports that an authority's shard has, for those who begin the next epoch: its own, and
//! those that it began an epoch with itself.

use super::report::{CLOSING, chunk_name};
use super::{gathered_folder, later_folder};
use quorate_payments::{Network, ORDER_BYTES_MAX, ReportPart};
use quorate_types::{Epoch, ReplicaId};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Reports on disk.
#[derive(Debug)]
pub(in crate::payments) struct ReportShelf {
    data_dir: PathBuf,
    founding: Epoch,
}

impl ReportShelf {
    pub(in crate::payments) fn new(data_dir: &Path, network: &Network) -> Self {
        Self { data_dir: data_dir.to_owned(), founding: network.founding_epoch() }
    }

    /// Bytes of a part; `None` where this shard does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::payments) fn read(&self, asked: &ReportPart) -> io::Result<Option<Vec<u8>>> {
        let place = (asked.authority, asked.shard);
        let begins = asked.ended.next();
        let folders = [self.own(asked.ended), gathered_folder(&self.data_dir, begins, place)];
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
        let is_founding = ended == self.founding;
        let folder =
            if is_founding { self.data_dir.clone() } else { later_folder(&self.data_dir, ended) };
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

/// Bytes of a file that an answer has room for: a chunk, or what is signed of a report of two
/// thousand million inputs.
fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Ok(file) if file.len() <= ORDER_BYTES_MAX as u64 => fs::read(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

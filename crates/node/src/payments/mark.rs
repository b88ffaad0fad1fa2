//! Noticing that locks are gone (★): a small file beside the key says how many there were.
//!
//! An authority that forgot a lock would vote twice for one coin. Its log notices damage, but
//! neither a disk that was emptied nor one that was set back to an older copy; this file does, as
//! long as it is kept with the key and not with the data. It is written once a second while there
//! are new locks, so that a disk set back by less may go unnoticed.

use crate::{NodeError, durable};
use quorate_types::NetworkId;
use std::io;
use std::path::{Path, PathBuf};

/// The file of one shard.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    path: PathBuf,
    network: NetworkId,
}

impl Mark {
    pub(super) fn beside(key: &Path, network: NetworkId, shard: u16) -> Self {
        Self { path: key.with_extension(format!("shard-{shard}.locks")), network }
    }

    /// ★ Refuses fewer locks than were there.
    pub(super) fn check(&self, found: u64) -> Result<(), NodeError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(self.failed("read", source)),
        };
        let mut words = text.split_whitespace();
        if words.next() != Some(hex::encode(self.network.0).as_str()) {
            return Ok(());
        }
        // What was not written by us is no reason to sign.
        let marked = words.next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX);
        if found < marked {
            return Err(NodeError::LocksLost { marked, found, mark: self.path.clone() });
        }
        Ok(())
    }

    /// Says, durably, that so many locks are durable.
    pub(super) fn write(&self, locks: u64) -> Result<(), NodeError> {
        let text = format!("{} {locks}\n", hex::encode(self.network.0));
        durable::replace(&self.path, text.as_bytes()).map_err(|source| self.failed("write", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> NodeError {
        NodeError::Marker { action, path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_locks_than_marked_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = Mark::beside(&folder.path().join("key.toml"), NetworkId([1; 32]), 2);
        assert!(mark.check(0).is_ok(), "a first start");
        mark.write(7).expect("writes");
        assert!(mark.check(7).is_ok() && mark.check(8).is_ok());
        let refused = mark.check(6);
        assert!(matches!(refused, Err(NodeError::LocksLost { marked: 7, found: 6, .. })));
        let other = Mark { network: NetworkId([2; 32]), ..mark.clone() };
        assert!(other.check(0).is_ok(), "another network");
        std::fs::write(&mark.path, format!("{} seven", hex::encode([1; 32]))).expect("writes");
        assert!(matches!(mark.check(6), Err(NodeError::LocksLost { .. })), "not our writing");
    }
}

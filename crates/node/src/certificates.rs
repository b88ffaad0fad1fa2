//! Certificates of heights, kept on disk for readers that ask after a restart.
//!
//! Nothing rests on them: what the last quarter of a second brought may be lost with a crash.

use crossbeam_channel::{Receiver, Sender, unbounded};
use quorate_storage::{Archive, LogConfig, Owner, RealDisk, Room, RoomyDisk, StorageError};
use quorate_types::Height;
use quorate_types::executed::ExecutionCertificate;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Certificates that are kept in memory: some 20 MB of them.
const CERTIFICATES: usize = 65_536;

/// Bytes of log that keep them on disk.
const KEPT_BYTES: u64 = 32 * 1024 * 1024;

/// Time for which certificates are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(250);

/// Certificates of the newest heights, in memory.
#[derive(Debug, Default)]
pub(crate) struct Certificates(BTreeMap<Height, ExecutionCertificate>);

impl Certificates {
    /// Keeps a certificate, and drops the lowest height's when there are too many.
    pub(crate) fn insert(&mut self, certificate: ExecutionCertificate) {
        self.0.insert(certificate.header.height, certificate);
        if self.0.len() > CERTIFICATES {
            self.0.pop_first();
        }
    }

    /// Certificate of a height, if it is kept.
    pub(crate) fn get(&self, height: Height) -> Option<&ExecutionCertificate> {
        self.0.get(&height)
    }
}

/// Writes certificates to disk.
pub(crate) struct CertificateWriter {
    archive: Archive,
    inbound: Receiver<ExecutionCertificate>,
}

impl CertificateWriter {
    /// Opens a folder of `owner`'s; with the way for more certificates, and those that are in it.
    pub(crate) fn open(
        folder: &Path,
        owner: &Owner,
        room: Room,
    ) -> Result<(Self, Sender<ExecutionCertificate>, Certificates), StorageError> {
        let disk = RoomyDisk::new(RealDisk::open(folder)?.without_zeroing(), room);
        let config = LogConfig {
            segment_bytes: KEPT_BYTES / 8,
            retention_bytes: KEPT_BYTES,
            ..LogConfig::default()
        };
        let mut certificates = Certificates::default();
        let archive = Archive::open(Box::new(disk), owner, config, |_, entry| {
            // One in an older form is none.
            if let Ok(certificate) = borsh::from_slice(entry) {
                certificates.insert(certificate);
            }
            Ok(())
        })?;
        let (outlet, inbound) = unbounded();
        Ok((Self { archive, inbound }, outlet, certificates))
    }

    /// Writes what comes until the host stops.
    pub(crate) fn run(mut self, stopping: &AtomicBool) -> Result<(), StorageError> {
        loop {
            let ends = stopping.load(Ordering::Relaxed);
            self.write()?;
            if ends {
                return Ok(());
            }
            thread::sleep(GATHER);
        }
    }

    fn write(&mut self) -> Result<(), StorageError> {
        let before = self.archive.next();
        for certificate in self.inbound.try_iter() {
            let entry = borsh::to_vec(&certificate).expect("encoding into memory cannot fail");
            self.archive.append(&entry)?;
        }
        if self.archive.next() == before {
            return Ok(());
        }
        self.archive.commit()?;
        self.archive.prune_below(self.archive.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::{Aggregate, Bitmap, Certificate};
    use quorate_types::executed::Header;

    fn certificate(height: u64) -> ExecutionCertificate {
        let header = Header { height: Height(height), ..Header::default() };
        let aggregate = Aggregate(Vec::new());
        ExecutionCertificate {
            header,
            certificate: Certificate { signers: Bitmap::new(4), aggregate },
        }
    }

    #[test]
    fn they_are_there_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        for height in 1..=3 {
            let (writer, outlet, known) =
                CertificateWriter::open(folder.path(), &Owner::nobody(), Room::unwatched())
                    .expect("opens");
            assert_eq!(known.get(Height(height - 1)).is_some(), height > 1);
            assert_eq!(known.get(Height(height)), None);
            outlet.send(certificate(height)).expect("taken");
            writer.run(&AtomicBool::new(true)).expect("writes");
        }
        let (_, _, known) =
            CertificateWriter::open(folder.path(), &Owner::nobody(), Room::unwatched())
                .expect("opens");
        assert_eq!(known.get(Height(1)), Some(&certificate(1)));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut known = Certificates::default();
        let last = CERTIFICATES as u64;
        (0..=last).for_each(|height| known.insert(certificate(height)));
        assert_eq!(known.get(Height(0)), None);
        assert!(known.get(Height(1)).is_some() && known.get(Height(last)).is_some());
    }
}

//! Certificates of the heights at which snapshots are taken, in `data_dir/proofs`.
//!
//! They are what a state is exported with: whoever has lost more members than the network tolerates
//! gets no signature any more. So each is durable soon after it is known; nobody waits for it.

use crate::durable;
use crate::receiving::next_of;
use crossbeam_channel::{Receiver, Sender, bounded};
use quorate_engine::SNAPSHOT_INTERVALS_MAX;
use quorate_types::Height;
use quorate_types::executed::ExecutionCertificate;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Certificates that are kept: of the two snapshots, which may be so many intervals apart, and of
/// those that may be under way.
const KEPT: usize = 3 * SNAPSHOT_INTERVALS_MAX as usize;
/// Ending of a certificate's file.
const ENDING: &str = "certificate";

/// The way of certificates to the folder, from a thread that does not wait for a disk.
#[derive(Debug)]
pub struct ProofOutlet {
    /// Heights between two snapshots.
    every: u64,
    to: Sender<ExecutionCertificate>,
}

impl ProofOutlet {
    /// The way, and where it leads, for snapshots at every so many heights.
    pub(crate) fn new(every: u64) -> (Self, Receiver<ExecutionCertificate>) {
        let (to, inbound) = bounded(KEPT);
        (Self { every, to }, inbound)
    }

    /// Passes on the certificate of a height that has a snapshot; one that finds the disk so slow
    /// that others wait is left out, and a later one takes its place.
    pub fn certified(&self, certificate: &ExecutionCertificate) {
        if certificate.header.height.0.is_multiple_of(self.every) {
            let _ = self.to.try_send(certificate.clone());
        }
    }
}

/// A folder of certificates.
#[derive(Debug)]
pub(crate) struct StateProofs {
    folder: PathBuf,
}

impl StateProofs {
    /// The folder in a data folder. It need not be there.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("proofs") }
    }

    /// Keeps certificates as they come, until nobody sends any more. Where the disk refuses, the
    /// next height's takes its place.
    pub(crate) fn run(&self, inbound: &Receiver<ExecutionCertificate>) {
        while let Some(certificate) = next_of(inbound) {
            if let Err(error) = self.keep(&certificate) {
                let (height, folder) = (certificate.header.height, self.folder.display());
                tracing::warn!(%height, %folder, %error, "the certificate of a snapshot is not kept");
            }
        }
    }

    pub(super) fn keep(&self, certificate: &ExecutionCertificate) -> io::Result<()> {
        let bytes = borsh::to_vec(certificate).expect("encoding into memory cannot fail");
        fs::create_dir_all(&self.folder)?;
        durable::replace(&self.path(certificate.header.height), &bytes)?;
        let mut heights = self.heights()?;
        heights.sort_unstable();
        let surplus = heights.len().saturating_sub(KEPT);
        heights.iter().take(surplus).try_for_each(|height| fs::remove_file(self.path(*height)))
    }

    fn heights(&self) -> io::Result<Vec<Height>> {
        let names = fs::read_dir(&self.folder)?.map(|entry| entry.map(|entry| entry.path()));
        let height = |path: PathBuf| {
            let is_one = path.extension().is_some_and(|ending| ending == ENDING);
            is_one.then(|| path.file_stem()?.to_str()?.parse().ok().map(Height)).flatten()
        };
        Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().filter_map(height).collect())
    }

    /// The certificate of a height; `None` where there is none that can be read. Nothing in it is
    /// believed.
    pub(crate) fn read(&self, height: Height) -> Option<ExecutionCertificate> {
        borsh::from_slice(&fs::read(self.path(height)).ok()?).ok()
    }

    fn path(&self, height: Height) -> PathBuf {
        self.folder.join(format!("{:012}.{ENDING}", height.0))
    }
}

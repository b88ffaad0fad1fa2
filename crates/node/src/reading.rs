//! Reading beside execution: views of the last heights' states, and what certifies heights.
//!
//! The execution thread puts out a view after each height where the service has a reader; readers take one
//! and keep nobody waiting. A view keeps what later heights replaced from being given up, so few are kept.

use crate::certificates::{Certificates, Keeper};
use bytes::Bytes;
use crossbeam_channel::Sender;
use parking_lot::{Mutex, RwLock};
use quorate_storage::{Executor, StateView, StorageError};
use quorate_types::Height;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::{Reader, StateError};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Views that are kept.
const VIEWS: usize = 16;

/// What execution puts out.
#[derive(Debug)]
pub struct Shelf {
    reader: Option<Arc<dyn Reader>>,
    views: RwLock<VecDeque<Arc<StateView>>>,
    newest: watch::Sender<Height>,
    certificates: Mutex<Certificates>,
    /// To who keeps more of them, where there are readers.
    outlet: Option<Sender<ExecutionCertificate>>,
}

impl Shelf {
    /// A shelf with the state as it is, and the certificates that were kept in `data_dir`; with who keeps
    /// more of them. For nobody where the service has no reader.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(crate) fn open(
        executor: &Executor,
        data_dir: &Path,
    ) -> Result<(Arc<Self>, Option<Keeper>), StorageError> {
        let reader = executor.reader();
        let folder = data_dir.join("certificates");
        let kept = reader.as_ref().map(|_| Keeper::open(&folder)).transpose()?;
        let (keeper, outlet, certificates) = match kept {
            Some((keeper, outlet, certificates)) => (Some(keeper), Some(outlet), certificates),
            None => (None, None, Certificates::default()),
        };
        let shelf = Self {
            reader,
            views: RwLock::default(),
            newest: watch::Sender::new(Height(0)),
            certificates: Mutex::new(certificates),
            outlet,
        };
        shelf.put(executor)?;
        Ok((Arc::new(shelf), keeper))
    }

    /// Puts out the state as it is, if anybody could read it.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn put(&self, executor: &Executor) -> Result<(), StorageError> {
        if self.reader.is_none() {
            return Ok(());
        }
        let view = Arc::new(executor.view()?);
        let height = view.height();
        let mut views = self.views.write();
        views.push_back(view);
        if views.len() > VIEWS {
            views.pop_front();
        }
        drop(views);
        self.newest.send_replace(height);
        Ok(())
    }

    /// Keeps a certificate for whoever asks.
    pub fn certified(&self, certificate: ExecutionCertificate) {
        let Some(outlet) = &self.outlet else { return };
        self.certificates.lock().insert(certificate.clone());
        // Fails only when the host stops.
        let _ = outlet.send(certificate);
    }
}

/// Reads a validator's state on any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reading {
    reader: Arc<dyn Reader>,
    shelf: Arc<Shelf>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// The height is not executed yet, or too old.
    #[error("the state of height {asked} is not at hand: those of {oldest} to {newest} are")]
    NotKept {
        /// Which was asked for.
        asked: Height,
        /// The oldest that is kept.
        oldest: Height,
        /// The newest.
        newest: Height,
    },
    /// The service has no answer.
    #[error("{0}")]
    Refused(String),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Reading {
    pub(crate) fn new(shelf: &Arc<Shelf>) -> Option<Self> {
        Some(Self { reader: shelf.reader.clone()?, shelf: Arc::clone(shelf) })
    }

    /// Has a question answered about the state as a height left it, or as the newest did. Reads the disk, and
    /// computes: not for threads that move bytes.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub fn query(&self, at: Option<Height>, question: &[u8]) -> Result<Bytes, ReadingError> {
        let view = self.view(at)?;
        view.query(self.reader.as_ref(), question)?.map_err(ReadingError::Refused)
    }

    fn view(&self, at: Option<Height>) -> Result<Arc<StateView>, ReadingError> {
        let views = self.shelf.views.read();
        let (oldest, newest) = (views.front(), views.back());
        let (oldest, newest) = oldest.zip(newest).expect("one is put out at the start");
        let asked = at.unwrap_or(newest.height());
        let found = views.iter().rev().find(|view| view.height() == asked);
        let (oldest, newest) = (oldest.height(), newest.height());
        found.cloned().ok_or(ReadingError::NotKept { asked, oldest, newest })
    }

    /// The newest height, and notice of later ones. Its view is out before it shows here.
    #[must_use]
    pub fn heights(&self) -> watch::Receiver<Height> {
        self.shelf.newest.subscribe()
    }

    /// What certifies a height, if this validator learnt it, and not too long ago.
    #[must_use]
    pub fn certificate(&self, height: Height) -> Option<ExecutionCertificate> {
        self.shelf.certificates.lock().get(height).cloned()
    }
}

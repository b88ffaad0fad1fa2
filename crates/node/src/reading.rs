//! Reading beside execution: views of the last heights' states, and what certifies heights.
//!
//! The execution thread puts out a view after each height where the service has a reader; readers take one
//! and keep nobody waiting. A view keeps what later heights replaced from being given up, so few are kept.

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use quorate_storage::{Executor, StateView, StorageError};
use quorate_types::Height;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::{Reader, StateError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::watch;

/// Views that are kept.
const VIEWS: usize = 16;

/// Certificates that are kept: some 20 MB of them.
const CERTIFICATES: usize = 65_536;

/// What execution puts out.
#[derive(Debug)]
pub struct Shelf {
    reader: Option<Arc<dyn Reader>>,
    views: RwLock<VecDeque<Arc<StateView>>>,
    newest: watch::Sender<Height>,
    certificates: Mutex<BTreeMap<Height, ExecutionCertificate>>,
}

impl Shelf {
    /// A shelf with the state as it is.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn new(executor: &Executor) -> Result<Arc<Self>, StorageError> {
        let shelf = Self {
            reader: executor.reader(),
            views: RwLock::default(),
            newest: watch::Sender::new(Height(0)),
            certificates: Mutex::default(),
        };
        shelf.put(executor)?;
        Ok(Arc::new(shelf))
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
        if self.reader.is_none() {
            return;
        }
        let mut certificates = self.certificates.lock();
        certificates.insert(certificate.header.height, certificate);
        if certificates.len() > CERTIFICATES {
            certificates.pop_first();
        }
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

    /// What certifies a height, if this validator learnt it since it was started, and not too long ago.
    #[must_use]
    pub fn certificate(&self, height: Height) -> Option<ExecutionCertificate> {
        self.shelf.certificates.lock().get(&height).cloned()
    }
}

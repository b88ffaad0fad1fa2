//! Reads beside execution: views of the last heights' states, and certificates of heights.
//!
//! The execution thread publishes a view after each height where the service has a reader; readers
//! take one and keep nobody waiting. A view keeps replaced state alive on disk, so few are kept.

use crate::certificates::{CertificateWriter, Certificates};
use bytes::Bytes;
use crossbeam_channel::Sender;
use parking_lot::{Mutex, RwLock};
use quorate_storage::history::StateHistory;
use quorate_storage::{Executor, Owner, Room, StateView, StorageError};
use quorate_types::Height;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::{Reader, StateError};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Views that are kept.
const VIEWS: usize = 16;

/// State views and certificates that the execution thread publishes.
#[derive(Debug)]
pub struct StateViews {
    reader: Option<Arc<dyn Reader>>,
    history: Option<Arc<dyn StateHistory>>,
    kept: RwLock<VecDeque<Arc<StateView>>>,
    newest: watch::Sender<Height>,
    certificates: Mutex<Certificates>,
    /// To who keeps more of them, where there are readers.
    outlet: Option<Sender<ExecutionCertificate>>,
}

impl StateViews {
    /// Views with the state as it is, and the certificates that were kept in `data_dir`; with the
    /// writer that keeps more of them. For nobody where the service has no reader.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(crate) fn open(
        executor: &mut Executor,
        data_dir: &Path,
        owner: &Owner,
        room: Room,
    ) -> Result<(Arc<Self>, Option<CertificateWriter>), StorageError> {
        let reader = executor.reader();
        let folder = data_dir.join("certificates");
        let kept =
            reader.as_ref().map(|_| CertificateWriter::open(&folder, owner, room)).transpose()?;
        let (writer, outlet, certificates) = match kept {
            Some((writer, outlet, certificates)) => (Some(writer), Some(outlet), certificates),
            None => (None, None, Certificates::default()),
        };
        let views = Self {
            reader,
            history: executor.history(),
            kept: RwLock::default(),
            newest: watch::Sender::new(Height(0)),
            certificates: Mutex::new(certificates),
            outlet,
        };
        views.put(executor)?;
        Ok((Arc::new(views), writer))
    }

    /// Publishes a view of the state as it is, if the service has a reader.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn put(&self, executor: &mut Executor) -> Result<(), StorageError> {
        if self.reader.is_none() {
            return Ok(());
        }
        let view = Arc::new(executor.view()?);
        let height = view.height();
        let mut kept = self.kept.write();
        kept.push_back(view);
        if kept.len() > VIEWS {
            kept.pop_front();
        }
        drop(kept);
        self.newest.send_replace(height);
        Ok(())
    }

    /// Keeps a certificate for readers.
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
    views: Arc<StateViews>,
}

/// A state that was asked for.
enum Found<'a> {
    View(Arc<StateView>),
    /// The state after a height that is over, as a newer one and the archive have it.
    Past {
        history: &'a dyn StateHistory,
        height: Height,
        /// The oldest that is at hand as a view.
        viewed: Height,
        newest: Arc<StateView>,
    },
}

/// Reason that a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// The height is not executed yet, or too old.
    #[error("the state of height {asked} is not at hand: those of {oldest} to {newest} are")]
    NotKept {
        /// Height that was asked for.
        asked: Height,
        /// The oldest that is kept.
        oldest: Height,
        /// Newest height that is kept.
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
    pub(crate) fn new(views: &Arc<StateViews>) -> Option<Self> {
        Some(Self { reader: views.reader.clone()?, views: Arc::clone(views) })
    }

    /// Answers a query of the state after a height, or after the newest. Reads the disk and
    /// computes: not for threads that move bytes.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub fn query(&self, at: Option<Height>, question: &[u8]) -> Result<Bytes, ReadingError> {
        let reader = self.reader.as_ref();
        let answer = match self.view(at)? {
            Found::View(view) => view.query(reader, question)?,
            Found::Past { history, height, viewed, newest } => {
                let answer = newest.query_past(history, height, reader, question);
                // It may have been given up meanwhile.
                self.past(height, viewed, newest)?;
                answer?
            }
        };
        answer.map_err(ReadingError::Refused)
    }

    fn view(&self, at: Option<Height>) -> Result<Found<'_>, ReadingError> {
        let (asked, viewed, newest) = {
            let kept = self.views.kept.read();
            let (oldest, newest) = (kept.front(), kept.back());
            let (oldest, newest) = oldest.zip(newest).expect("one is put out at the start");
            let asked = at.unwrap_or(newest.height());
            if let Some(view) = kept.iter().rev().find(|view| view.height() == asked) {
                return Ok(Found::View(Arc::clone(view)));
            }
            (asked, oldest.height(), Arc::clone(newest))
        };
        // Without the lock, which whoever executes wants.
        self.past(asked, viewed, newest)
    }

    /// The state after a height that is over, if the archive has it. `viewed` is the oldest that is
    /// at hand without one.
    fn past(
        &self,
        asked: Height,
        viewed: Height,
        newest: Arc<StateView>,
    ) -> Result<Found<'_>, ReadingError> {
        let history = self.views.history.as_deref();
        let archived = history.and_then(|history| Some((history, history.oldest()?)));
        match archived {
            Some((history, oldest)) if (oldest..=newest.height()).contains(&asked) => {
                Ok(Found::Past { history, height: asked, viewed, newest })
            }
            _ => {
                let oldest = archived.map_or(viewed, |(_, oldest)| oldest.min(viewed));
                Err(ReadingError::NotKept { asked, oldest, newest: newest.height() })
            }
        }
    }

    /// The newest height, and notice of later ones. Its view is out before it shows here.
    #[must_use]
    pub fn heights(&self) -> watch::Receiver<Height> {
        self.views.newest.subscribe()
    }

    /// Certificate of a height, if this validator learnt it, and not too long ago.
    #[must_use]
    pub fn certificate(&self, height: Height) -> Option<ExecutionCertificate> {
        self.views.certificates.lock().get(height).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_ledger::evm::{Evm, Genesis, Query};
    use quorate_storage::{ExecutorConfig, MemoryStore};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Readers ask for what is there and for what is not while views are put out: an end of both is
    /// what is asserted.
    #[test]
    fn who_asks_for_what_is_not_kept_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, service) = (Box::new(MemoryStore::new()), Box::new(Evm::new(Genesis::new(7))));
        let opened = Executor::open(store, service, ExecutorConfig::default());
        let mut executor = opened.expect("opened").0;
        let (owner, room) = (Owner::nobody(), Room::unwatched());
        let opened = StateViews::open(&mut executor, folder.path(), &owner, room);
        let (views, _writer) = opened.expect("opened");
        let (reading, ended) = (Reading::new(&views).expect("a reader"), AtomicBool::new(false));
        let head = Query::Head.encode();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let asked = reading.query(Some(Height(9)), &head);
                        assert!(matches!(asked, Err(ReadingError::NotKept { .. })), "{asked:?}");
                        reading.query(None, &head).expect("the newest is there");
                    }
                });
            }
            for _ in 0..50_000 {
                views.put(&mut executor).expect("put");
            }
            ended.store(true, Ordering::Relaxed);
        });
    }
}

//! Errors of a load.

use quorate_node::NodeError;
use quorate_node::payments::AuthorityConfigError;
use quorate_payments::ReceiptError;
use quorate_storage::StorageError;
use std::io;

/// Error of a load.
#[derive(Debug, thiserror::Error)]
pub enum PayLoadError {
    /// The journal cannot be opened or written.
    #[error("the journal of the load: {0}")]
    Storage(#[from] StorageError),
    /// Another process has the folder.
    #[error("the load in {0} is in use by another process: wait until that one ends")]
    InUse(String),
    /// An entry that no load writes.
    #[error("entry {0} of the journal was written by no load of this version")]
    Entry(u64),
    /// The journal's thread ended.
    #[error(
        "the journal of the load could not be written, and nothing more is sent: free or mend the \
         disk; the same command goes on"
    )]
    JournalFailed,
    /// The folder is of another load.
    #[error("the folder's load has {found}, not {expected}: name another folder, or the same load")]
    OtherLoad {
        /// What the folder's load has.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// The receipt of the wallet's payment pays somebody else, or nothing.
    #[error("the wallet's payment to the load: {0}")]
    Receipt(#[from] ReceiptError),
    /// The network's files are refused.
    #[error(transparent)]
    Network(#[from] AuthorityConfigError),
    /// Connections cannot be opened.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// Attempt that was refused.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl PayLoadError {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

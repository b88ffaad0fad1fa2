//! Everything a validator keeps: its log, its state and what came of executing its blocks.
//!
//! * [`Journal`] carries out a machine's `Persist`, `Append`, `Store`, `Release` and `Read` effects
//!   over two pre-zeroed, checksummed logs of segments: promises and decisions, and bodies. They
//!   stand on a [`Disk`]: a [`RealDisk`] in a validator, a [`MemoryDisk`] in the simulator, and a
//!   [`FaultyDisk`] over either in tests.
//! * [`Executor`] wraps a [`Service`](quorate_types::Service): every request takes effect exactly
//!   once, and state, sessions and height are committed in one transaction of a [`Store`].
//! * [`StateHistory`](history::StateHistory) keeps what the state was at heights that are over.
//! * [`Archive`] keeps numbered entries, and [`Runs`] what they came to, for payment authorities.
//! * [`Snapshots`] keeps the last two snapshots of that state, for members that fell further behind
//!   than anybody's log.
//! * [`Owner`] is named at the start of all of them: what belongs to somebody else is not opened.
//!
//! A disk that is full makes writers wait: [`Room`].
//!
//! Log and state meet at recovery. The store remembers how far execution came ([`Executor::open`]);
//! the log replays the decided heights after that ([`Journal::open`]). So the store need not be
//! synced at every height, and only the log is.
//!
//! Everything is synchronous: a host puts a journal and an executor each on a thread of its own.
//!
//! ```
//! use quorate_storage::{Entry, Journal, LogConfig, MemoryDisk, Owner};
//! use quorate_types::machine::{Record, RecordKind};
//!
//! let disk = MemoryDisk::new();
//! let open = || {
//!     let (records, bodies) = (Box::new(disk.clone()), Box::new(disk.clone()));
//!     Journal::open(records, bodies, &Owner::nobody(), LogConfig::default(), None)
//! };
//! let (mut journal, _) = open()?;
//! let promise = Record { kind: RecordKind::Safety, bytes: "voted in view 7".into() };
//! journal.write(&Entry::Record(promise.clone()))?;
//! journal.commit()?; // durable: the vote may leave
//!
//! disk.crash(&mut || true); // the power fails, everything unsynced is lost
//! let (_, recovery) = open()?;
//! assert_eq!(recovery.safety, Some(promise.bytes));
//! # Ok::<(), quorate_storage::StorageError>(())
//! ```

mod archive;
pub mod disk;
mod error;
pub mod executor;
pub mod history;
pub mod journal;
mod log;
mod owner;
mod room;
mod runs;
pub use quorate_crypto::mutants;
pub mod snapshots;
mod stats;
pub mod store;

pub use archive::Archive;
pub use disk::{
    Disk, DiskFile, Fault, Faults, FaultyDisk, MemoryDisk, RealDisk, RoomyDisk, open_when_possible,
};
pub use error::StorageError;
pub use executor::{Executor, ExecutorConfig, Session, SnapshotJob, StateView};
pub use journal::{Findings, Journal, JournalReader, Safeguards, SetBack, Witnessed};
pub use log::{Durability, LogConfig, LogMark};
pub use owner::{Owner, Role};
pub use quorate_types::machine::Entry;
pub use room::{Room, RoomConfig, RoomFigures, RoomLevel, WantsRoom};
pub use runs::{RUN_KEY_BYTES, RUN_VALUE_BYTES, RunItem, Runs, RunsSnapshot};
pub use snapshots::{KeptSnapshots, Snapshots};
pub use stats::JournalStats;
pub use store::{DiskStore, MemoryStore, Store, Transaction};

//! Counts of what a journal or an archive does.

use quorate_types::Height;

/// Counts of a journal since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Bytes handed to the operating system.
    pub bytes_written: u64,
    /// Syncs of a file or the directory.
    pub syncs: u64,
    /// Records, without the segments' own.
    pub records: u64,
    /// Bytes in use now, by records and bodies; space set aside for later does not count.
    pub bytes_used: u64,
    /// The lowest height from which on decided records and bodies are all here.
    pub oldest: Height,
}

//! Noticing that a wallet's book is not the one that it was (★): a small file beside it says how
//! far it was written.
//!
//! A book that was cut, set back to an older copy, or replaced by another one does not know what
//! the wallet signed since, and would sign a second transaction over the same coins. The book is
//! written first, then the mark, then a payment is shown to anybody: so a crash leaves a book that
//! is ahead of its mark, and never one behind it.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, hash_parts};
use quorate_node::slots::{Found, SlotFile};
use std::io;
use std::path::{Path, PathBuf};

/// Extent of a book: where it ends, and a hash over all its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Extent {
    pub(super) end: u64,
    pub(super) chain: Digest,
}

impl Extent {
    /// Extent of a book without a record.
    pub(super) const EMPTY: Self = Self { end: 0, chain: Digest::ZERO };

    /// Extent with one more record, whose bytes in the file these are.
    pub(super) fn with(self, record: &[u8]) -> Self {
        let chain = hash_parts("quorate v1 wallet: chain of records", &[&self.chain.0, record]);
        Self { end: self.end + record.len() as u64, chain }
    }
}

/// The mark of one book.
#[derive(Debug)]
pub(super) struct Mark(SlotFile);

/// Path of a book's mark.
pub(super) fn path_of(book: &Path) -> PathBuf {
    book.with_extension("mark")
}

impl Mark {
    /// Opens a book's mark, or makes one, and returns what it says; nothing where it says nothing.
    pub(super) fn open(book: &Path, is_new: bool) -> io::Result<(Self, Option<Extent>)> {
        let path = path_of(book);
        if !is_new && !path.try_exists()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (slots, found): (_, Found<Extent>) = SlotFile::open(path, "quorate v1 wallet: mark")?;
        Ok((Self(slots), found.slots.first().copied()))
    }

    /// Says, durably, how far the book is written.
    pub(super) fn write(&mut self, extent: Extent) -> io::Result<()> {
        self.0.put(&extent).and_then(|()| self.0.sync()).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Mark, path_of};

    #[test]
    fn a_torn_mark_says_what_it_said_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let book = folder.path().join("wallet");
        assert!(Mark::open(&book, false).is_err(), "absent");
        let (mut mark, said) = Mark::open(&book, true).expect("made");
        assert_eq!(said, None);
        let first = Extent::EMPTY.with(b"first");
        let second = first.with(b"second");
        assert_eq!(second.end, 11);
        mark.write(first).expect("written");
        mark.write(second).expect("written");
        assert_eq!(Mark::open(&book, false).expect("opened").1, Some(second));
        let whole = std::fs::read(path_of(&book)).expect("read");
        // The second one, in the first slot.
        for at in 0..512 {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            std::fs::write(path_of(&book), torn).expect("written");
            assert_eq!(Mark::open(&book, false).expect("opened").1, Some(first), "byte {at}");
        }
    }
}

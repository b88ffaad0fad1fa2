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

const DOMAIN: &str = "quorate v1 wallet: mark";

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

/// Words of a mark: its book, and the one that is about to take its place, which has all that
/// counts of it. A mark of before books were folded names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Marked {
    pub(super) book: Extent,
    pub(super) next: Option<Extent>,
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
    pub(super) fn open(book: &Path, is_new: bool) -> io::Result<(Self, Option<Marked>)> {
        let path = path_of(book);
        if !is_new && !path.try_exists()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (slots, found): (_, Found<Marked>) = SlotFile::open(path, DOMAIN)?;
        Ok((Self(slots), found.slots.first().copied()))
    }

    /// Says, durably, how far the book is written.
    pub(super) fn write(&mut self, extent: Extent) -> io::Result<()> {
        self.put(Marked { book: extent, next: None })
    }

    /// Says, durably, that the book of one extent is about to be replaced by that of another.
    pub(super) fn write_either(&mut self, book: Extent, next: Extent) -> io::Result<()> {
        self.put(Marked { book, next: Some(next) })
    }

    fn put(&mut self, marked: Marked) -> io::Result<()> {
        self.0.put(&marked).and_then(|()| self.0.sync()).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::{DOMAIN, Extent, Mark, Marked, path_of};
    use quorate_node::slots::SlotFile;

    #[test]
    fn a_mark_of_before_books_were_folded_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let book = folder.path().join("wallet");
        let extent = Extent::EMPTY.with(b"a record");
        let (mut former, _) = SlotFile::open::<Extent>(path_of(&book), DOMAIN).expect("made");
        former.put(&extent).expect("written");
        let said = Mark::open(&book, false).expect("opened").1;
        assert_eq!(said, Some(Marked { book: extent, next: None }));
    }

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
        let of = |book| Some(Marked { book, next: None });
        assert_eq!(Mark::open(&book, false).expect("opened").1, of(second));
        let whole = std::fs::read(path_of(&book)).expect("read");
        // The second one, in the first slot.
        for at in 0..512 {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            std::fs::write(path_of(&book), torn).expect("written");
            assert_eq!(Mark::open(&book, false).expect("opened").1, of(first), "byte {at}");
        }
    }
}

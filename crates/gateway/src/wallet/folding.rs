//! Folding a wallet's book: what counts stays in it, and lines of the history that are over go to
//! the [archive](super::archive), so that a start reads the former alone.
//!
//! ```text
//! lines ─▶ archive, durable ─▶ new book, durable ─▶ in the old one's place ─▶ index
//! ```
//!
//! Killed anywhere, the wallet opens the old book or the new one: they say the same.

use super::archive::Archive;
use super::payment::Line;
use super::record::Folded;
use super::state::Newest;
use super::{Payment, Wallet, WalletError, encode, read};
use quorate_crypto::mutants::{self, Mutant};
use quorate_node::unix_ms;
use quorate_payments::{OutputId, TxId};

/// Sizes at which a book is folded, and what stays in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folding {
    /// The newest lines, which stay in the book and whose records stay with the authorities.
    pub(super) newest: Newest,
    /// Fewest lines of a book that is folded.
    pub(super) lines_min: usize,
    /// Bytes that a book grows by before it is folded.
    pub(super) growth_bytes: u64,
}

impl Default for Folding {
    fn default() -> Self {
        let newest = Newest { lines: 1_000, bytes: 4 << 20 };
        Self { newest, lines_min: 2_000, growth_bytes: 4 << 20 }
    }
}

/// Sizes of a book from which on it is folded.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldAt {
    lines: usize,
    bytes: u64,
}

impl FoldAt {
    /// For a book of these records.
    pub(super) fn read(folding: Folding, contents: &[Vec<u8>]) -> Self {
        let Some((at, folded)) = Folded::of(contents) else {
            return Self::after(folding, 0, 0);
        };
        let kept = contents.iter().take(at + 1 + to_size(folded.records));
        let bytes = kept.map(|one| one.len() as u64).sum();
        Self::after(folding, to_size(folded.lines), bytes)
    }

    /// For a book that had so many lines and bytes when it was folded last: twice as many.
    pub(super) fn after(folding: Folding, lines: usize, bytes: u64) -> Self {
        let lines = folding.lines_min.max(2 * lines);
        Self { lines, bytes: bytes.saturating_add(folding.growth_bytes.max(bytes)) }
    }
}

impl Wallet {
    /// Opens the archive that the book goes on from, and folds the book if it is large.
    pub(super) fn open_archive(&mut self) -> Result<(), WalletError> {
        if let Some(point) = self.state.archive.clone() {
            let (owner, network) = (self.owner(), self.network.id());
            self.archive = Some(Archive::open(self.file.path(), point, owner, network)?);
        }
        self.fold_if_due();
        self.check_usable()
    }

    /// Folds the book if it is large. What was to be stored is stored whether that works or not.
    pub(super) fn fold_if_due(&mut self) {
        let (lines, bytes) = (self.state.entries.len(), self.file.length());
        if lines < self.fold_at.lines && bytes < self.fold_at.bytes {
            return;
        }
        if let Err(error) = self.fold() {
            tracing::warn!(%error, "the wallet's book was not folded");
        }
        let (lines, bytes) = (self.state.entries.len(), self.file.length());
        self.fold_at = FoldAt::after(self.folding, lines, bytes);
    }

    pub(super) fn fold(&mut self) -> Result<(), WalletError> {
        let (owner, network) = (self.owner(), self.network.id());
        if self.archive.is_none() {
            self.archive = Some(Archive::begin(self.file.path(), owner, network)?);
        }
        let archive = self.archive.as_mut().expect("begun");
        let lines = self.state.over(self.folding.newest, unix_ms());
        let contents: Vec<Vec<u8>> = lines.iter().map(encode).collect();
        let point = archive.append(&contents)?;
        let book: Vec<Vec<u8>> =
            self.state.kept(&lines, point.clone()).iter().map(encode).collect();
        self.file.renew(&book)?;
        self.state = read(&book).expect("a folded book is one");
        archive.advance(point)
    }

    /// A payment of this wallet's, however long ago.
    pub(super) fn find(&self, tx: TxId) -> Result<Option<Payment>, WalletError> {
        match (self.state.payment(tx), self.archived()) {
            (Some(payment), _) => Ok(Some(payment.clone())),
            (None, Some(archive)) => archive.payment(tx),
            (None, None) => Ok(None),
        }
    }

    /// The payment that a caller's key names.
    pub(super) fn find_by_key(&self, key: &str) -> Result<Option<Payment>, WalletError> {
        match (self.state.payment_of_key(key), self.archived()) {
            (Some(payment), _) => Ok(Some(payment.clone())),
            (None, Some(archive)) => archive.payment_of_key(key),
            (None, None) => Ok(None),
        }
    }

    /// Tells whether a coin is or was here (★): what was spent does not come back.
    pub(super) fn knows(&self, id: &OutputId) -> Result<bool, WalletError> {
        Ok(self.state.knows(id) || self.spender(id)?.is_some())
    }

    /// Payment in the archive that spent a coin.
    pub(super) fn spender(&self, id: &OutputId) -> Result<Option<TxId>, WalletError> {
        self.archived().map_or(Ok(None), |archive| archive.spender(id))
    }

    fn archived(&self) -> Option<&Archive> {
        self.archive.as_ref().filter(|_| !mutants::active(Mutant::PayForgetArchived))
    }

    /// All lines of the history in their order: those of the archive are read.
    pub(super) fn lines(&self) -> Result<Vec<Line>, WalletError> {
        let mut lines = self.archive.as_ref().map_or(Ok(Vec::new()), Archive::lines)?;
        let kept = self.state.entries.iter();
        lines.extend(kept.map(|(number, entry)| Line { number: *number, entry: entry.clone() }));
        lines.sort_by_key(|line| line.number);
        Ok(lines)
    }
}

fn to_size(count: u64) -> usize {
    usize::try_from(count).expect("a book fits into memory")
}

//! How full a machine's collections are, beside what members can make them hold: the rows of
//! docs/bounds.md, for oracles that hold a running replica against them.

/// Number of entries of a collection, and how many it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Name of the field, as docs/bounds.md has it.
    pub field: &'static str,
    /// Entries in it; where there are several of its kind, those of the fullest.
    pub entries: usize,
    /// Most entries that it may have, whatever its peers send.
    pub bound: usize,
}

impl Occupancy {
    /// The occupancy of one collection.
    #[must_use]
    pub const fn new(field: &'static str, entries: usize, bound: usize) -> Self {
        Self { field, entries, bound }
    }

    /// The occupancy of the fullest of several collections.
    pub fn of_fullest(
        field: &'static str,
        entries: impl IntoIterator<Item = usize>,
        bound: usize,
    ) -> Self {
        Self::new(field, entries.into_iter().max().unwrap_or(0), bound)
    }

    /// Returns `true` if it has more entries than it may have.
    #[must_use]
    pub const fn is_exceeded(&self) -> bool {
        self.entries > self.bound
    }
}

//! Several runs read as one, in the order of their keys.

use super::{Run, RunItem};
use crate::StorageError;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items of several runs, in order.
pub(super) struct Merge {
    cursors: Vec<Cursor>,
}

/// A place in one run.
struct Cursor {
    run: Arc<Run>,
    piece: usize,
    block: usize,
    items: VecDeque<RunItem>,
}

impl Merge {
    pub(super) fn of(runs: &[Arc<Run>]) -> Self {
        let cursor = |run: &Arc<Run>| Cursor {
            run: Arc::clone(run),
            piece: 0,
            block: 0,
            items: VecDeque::new(),
        };
        Self { cursors: runs.iter().map(cursor).collect() }
    }
}

impl Iterator for Merge {
    type Item = Result<RunItem, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let filled = self.cursors.iter_mut().try_for_each(Cursor::fill);
        if let Err(error) = filled {
            self.cursors.clear();
            return Some(Err(error));
        }
        let first = self.cursors.iter_mut().filter(|cursor| !cursor.items.is_empty());
        let first = first.min_by_key(|cursor| cursor.items.front().map(|(key, _)| *key))?;
        first.items.pop_front().map(Ok)
    }
}

impl Cursor {
    /// Reads on where nothing is left of what was read.
    fn fill(&mut self) -> Result<(), StorageError> {
        while self.items.is_empty()
            && let Some(piece) = self.run.pieces.get(self.piece)
        {
            let items = &mut self.items;
            let read = piece.read_items(self.block, |item| items.push_back(item))?;
            self.block += read;
            if read == 0 {
                (self.piece, self.block) = (self.piece + 1, 0);
            }
        }
        Ok(())
    }
}

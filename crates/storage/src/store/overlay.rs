//! What is committed and not on disk yet, in memory.
//!
//! ```text
//! commit ─▶ newest ──(a view or a checkpoint wants it)──▶ layers ──(checkpoint)──▶ writing ─▶ gone
//!           a map, changed in place                      maps that nobody changes any more
//! ```
//!
//! A later map hides what earlier ones and the disk have under its keys. Those that nobody changes
//! any more are shared with views, which go on seeing them. Layers are put together before they
//! are many: each has at most a quarter of the changes of the one below. So a read passes as many
//! as the logarithm of all changes, and a view copies few of them.

use super::{Changes, part, scan_changed};
use quorate_types::service::{KeyRange, StateError, Visitor};
use std::sync::Arc;

/// A layer has at least so many times the changes of the one above it. Twice makes more layers to
/// read, more than this make more copies of changes that views see.
const LAYERS_RATIO: usize = 4;

/// Bytes of memory that an entry takes beside its key and value: counts, lengths and pointers of
/// both, and its part of a tree's node.
const ENTRY_BYTES: usize = 96;

/// Committed changes.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    newest: Changes,
    /// From the oldest to the newest.
    layers: Vec<Arc<Changes>>,
    /// Changes that are on their way to the disk, older than all others.
    writing: Option<Arc<Changes>>,
    bytes: u64,
}

impl Overlay {
    /// Takes the changes of one transaction in.
    pub(super) fn commit(&mut self, changes: Changes) {
        let size = |(key, value): (&Arc<[u8]>, &Option<Arc<[u8]>>)| {
            ENTRY_BYTES + key.len() + value.as_ref().map_or(0, |value| value.len())
        };
        self.bytes += changes.iter().map(size).sum::<usize>() as u64;
        if self.newest.is_empty() {
            self.newest = changes;
        } else {
            self.newest.extend(changes);
        }
    }

    /// Bytes of memory that changes since the last checkpoint take, each counted as often as it was
    /// made.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The value that a key was given, or its removal; `None` where the disk has the last word.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Arc<[u8]>>> {
        let older = || self.older().rev().find_map(|layer| layer.get(key));
        self.newest.get(key).or_else(older)
    }

    /// Shows what `committed` shows, as these changes leave it.
    pub(super) fn scan(
        &self,
        keys: KeyRange<'_>,
        committed: &mut Scan<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        let layers: Vec<&Changes> =
            self.older().map(Arc::as_ref).chain(std::iter::once(&self.newest)).collect();
        scan_layers(&layers, keys, committed, visit)
    }

    /// Everything that is committed and not on disk, for whoever goes on seeing it.
    pub(super) fn layers(&mut self) -> Layers {
        self.freeze();
        Layers(self.older().cloned().collect())
    }

    /// Everything that is committed, to be written: none may be on its way then. It is seen until
    /// it is [`Overlay::written`].
    pub(super) fn begin_writing(&mut self) -> Arc<Changes> {
        assert!(self.writing.is_none(), "one checkpoint after the other");
        self.freeze();
        let all = self.layers.drain(..).reduce(put_together).unwrap_or_default();
        self.writing = Some(Arc::clone(&all));
        self.bytes = 0;
        all
    }

    /// What was to be written is on disk.
    pub(super) fn written(&mut self) {
        self.writing = None;
    }

    fn older(&self) -> impl DoubleEndedIterator<Item = &Arc<Changes>> {
        self.writing.iter().chain(&self.layers)
    }

    /// Has nobody change what is the newest.
    fn freeze(&mut self) {
        if self.newest.is_empty() {
            return;
        }
        let mut top = Arc::new(std::mem::take(&mut self.newest));
        while let Some(below) = self.layers.pop_if(|below| below.len() < LAYERS_RATIO * top.len()) {
            top = put_together(below, top);
        }
        self.layers.push(top);
    }
}

/// Changes of a moment, which nobody changes any more, from the oldest to the newest.
#[derive(Debug)]
pub(super) struct Layers(Vec<Arc<Changes>>);

impl Layers {
    /// As [`Overlay::get`].
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Arc<[u8]>>> {
        self.0.iter().rev().find_map(|layer| layer.get(key))
    }

    /// As [`Overlay::scan`].
    pub(super) fn scan(
        &self,
        keys: KeyRange<'_>,
        committed: &mut Scan<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StateError> {
        let layers: Vec<&Changes> = self.0.iter().map(Arc::as_ref).collect();
        scan_layers(&layers, keys, committed, visit)
    }
}

/// Shows the keys of a range to a visitor, as they are on disk.
pub(super) type Scan<'a> = dyn FnMut(&mut Visitor<'_>) -> Result<(), StateError> + 'a;

fn scan_layers(
    layers: &[&Changes],
    keys: KeyRange<'_>,
    committed: &mut Scan<'_>,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let Some((top, below)) = layers.split_last() else { return committed(visit) };
    let below = |visit: &mut Visitor<'_>| scan_layers(below, keys, committed, visit);
    scan_changed(part(top, keys), below, visit)
}

/// What two layers are together, the later one over the earlier.
fn put_together(below: Arc<Changes>, above: Arc<Changes>) -> Arc<Changes> {
    let mut all = Arc::unwrap_or_clone(below);
    match Arc::try_unwrap(above) {
        Ok(above) => all.extend(above),
        Err(shared) => {
            all.extend(shared.iter().map(|(key, value)| (Arc::clone(key), value.clone())));
        }
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: u32, value: u32) -> Changes {
        let bytes = |number: u32| -> Arc<[u8]> { number.to_be_bytes().as_slice().into() };
        Changes::from([(bytes(key), Some(bytes(value)))])
    }

    /// A view at each commit, of few or of many keys: a read passes a few layers.
    #[test]
    fn layers_stay_few() {
        for keys in [1, 10, 10_000] {
            let mut overlay = Overlay::default();
            let mut views = std::collections::VecDeque::new();
            for number in 0..10_000 {
                overlay.commit(put(number % keys, number));
                views.push_back(overlay.layers());
                if views.len() > 16 {
                    views.pop_front();
                }
                assert!(overlay.layers.len() <= 8, "{} layers", overlay.layers.len());
            }
        }
    }

    /// Without views there is one map, whatever was committed.
    #[test]
    fn commits_alone_make_no_layers() {
        let mut overlay = Overlay::default();
        (0..1_000).for_each(|number| overlay.commit(put(number, number)));
        assert_eq!((overlay.layers.len(), overlay.newest.len()), (0, 1_000));
        let all = overlay.begin_writing();
        assert_eq!((all.len(), overlay.bytes()), (1_000, 0));
        overlay.commit(put(7, 8));
        assert_eq!(overlay.get(&7_u32.to_be_bytes()), put(7, 8).values().next());
        overlay.written();
        assert_eq!(overlay.get(&8_u32.to_be_bytes()), None, "the disk has it");
    }
}

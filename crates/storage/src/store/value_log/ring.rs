//! The log as its writer has it: a ring of segments, and where it ends.

use super::Sizes;
use super::format::Link;
use super::index::Index;
use super::segment::{Frames, Segment};
use crate::Owner;
use crate::disk::Disk;
use quorate_types::service::StateError;

/// The writer of a log.
pub(super) struct Writer {
    pub(super) disk: Box<dyn Disk>,
    pub(super) owner: Owner,
    pub(super) sizes: Sizes,
    /// Segments of the store, oldest first; the last is written to.
    pub(super) segments: Vec<Segment>,
    pub(super) end: End,
    pub(super) index: Index,
    /// Frames of the oldest segment that are not clean, once it is being cleaned.
    pub(super) cleaning: Option<Frames>,
    /// Segments that nothing more is written to and whose keys have no file, with their ends.
    pub(super) without_keys: Vec<(Segment, Link)>,
    pub(super) failed: Option<StateError>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("segments", &self.segments).field("end", &self.end).finish()
    }
}

/// End of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Offset in the last segment.
    pub(super) at: u32,
    /// Last frame.
    pub(super) link: Link,
    /// Bytes of frames in all segments that are not clean.
    pub(super) used: u64,
}

impl Writer {
    pub(super) fn last(&self) -> &Segment {
        self.segments.last().expect("one is written to")
    }

    /// True if there is more in the log than there may be.
    pub(super) fn is_over(&self, living: u64) -> bool {
        self.end.used > 2 * living + 2 * u64::from(self.sizes.segment_min)
    }
}

//! Index of what the two logs hold, and where. Bounded by the retention: what is pruned leaves the
//! index too.

use crate::log::{Location, Segment};
use quorate_types::machine::ReadItem;
use quorate_types::{BodyRef, Height};
use std::collections::BTreeMap;

/// Place of a stored body, and its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) location: Location,
    /// The height that was released and ordered it; `None` for a live one.
    pub(super) height: Option<Height>,
}

/// Index of both logs, by item and by segment.
#[derive(Default)]
pub(super) struct Index {
    pub(super) bodies: BTreeMap<BodyRef, Stored>,
    pub(super) decided: BTreeMap<Height, Location>,
    pub(super) record_segments: BTreeMap<u64, Part<Height>>,
    pub(super) body_segments: BTreeMap<u64, Part<BodyRef>>,
    /// Height from which on decided records are here without a gap.
    pub(super) decided_from: Height,
    /// Height from which on no body was pruned.
    pub(super) bodies_from: Height,
}

/// One segment and what was written to it.
pub(super) struct Part<T> {
    pub(super) segment: Segment,
    pub(super) content: Vec<T>,
}

impl<T> Part<T> {
    fn new(segment: &Segment) -> Self {
        Self { segment: segment.clone(), content: Vec::new() }
    }
}

impl Index {
    pub(super) fn add_decided(&mut self, segment: &Segment, height: Height, at: Location) {
        let last = self.decided.last_key_value().map(|(last, _)| *last);
        if last.is_none_or(|last| height > last.next()) {
            self.decided_from = height;
        }
        self.decided.insert(height, at);
        let part = self.record_segments.entry(at.segment).or_insert_with(|| Part::new(segment));
        part.content.push(height);
    }

    pub(super) fn add_body(&mut self, segment: &Segment, name: BodyRef, at: Location) {
        self.bodies.insert(name, Stored { location: at, height: None });
        let part = self.body_segments.entry(at.segment).or_insert_with(|| Part::new(segment));
        part.content.push(name);
    }

    /// Marks these bodies as ordered by a height that was released. Returns `true` if all of them
    /// are here; otherwise what is kept begins after the height.
    pub(super) fn release(&mut self, height: Height, names: &[BodyRef]) -> bool {
        let mut complete = true;
        for name in names {
            match self.bodies.get_mut(name) {
                Some(stored) => stored.height = stored.height.max(Some(height)),
                None => complete = false,
            }
        }
        if !complete {
            self.bodies_from = self.bodies_from.max(height.next());
        }
        complete
    }

    /// Puts everything of `later` behind what is here.
    pub(super) fn absorb(&mut self, later: &mut Self) {
        for (_, part) in std::mem::take(&mut later.record_segments) {
            for height in part.content {
                let at = later.decided[&height];
                self.add_decided(&part.segment, height, at);
            }
        }
        for (_, part) in std::mem::take(&mut later.body_segments) {
            for name in part.content {
                self.add_body(&part.segment, name, later.bodies[&name].location);
            }
        }
        later.decided.clear();
        later.bodies.clear();
    }

    /// The lowest height from which on everything is here.
    pub(super) fn oldest(&self) -> Height {
        self.decided_from.max(self.bodies_from).max(Height(1))
    }

    /// Place of an item; `None` where nothing is stored.
    pub(super) fn find(&self, item: &ReadItem) -> Option<(Segment, Location)> {
        let (at, segment) = match item {
            ReadItem::Body(name) => {
                let at = self.bodies.get(name)?.location;
                (at, &self.body_segments.get(&at.segment)?.segment)
            }
            ReadItem::Decided(height) => {
                let at = *self.decided.get(height)?;
                (at, &self.record_segments.get(&at.segment)?.segment)
            }
            ReadItem::Manifest(_) | ReadItem::Chunk(..) => return None,
        };
        Some((segment.clone(), at))
    }

    /// Forgets an item that does not read back: it counts as pruned, like all before it.
    pub(super) fn forget(&mut self, item: &ReadItem) {
        match item {
            ReadItem::Body(name) => {
                let stored = self.bodies.remove(name);
                if let Some(height) = stored.and_then(|stored| stored.height) {
                    self.bodies_from = self.bodies_from.max(height.next());
                }
            }
            ReadItem::Decided(height) => {
                self.decided.remove(height);
                self.decided_from = self.decided_from.max(height.next());
            }
            ReadItem::Manifest(_) | ReadItem::Chunk(..) => {}
        }
    }

    /// The highest height in a segment of records, and whether all of them are below `below`.
    pub(super) fn records_in(&self, segment: u64, below: Height) -> (Height, bool) {
        let here = |height: &&Height| {
            self.decided.get(height).is_some_and(|location| location.segment == segment)
        };
        let heights = self.record_segments.get(&segment).into_iter().flat_map(|p| &p.content);
        let highest = heights.filter(here).max().copied().unwrap_or_default();
        (highest, highest < below)
    }

    /// The highest height that orders a body of this segment, and whether each of its bodies was
    /// released below `below`.
    pub(super) fn bodies_in(&self, segment: u64, below: Height) -> (Height, bool) {
        let names = self.body_segments.get(&segment).into_iter().flat_map(|p| &p.content);
        let stored = names.filter_map(|name| self.bodies.get(name));
        let mut highest = Height(0);
        let mut free = true;
        for stored in stored.filter(|stored| stored.location.segment == segment) {
            match stored.height {
                Some(height) => highest = highest.max(height),
                None => free = false,
            }
        }
        (highest, free && highest < below)
    }

    /// Forgets the segments of records before `floor`.
    pub(super) fn drop_records(&mut self, floor: u64) {
        let kept = self.record_segments.split_off(&floor);
        for (number, part) in std::mem::replace(&mut self.record_segments, kept) {
            for height in part.content {
                if self.decided.get(&height).is_some_and(|at| at.segment == number) {
                    self.decided.remove(&height);
                    self.decided_from = self.decided_from.max(height.next());
                }
            }
        }
    }

    /// Forgets the segments of bodies before `floor`.
    pub(super) fn drop_bodies(&mut self, floor: u64) {
        let kept = self.body_segments.split_off(&floor);
        for (number, part) in std::mem::replace(&mut self.body_segments, kept) {
            for name in part.content {
                let Some(stored) = self.bodies.get(&name) else { continue };
                if stored.location.segment != number {
                    continue;
                }
                if let Some(height) = stored.height {
                    self.bodies_from = self.bodies_from.max(height.next());
                }
                self.bodies.remove(&name);
            }
        }
    }
}

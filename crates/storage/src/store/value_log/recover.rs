//! A log as a disk has it.

use super::format::{Frame, Link, START};
use super::index::Index;
use super::keys::{Keys, Merged};
use super::ring::{End, Writer};
use super::segment::{Found, Segment};
use super::{Sizes, damaged};
use crate::disk::Disk;
use crate::{Owner, StorageError};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::StateError;
use std::collections::BTreeMap;

/// Segments that were found, by number.
type Segments = BTreeMap<u32, Segment>;

/// The last batch that was committed.
struct Commit {
    /// First segment of the store.
    first: u32,
    /// Segment in which it ends.
    last: u32,
    /// Offset there.
    at: u32,
    link: Link,
}

impl Writer {
    /// The log as its last batch left it; an empty one where there is none.
    pub(super) fn recover(
        mut disk: Box<dyn Disk>,
        owner: &Owner,
        sizes: Sizes,
    ) -> Result<Self, StorageError> {
        let mut segments = find(&*disk, owner)?;
        if segments.is_empty() {
            let start = (0, Link::NONE);
            segments.insert(0, Segment::create(&mut *disk, owner, start, sizes.segment_min)?);
        }
        let commit = last_commit(&segments)?;
        if !mutants::active(Mutant::ReadGivenUp) {
            segments.retain(|number, _| *number >= commit.first);
        }
        segments.split_off(&(commit.last + 1));
        let first = *segments.keys().next().expect("the last is there");
        if (segments.len() as u32) < commit.last - first.min(commit.first) + 1 {
            return Err(damaged("a segment is missing").into());
        }
        make_durable(&mut *disk, &segments[&commit.last])?;
        remove_others(&mut *disk, &segments)?;
        let (mut keys, mut without_keys) = (Vec::new(), Vec::new());
        let ends = segments.values().skip(1).map(|next| next.head.before);
        for (segment, end) in segments.values().zip(ends) {
            keys.push(match Keys::load(&*disk, segment, end) {
                Some(keys) => keys,
                None => {
                    without_keys.push((segment.clone(), end));
                    Keys::read_from(segment, end)?
                }
            });
        }
        let last = &segments[&commit.last];
        keys.push(Keys::read_from(last, commit.link)?);
        let used = keys.iter().map(|keys| u64::from(keys.end() - START)).sum();
        let index = Index::of(Merged::of(&keys))?;
        let end = End { at: commit.at, link: commit.link, used };
        let segments = segments.into_values().collect();
        let (owner, cleaning, failed) = (owner.clone(), None, None);
        Ok(Self { disk, owner, sizes, segments, end, index, cleaning, without_keys, failed })
    }
}

/// The segments that there are. Files that were never more than made are none.
fn find(disk: &dyn Disk, owner: &Owner) -> Result<Segments, StorageError> {
    let names = disk.list();
    let names = names.map_err(|error| StorageError::io("list", disk.locate(""), &error))?;
    let (mut segments, mut lost) = (Segments::new(), None);
    for number in names.iter().filter_map(|name| Segment::number(name)) {
        match Segment::open(disk, number, owner)? {
            Found::Segment(segment) => drop(segments.insert(number, segment)),
            Found::Unmade => {}
            Found::Damaged => lost = Some(number),
        }
    }
    match lost {
        Some(number) => {
            Err(damaged(&format!("{} does not say what it is", Segment::name(number))).into())
        }
        None => Ok(segments),
    }
}

/// ★ The last batch with its end. Whatever is behind it was never durable: one batch, cut short.
fn last_commit(segments: &Segments) -> Result<Commit, StateError> {
    let mut next: Option<&Segment> = None;
    for (number, segment) in segments.iter().rev() {
        if next.is_some_and(|next| next.head.number != number + 1) {
            return Err(damaged("a segment is missing"));
        }
        let (mut frames, mut frame, mut found) = (segment.all_frames(), Vec::new(), None);
        while let Some((_, Frame { link, first, .. })) = frames.next(&mut frame)? {
            if link.commits || mutants::active(Mutant::TakeUncommitted) {
                found = Some(Commit { first, last: *number, at: frames.at, link });
            }
        }
        // Before a segment is made, all before it is durable.
        let is_whole = next.is_none_or(|next| next.head.before == frames.link);
        let torn = frames.link.next().0;
        if !is_whole || segment.goes_on(frames.at, torn + 1)? {
            return Err(segment.damaged_at(frames.at));
        }
        let begins = segment.head.before == Link::NONE;
        let none = || Commit { first: *number, last: *number, at: START, link: Link::NONE };
        if let Some(commit) = found.or_else(|| begins.then(none)) {
            return Ok(commit);
        }
        next = Some(segment);
    }
    Err(damaged("no segment says what is in the store"))
}

/// ★ Syncs what a process that died had written and not synced: the batch that ends in this segment
/// can be read now, would be lost with the next power cut, and is about to be relied on.
fn make_durable(disk: &mut dyn Disk, last: &Segment) -> Result<(), StorageError> {
    if mutants::active(Mutant::TrustPageCache) {
        return Ok(());
    }
    last.sync()?;
    let synced = disk.sync_directory();
    synced.map_err(|error| StorageError::io("sync", disk.locate(""), &error))
}

/// Removes what is none of the store's: segments that it gave up, and those of a batch that was cut
/// short, which must not be found again behind what comes next. The newest go first: whatever is
/// left of them when this is cut short too has no gap.
fn remove_others(disk: &mut dyn Disk, segments: &Segments) -> Result<(), StorageError> {
    let names = disk.list();
    let names = names.map_err(|error| StorageError::io("list", disk.locate(""), &error))?;
    let last = *segments.keys().next_back().expect("the last");
    let is_ours = |number: u32| segments.contains_key(&number);
    let others = names.into_iter().rev().filter(|name| {
        Segment::number(name).is_some_and(|number| !is_ours(number))
            || Keys::number(name).is_some_and(|number| !is_ours(number) || number == last)
    });
    let mut removed = 0;
    for name in others {
        let outcome = disk.remove(&name);
        outcome.map_err(|error| StorageError::io("remove", disk.locate(&name), &error))?;
        removed += 1;
    }
    if removed > 0 {
        let synced = disk.sync_directory();
        synced.map_err(|error| StorageError::io("sync", disk.locate(""), &error))?;
    }
    Ok(())
}

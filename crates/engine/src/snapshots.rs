//! Fetching a snapshot, when nobody keeps the blocks any more that this replica lacks.
//!
//! ```text
//! Idle ─ blocks or bodies are gone ─▶ Asking ─ enough members name one alike ─▶ Fetching
//!   ▲                                    ▲                                        │
//!   └──────────── Installed ─────────────┼────────── Installing ◀─ all staged ────┤
//!                                        └─ no source left, or none answers ──────┘
//! ```
//!
//! What a snapshot holds cannot be checked against anything that was ordered. So (★) it is
//! installed only when members of a combined weight of at least [`Committee::weak`] name the same
//! manifest, each over its own authenticated channel: one of them is honest. For the state that an
//! epoch began with, those who were members of the epoch before may vouch by what they weighed
//! there: who has that state is a quorum of that epoch, and may be few in this one. The block that
//! a snapshot is
//! of comes with a proof that a quorum decided it, which was checked before it came here. Every
//! chunk is compared with its hash in the manifest (★); whoever sent another is not asked again for
//! this snapshot. What is staged is known by its hash, and not fetched again: after a restart, or
//! when another snapshot has the same chunk.

use crate::EpochStart;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::machine::{Install, StagedChunk};
use quorate_types::{Committee, Height, Manifest, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Time that members may take to name their snapshots before they are asked again.
const ASK_AGAIN: Duration = Duration::from_millis(1_000);
/// Time that a chunk may take before another member is asked for it.
const CHUNK_RETRY: Duration = Duration::from_millis(1_500);
/// The longest wait for one.
const CHUNK_TIMEOUT_MAX: Duration = Duration::from_secs(24);
/// Chunks under way from one member.
const PER_MEMBER_MAX: usize = 2;
/// Chunks that every source may leave unanswered in a row, for each that it may have under way.
const SILENCE_MAX: usize = 3;
/// Snapshots that one member may name at once.
const OFFERS_MAX: usize = 2;

/// A snapshot that a member names, checked as far as it proves itself.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Manifest of the snapshot.
    pub manifest: Manifest,
    /// Digest of its manifest.
    pub digest: Digest,
    /// The decided record of its height, with the proof that was checked.
    pub decided: Bytes,
}

/// State of fetching and serving snapshots.
#[derive(Debug)]
pub(crate) struct SnapshotSync {
    committee: Arc<Committee>,
    /// How the epoch began.
    begun: EpochStart,
    phase: Phase,
    /// Chunks that the host keeps.
    staged: BTreeSet<Digest>,
    /// Those of them that it need not keep.
    surplus: Vec<Digest>,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Asking { ask_at: Time, offers: BTreeMap<ReplicaId, Vec<Offered>> },
    Fetching(Box<Fetching>),
    Installing(Height),
}

#[derive(Debug)]
struct Fetching {
    offered: Offered,
    sources: BTreeSet<ReplicaId>,
    /// Chunks asked for: of whom, and until when.
    asked: BTreeMap<u32, (ReplicaId, Time)>,
    /// Chunks to ask for.
    missing: BTreeSet<u32>,
    /// Chunks that are not here, and who was asked for them and took too long.
    timed_out: BTreeSet<(u32, ReplicaId)>,
    staged: u32,
    /// Members that sent a wrong chunk or have none any more.
    dismissed: BTreeSet<ReplicaId>,
    /// Chunks that came too late or not at all since the last good one.
    late: usize,
    /// Time to wait for a chunk.
    chunk_timeout: Duration,
}

/// Request to send to members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SnapshotFetch {
    /// Everybody: which snapshots beyond this height?
    Name(Height),
    /// One member: this chunk of that snapshot.
    Chunk(ReplicaId, Digest, u32),
}

/// Verdict on a chunk that came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Keep it on disk.
    Stage(StagedChunk),
    /// Nobody asked for it.
    Unasked,
    /// Its sender does not have it any more.
    Gone,
    /// It is not what the manifest says.
    Wrong,
}

impl SnapshotSync {
    pub(crate) fn new(committee: Arc<Committee>, begun: EpochStart) -> Self {
        let (phase, staged, surplus) = (Phase::Idle, BTreeSet::new(), Vec::new());
        Self { committee, begun, phase, staged, surplus }
    }

    /// An earlier run staged these.
    pub(crate) fn recover(&mut self, staged: Vec<Digest>) {
        self.staged.extend(staged);
    }

    /// A height was executed. Unless a snapshot is under way, what is staged is of no use any more.
    pub(crate) fn executed(&mut self) {
        if !self.is_active() && !self.staged.is_empty() {
            self.surplus.extend(std::mem::take(&mut self.staged));
        }
    }

    /// Staged chunks that the host may delete, once.
    pub(crate) fn take_surplus(&mut self) -> Vec<Digest> {
        std::mem::take(&mut self.surplus)
    }

    /// Nobody has what is needed: a snapshot is.
    pub(crate) fn start(&mut self, now: Time) {
        if matches!(self.phase, Phase::Idle) {
            self.phase = Phase::Asking { ask_at: now, offers: BTreeMap::new() };
        }
    }

    /// It is no longer needed, unless it is being installed.
    pub(crate) fn stop(&mut self) {
        if !matches!(self.phase, Phase::Installing(_)) {
            self.phase = Phase::Idle;
        }
    }

    /// Returns `true` while it is under way.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Returns `true` if nothing may be executed: what is fetched is complete, or being installed.
    pub(crate) fn holds_execution(&self) -> bool {
        match &self.phase {
            Phase::Fetching(fetching) => fetching.is_complete(),
            Phase::Installing(_) => true,
            Phase::Idle | Phase::Asking { .. } => false,
        }
    }

    /// In words: what it waits for.
    pub(crate) fn describe(&self) -> String {
        match &self.phase {
            Phase::Idle => String::new(),
            Phase::Asking { offers, .. } => {
                format!("a snapshot that enough members name alike; {} answered", offers.len())
            }
            Phase::Fetching(fetching) => format!(
                "chunks of the snapshot at {}: {} of {}, from {} members",
                fetching.offered.manifest.header.height,
                fetching.staged,
                fetching.offered.manifest.chunks.len(),
                fetching.sources.len()
            ),
            Phase::Installing(height) => format!("the snapshot at {height} to be installed"),
        }
    }

    /// The height that the snapshot leads to, if one was chosen.
    pub(crate) fn target(&self) -> Option<Height> {
        match &self.phase {
            Phase::Idle | Phase::Asking { .. } => None,
            Phase::Fetching(fetching) => Some(fetching.offered.manifest.header.height),
            Phase::Installing(height) => Some(*height),
        }
    }

    /// A member names a snapshot. Executed is what this replica has already.
    pub(crate) fn offered(&mut self, from: ReplicaId, offered: Offered, executed: Height) {
        if let Phase::Fetching(fetching) = &mut self.phase {
            fetching.also_named(from, &offered);
        }
        let Phase::Asking { offers, .. } = &mut self.phase else { return };
        if offered.manifest.header.height <= executed {
            return;
        }
        let of_member = offers.entry(from).or_default();
        of_member.retain(|other| other.manifest.header.height != offered.manifest.header.height);
        of_member.push(offered);
        if of_member.len() > OFFERS_MAX {
            of_member.remove(0);
        }
        if let Some((offered, sources)) = choose(offers, &self.committee, &self.begun) {
            let needed: BTreeSet<&Digest> = offered.manifest.chunks.iter().collect();
            self.surplus.extend(self.staged.extract_if(.., |chunk| !needed.contains(chunk)));
            let fetching = Fetching::new(offered, sources, &self.staged);
            self.phase = Phase::Fetching(Box::new(fetching));
        }
    }

    /// Requests to send now.
    pub(crate) fn due(&mut self, now: Time, executed: Height) -> Vec<SnapshotFetch> {
        match &mut self.phase {
            Phase::Idle | Phase::Installing(_) => Vec::new(),
            Phase::Asking { ask_at, .. } if *ask_at > now => Vec::new(),
            Phase::Asking { ask_at, .. } => {
                *ask_at = now + ASK_AGAIN;
                vec![SnapshotFetch::Name(executed)]
            }
            Phase::Fetching(fetching) => {
                if fetching.offered.manifest.header.height <= executed {
                    self.phase = Phase::Idle;
                    return Vec::new();
                }
                let fetches = fetching.ask(now);
                if fetching.is_hopeless() {
                    self.phase = Phase::Asking { ask_at: now, offers: BTreeMap::new() };
                    return self.due(now, executed);
                }
                fetches
            }
        }
    }

    /// A chunk came; `content` is its hash and bytes, `None` when its sender does not have it.
    pub(crate) fn chunk(
        &mut self,
        from: ReplicaId,
        (snapshot, index): (Digest, u32),
        content: Option<(Digest, Bytes)>,
    ) -> Taken {
        let Phase::Fetching(fetching) = &mut self.phase else { return Taken::Unasked };
        let is_asked = fetching.asked.get(&index).is_some_and(|(member, _)| *member == from);
        let is_late = fetching.timed_out.contains(&(index, from));
        if snapshot != fetching.offered.digest || !(is_asked || is_late) {
            return Taken::Unasked;
        }
        let expected = fetching.offered.manifest.chunks[index as usize];
        let right = |(hash, _): &(Digest, Bytes)| {
            *hash == expected || mutants::active(Mutant::AcceptWrongChunk)
        };
        let taken = match content {
            Some(content) if right(&content) => {
                fetching.take(index, is_asked);
                self.staged.insert(expected);
                return Taken::Stage(StagedChunk { hash: expected, bytes: content.1 });
            }
            _ if !is_asked => return Taken::Unasked,
            None => Taken::Gone,
            Some(_) => Taken::Wrong,
        };
        fetching.asked.remove(&index);
        fetching.missing.insert(index);
        fetching.sources.remove(&from);
        fetching.dismissed.insert(from);
        taken
    }

    /// Everything is staged: install it now, if so.
    pub(crate) fn install(&mut self) -> Option<Install> {
        let Phase::Fetching(fetching) = &self.phase else { return None };
        if !fetching.is_complete() {
            return None;
        }
        let Offered { manifest, decided, .. } = fetching.offered.clone();
        self.phase = Phase::Installing(manifest.header.height);
        Some(Install { manifest, decided })
    }

    /// The state is the snapshot's.
    pub(crate) fn installed(&mut self) {
        self.phase = Phase::Idle;
        self.staged.clear();
    }

    /// Time at which [`SnapshotSync::due`] has something.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match &self.phase {
            Phase::Idle | Phase::Installing(_) => None,
            Phase::Asking { ask_at, .. } => Some(*ask_at),
            Phase::Fetching(fetching) => fetching.asked.values().map(|(_, until)| *until).min(),
        }
    }
}

impl Fetching {
    fn new(offered: Offered, sources: BTreeSet<ReplicaId>, staged: &BTreeSet<Digest>) -> Self {
        let chunks = (0..).zip(&offered.manifest.chunks);
        let missing: BTreeSet<u32> =
            chunks.filter(|(_, chunk)| !staged.contains(chunk)).map(|(index, _)| index).collect();
        let staged = offered.manifest.chunks.len() - missing.len();
        Self {
            offered,
            sources,
            asked: BTreeMap::new(),
            missing,
            timed_out: BTreeSet::new(),
            staged: u32::try_from(staged).expect("chunks are megabytes"),
            dismissed: BTreeSet::new(),
            late: 0,
            chunk_timeout: CHUNK_RETRY,
        }
    }

    /// The right chunk, whoever sent it: one that had timed out says that the way here is
    /// slow, and then waiting costs less than asking again.
    fn take(&mut self, index: u32, in_time: bool) {
        self.asked.remove(&index);
        self.missing.remove(&index);
        self.timed_out.retain(|(timed_out, _)| *timed_out != index);
        self.staged += 1;
        self.late = 0;
        if !in_time {
            self.chunk_timeout = (self.chunk_timeout * 2).min(CHUNK_TIMEOUT_MAX);
        }
    }

    /// Another member names the same snapshot: it may be asked too.
    fn also_named(&mut self, from: ReplicaId, offered: &Offered) {
        if offered.digest == self.offered.digest && !self.dismissed.contains(&from) {
            self.sources.insert(from);
        }
    }

    /// Nobody is left to ask, or all of them are silent: better ask everybody again.
    fn is_hopeless(&self) -> bool {
        let silent = self.late > SILENCE_MAX * self.sources.len() * PER_MEMBER_MAX;
        !self.is_complete() && (self.sources.is_empty() || silent)
    }

    fn is_complete(&self) -> bool {
        self.staged as usize == self.offered.manifest.chunks.len()
    }

    /// Gives up on what was not answered in time, and asks every source for as much as it may have
    /// under way: those with the least first.
    fn ask(&mut self, now: Time) -> Vec<SnapshotFetch> {
        let late: Vec<u32> =
            self.asked.iter().filter(|(_, (_, until))| *until <= now).map(|(i, _)| *i).collect();
        let mut slow = BTreeSet::new();
        for index in late {
            let Some((member, _)) = self.asked.remove(&index) else { continue };
            slow.insert(member);
            self.timed_out.insert((index, member));
            self.missing.insert(index);
            self.late += 1;
        }
        let mut fetches = Vec::new();
        while let Some(member) = self.idlest(&slow) {
            let Some(index) = self.missing.pop_first() else { break };
            self.asked.insert(index, (member, now + self.chunk_timeout));
            fetches.push(SnapshotFetch::Chunk(member, self.offered.digest, index));
        }
        fetches
    }

    /// The source with the fewest chunks under way, if it may have another; one that was just too
    /// slow only when there is no other.
    fn idlest(&self, slow: &BTreeSet<ReplicaId>) -> Option<ReplicaId> {
        let load = |member: &ReplicaId| self.asked.values().filter(|(m, _)| m == member).count();
        self.sources
            .iter()
            .map(|member| (slow.contains(member), load(member), *member))
            .filter(|(_, load, _)| *load < PER_MEMBER_MAX)
            .min()
            .map(|(_, _, member)| member)
    }
}

/// The highest snapshot that members of at least the weak weight name alike, and who they are.
fn choose(
    offers: &BTreeMap<ReplicaId, Vec<Offered>>,
    committee: &Committee,
    begun: &EpochStart,
) -> Option<(Offered, BTreeSet<ReplicaId>)> {
    let mut named: BTreeMap<(Height, Digest), (Offered, BTreeSet<ReplicaId>)> = BTreeMap::new();
    for (member, offered) in offers.iter().flat_map(|(m, all)| all.iter().map(move |o| (m, o))) {
        let entry = named.entry((offered.manifest.header.height, offered.digest));
        entry.or_insert_with(|| (offered.clone(), BTreeSet::new())).1.insert(*member);
    }
    let vouched = |(offered, members): &(Offered, BTreeSet<ReplicaId>)| {
        let indices = members.iter().map(|member| member.index());
        let is_border = begun.is_handed_over(&offered.manifest.header);
        committee.includes_honest(&Bitmap::from_indices(committee.size(), indices))
            || (is_border && begun.includes_honest_of_ended(committee, members))
            || mutants::active(Mutant::InstallUnvouched)
    };
    named.into_values().rev().find(vouched)
}

#[cfg(test)]
mod tests;

//! Snapshots: the same bytes everywhere, whole or absent after a crash, and a state to go on from.

mod former;
mod sharing;

use super::Snapshots;
use super::files::{chunk_name, manifest_name};
use crate::disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use crate::store::{DiskStore, MemoryStore, Store};
use crate::{Executor, ExecutorConfig, Owner, StorageError};
use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret, hash};
use quorate_types::machine::{Block, Executed, Install, ReadAnswer, ReadItem, StagedChunk};
use quorate_types::service::{BlockContext, Operation, Outcome, Service, State, StateError};
use quorate_types::{Body, Height, Manifest, NetworkId, Payload, ReplicaId, Request};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keeps every operation under its hash, with a value of 300 KB: a few of them fill a chunk.
struct Archive;

impl Service for Archive {
    fn name(&self) -> &'static str {
        "archive"
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        for operation in operations {
            state.put(&hash(operation.bytes).0, &operation.bytes.repeat(100_000))?;
            let count = state.get(b"count")?.map_or(0, |count| count[0]);
            state.put(b"count", &[count + 1])?;
        }
        Ok(operations.iter().map(|_| Outcome::Applied(Bytes::from("kept"))).collect())
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        Ok(hash(&state.get(b"count")?.unwrap_or_default()))
    }
}

/// Height `n` as member `by` decided it: the same payload, another certificate.
fn block(height: u64, by: &str) -> Block {
    let client = IdentitySecret::from_seed([7; 32]);
    let operation = Bytes::from(format!("{height:03}"));
    let request = Request::sign(&client, NetworkId::default(), height - 1, &[operation]);
    let body = Arc::new(Body::seal(ReplicaId(0), height, &[request.expect("small")]));
    Block {
        payload: Payload::new(Height(height), height, vec![body.reference]),
        bodies: vec![body],
        decided: Bytes::from(format!("decided {height} by {by}")),
    }
}

fn executor(store: Box<dyn Store>) -> Executor {
    let config = ExecutorConfig { durable_every: 100, durable_bytes: u64::MAX };
    Executor::open(store, Box::new(Archive), config).expect("opened").0
}

fn run(executor: &mut Executor, heights: std::ops::RangeInclusive<u64>, by: &str) -> Executed {
    heights
        .map(|height| executor.execute(&block(height, by)).expect("executes"))
        .last()
        .expect("one")
}

fn open(disk: &MemoryDisk) -> Snapshots {
    Snapshots::open(Box::new(disk.clone()), &Owner::nobody()).expect("opened")
}

/// A snapshot of nine heights: five chunks.
fn snapshot(disk: &MemoryDisk, by: &str) -> (Executor, Snapshots, Manifest) {
    let mut executor = executor(Box::new(MemoryStore::new()));
    run(&mut executor, 1..=9, by);
    let snapshots = open(disk);
    let manifest = executor.snapshot().expect("taken").write(&snapshots).expect("written");
    (executor, snapshots, manifest)
}

/// Hands the chunks of `from` over to `to`, as the network does.
fn hand_over(from: &Snapshots, manifest: &Manifest, to: &Snapshots, chunks: usize) {
    for index in (0..).take(chunks) {
        let item = ReadItem::Chunk(manifest.digest(), index);
        let bytes = from.read(&item).expect("works").expect("there");
        assert_eq!(hash(&bytes), manifest.chunks[index as usize]);
        let hash = manifest.chunks[index as usize];
        to.stage(&StagedChunk { hash, bytes }).expect("staged");
    }
}

fn install(manifest: &Manifest) -> Install {
    Install { manifest: manifest.clone(), decided: Bytes::from_static(b"decided 9, proven") }
}

#[test]
fn somebody_else_s_snapshots_are_refused_and_left() {
    let disk = MemoryDisk::new();
    snapshot(&disk, "me");
    let files = disk.list().expect("listed");
    let somebody = Owner { member: quorate_crypto::IdentityKey([1; 32]), ..Owner::nobody() };
    let refused = Snapshots::open(Box::new(disk.clone()), &somebody).err().expect("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");
    assert!(
        refused.to_string().starts_with("memory:snapshot-000000000009 belongs to"),
        "{refused}"
    );
    assert_eq!(disk.list().expect("listed"), files);
}

#[test]
fn replicas_that_executed_the_same_make_the_same_snapshot() {
    let (_, _, mine) = snapshot(&MemoryDisk::new(), "me");
    let (_, _, yours) = snapshot(&MemoryDisk::new(), "you");
    assert_eq!(mine, yours);
    assert_eq!(mine.chunks.len(), 5);
    assert_eq!(mine.digest(), yours.digest());
    let directory = tempfile::tempdir().expect("made");
    let store = DiskStore::open(&directory.path().join("state"), &Owner::nobody()).expect("opened");
    let mut on_disk = executor(Box::new(store));
    run(&mut on_disk, 1..=9, "a disk");
    let snapshots = open(&MemoryDisk::new());
    let job = on_disk.snapshot().expect("taken");
    // What comes after it is not in it.
    run(&mut on_disk, 10..=12, "a disk");
    assert_eq!(job.write(&snapshots).expect("written"), mine);
}

#[test]
fn whoever_installs_one_goes_on_like_the_others() {
    let (mut donor, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("state");
    let on_disk: Box<dyn Store> =
        Box::new(DiskStore::open(&path, &Owner::nobody()).expect("opened"));
    for store in [on_disk, Box::new(MemoryStore::new())] {
        let mut follower = executor(store);
        run(&mut follower, 1..=4, "follower");
        let staged = open(&MemoryDisk::new());
        hand_over(&served, &manifest, &staged, manifest.chunks.len());
        let executed = follower.install(&install(&manifest), &staged).expect("installed");
        assert_eq!((executed.height(), executed.root()), (Height(9), manifest.header.root()));
        assert_eq!(follower.durable(), Height(9));
        assert_eq!(executed.operations, 9);
        assert_eq!(&executed.decided[..], b"decided 9, proven");
        // The sessions came along: what was executed before is not executed again.
        let mut again = block(10, "follower");
        again.bodies.extend(block(5, "follower").bodies);
        let after = follower.execute(&again).expect("executes");
        assert_eq!(after.operations, 1, "a repeat took effect");
        staged.clear_staged().expect("cleared");
    }
    let reopened = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    let (_, executed) =
        Executor::open(Box::new(reopened), Box::new(Archive), ExecutorConfig::default())
            .expect("opened");
    assert!(executed.expect("durable").height() >= Height(9), "what was installed is durable");
    run(&mut donor, 10..=10, "donor");
}

type Check = Result<(), String>;

fn ensure(holds: bool, what: impl Into<String>) -> Check {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// ★ Whatever fails in an installation, the state is the old one or the new one.
fn an_installation_is_all_or_nothing() -> Check {
    let (_, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    for chunks in 0..=manifest.chunks.len() {
        let store = MemoryStore::new();
        let mut follower = executor(Box::new(store.clone()));
        let before = run(&mut follower, 1..=4, "follower");
        follower.make_durable().expect("works");
        let staged = open(&MemoryDisk::new());
        hand_over(&served, &manifest, &staged, chunks);
        let complete = chunks == manifest.chunks.len();
        let result = follower.install(&install(&manifest), &staged);
        ensure(result.is_ok() == complete, format!("{chunks} chunks: {result:?}"))?;
        drop(follower);
        // Without a crash, and with one.
        for _ in 0..2 {
            let opened = Executor::open(
                Box::new(store.clone()),
                Box::new(Archive),
                ExecutorConfig::default(),
            );
            let executed = opened.map_err(|error| error.to_string())?.1;
            let expected = if complete {
                (Height(9), manifest.header.root())
            } else {
                (Height(4), before.root())
            };
            let found = executed.map(|executed| (executed.height(), executed.root()));
            ensure(found == Some(expected), format!("{chunks} chunks: a mixture, {found:?}"))?;
            store.crash();
        }
    }
    Ok(())
}

#[test]
fn installations_are_all_or_nothing() {
    an_installation_is_all_or_nothing().unwrap();
}

#[test]
fn a_staged_chunk_that_decayed_is_not_installed() {
    let (_, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    let disk = MemoryDisk::new();
    let staged = open(&disk);
    hand_over(&served, &manifest, &staged, manifest.chunks.len());
    let name = disk.list().expect("listed").remove(1);
    disk.flip(&name, 77, 3);
    let mut follower = executor(Box::new(MemoryStore::new()));
    let error = follower.install(&install(&manifest), &staged).expect_err("noticed");
    assert_eq!(error, StorageError::StateDamaged { entry: "staged chunk" });
}

/// Every chunk is what the manifest says, and they do not come to the root that it names: so many
/// members named it alike that more are faulty than may be. (Seed 997 of short runs with little
/// log.)
#[test]
fn a_snapshot_that_does_not_come_to_its_root_stops_the_replica() {
    let (_, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    let mut falsified = manifest.clone();
    falsified.header.state = hash(b"another");
    let staged = open(&MemoryDisk::new());
    hand_over(&served, &manifest, &staged, manifest.chunks.len());
    let mut follower = executor(Box::new(MemoryStore::new()));
    for _ in 0..2 {
        let error = follower.install(&install(&falsified), &staged).expect_err("noticed");
        assert_eq!(error, StorageError::FalseSnapshot { height: Height(9) });
    }
    assert!(follower.execute(&block(1, "follower")).is_err(), "it does nothing more");
}

/// A restart in the middle of fetching: what was staged whole is there, what was not is gone.
#[test]
fn staged_chunks_survive_a_restart() {
    let (_, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    let disk = MemoryDisk::new();
    hand_over(&served, &manifest, &open(&disk), 2);
    let broken = disk.list().expect("listed").remove(0);
    disk.flip(&broken, 5, 1);
    let again = open(&disk);
    let [whole] = again.staged_chunks()[..] else { panic!("one is broken") };
    assert!(manifest.chunks[..2].contains(&whole));
    assert_eq!(disk.list().expect("listed").len(), 1);
    again.unstage(&[whole, hash(b"never there")]).expect("removed");
    assert_eq!((again.staged_chunks(), disk.list().expect("listed")), (vec![], vec![]));
}

#[test]
fn the_last_two_are_kept_and_found_again() {
    let disk = MemoryDisk::new();
    let (mut executor, snapshots, first) = snapshot(&disk, "me");
    assert_eq!(snapshots.heights(), [Height(9)]);
    for height in 10..=12 {
        run(&mut executor, height..=height, "me");
        executor.snapshot().expect("taken").write(&snapshots).expect("written");
    }
    assert_eq!(snapshots.heights(), [Height(11), Height(12)]);
    let newest = snapshots.read(&ReadItem::Manifest(0)).expect("works").expect("there");
    assert_eq!(Manifest::decode(&newest).expect("one").header.height, Height(12));
    assert_eq!(snapshots.read(&ReadItem::Manifest(2)), Ok(None));
    assert_eq!(snapshots.read(&ReadItem::Chunk(first.digest(), 0)), Ok(None), "gone");
    let digest = Manifest::decode(&newest).expect("one").digest();
    assert_eq!(snapshots.read(&ReadItem::Chunk(digest, 99)), Ok(None), "never was");
    drop(snapshots);
    disk.crash(&mut || true);
    assert_eq!(open(&disk).heights(), [Height(11), Height(12)]);
}

/// A crash between any two steps of taking a snapshot: it is there, whole, or it is not; and the
/// one before it is there in any case.
#[test]
fn a_crash_while_one_is_taken_leaves_whole_ones() {
    let kinds: [fn(u64) -> Fault; 4] = [
        |nth| Fault::FailWrite { nth },
        |nth| Fault::FailSync { nth },
        |nth| Fault::FailDirectorySync { nth },
        |nth| Fault::FailNameChange { nth },
    ];
    for (which, kind) in kinds.iter().enumerate() {
        let failures = (0..100).take_while(|nth| fail_while_taking(which, *kind, *nth)).count();
        assert!((1..100).contains(&failures), "{failures} steps of kind {which} can fail");
    }
}

/// Takes three snapshots, the last of them with a failure; whether there was one.
fn fail_while_taking(which: usize, kind: fn(u64) -> Fault, nth: u64) -> bool {
    let mut executor = executor(Box::new(MemoryStore::new()));
    run(&mut executor, 1..=2, "me");
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(memory.clone(), Vec::new());
    let faults = disk.faults();
    let snapshots = Snapshots::open(Box::new(disk), &Owner::nobody()).expect("opened");
    for height in [3, 4] {
        run(&mut executor, height..=height, "me");
        executor.snapshot().expect("taken").write(&snapshots).expect("written");
    }
    let so_far = [faults.writes(), faults.syncs(), faults.directory_syncs(), faults.name_changes()];
    faults.set(vec![kind(so_far[which] + nth)]);
    run(&mut executor, 5..=5, "me");
    let failed = executor.snapshot().expect("taken").write(&snapshots).is_err();
    drop(snapshots);
    let check = |disk: &MemoryDisk| {
        let heights = check_all_of(disk);
        assert!(heights.contains(&Height(4)), "the one before is gone: {heights:?}");
    };
    check(&memory.copy());
    memory.crash(&mut || true);
    check(&memory);
    failed
}

#[track_caller]
fn check_all(disk: &MemoryDisk, heights: &[u64]) {
    let heights: Vec<Height> = heights.iter().copied().map(Height).collect();
    assert_eq!(check_all_of(disk), heights);
}

/// Heights of the snapshots on a disk, of which every chunk is read; and nothing else is there.
#[track_caller]
fn check_all_of(disk: &MemoryDisk) -> Vec<Height> {
    let snapshots = open(disk);
    let heights = snapshots.heights();
    let mut files = BTreeSet::new();
    for age in (0..).take(heights.len()) {
        let manifest = snapshots.read(&ReadItem::Manifest(age)).expect("works").expect("there");
        let manifest = Manifest::decode(&manifest).expect("one");
        files.insert(manifest_name(manifest.header.height));
        for (index, expected) in (0..).zip(&manifest.chunks) {
            files.insert(chunk_name(expected));
            let chunk = snapshots.read(&ReadItem::Chunk(manifest.digest(), index));
            assert_eq!(chunk.expect("works").map(|bytes| hash(&bytes)), Some(*expected));
        }
    }
    let listed = BTreeSet::from_iter(disk.list().expect("listed"));
    assert_eq!(listed, files, "something remains, or is gone");
    heights
}

mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, set};

    #[test]
    fn every_rule_is_guarded() {
        an_installation_is_all_or_nothing().unwrap();
        set(Some(Mutant::SplitInstall));
        let result = an_installation_is_all_or_nothing();
        set(None);
        assert!(result.is_err(), "half an installation went unnoticed");
    }
}

/// A journal's answer is completed by what snapshots have; what it found itself stays.
#[test]
fn what_the_journal_has_not_is_filled_in() {
    let (_, snapshots, manifest) = snapshot(&MemoryDisk::new(), "me");
    let chunk = ReadItem::Chunk(manifest.digest(), 0);
    let found = Bytes::from_static(b"found already");
    let mut answer = ReadAnswer {
        ticket: 1,
        items: vec![
            (ReadItem::Manifest(0), None),
            (chunk, None),
            (ReadItem::Manifest(0), Some(found.clone())),
            (ReadItem::Decided(Height(1)), None),
            (ReadItem::Manifest(7), None),
        ],
        oldest: Height(1),
    };
    snapshots.fill(&mut answer).expect("works");
    let filled: Vec<_> = answer.items.into_iter().map(|(_, bytes)| bytes).collect();
    let first = snapshots.read(&chunk).expect("works").expect("there");
    let manifest = Bytes::from(manifest.encode());
    assert_eq!(filled, [Some(manifest), Some(first), Some(found), None, None]);
}

/// Where room is scarce the newest alone is kept.
#[test]
fn the_newest_is_kept_when_room_is_scarce() {
    let disk = MemoryDisk::new();
    assert_eq!(open(&disk).newest_bytes(), 0);
    let (mut executor, snapshots, first) = snapshot(&disk, "me");
    let bytes = snapshots.newest_bytes();
    assert!((2_700_000..2_710_000).contains(&bytes), "nine values and sessions: {bytes}");
    run(&mut executor, 10..=10, "me");
    executor.snapshot().expect("taken").write(&snapshots).expect("written");
    snapshots.keep_newest().expect("works");
    assert_eq!(snapshots.heights(), [Height(10)]);
    assert_eq!(snapshots.read(&ReadItem::Chunk(first.digest(), 0)), Ok(None));
    check_all(&disk, &[10]);
}

/// What found no room leaves nothing behind, and nothing else goes with it.
#[test]
fn a_snapshot_that_found_no_room_leaves_nothing() {
    let (mut executor, memory) = (executor(Box::new(MemoryStore::new())), MemoryDisk::new());
    let disk = FaultyDisk::new(memory.clone(), Vec::new());
    let faults = disk.faults();
    let snapshots = Snapshots::open(Box::new(disk), &Owner::nobody()).expect("opened");
    run(&mut executor, 1..=8, "me");
    executor.snapshot().expect("taken").write(&snapshots).expect("written");
    let before = memory.list().expect("listed");
    run(&mut executor, 9..=9, "me");
    let job = executor.snapshot().expect("taken");
    assert_eq!(job.height(), Height(9));
    // The chunk of the new value is of two values or more, and the first has the sessions.
    faults.set(vec![Fault::Full { bytes: faults.bytes() + 700_000 }]);
    let error = job.write(&snapshots).expect_err("there is no room");
    assert!(error.is_full(), "{error}");
    assert_eq!(memory.list().expect("listed"), before);
    assert_eq!(snapshots.heights(), [Height(8)]);
}

/// A chunk that decayed is not handed out, and its snapshot is none any more.
#[test]
fn a_chunk_that_decayed_is_not_served() {
    let disk = MemoryDisk::new();
    let (_, snapshots, manifest) = snapshot(&disk, "me");
    disk.flip(&chunk_name(&manifest.chunks[1]), 77, 3);
    let chunk = |index| snapshots.read(&ReadItem::Chunk(manifest.digest(), index));
    assert!(chunk(0).expect("works").is_some());
    assert_eq!(chunk(1), Ok(None));
    assert_eq!((chunk(0), snapshots.heights()), (Ok(None), vec![]));
}

#[test]
fn what_was_staged_goes_after_an_installation() {
    let (_, served, manifest) = snapshot(&MemoryDisk::new(), "donor");
    let disk = MemoryDisk::new();
    let staged = open(&disk);
    hand_over(&served, &manifest, &staged, manifest.chunks.len());
    assert_eq!(staged.staged_chunks().len(), 5);
    staged.clear_staged().expect("cleared");
    assert_eq!((staged.staged_chunks(), disk.list().expect("listed")), (vec![], vec![]));
}

/// Marks its state with a key whose value is empty, the last of all keys.
struct Marker;

impl Service for Marker {
    fn name(&self) -> &'static str {
        "marker"
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        state.put(&[0xff; 9], &[])?;
        Ok(operations.iter().map(|_| Outcome::Applied(Bytes::new())).collect())
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        Ok(hash(&[u8::from(state.get(&[0xff; 9])?.is_some())]))
    }
}

/// A stream may end with the length of a value that has none.
#[test]
fn a_last_value_may_be_empty() {
    let open_marked = || {
        let config = ExecutorConfig { durable_every: 100, durable_bytes: u64::MAX };
        Executor::open(Box::new(MemoryStore::new()), Box::new(Marker), config).expect("opened").0
    };
    let mut donor = open_marked();
    run(&mut donor, 1..=9, "me");
    let served = open(&MemoryDisk::new());
    let manifest = donor.snapshot().expect("taken").write(&served).expect("written");
    let staged = open(&MemoryDisk::new());
    hand_over(&served, &manifest, &staged, manifest.chunks.len());
    let executed = open_marked().install(&install(&manifest), &staged).expect("installed");
    assert_eq!((executed.height(), executed.root()), (Height(9), manifest.header.root()));
}

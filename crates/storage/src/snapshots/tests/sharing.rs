//! Chunks that snapshots share: written once, there as long as anybody names them, and never
//! trusted for ever.

use super::super::files::chunk_name;
use super::{check_all, open};
use crate::disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use crate::snapshots::Snapshots;
use crate::{Owner, StorageError};
use quorate_crypto::hash;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::machine::ReadItem;
use quorate_types::{Header, Height, Manifest};
use std::collections::{BTreeMap, BTreeSet};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A state of some fifteen megabytes.
fn entries() -> Entries {
    (0..1_500_u32).map(|n| (key(n), n.to_le_bytes().repeat(2_500))).collect()
}

fn key(n: u32) -> Vec<u8> {
    hash(&n.to_le_bytes()).0.to_vec()
}

/// The state after another change in one place.
fn change(entries: &mut Entries, height: u64) {
    let (_, value) = entries.iter_mut().nth(700).expect("many");
    value[..8].copy_from_slice(&height.to_le_bytes());
}

fn described(height: u64, snapshots: &Snapshots, entries: &Entries) -> Manifest {
    try_described(height, snapshots, entries).expect("written")
}

/// Writes the chunks of a snapshot.
fn try_described(
    height: u64,
    snapshots: &Snapshots,
    entries: &Entries,
) -> Result<Manifest, StorageError> {
    let mut writer = snapshots.begin(Height(height));
    entries.iter().try_for_each(|(key, value)| writer.put(key, value))?;
    let header = Header { height: Height(height), ..Header::default() };
    let (service, chunks) = ("archive".to_owned(), writer.chunks()?);
    Ok(Manifest { service, header, operations: height, chunks })
}

fn take(height: u64, snapshots: &Snapshots, entries: &Entries) -> Manifest {
    let manifest = described(height, snapshots, entries);
    snapshots.finish(&manifest).expect("complete");
    manifest
}

/// Two snapshots of states that differ in one place.
fn taken(disk: &MemoryDisk) -> (Snapshots, Entries, [Manifest; 2]) {
    let (snapshots, mut entries) = (open(disk), entries());
    let first = take(1, &snapshots, &entries);
    change(&mut entries, 2);
    let second = take(2, &snapshots, &entries);
    (snapshots, entries, [first, second])
}

/// Positions of chunks that both have.
fn shared([one, other]: &[Manifest; 2]) -> Vec<usize> {
    let names: BTreeSet<_> = one.chunks.iter().collect();
    let all = other.chunks.iter().enumerate();
    all.filter(|(_, chunk)| names.contains(chunk)).map(|(index, _)| index).collect()
}

#[test]
fn what_is_there_is_not_written_again() {
    let faulty = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = faulty.faults();
    let snapshots = Snapshots::open(Box::new(faulty), &Owner::nobody()).expect("opened");
    let mut entries = entries();
    let manifest = take(1, &snapshots, &entries);
    // A new file counts its bytes, and what is written to it does.
    let all = faults.bytes() / 2;
    assert!(all > 15_000_000 && manifest.chunks.len() > 15, "{all}");
    let written = |entries: &Entries, height| {
        let before = faults.bytes();
        take(height, &snapshots, entries);
        (faults.bytes() - before) / 2
    };
    let nothing = written(&entries, 2);
    assert!(nothing < 4_000, "a manifest alone: {nothing}");
    change(&mut entries, 3);
    let change = written(&entries, 3);
    assert!(change < 1_100_000, "one chunk: {change}");
    entries.insert(key(1_000_000), vec![1; 5_000]);
    let more = written(&entries, 4);
    assert!(more < 2_200_000, "one or two chunks: {more}");
}

/// Whatever was there before, the manifest is that of the state.
#[test]
fn a_manifest_says_nothing_of_how_it_came_about() {
    let (snapshots, mut entries, _) = taken(&MemoryDisk::new());
    for height in 3..6 {
        change(&mut entries, height);
        let anew = open(&MemoryDisk::new());
        assert_eq!(take(height, &snapshots, &entries), take(height, &anew, &entries));
    }
}

/// ★ A chunk is there as long as a snapshot names it.
fn check_shared_chunks_stay() {
    let disk = MemoryDisk::new();
    let (snapshots, mut entries, manifests) = taken(&disk);
    assert!(shared(&manifests).len() > 10);
    for height in 3..6 {
        change(&mut entries, height);
        take(height, &snapshots, &entries);
        check_all(&disk.copy(), &[height - 1, height]);
    }
    snapshots.keep_newest().expect("works");
    check_all(&disk, &[5]);
}

#[test]
fn shared_chunks_stay_as_long_as_they_are_named() {
    check_shared_chunks_stay();
}

#[test]
fn a_shared_chunk_that_goes_is_noticed() {
    assert_noticed(Mutant::RemoveSharedChunks, check_shared_chunks_stay);
}

/// ★ What is complete is durable.
fn check_what_is_complete_is_durable() {
    let disk = MemoryDisk::new();
    let (snapshots, mut entries, _) = taken(&disk);
    drop(snapshots);
    disk.crash(&mut || true);
    check_all(&disk, &[1, 2]);
    // And what was shared with what a crash left.
    let snapshots = open(&disk);
    change(&mut entries, 3);
    take(3, &snapshots, &entries);
    drop(snapshots);
    disk.crash(&mut || true);
    check_all(&disk, &[2, 3]);
}

#[test]
fn a_complete_snapshot_is_durable() {
    check_what_is_complete_is_durable();
}

#[test]
fn a_snapshot_that_is_complete_too_early_is_noticed() {
    assert_noticed(Mutant::CompleteBeforeChunks, check_what_is_complete_is_durable);
}

/// ★ A damaged chunk is nobody's any more, and the next snapshot that has it writes it.
fn check_damage_takes_all_with_it() {
    let disk = MemoryDisk::new();
    let (snapshots, entries, manifests) = taken(&disk);
    let index = shared(&manifests)[3];
    disk.flip(&chunk_name(&manifests[1].chunks[index]), 77, 3);
    let item = ReadItem::Chunk(manifests[1].digest(), u32::try_from(index).expect("few"));
    assert_eq!(snapshots.read(&item), Ok(None));
    assert_eq!(snapshots.heights(), []);
    take(3, &snapshots, &entries);
    check_all(&disk, &[3]);
}

#[test]
fn damage_takes_every_snapshot_with_it_that_has_it() {
    check_damage_takes_all_with_it();
}

#[test]
fn damage_that_stays_for_others_is_noticed() {
    assert_noticed(Mutant::KeepDamagedChunk, check_damage_takes_all_with_it);
}

/// A chunk of one snapshot alone takes no other with it.
#[test]
fn damage_takes_no_other_snapshot_with_it() {
    let disk = MemoryDisk::new();
    let (snapshots, _, manifests) = taken(&disk);
    let both = shared(&manifests);
    let own = (0..manifests[1].chunks.len()).find(|index| !both.contains(index)).expect("one");
    disk.flip(&chunk_name(&manifests[1].chunks[own]), 77, 3);
    let item = ReadItem::Chunk(manifests[1].digest(), u32::try_from(own).expect("few"));
    assert_eq!(snapshots.read(&item), Ok(None));
    check_all(&disk, &[1]);
}

/// Whether or not anybody fetches it, each shared chunk is read again in its turn, and written anew
/// where it is damaged: no snapshot is lost to it.
#[test]
fn damage_that_nobody_reads_is_found_in_turn() {
    let disk = MemoryDisk::new();
    let (snapshots, mut entries, manifests) = taken(&disk);
    let both = shared(&manifests);
    for index in &both {
        disk.flip(&chunk_name(&manifests[1].chunks[*index]), 77, 3);
    }
    for height in 3..9 {
        change(&mut entries, height);
        take(height, &snapshots, &entries);
    }
    check_all(&disk, &[7, 8]);
}

/// A chunk on which the snapshot being taken relies may turn out damaged before that is complete.
#[test]
fn what_decays_meanwhile_costs_the_snapshot_that_is_taken() {
    let disk = MemoryDisk::new();
    let (snapshots, mut entries, manifests) = taken(&disk);
    change(&mut entries, 3);
    let third = described(3, &snapshots, &entries);
    let index = shared(&manifests)[3];
    disk.flip(&chunk_name(&manifests[1].chunks[index]), 77, 3);
    let item = ReadItem::Chunk(manifests[1].digest(), u32::try_from(index).expect("few"));
    assert_eq!(snapshots.read(&item), Ok(None));
    let refused = snapshots.finish(&third).expect_err("not whole");
    assert!(matches!(refused, StorageError::NoSnapshot { height: Height(3), .. }), "{refused}");
    assert!(refused.costs_a_snapshot());
    snapshots.abandon(Height(3)).expect("removed");
    assert_eq!(disk.list().expect("listed"), Vec::<String>::new());
    take(4, &snapshots, &entries);
    check_all(&disk, &[4]);
}

/// A snapshot that goes takes nothing of the one that is being taken with it.
#[test]
fn what_is_being_taken_keeps_what_it_shares() {
    let disk = MemoryDisk::new();
    let (snapshots, mut entries, manifests) = taken(&disk);
    change(&mut entries, 3);
    let third = described(3, &snapshots, &entries);
    let own = |index: &usize| !third.chunks.contains(&manifests[1].chunks[*index]);
    let own = (0..manifests[1].chunks.len()).find(own).expect("one");
    disk.flip(&chunk_name(&manifests[1].chunks[own]), 77, 3);
    let item = ReadItem::Chunk(manifests[1].digest(), u32::try_from(own).expect("few"));
    assert_eq!(snapshots.read(&item), Ok(None));
    snapshots.keep_newest().expect("works");
    snapshots.finish(&third).expect("complete");
    check_all(&disk, &[1, 3]);
}

/// A state of more chunks than a manifest may name has no snapshot, and the ones before stay.
#[test]
fn a_state_may_be_too_large() {
    let disk = MemoryDisk::new();
    let (snapshots, entries, manifests) = taken(&disk);
    let chunks = manifests[1].chunks.len();
    snapshots.folder.lock().chunks_max = chunks - 1;
    let refused = try_described(3, &snapshots, &entries).expect_err("too many");
    assert!(refused.costs_a_snapshot(), "{refused}");
    assert!(refused.to_string().contains("more chunks than a manifest names"), "{refused}");
    snapshots.abandon(Height(3)).expect("removed");
    check_all(&disk.copy(), &[1, 2]);
    snapshots.folder.lock().chunks_max = chunks;
    take(3, &snapshots, &entries);
    check_all(&disk, &[2, 3]);
}

/// Want of room while a damaged chunk is written anew: the next snapshot writes it.
#[test]
fn a_chunk_that_found_no_room_is_not_relied_on() {
    let memory = MemoryDisk::new();
    let (snapshots, entries, manifests) = taken(&memory);
    drop(snapshots);
    let both = shared(&manifests);
    for index in &both {
        memory.flip(&chunk_name(&manifests[1].chunks[*index]), 77, 3);
    }
    let disk = FaultyDisk::new(memory.clone(), Vec::new());
    let faults = disk.faults();
    let snapshots = Snapshots::open(Box::new(disk), &Owner::nobody()).expect("opened");
    faults.set(vec![Fault::FullAmid { from: faults.writes() + 2, bytes: 70 }]);
    let refused = try_described(3, &snapshots, &entries).expect_err("no room");
    assert!(refused.is_full(), "{refused}");
    snapshots.abandon(Height(3)).expect("removed");
    faults.set(Vec::new());
    for height in 4..9 {
        take(height, &snapshots, &entries);
    }
    check_all(&memory, &[7, 8]);
}

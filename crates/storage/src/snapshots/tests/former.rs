//! Folders of the version before, and of one to come.

use super::super::files::{chunk_name, former_chunk_name, manifest_name, read_whole};
use super::{check_all, check_all_of, open, snapshot};
use crate::disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use crate::owner::OwnerRecord;
use crate::snapshots::{KeptSnapshots, Snapshots};
use crate::{Owner, StorageError};
use quorate_crypto::{Digest, hash};
use quorate_types::{Header, Height, Manifest, NetworkId};

fn manifest(height: u64, chunks: &[&[u8]]) -> Manifest {
    let header = Header { height: Height(height), ..Header::default() };
    let chunks: Vec<Digest> = chunks.iter().map(|chunk| hash(chunk)).collect();
    Manifest { service: "archive".to_owned(), header, operations: 3, chunks }
}

fn put(disk: &mut MemoryDisk, name: &str, bytes: &[u8]) {
    disk.write(name, bytes).expect("written");
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim().as_bytes().chunks_exact(2);
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).expect("digits"), 16);
    digits.map(|two| byte(two).expect("hexadecimal")).collect()
}

/// A folder as the version before left it: two snapshots, that begin alike.
fn written_before() -> MemoryDisk {
    let mut disk = MemoryDisk::new();
    let chunks: [&[&[u8]]; 2] = [&[b"same", b"first"], &[b"same", b"second", b"third"]];
    for (height, chunks) in [4, 8].into_iter().zip(chunks) {
        for (index, chunk) in (0..).zip(chunks) {
            put(&mut disk, &former_chunk_name(Height(height), index), chunk);
        }
        let file = [Owner::nobody().record(3), manifest(height, chunks).encode()].concat();
        put(&mut disk, &manifest_name(Height(height)), &file);
    }
    disk.sync_directory().expect("durable");
    disk
}

/// A manifest's file as it is written, and as the version before did.
#[test]
fn golden_bytes() {
    let (now, before) = (include_str!("golden.txt"), include_str!("golden_3.txt"));
    let manifest = manifest(8, &[b"same", b"second", b"third"]);
    let hex = |format| {
        let file = [Owner::nobody().record(format), manifest.encode()].concat();
        file.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!((hex(4), hex(3)), (now.trim().to_owned(), before.trim().to_owned()));
    for golden in [now, before] {
        let mut disk = MemoryDisk::new();
        put(&mut disk, &manifest_name(Height(8)), &unhex(golden));
        let chunks: [&[u8]; 3] = [b"same", b"second", b"third"];
        chunks.iter().for_each(|chunk| put(&mut disk, &chunk_name(&hash(chunk)), chunk));
        assert_eq!(open(&disk).manifest(Height(8)), Some(manifest.clone()));
    }
}

/// They are served as before, and share what they have in common.
#[test]
fn snapshots_of_the_version_before_are_taken_over() {
    let disk = written_before();
    check_all(&disk, &[4, 8]);
    assert_eq!(disk.list().expect("listed").len(), 2 + 4);
    check_all(&disk, &[4, 8]);
}

/// Whoever only reads finds them under the names that they have.
#[test]
fn snapshots_of_the_version_before_are_read_as_they_are() {
    let disk = written_before();
    let read = || {
        let kept = KeptSnapshots::open(Box::new(disk.clone()), NetworkId([0; 32])).expect("opened");
        let (_, manifest) = kept.manifest(Height(8)).expect("works").expect("whole");
        (0..3).map(|index| kept.chunk(&manifest, index).expect("there")).collect::<Vec<_>>()
    };
    let before = disk.list().expect("listed");
    assert_eq!(read(), [&b"same"[..], b"second", b"third"]);
    assert_eq!(disk.list().expect("listed"), before, "nothing was changed");
    open(&disk);
    assert_eq!(read(), [&b"same"[..], b"second", b"third"]);
}

/// Before owners were written down a manifest had its file for itself.
#[test]
fn a_snapshot_without_an_owner_is_still_one() {
    let mut disk = MemoryDisk::new();
    let (_, _, manifest) = snapshot(&disk, "me");
    put(&mut disk, &manifest_name(Height(9)), &manifest.encode());
    assert_eq!(open(&disk).manifest(Height(9)), Some(manifest));
}

/// The power may go at each step of taking them over, and each may fail.
#[test]
fn taking_over_may_be_interrupted() {
    let kinds: [fn(u64) -> Fault; 4] = [
        |nth| Fault::FailWrite { nth },
        |nth| Fault::FailSync { nth },
        |nth| Fault::FailDirectorySync { nth },
        |nth| Fault::FailNameChange { nth },
    ];
    // Two manifests; two syncs of names; two renames of manifests and four of chunks, and the
    // removal of one that is there twice.
    for (kind, steps) in kinds.into_iter().zip([2, 2, 2, 7]) {
        let failures = (0..10).take_while(|nth| {
            let memory = written_before();
            let disk = FaultyDisk::new(memory.clone(), vec![kind(*nth)]);
            let failed = Snapshots::open(Box::new(disk), &Owner::nobody()).is_err();
            check_all(&memory.copy(), &[4, 8]);
            memory.crash(&mut || true);
            check_all(&memory, &[4, 8]);
            failed
        });
        assert_eq!(failures.count(), steps);
    }
}

/// The version before refuses the folder from the first change on.
#[test]
fn what_was_taken_over_is_of_the_present_format() {
    let disk = written_before();
    open(&disk);
    for height in [4, 8] {
        let name = manifest_name(Height(height));
        let file = read_whole(&disk, &name).expect("read");
        let (record, _) = OwnerRecord::split(&file).expect("whole");
        assert_eq!(record.format(), 4);
    }
}

/// One that was not whole is not taken over, and what is left of it goes.
#[test]
fn half_a_snapshot_of_the_version_before_goes() {
    let mut disk = written_before();
    disk.remove(&former_chunk_name(Height(8), 1)).expect("removed");
    check_all(&disk, &[4]);
}

#[test]
fn a_later_format_is_refused_and_left() {
    let mut disk = written_before();
    let file = [Owner::nobody().record(5), manifest(12, &[]).encode()].concat();
    put(&mut disk, &manifest_name(Height(12)), &file);
    let before = disk.list().expect("listed");
    let refused = Snapshots::open(Box::new(disk.clone()), &Owner::nobody()).err();
    let refused = refused.expect("refused");
    assert!(matches!(refused, StorageError::Format { found: 5, expected: 4, .. }), "{refused}");
    assert_eq!(disk.list().expect("listed"), before);
    disk.remove(&manifest_name(Height(12))).expect("removed");
    assert_eq!(check_all_of(&disk).len(), 2);
}

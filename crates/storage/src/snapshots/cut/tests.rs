use super::{BYTES_MIN, ends_before, may_begin};
use quorate_crypto::hash;
use quorate_types::Manifest;
use std::collections::BTreeMap;

type Entries = BTreeMap<Vec<u8>, usize>;

/// Chunks that a state of these keys, with values of so many bytes, comes to: what begins each, and
/// its bytes.
fn cut(entries: &Entries) -> Vec<(Vec<u8>, usize)> {
    let mut chunks: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut open = 0;
    for (key, bytes) in entries {
        if open == 0 || ends_before(open, key, &vec![0; *bytes]) {
            chunks.push((key.clone(), 0));
        }
        let entry = 8 + key.len() + bytes;
        let (_, sum) = chunks.last_mut().expect("one");
        // One that fits no chunk is cut: what is over is the beginning of the next.
        *sum += entry;
        open = *sum % Manifest::CHUNK_BYTES;
    }
    chunks
}

fn key(n: u32) -> Vec<u8> {
    hash(&n.to_le_bytes()).0.to_vec()
}

fn entries(count: u32, bytes: usize) -> Entries {
    (0..count).map(|n| (key(n), bytes)).collect()
}

/// Where cuts are is what members of one version have alike. A change of it, and their snapshots
/// are none that others vouch for.
#[test]
fn golden_cuts() {
    let chunks = cut(&entries(8_000, 512));
    let shown: Vec<String> = chunks
        .iter()
        .map(|(key, bytes)| format!("{:02x}{:02x} {bytes}\n", key[0], key[1]))
        .collect();
    assert_eq!(shown.concat(), include_str!("golden.txt"));
}

/// Values of any length come to chunks that are neither too long nor too many.
#[test]
fn chunks_are_of_some_hundred_kibibytes() {
    for bytes in [0, 100, 5_000, 200_000, 600_000] {
        let count = u32::try_from(30_000_000 / (bytes + 40)).expect("few");
        let chunks = cut(&entries(count, bytes));
        let (last, all) = chunks.split_last().expect("some");
        assert!(last.1 <= Manifest::CHUNK_BYTES);
        for (_, of) in all {
            assert!((BYTES_MIN..=Manifest::CHUNK_BYTES).contains(of), "{of} of values of {bytes}");
        }
    }
}

/// Keys are whatever clients choose, and may be chosen so that each may begin a chunk, or none.
#[test]
fn nobody_chooses_how_many_chunks_there_are() {
    let chosen = |may: bool| {
        let keys = (0..).map(key).filter(|key| may_begin(key, 5_040) == may);
        keys.take(2_000).map(|key| (key, 5_000)).collect::<Entries>()
    };
    for may in [false, true] {
        let (entries, bytes) = (chosen(may), 2_000 * 5_040);
        let chunks = cut(&entries);
        assert!(chunks.len() <= 2 * bytes / Manifest::CHUNK_BYTES + 1, "{} {may}", chunks.len());
        assert!(chunks.iter().all(|(_, bytes)| *bytes <= Manifest::CHUNK_BYTES));
    }
    // Between two that do not fit into one chunk a short one is left.
    let lengths = [10, Manifest::CHUNK_BYTES - 60].into_iter().cycle();
    let alternating: Entries = (0..40_u32).map(|n| n.to_be_bytes().to_vec()).zip(lengths).collect();
    let chunks = cut(&alternating);
    let sums = chunks.windows(2).map(|two| two[0].1 + two[1].1);
    assert!(sums.into_iter().all(|sum| sum >= BYTES_MIN), "{chunks:?}");
}

/// An entry more moves the cuts next to it at most.
#[test]
fn cuts_meet_again_after_an_insertion() {
    let before = entries(40_000, 512);
    let cuts = cut(&before);
    let mut changed = Vec::new();
    for n in 0..30 {
        let mut after = before.clone();
        after.insert(key(1_000_000 + n), 512);
        let new = cut(&after).into_iter().filter(|chunk| !cuts.contains(chunk)).count();
        assert!((1..=6).contains(&new), "{new} chunks changed by insertion {n}");
        changed.push(new);
    }
    let sum = changed.iter().sum::<usize>();
    assert!(sum <= 45, "{sum} chunks changed by 30 insertions, each on its own");
}

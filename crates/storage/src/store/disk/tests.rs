//! Power cuts at every write and sync of the file, and what a height costs that changes nothing.

use super::*;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;

/// What was done to a file, in order.
#[derive(Debug)]
enum Step {
    Write(usize, Vec<u8>),
    Length(usize),
    Sync,
    /// So many checkpoints were said to be durable.
    Told(usize),
}

#[derive(Debug, Default)]
struct Tape {
    content: Vec<u8>,
    steps: Vec<Step>,
}

/// A file in memory that keeps what was done to it.
#[derive(Clone, Debug, Default)]
struct RecordedFile(Arc<Mutex<Tape>>);

impl StorageBackend for RecordedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().content.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.0.lock().content[from..from + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().take(Step::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.lock().take(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.lock().take(Step::Write(offset as usize, data.to_vec()));
        Ok(())
    }
}

impl Tape {
    fn take(&mut self, step: Step) {
        step.apply(&mut self.content);
        self.steps.push(step);
    }
}

impl Step {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(data);
            }
            Self::Length(len) => content.resize(*len, 0),
            Self::Sync | Self::Told(_) => {}
        }
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(file: RecordedFile) -> DiskStore {
    DiskStore::open_file("a tape", || Ok(file), &Owner::nobody(), DiskStore::CACHE_BYTES)
        .expect("opened")
}

/// Some keys change, some go, most stay.
fn change(store: &mut DiskStore, map: &mut Map, number: u32) {
    let mut transaction = store.begin().expect("begun");
    for turn in 0..40 {
        let key = (number * 31 + turn * 7) % 300;
        let (key, value) = (key.to_be_bytes(), vec![turn as u8; 40 + number as usize]);
        if turn % 5 == 0 {
            transaction.delete(&key).expect("deleted");
            map.remove(&key[..]);
        } else {
            transaction.put(&key, &value).expect("put");
            map.insert(key.to_vec(), value);
        }
    }
    transaction.commit(false).expect("committed");
}

/// The steps of a store's life, and its content at each checkpoint; commits go on meanwhile.
fn record() -> (Vec<Step>, Vec<Map>) {
    let file = RecordedFile::default();
    let mut store = open(file.clone());
    let (mut map, mut maps) = (Map::new(), vec![Map::new()]);
    file.0.lock().take(Step::Told(0));
    for number in 0..6 {
        change(&mut store, &mut map, 3 * number);
        change(&mut store, &mut map, 3 * number + 1);
        maps.push(map.clone());
        let checkpoint = store.checkpoint().expect("begun");
        change(&mut store, &mut map, 3 * number + 2);
        checkpoint.wait().expect("durable");
        file.0.lock().take(Step::Told(maps.len() - 1));
    }
    let steps = std::mem::take(&mut file.0.lock().steps);
    (steps, maps)
}

fn content(store: &DiskStore) -> Map {
    let mut map = Map::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        map.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(KeyRange::ALL, &mut visit).expect("read");
    map
}

/// Writes since the last sync that a power cut leaves.
const SURVIVORS: [fn(usize) -> bool; 4] =
    [|_| false, |_| true, |step| step % 2 == 0, |step| step % 3 == 1];

/// ★ Wherever the power fails, and whatever was written and not synced then: the store opens as one
/// of its checkpoints, and none that was said to be durable is lost.
#[test]
fn a_power_cut_leaves_a_checkpoint() {
    let (steps, maps) = record();
    let (mut synced, mut unsynced, mut told) = (Vec::new(), 0..0, None);
    let mut cuts = 0;
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Sync => {
                steps[unsynced.clone()].iter().for_each(|step| step.apply(&mut synced));
                unsynced.start = at;
            }
            Step::Told(checkpoint) => told = Some(*checkpoint),
            Step::Write(..) | Step::Length(_) => {}
        }
        unsynced.end = at + 1;
        // Before that the file is being made.
        let Some(told) = told else { continue };
        for survives in SURVIVORS {
            let mut left = synced.clone();
            let survivors = unsynced.clone().filter(|step| survives(*step));
            survivors.for_each(|step| steps[step].apply(&mut left));
            let tape = Tape { content: left, steps: Vec::new() };
            let store = open(RecordedFile(Arc::new(Mutex::new(tape))));
            let found = content(&store);
            let is_one = maps[told..].iter().take(2).any(|map| *map == found);
            assert!(is_one, "step {at}: not checkpoint {told}, nor the next");
            cuts += 1;
        }
    }
    assert!(cuts > 100, "{cuts} power cuts");
}

/// A height without requests writes three small entries: nothing is read for it, nor written.
#[test]
fn commits_of_a_few_entries_do_not_touch_the_disk() {
    let file = RecordedFile::default();
    let mut store = open(file.clone());
    let before = file.0.lock().steps.len();
    for height in 0..200_u64 {
        let mut transaction = store.begin().expect("begun");
        transaction.put(b"e", &height.to_be_bytes()).expect("put");
        transaction.put(&height.to_be_bytes(), b"decided").expect("put");
        transaction.delete(&(height + 1_000).to_be_bytes()).expect("deleted");
        transaction.commit(false).expect("committed");
        assert!(store.on_disk.get().is_none(), "no transaction of redb");
    }
    assert_eq!(file.0.lock().steps.len(), before);
}

/// A thread or a disk that fails: whoever waits is told, and so is all that comes later.
#[test]
fn a_checkpoint_that_fails_is_the_end_of_a_store() {
    let mut store = open(RecordedFile::default());
    change(&mut store, &mut Map::new(), 1);
    let (checkpoint, _) = store.begin_writing().expect("begun");
    let failure = StateError("injected".into());
    checkpoint.end(Err(failure.clone()));
    assert_eq!(checkpoint.wait(), Err(failure.clone()));
    assert_eq!(store.begin().err(), Some(failure.clone()));
    assert_eq!(store.checkpoint().err(), Some(failure.clone()));
    assert_eq!(store.view().err(), Some(failure));
}

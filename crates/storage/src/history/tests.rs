//! Histories beside a model of all states that there were.

use super::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys of which some begin with others, and with what looks like a height of others.
fn keys() -> Vec<Vec<u8>> {
    let short = vec![7; 3];
    let long = [&short[..], &[0; 8]].concat();
    vec![short.clone(), long, [&short[..], &[0xff; 9]].concat(), vec![], vec![0], vec![9; 40]]
}

/// A state as it is read in these tests.
struct Newest<'a>(&'a Model);

impl State for Newest<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.0.get(key).cloned())
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StateError> {
        unreachable!("reads only")
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        unreachable!("reads only")
    }

    fn scan(&self, _: KeyRange<'_>, _: &mut Visitor<'_>) -> Result<(), StateError> {
        unreachable!("reads only")
    }
}

/// All states of a chain, by height, with what each height added to the index.
struct Chain {
    states: Vec<Model>,
    added: Vec<IndexEntries>,
    /// What was recorded of each height but the first.
    changed: Vec<Before>,
    seed: u64,
}

impl Chain {
    fn new(seed: u64) -> Self {
        let states = vec![Model::from([(vec![9; 40], vec![1])])];
        Self { states, added: vec![IndexEntries::new()], changed: vec![Before::new()], seed }
    }

    fn newest(&self) -> Height {
        Height(self.states.len() as u64 - 1)
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.seed >> 33) % below
    }

    /// Changes up to three keys: puts, among them of what is there, and removals.
    fn execute(&mut self, history: &dyn StateHistory) {
        let mut state = self.states.last().expect("a genesis").clone();
        let mut before = Before::new();
        for _ in 0..self.draw(4) {
            let key = keys().swap_remove(self.draw(6) as usize);
            before.entry(key.clone()).or_insert_with(|| state.get(&key).cloned());
            match self.draw(3) {
                0 => drop(state.remove(&key)),
                _ => drop(state.insert(key, vec![self.draw(256) as u8; self.draw(3) as usize])),
            }
        }
        self.states.push(state);
        let mut added = IndexEntries::new();
        for _ in 0..self.draw(3) {
            // Some in the order of heights, and some that later heights replace.
            let key = [vec![self.draw(3) as u8], vec![self.newest().0 as u8 % 90]].concat();
            added.insert(key, self.newest().0.to_be_bytes().to_vec());
        }
        self.added.push(added.clone());
        self.changed.push(before.clone());
        history.record(self.newest(), before, added);
    }

    /// As if the heights after this one had not been.
    fn go_back_to(&mut self, height: Height) {
        self.states.truncate(height.0 as usize + 1);
        self.added.truncate(height.0 as usize + 1);
        self.changed.truncate(height.0 as usize + 1);
    }

    /// What the index has of the heights after one.
    fn index_after(&self, height: Height) -> IndexEntries {
        self.added
            .iter()
            .skip(height.0 as usize + 1)
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// Every entry of the heights that are known, and no other, in whole and in parts.
    fn check_index(&self, history: &dyn StateHistory) {
        let expected = self.index_after(history.oldest().expect("some are known"));
        let part = KeyRange { from: &[1, 30], to: Some(&[2, 60]) };
        for keys in [KeyRange::ALL, part, KeyRange { from: &[2], to: Some(&[1]) }] {
            let bounds = keys.bounds();
            let of = |entries: &IndexEntries| {
                let chosen = bounds.map(|bounds| entries.range::<[u8], _>(bounds));
                let chosen = chosen.into_iter().flatten();
                chosen.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
            };
            let mut found = scanned(history, keys, ScanOrder::Forward);
            assert_eq!(found, of(&expected));
            found.reverse();
            assert_eq!(scanned(history, keys, ScanOrder::Backward), found);
        }
    }

    /// Every key at every height that is known, and nothing but what was.
    fn check(&self, history: &dyn StateHistory) {
        let oldest = history.oldest().expect("some are known").0;
        let newest = Newest(self.states.last().expect("a genesis"));
        for (height, was) in (0..).zip(&self.states).skip(oldest as usize) {
            let past = PastState { newest: &newest, history, height: Height(height) };
            for key in keys() {
                let found = past.get(&key).expect("read");
                assert_eq!(found.as_ref(), was.get(&key), "{key:?} at {height}");
            }
        }
        self.check_index(history);
    }
}

fn scanned(
    history: &dyn StateHistory,
    keys: KeyRange<'_>,
    order: ScanOrder,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visited = history.scan_index(keys, order, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    visited.expect("read");
    found
}

#[test]
fn every_past_state_is_what_it_was() {
    for seed in 0..20 {
        let (history, mut chain) = (MemoryHistory::default(), Chain::new(seed));
        history.begin(Height(0));
        for _ in 0..60 {
            chain.execute(&history);
        }
        assert_eq!(history.oldest(), Some(Height(0)));
        chain.check(&history);
    }
}

#[test]
fn a_past_state_is_not_written_and_has_no_ranges() {
    let (history, state) = (MemoryHistory::default(), Model::new());
    let mut past = PastState { newest: &Newest(&state), history: &history, height: Height(0) };
    assert!(past.put(b"k", b"v").is_err() && past.delete(b"k").is_err());
    assert!(past.scan(KeyRange::ALL, &mut |_, _| unreachable!("nothing")).is_err());
}

#[cfg(feature = "history")]
mod on_disk {
    use super::*;
    use crate::{Owner, Room};
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    use quorate_types::NetworkId;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    const ALL: HistoryConfig = HistoryConfig { heights_max: None, bytes_max: None };

    fn open(folder: &Path, config: HistoryConfig) -> DiskHistory {
        DiskHistory::open(folder, &Owner::nobody(), config, Room::unwatched()).expect("opened")
    }

    /// Heights that follow, durable every so often; the history is opened again where a process
    /// was killed, and what it had not made durable comes again.
    #[test]
    fn what_is_durable_is_there_after_a_kill_and_the_rest_comes_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut chain = Chain::new(1);
        let mut durable = Height(0);
        for round in 0..8 {
            let history = open(folder.path(), ALL);
            history.begin(durable);
            assert_eq!(history.oldest(), Some(Height(0)), "round {round}");
            chain.go_back_to(durable);
            for _ in 0..20 {
                chain.execute(&history);
            }
            history.make_durable();
            durable = chain.newest();
            for _ in 0..5 {
                chain.execute(&history);
            }
            chain.check(&history);
            assert!(history.bytes() > 0);
        }
    }

    /// The state may be older than what is durable of its history: the same heights come again.
    #[test]
    fn a_height_that_comes_again_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(2));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        history.make_durable();
        drop(history);
        let history = open(folder.path(), ALL);
        history.begin(Height(10));
        let lie = Before::from([(vec![9; 40], Some(vec![66]))]);
        (11..=30)
            .for_each(|height| history.record(Height(height), lie.clone(), IndexEntries::new()));
        chain.check(&history);
        assert_eq!(history.oldest(), Some(Height(0)));
    }

    /// ★ A history that lacks a height of the state knows nothing of what was before it.
    #[test]
    fn a_history_with_a_gap_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(3));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        drop(history);
        let history = open(folder.path(), ALL);
        history.begin(chain.newest());
        assert_eq!(history.oldest(), Some(Height(30)));
        (0..30).for_each(|_| chain.execute(&history));
        chain.check(&history);
        // A snapshot of the state was installed.
        history.begin(Height(100));
        assert_eq!(history.oldest(), Some(Height(100)));
        // An earlier state was put back.
        history.begin(Height(50));
        assert_eq!(history.oldest(), Some(Height(50)));
    }

    #[test]
    fn somebody_elses_history_is_not_taken_for_ones_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(4));
        history.begin(Height(0));
        (0..10).for_each(|_| chain.execute(&history));
        history.make_durable();
        drop(history);
        let other = Owner { network: NetworkId([1; 32]), ..Owner::nobody() };
        let history = DiskHistory::open(folder.path(), &other, ALL, Room::unwatched());
        let history = history.expect("opened");
        assert_eq!(history.oldest(), None);
        history.begin(Height(5));
        assert_eq!(history.oldest(), Some(Height(5)));
    }

    /// What cannot be read is begun anew, and an error once it is closed.
    #[test]
    fn damage_ends_a_history_and_not_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("history");
        std::fs::write(&place, "no folder").expect("written");
        let refused = DiskHistory::open(&place, &Owner::nobody(), ALL, Room::unwatched());
        assert!(refused.is_err(), "a file is in the way");
        std::fs::remove_file(&place).expect("removed");
        let history = open(&place, ALL);
        history.begin(Height(3));
        history.close();
        assert_eq!((history.oldest(), history.bytes()), (None, 0));
        assert!(history.before_change(b"k", Height(3)).is_err());
        history.record(Height(4), Before::new(), IndexEntries::new());
        history.make_durable();
        history.begin(Height(4));
        assert_eq!(history.oldest(), None);
        for entry in std::fs::read_dir(&place).expect("read") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                std::fs::write(path, [0; 40]).expect("damaged");
            }
        }
        let left = |folder: &Path| std::fs::read_dir(folder).expect("read").count();
        let before = left(&place);
        let refused = DiskHistory::open(&place, &Owner::nobody(), ALL, Room::unwatched());
        assert!(refused.is_err(), "it is not taken for another's, nor deleted");
        assert_eq!(left(&place), before);
    }

    /// ★ What a crash leaves of one that is begun anew is of no height, as if there were none.
    #[test]
    fn parts_without_a_word_for_how_far_they_go_are_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(5));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        history.make_durable();
        drop(history);
        let database = fjall::Database::builder(folder.path()).open().expect("opened");
        let about = database.keyspace("about", Default::default).expect("there");
        about.remove("newest").expect("removed");
        database.persist(fjall::PersistMode::SyncData).expect("synced");
        drop((about, database));
        let history = open(folder.path(), ALL);
        assert_eq!(history.oldest(), None);
        history.begin(Height(10));
        assert_eq!(history.oldest(), Some(Height(10)));
    }

    /// ★ What is known to be kept is all kept: such a height comes no more.
    #[test]
    fn the_index_goes_as_far_as_the_history_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(6));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        history.make_durable();
        drop(history);
        let history = open(folder.path(), ALL);
        history.begin(chain.newest());
        assert_eq!(history.oldest(), Some(Height(0)));
        chain.check_index(&history);
    }

    /// What a scan is shown stops where it says so, and an end of the history is an error.
    #[test]
    fn a_scan_of_the_index_ends_where_its_reader_ends_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(7));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        let mut seen = 0;
        let visited = history.scan_index(KeyRange::ALL, ScanOrder::Backward, &mut |_, _| {
            seen += 1;
            if seen < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!((visited, seen), (Ok(()), 3));
        history.close();
        assert_eq!(history.known_after(), None);
        let visited = history.scan_index(KeyRange::ALL, ScanOrder::Forward, &mut |_, _| {
            unreachable!("nothing is there")
        });
        assert!(visited.is_err());
    }

    #[test]
    fn a_wrong_past_is_noticed() {
        assert_noticed(Mutant::HistoryGap, a_history_with_a_gap_begins_anew);
        let what = parts_without_a_word_for_how_far_they_go_are_nothing;
        assert_noticed(Mutant::HistoryRemains, what);
        assert_noticed(Mutant::IndexApart, the_index_goes_as_far_as_the_history_says);
    }

    /// Whoever executes adds heights while readers are shown others, and waits for none of them.
    #[test]
    fn who_reads_the_index_holds_up_nobody_who_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(8));
        history.begin(Height(0));
        (0..30).for_each(|_| chain.execute(&history));
        history.make_durable();
        (0..30).for_each(|_| chain.execute(&history));
        let (known, mut seen) = (chain.index_after(Height(0)), IndexEntries::new());
        let visited = history.scan_index(KeyRange::ALL, ScanOrder::Forward, &mut |key, value| {
            seen.insert(key.to_vec(), value.to_vec());
            chain.execute(&history);
            ControlFlow::Continue(())
        });
        visited.expect("read");
        assert_eq!(seen, known, "as of the moment at which it began");
        chain.check(&history);
    }

    /// A key without a value is written once, and is there as long as a height that put it.
    #[test]
    fn what_many_heights_put_alike_is_written_once_in_each_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = HistoryConfig { heights_max: Some(HistoryConfig::HEIGHTS_MIN), ..ALL };
        let history = open(folder.path(), config);
        history.begin(Height(0));
        for height in 1..=1_000 {
            let only_first = (height == 1).then(|| (b"first".to_vec(), Vec::new()));
            let all = [(b"all".to_vec(), Vec::new())].into_iter().chain(only_first);
            history.record(Height(height), Before::new(), all.collect());
            history.make_durable();
        }
        assert!(history.oldest() > Some(Height(800)));
        let found = scanned(&history, KeyRange::ALL, ScanOrder::Forward);
        assert_eq!(found, [(b"all".to_vec(), Vec::new())]);
        let written = history.newest_part_bytes();
        assert!(written < 40, "{written} bytes for one key");
    }

    /// Heights are recorded, written and given up while others read them: what a reader is shown of
    /// a height that is still kept afterwards is what was.
    #[test]
    fn the_past_stays_what_it_was_while_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut chain = Chain::new(10);
        let plain = MemoryHistory::default();
        plain.begin(Height(0));
        (0..2_000).for_each(|_| chain.execute(&plain));
        let config = HistoryConfig { heights_max: Some(HistoryConfig::HEIGHTS_MIN), ..ALL };
        let history = open(folder.path(), config);
        history.begin(Height(0));
        let (newest, last) = (AtomicU64::new(0), chain.newest().0);
        // Each of the three others, once it has done something.
        let begun = AtomicU64::new(0);
        let read = |seed: u64| {
            let (mut looks, mut shown) = (0_u64, 0_u64);
            while newest.load(Ordering::Acquire) < last {
                let now = newest.load(Ordering::Acquire);
                looks += 1;
                let height = now.saturating_sub((looks * seed) % 140);
                let state = Newest(&chain.states[now as usize]);
                let past = PastState { newest: &state, history: &history, height: Height(height) };
                for key in keys() {
                    let found = past.get(&key).expect("read");
                    if history.oldest() <= Some(Height(height)) {
                        let was = chain.states[height as usize].get(&key);
                        shown += 1;
                        // Nobody waits for one that fails.
                        begun.fetch_add(u64::from(shown == 1), Ordering::AcqRel);
                        assert_eq!(found.as_ref(), was, "{key:?} at {height} of {now}");
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for seed in [7, 11] {
                let read = &read;
                scope.spawn(move || read(seed));
            }
            scope.spawn(|| {
                history.make_durable();
                begun.fetch_add(1, Ordering::AcqRel);
                while newest.load(Ordering::Acquire) < last {
                    history.make_durable();
                }
            });
            for height in 1..=last {
                let (before, added) = (&chain.changed, &chain.added);
                let at = height as usize;
                history.record(Height(height), before[at].clone(), added[at].clone());
                newest.store(height, Ordering::Release);
                while height == last / 2 && begun.load(Ordering::Acquire) < 3 {
                    std::thread::yield_now();
                }
            }
        });
        history.make_durable();
        chain.check(&history);
    }

    /// What waits in memory is known, and is no more once it is durable.
    #[test]
    fn what_waits_for_the_disk_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (history, mut chain) = (open(folder.path(), ALL), Chain::new(9));
        history.begin(Height(0));
        assert_eq!(history.pending_bytes(), 0);
        (0..30).for_each(|_| chain.execute(&history));
        let before = history.pending_bytes();
        history.record(Height(31), Before::new(), IndexEntries::from([(vec![1], vec![0; 1_000])]));
        assert!((1_001..1_101).contains(&(history.pending_bytes() - before)));
        history.make_durable();
        assert_eq!(history.pending_bytes(), 0);
        history.close();
        history.record(Height(32), Before::new(), IndexEntries::from([(vec![1], vec![0; 1_000])]));
        assert_eq!(history.pending_bytes(), 0, "nobody would write it");
    }

    #[test]
    fn as_many_heights_are_kept_as_are_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        for wanted in [1, HistoryConfig::HEIGHTS_MIN, 400] {
            let config = HistoryConfig { heights_max: Some(wanted), ..ALL };
            let place = folder.path().join(wanted.to_string());
            let (history, mut chain) = (open(&place, config), Chain::new(wanted));
            history.begin(Height(0));
            for _ in 0..200 {
                (0..5).for_each(|_| chain.execute(&history));
                history.make_durable();
            }
            let kept = chain.newest().0 - history.oldest().expect("some").0;
            let least = wanted.max(HistoryConfig::HEIGHTS_MIN);
            assert!((least..=2 * least).contains(&kept), "{kept} of {wanted}");
            chain.check(&history);
            drop(history);
            let history = open(&place, config);
            history.begin(chain.newest());
            chain.check(&history);
        }
    }

    #[test]
    fn as_many_bytes_are_kept_as_there_is_room_for() {
        const HEIGHTS: u64 = 1_000;
        let folder = tempfile::tempdir().expect("a folder");
        let config = HistoryConfig { bytes_max: Some(1 << 20), ..ALL };
        let history = open(folder.path(), config);
        history.begin(Height(0));
        for height in 1..=HEIGHTS {
            let value = Some(vec![height as u8; 4_000]);
            let before = Before::from([(b"k".to_vec(), value)]);
            history.record(Height(height), before, IndexEntries::new());
            history.make_durable();
        }
        let kept = HEIGHTS - history.oldest().expect("some").0;
        // Of 4 kB each, and an eighth less for a moment.
        assert!((200..=262).contains(&kept), "{kept}");
        let found = history.before_change(b"k", Height(HEIGHTS - kept)).expect("read");
        assert_eq!(found, Some(Some(vec![(HEIGHTS - kept + 1) as u8; 4_000])));
    }
}

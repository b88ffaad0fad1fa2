//! Comparisons divided among machines.

use super::super::{FailedJoin, candidates_of, join, measure_part};
use super::*;
use crate::experiment::{JoinError, Parts, Record, Shard};
use std::path::PathBuf;
use tempfile::TempDir;

fn here() -> Value {
    json!({ "commit": "c0ffee", "cpu": "a cpu", "cores": 2, "optimised": true })
}

/// A queue that is asked by nobody yet, and what else measuring takes.
struct Machine {
    queue: Queue,
    info: Value,
    no: AtomicBool,
}

impl Machine {
    fn new() -> Self {
        let (asked, no) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { queue: Queue { asked }, info: here(), no }
    }

    fn means(&self) -> Means<'_> {
        means(&self.queue, &self.info, &self.no)
    }

    fn asked(&self) -> usize {
        self.queue.asked.load(Ordering::Relaxed)
    }
}

/// Files of the parts of a comparison, each measured by a machine of its own.
struct Divided {
    folder: TempDir,
    ask: ComparisonSpec,
    count: u32,
}

impl Divided {
    fn new(ask: ComparisonSpec, count: u32) -> Self {
        Self { folder: TempDir::new().unwrap(), ask, count }
    }

    /// Measures a part; returns its file, and how many points that took.
    fn part(&self, index: u32, resume: bool) -> (PathBuf, usize) {
        let shard = Shard::new(index, self.count).unwrap();
        let path = self.folder.path().join(shard.file_name("compare.points"));
        let machine = Machine::new();
        measure_part(&self.ask, shard, &path, resume, &machine.means()).unwrap();
        (path, machine.asked())
    }

    fn join(&self, files: &[PathBuf]) -> Result<(Comparison, usize), FailedJoin> {
        let machine = Machine::new();
        let joined = join(&self.ask, &Parts::read(files)?, &machine.means())?;
        Ok((joined, machine.asked()))
    }
}

/// Results without the time of their measurement.
fn timeless(records: &[Record]) -> Vec<Record> {
    let timeless =
        |record: &Record| Record { started: String::new(), wall_s: 0.0, ..record.clone() };
    records.iter().map(timeless).collect()
}

#[test]
fn parts_recommend_what_one_machine_recommends() {
    for (rate, at_the_end) in [(None, 6), (Some(30_000), 0)] {
        let ask = spec(&[8, 40], rate);
        let whole = answer(&ask);
        let divided = Divided::new(ask.clone(), 2);
        let files = [1, 0].map(|index| divided.part(index, false).0);
        let (joined, asked) = divided.join(&files).unwrap();
        assert_eq!(asked, at_the_end, "only the looks at a common rate were left");
        assert_eq!(joined.findings, whole.findings);
        assert_eq!(joined.advice, whole.advice);
        assert_eq!(timeless(&joined.records), timeless(&whole.records));
        assert_eq!(table(&joined), table(&whole));
    }
}

#[test]
fn candidates_go_to_the_parts_in_turn() {
    let ask = spec(&[8], None);
    let of = |index| candidates_of(&ask, Shard::new(index, 2).unwrap());
    assert_eq!(of(0), [ask.candidates[0], ask.candidates[2]]);
    assert_eq!(of(1), [ask.candidates[1]]);
    assert!(candidates_of(&ask, Shard::new(3, 4).unwrap()).is_empty(), "a part may have none");
}

#[test]
fn a_part_goes_on_where_it_was_stopped() {
    let divided = Divided::new(spec(&[8, 40], None), 2);
    let (path, asked) = divided.part(0, false);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), asked);
    let three: String = text.split_inclusive('\n').take(3).collect();
    std::fs::write(&path, three).unwrap();
    assert_eq!(divided.part(0, true).1, asked - 3);
    let keys = |text: &str| {
        let key = |line: &str| serde_json::from_str::<Value>(line).unwrap()["key"].clone();
        let mut keys: Vec<String> = text.lines().map(|line| key(line).to_string()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&std::fs::read_to_string(&path).unwrap()), keys(&text));
    assert_eq!(divided.part(0, false).1, asked, "and begins anew where nobody says so");
}

#[test]
fn searches_that_are_missing_are_named_by_part() {
    let divided = Divided::new(spec(&[8, 40], None), 2);
    let ((a, _), (b, _)) = (divided.part(0, false), divided.part(1, false));
    let said = divided.join(std::slice::from_ref(&a)).unwrap_err().to_string();
    assert!(said.contains("part 1 lacks points of BLS, aggregate first."), "{said}");
    let text = std::fs::read_to_string(&b).unwrap();
    let few: String = text.split_inclusive('\n').take(4).collect();
    std::fs::write(&b, few).unwrap();
    let error = divided.join(&[a, b]).unwrap_err();
    assert!(matches!(error, FailedJoin::Parts(JoinError::Missing { count: 2, .. })), "{error}");
}

#[test]
fn parts_of_another_comparison_or_program_are_refused() {
    let mut divided = Divided::new(spec(&[8, 40], None), 2);
    let files = [0, 1].map(|index| divided.part(index, false).0);
    let asked = divided.ask.clone();
    let mut refused = |ask: ComparisonSpec| {
        divided.ask = ask;
        divided.join(&files).unwrap_err().to_string()
    };
    let seed = Setup { seed: 7, ..Setup::default() };
    let cases = [
        (ComparisonSpec { base: seed, ..asked.clone() }, "'seed' = 1, and here it is 7"),
        (ComparisonSpec { rate: Some(9), ..asked.clone() }, "and here it is compare, rate 9"),
        (ComparisonSpec { sizes: vec![8], ..asked.clone() }, "'validators' = 40"),
        (
            ComparisonSpec { candidates: asked.candidates[..1].to_vec(), ..asked.clone() },
            "'schemes and policies' = BLS, ",
        ),
    ];
    for (ask, expected) in cases {
        let said = refused(ask);
        assert!(said.contains(expected), "{said}\nlacks\n{expected}");
    }
    let mut machine = Machine::new();
    machine.info["commit"] = "another".into();
    let parts = Parts::read(&files).unwrap();
    let error = join(&asked, &parts, &machine.means()).unwrap_err();
    assert!(
        matches!(&error, FailedJoin::OtherProgram { here, .. } if here == "another"),
        "{error}"
    );
}

#[test]
fn a_part_that_two_machines_measured_counts_once() {
    let divided = Divided::new(spec(&[8, 40], Some(30_000)), 2);
    let ((a, _), (b, _)) = (divided.part(0, false), divided.part(1, false));
    let copy = divided.folder.path().join("copy.jsonl");
    std::fs::copy(&a, &copy).unwrap();
    let (joined, asked) = divided.join(&[copy.clone(), b.clone(), a.clone()]).unwrap();
    assert_eq!((joined.advice, asked), (answer(&divided.ask).advice, 0));
    let text = std::fs::read_to_string(&copy).unwrap();
    std::fs::write(&copy, text.replacen("\"committed_tps\":500", "\"committed_tps\":501", 1))
        .unwrap();
    let error = divided.join(&[a, b, copy]).unwrap_err();
    assert!(matches!(error, FailedJoin::Parts(JoinError::Twice { .. })), "{error}");
}

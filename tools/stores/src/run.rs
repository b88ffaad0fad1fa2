//! A run: one store, filled, updated in checkpoints of several sizes, read, and killed.

use crate::phases::{Fill, Phase, Reads, Reopened, Subject, Updates, parsed};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Checkpoints that are over before a process is killed in the next.
const CHECKPOINTS_BEFORE_KILL: usize = 3;

/// Parts of a checkpoint's time after which a process is killed, one after the other.
const KILLED_AFTER: [f64; 3] = [0.25, 0.5, 0.9];

/// Options of a run.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    subject: Subject,
    /// Updates in a checkpoint; several for one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    checkpoint: Vec<u64>,
    /// Updates that are measured, at least five checkpoints of them
    #[arg(long, default_value_t = 200_000)]
    updates: u64,
}

/// A line: all figures of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    #[serde(flatten)]
    pub(crate) subject: Subject,
    pub(crate) fill: Fill,
    pub(crate) updates: Vec<Updates>,
    pub(crate) reads: Reads,
    /// Seconds to open after each kill in a checkpoint of the last size.
    pub(crate) killed_open_s: Vec<f64>,
}

impl Run {
    pub(crate) fn measure(&self) {
        // Made where the figures are wanted, and removed whatever happens.
        let folder = tempfile::tempdir_in(&self.subject.folder).expect("a folder");
        let subject = Subject { folder: folder.path().join("store"), ..self.subject.clone() };
        std::fs::create_dir(&subject.folder).expect("a folder");
        let fill = parsed(&ended(&subject, &Phase::Fill));
        let update = |&checkpoint: &u64| {
            let updates = self.updates.max(5 * checkpoint);
            parsed(&ended(&subject, &Phase::Update { checkpoint, updates }))
        };
        let updates = self.checkpoint.iter().map(update).collect();
        let reads = parsed(&ended(&subject, &Phase::Read));
        let last = *self.checkpoint.last().expect("one at least");
        let killed_open_s = KILLED_AFTER.map(|part| reopened_after_kill(&subject, last, part));
        let killed_open_s = killed_open_s.to_vec();
        let line = Line { subject, fill, updates, reads, killed_open_s };
        println!("{}", serde_json::to_string(&line).expect("figures"));
    }
}

/// Carries out a phase in a process of its own, and returns what it printed.
fn ended(subject: &Subject, phase: &Phase) -> String {
    let output = command(subject, phase).stderr(Stdio::inherit()).output().expect("starts");
    assert!(output.status.success(), "{phase:?} of {:?} failed", subject.store);
    String::from_utf8(output.stdout).expect("text")
}

fn command(subject: &Subject, phase: &Phase) -> Command {
    let folder: &Path = &subject.folder;
    let mut command = Command::new(env::current_exe().expect("its own path"));
    command.args(["phase", "--store", &subject.store.name()]);
    command.args(["--keys", &subject.keys.to_string()]);
    command.args(["--value-bytes", &subject.value_bytes.to_string()]);
    command.arg("--folder").arg(folder).args(phase.arguments());
    command
}

/// Kills a process after a part of a checkpoint, and returns how many seconds opening takes then.
/// No checkpoint that was over is lost.
fn reopened_after_kill(subject: &Subject, checkpoint: u64, part: f64) -> f64 {
    let mut writer = command(subject, &Phase::Crash { checkpoint })
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().map(|line| line.expect("text"));
    let (mut over, mut taken): (u64, _) = (0, Duration::ZERO);
    for _ in 0..CHECKPOINTS_BEFORE_KILL {
        assert_eq!(next().as_deref(), Some("begun"));
        let began = Instant::now();
        over = next().and_then(|number| number.parse().ok()).expect("a number");
        taken = began.elapsed();
    }
    assert_eq!(next().as_deref(), Some("begun"));
    sleep(taken.mul_f64(part));
    writer.kill().expect("is killed");
    writer.wait().expect("ends");
    // The pipe has what it said meanwhile.
    while let Some(line) = next() {
        over = line.parse().unwrap_or(over);
    }
    let reopened: Reopened = parsed(&ended(subject, &Phase::Reopen { checkpoint }));
    assert!((over..=over + 1).contains(&reopened.number), "a checkpoint is lost");
    reopened.open_s
}

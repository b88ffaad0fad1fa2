//! Results of parts that several machines measured, read from their files and held against one
//! another.

use super::results::{self, Record, ResultsError};
use super::{RunnerKind, Shard};
use std::path::{Path, PathBuf};

/// Results of parts of one whole, all of one program.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Number of parts that the whole was divided into.
    count: u32,
    /// In the order of the files, each without its part.
    found: Vec<Found>,
}

/// A result, and its origin.
#[derive(Clone, Debug)]
pub struct Found {
    /// Path of its file.
    pub path: PathBuf,
    /// Number of the part that it was measured in.
    pub part: u32,
    /// The result itself, as one of the whole.
    pub record: Record,
}

/// Reason for which parts are not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// A file cannot be read, or holds something else.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A file is not there.
    #[error("there is no file {}: give the files that --shard wrote", .0.display())]
    Absent(PathBuf),
    /// No file holds a result.
    #[error("these files hold no results: give those that --shard wrote, of every part")]
    Empty,
    /// A result was not measured as a part.
    #[error(
        "{} holds results that are no part of anything: only files that --shard wrote are joined",
        .0.display()
    )]
    NotAPart(PathBuf),
    /// Two results do not belong together.
    #[error("{what} {a} in {} and {b} in {}: {advice}", a_path.display(), b_path.display())]
    Unlike {
        /// Respect in which they differ.
        what: &'static str,
        /// That of the first.
        a: Box<str>,
        /// File of the first.
        a_path: PathBuf,
        /// That of the second.
        b: Box<str>,
        /// File of the second.
        b_path: PathBuf,
        /// Word on what to join or measure instead.
        advice: &'static str,
    },
    /// One point has two results that differ.
    #[error(
        "point {key} is in {} and in {} with other numbers: leave one of the two files out",
        a.display(),
        b.display()
    )]
    Twice {
        /// Key of the point.
        key: String,
        /// File of one result.
        a: PathBuf,
        /// File of the other, which may be the same.
        b: PathBuf,
    },
    /// A point that the whole does not have.
    #[error(
        "{} holds point {key}, which {whole} does not have: it was measured with other settings, \
         price list, preset or version of the experiment's file",
        path.display()
    )]
    Foreign {
        /// Key of the point.
        key: String,
        /// File of the result.
        path: PathBuf,
        /// Name of what was to be joined.
        whole: String,
    },
    /// Some points were not measured.
    #[error(
        "not all parts are there: {gaps}. Measure what is missing, each part with --shard I/{count} \
         --resume where its file is, and join again"
    )]
    Missing {
        /// Parts that miss something, and how much.
        gaps: String,
        /// Number of parts in all.
        count: u32,
    },
}

impl Parts {
    /// Reads the files of parts, in any order.
    ///
    /// # Errors
    /// When one cannot be read, or they are not of one experiment, preset, number of parts and
    /// program, or what is timed is not of one kind of machine.
    pub fn read(files: &[PathBuf]) -> Result<Self, JoinError> {
        let mut read: Vec<(PathBuf, Shard, Record)> = Vec::new();
        for path in files {
            if !path.exists() {
                return Err(JoinError::Absent(path.clone()));
            }
            for mut record in results::read(path)? {
                let shard = record.shard.take();
                let shard = shard.ok_or_else(|| JoinError::NotAPart(path.clone()))?;
                read.push((path.clone(), shard, record));
            }
        }
        let (_, first, _) = read.first().ok_or(JoinError::Empty)?;
        let count = first.count();
        agree(&read)?;
        let found = |(path, shard, record): (_, Shard, _)| {
            let part = shard.index();
            Found { path, part, record }
        };
        Ok(Self { count, found: read.into_iter().map(found).collect() })
    }

    /// Number of parts that the whole was divided into.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The results with their files.
    #[must_use]
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Doubt, in words, that one program measured all of several parts: a commit that is unknown,
    /// or that something was changed since, may be that of two.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let is_vague = |commit: &str| commit == "unknown" || commit.ends_with("-dirty");
        let vague = self.found.iter().find(|found| is_vague(found.record.commit()))?;
        let are_several = self.found.iter().any(|found| found.part != vague.part);
        are_several.then(|| {
            format!(
                "the commit is {} in {}, which does not tell one program from another: make sure \
                 that one measured all parts",
                vague.record.commit(),
                vague.path.display()
            )
        })
    }
}

/// Refuses results that do not belong together.
fn agree(read: &[(PathBuf, Shard, Record)]) -> Result<(), JoinError> {
    let mut timed: Option<(&Path, &Record)> = None;
    for (path, shard, record) in read {
        let (first_path, first_shard, first) = &read[0];
        let unlike = |(what, a, b, advice): (&'static str, String, String, &'static str)| {
            let (a_path, b_path) = (first_path.clone(), path.clone());
            Err(JoinError::Unlike { what, a: a.into(), a_path, b: b.into(), b_path, advice })
        };
        if let Some(difference) = difference((*first_shard, first), (*shard, record)) {
            return unlike(difference);
        }
        if record.setup.runner == RunnerKind::Simulated {
            continue;
        }
        let (other_path, other) = *timed.get_or_insert((path, record));
        if !record.fits(&other.machine) {
            let (a_path, b_path) = (other_path.to_owned(), path.clone());
            let (a, b) = (other.processor().into(), record.processor().into());
            let advice = "what is timed can be compared on one kind of machine alone";
            let what = "points that are timed ran on";
            return Err(JoinError::Unlike { what, a, a_path, b, b_path, advice });
        }
    }
    Ok(())
}

/// Respect in which two results are not of one whole and program, with both values and advice.
fn difference(
    (a_shard, a): (Shard, &Record),
    (b_shard, b): (Shard, &Record),
) -> Option<(&'static str, String, String, &'static str)> {
    let of = |record: &Record, field: &str| {
        record.machine[field].as_str().unwrap_or("unknown").to_owned()
    };
    let built = |record: &Record| {
        let optimised = record.machine["optimised"] == true;
        if optimised { "optimised" } else { "not optimised" }.to_owned()
    };
    let one_whole = "join the parts of one experiment and preset at a time";
    let one_program = "measure all parts with one program";
    let respects = [
        ("the experiment is", a.experiment.clone(), b.experiment.clone(), one_whole),
        ("the preset is", a.preset.clone(), b.preset.clone(), one_whole),
        (
            "the number of parts is",
            a_shard.count().to_string(),
            b_shard.count().to_string(),
            "join the parts of one division",
        ),
        ("the version is", of(a, "version"), of(b, "version"), one_program),
        ("the commit is", of(a, "commit"), of(b, "commit"), one_program),
        ("the program was", built(a), built(b), one_program),
    ];
    respects.into_iter().find(|(_, a, b, _)| a != b)
}

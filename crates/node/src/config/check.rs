//! Everything that is wrong or unwise in configuration files, at once: `quorate config check`.
//!
//! [`super::NodeConfig::load`] stops at the first thing that it cannot use. Here every finding is
//! collected, with file, line and a hint, and what a file names is looked at too: the committee, the
//! keys, the data folder, the addresses. Nothing is written and no port is held.

mod addresses;
mod advice;
mod committee;
mod files;
mod nearest;
mod several;
mod source;
mod values;

pub use nearest::nearest;

use super::NodeConfig;
use quorate_types::{Committee, CommitteeFile};
use serde::Serialize;
use source::Source;
use std::path::{Path, PathBuf};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The validator does not start, or must not.
    Error,
    /// It starts, and may do other than its operator expects.
    Warning,
}

/// One thing that is wrong or unwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Where.
    pub file: PathBuf,
    /// On which line of it, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do; empty when the problem says it.
    pub hint: String,
}

/// What a committee tolerates, in weight, which is members when all weigh 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// How many members there are: n.
    pub members: usize,
    /// What all of them weigh.
    pub weight: u64,
    /// How much may be faulty: f.
    pub faulty: u64,
    /// How much a quorum is.
    pub quorum: u64,
    /// How much is certain to include an honest member: f+1.
    pub weak: u64,
}

/// What was found about one configuration file.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The configuration file.
    pub file: PathBuf,
    /// The member whose keys it names, when that is known.
    pub member: Option<u16>,
    /// Whether its key file is sealed under a passphrase, when that is known.
    pub sealed: Option<bool>,
    /// Its committee's thresholds, when the committee file is sound.
    pub committee: Option<Thresholds>,
    /// In the order of files and lines.
    pub findings: Vec<Finding>,
    /// What the rest of the checks stands on.
    #[serde(skip)]
    facts: Facts,
}

/// What is known of a file after a look at it.
#[derive(Clone, Debug, Default)]
struct Facts {
    config: Option<NodeConfig>,
    committee_file: Option<CommitteeFile>,
    committee: Option<Committee>,
    identity: Option<String>,
    listen: Option<String>,
}

/// Checks configuration files, each by itself and then against the others. `service` says why a
/// service's name is refused.
#[must_use]
pub fn check(files: &[PathBuf], service: &dyn Fn(&str) -> Result<(), String>) -> Vec<Checked> {
    let mut all: Vec<Checked> = files.iter().map(|file| check_one(file, service)).collect();
    several::compare(&mut all);
    for checked in &mut all {
        checked.findings.sort_by_key(|finding| {
            (finding.file != checked.file, finding.file.clone(), finding.line, finding.severity)
        });
    }
    all
}

/// What is wrong with the text of a configuration file alone: what [`NodeConfig::load`] refuses, but
/// all of it.
#[must_use]
pub fn problems(file: &Path) -> Vec<Finding> {
    let mut notes = Notes::default();
    if let Some(source) = Source::read(file, "configuration file", &mut notes) {
        values::check(&source, &|_| Ok(()), &mut notes);
    }
    notes.0
}

fn check_one(file: &Path, service: &dyn Fn(&str) -> Result<(), String>) -> Checked {
    let mut notes = Notes::default();
    let mut checked = Checked {
        file: file.to_owned(),
        member: None,
        sealed: None,
        committee: None,
        findings: Vec::new(),
        facts: Facts::default(),
    };
    if let Some(source) = Source::read(file, "configuration file", &mut notes) {
        let config = values::check(&source, service, &mut notes);
        look_around(&source, config, &mut checked, &mut notes);
    }
    checked.findings = notes.0;
    checked
}

/// Follows what the configuration names.
fn look_around(source: &Source, config: NodeConfig, checked: &mut Checked, notes: &mut Notes) {
    let facts = &mut checked.facts;
    if source.has("", "committee") {
        (facts.committee_file, facts.committee) = committee::check(source, &config, notes);
    }
    let committee = facts.committee.as_ref();
    checked.committee = committee.map(|committee| Thresholds {
        members: committee.size(),
        weight: committee.weights().total(),
        faulty: committee.faulty_max(),
        quorum: committee.quorum(),
        weak: committee.weak(),
    });
    if source.has("", "key")
        && let Some(keys) = files::key(source, &config, notes)
    {
        checked.sealed = Some(keys.is_sealed());
        let public = keys.public();
        facts.identity = Some(public.identity.to_string());
        if let (Some(file), Some(committee)) = (&facts.committee_file, committee) {
            checked.member = files::member(source, &config, &public, (file, committee), notes);
        }
    }
    if source.has("", "data_dir") {
        files::data(source, &config, committee.map(Committee::chain), notes);
    }
    let own = checked.member.zip(committee).and_then(|(member, committee)| {
        committee.address(quorate_types::ReplicaId(member)).map(str::to_owned)
    });
    facts.listen = config.listen.clone().or(own);
    addresses::own(source, &config, facts.listen.as_deref(), notes);
    advice::give(source, &config, committee, notes);
    facts.config = Some(config);
}

/// Findings so far.
#[derive(Debug, Default)]
struct Notes(Vec<Finding>);

impl Notes {
    fn add(
        &mut self,
        severity: Severity,
        (file, line): (&Path, Option<usize>),
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let (file, problem, hint) = (file.to_owned(), problem.into(), hint.into());
        self.0.push(Finding { severity, file, line, problem, hint });
    }

    fn error(
        &mut self,
        place: (&Path, Option<usize>),
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Error, place, problem, hint);
    }

    fn warning(
        &mut self,
        place: (&Path, Option<usize>),
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Warning, place, problem, hint);
    }
}

#[cfg(test)]
mod tests;

//! Everything that is wrong or unwise in configuration files, at once: `quorate config check`.
//!
//! [`super::NodeConfig::load`] stops at the first thing that it cannot use. Here every finding is
//! collected, with file, line and a hint, and what a file names is looked at too: the committee,
//! the keys, the data folder, the addresses. Nothing is written and no port is held.

mod addresses;
mod advice;
mod committee;
mod doors;
mod files;
mod nearest;
mod several;
mod source;
mod values;

pub use files::DiskNeeds;
pub use nearest::nearest;

use super::NodeConfig;
use crate::descriptors::{Demand, Descriptors, limit_at_most};
use quorate_types::{Committee, CommitteeFile, Versions};
use serde::Serialize;
use source::Source;
use std::path::{Path, PathBuf};

/// Severity of a finding, for exit codes and readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The validator does not start, or must not.
    Error,
    /// The validator starts, and may do other than its operator expects.
    Warning,
}

/// Problem or risk in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// File that it is about.
    pub file: PathBuf,
    /// Line in that file, from 1; `None` when it is about no line.
    pub line: Option<usize>,
    /// Problem in one sentence.
    pub problem: String,
    /// Remedy; empty when the problem says it.
    pub hint: String,
}

/// Thresholds of a committee, in weight, which is members when all weigh 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// Number of members: n.
    pub members: usize,
    /// Weight of all members together.
    pub weight: u64,
    /// Largest weight that may be faulty: f.
    pub faulty: u64,
    /// Weight of a quorum, at least.
    pub quorum: u64,
    /// Weight that is certain to include an honest member: f+1.
    pub weak: u64,
}

/// Findings about one configuration file.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Path of the configuration file.
    pub file: PathBuf,
    /// The member whose keys it names, when that is known.
    pub member: Option<u16>,
    /// True if its key file is sealed under a passphrase; `None` while that is not known.
    pub sealed: Option<bool>,
    /// Thresholds of its committee, when the committee file is sound.
    pub committee: Option<Thresholds>,
    /// Descriptors that it would have, if the process had this one's hard limit; `None` where they
    /// are too few, or the committee is not known.
    pub descriptors: Option<Descriptors>,
    /// Disk that it needs, and that is free; `None` where that is not known.
    pub disk: Option<DiskNeeds>,
    /// Findings in the order of files and lines.
    pub findings: Vec<Finding>,
    /// Facts that comparisons with other files need.
    #[serde(skip)]
    facts: Facts,
}

/// Facts that a file states, as far as they could be read.
#[derive(Clone, Debug, Default)]
struct Facts {
    config: Option<NodeConfig>,
    committee_file: Option<CommitteeFile>,
    committee: Option<Committee>,
    identity: Option<String>,
    listen: Option<String>,
}

/// Versions that the program has of the service of a name, or why the name is none's.
pub type IsService<'a> = &'a dyn Fn(&str) -> Result<Versions, String>;

/// Checks configuration files, each by itself and then against the others. `service` says why a
/// service's name is refused.
#[must_use]
pub fn check(files: &[PathBuf], service: IsService<'_>) -> Vec<Checked> {
    let mut all: Vec<Checked> = files.iter().map(|file| check_one(file, service)).collect();
    several::compare(&mut all);
    for checked in &mut all {
        checked.findings.sort_by_key(|finding| {
            (finding.file != checked.file, finding.file.clone(), finding.line, finding.severity)
        });
    }
    all
}

/// Problems in the text of a configuration file alone: what [`NodeConfig::load`] refuses, but all
/// of it.
#[must_use]
pub fn problems(file: &Path) -> Vec<Finding> {
    let mut notes = Notes::default();
    if let Some(source) = Source::read(file, "configuration file", &mut notes) {
        let config = values::check(&source, &mut notes);
        doors::rules(&source, config.door_problems(), &mut notes);
    }
    notes.0
}

fn check_one(file: &Path, service: IsService<'_>) -> Checked {
    let mut notes = Notes::default();
    let mut checked = Checked {
        file: file.to_owned(),
        member: None,
        sealed: None,
        committee: None,
        descriptors: None,
        disk: None,
        findings: Vec::new(),
        facts: Facts::default(),
    };
    if let Some(source) = Source::read(file, "configuration file", &mut notes) {
        let config = values::check(&source, &mut notes);
        look_around(&source, (config, service), &mut checked, &mut notes);
    }
    checked.findings = notes.0;
    checked
}

/// Follows what the configuration names.
fn look_around(
    source: &Source,
    (mut config, service): (NodeConfig, IsService<'_>),
    checked: &mut Checked,
    notes: &mut Notes,
) {
    let facts = &mut checked.facts;
    if source.has("", "committee") {
        (facts.committee_file, facts.committee) =
            committee::check(source, (&mut config, service), notes);
        config.name_clients_file(&source.path);
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
        checked.disk = files::data(source, &config, committee.map(Committee::network), notes);
    }
    let own = checked.member.zip(committee).and_then(|(member, committee)| {
        committee.address(quorate_types::ReplicaId(member)).map(str::to_owned)
    });
    facts.listen = config.listen.clone().or(own);
    addresses::own(source, &config, facts.listen.as_deref(), notes);
    checked.descriptors = committee.and_then(|committee| {
        let demand = Demand::of_validator(&config, committee.size());
        advice::descriptors(source, &demand, limit_at_most(), notes)
    });
    files::clients(source, &config, notes);
    doors::check(source, (&config, committee.is_some()), notes);
    files::genesis(source, &config, notes);
    advice::give(source, &config, committee, notes);
    facts.config = Some(config);
}

/// Findings so far, in the order of the checks.
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

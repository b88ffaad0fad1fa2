//! A transcript as a file, and `quorate keys transcript`.

use crate::commands::committee::change_file;
use crate::failure::{CommandResult, Failure};
use crate::output;
use bytes::Bytes;
use clap::Args;
use quorate_ledger::keygen::{Ceremony, SignedStep, Step, Transcript};
use quorate_node::config::read_committee_file;
use quorate_types::CommitteeFile;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const FORMAT: &str = "quorate-key-generation-1";

/// Contents of a transcript's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TranscriptFile {
    format: String,
    label: String,
    /// Named when founding committees alone generated keys.
    #[serde(rename = "founding")]
    generators: CommitteeFile,
    steps: Vec<StepLine>,
}

/// A step: the operation is what counts, the rest is for people.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepLine {
    member: u16,
    step: String,
    operation: String,
}

impl StepLine {
    fn of(operation: &[u8]) -> Option<Self> {
        let signed = SignedStep::decode(operation)?;
        let step = match Step::decode(&signed.step)? {
            Step::Join(_) => "join".to_owned(),
            Step::Deal(_) => "deal".to_owned(),
            Step::Check(accused) if accused.is_empty() => "check".to_owned(),
            Step::Check(accused) => format!("complain about {accused:?}"),
            Step::Answer(_) => "answer".to_owned(),
            Step::Close(phase) => format!("close {phase}"),
            Step::Done(_) => "done".to_owned(),
        };
        Some(Self { member: signed.member, step, operation: hex::encode(operation) })
    }
}

/// The text of a ceremony's transcript: the same bytes at every member.
pub(super) fn text(generators: &CommitteeFile, label: &str, ceremony: &Ceremony) -> String {
    let Transcript { generators, label, steps } = Transcript::of(generators, label, ceremony);
    let line = |operation: &Bytes| StepLine::of(operation).expect("it was taken");
    let steps = steps.iter().map(line).collect();
    let file = TranscriptFile { format: FORMAT.to_owned(), label, generators, steps };
    serde_json::to_string_pretty(&file).expect("plain data") + "\n"
}

/// Reads a transcript, and believes nothing of it.
pub(in crate::commands) fn read(path: &Path) -> Result<Transcript, Failure> {
    let refused = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let file: TranscriptFile =
        serde_json::from_str(&text).map_err(|error| refused(format!("no transcript: {error}")))?;
    if file.format != FORMAT {
        return Err(refused(format!("its format is '{}', not '{FORMAT}'", file.format)));
    }
    let mut steps = Vec::with_capacity(file.steps.len());
    for (index, line) in file.steps.iter().enumerate() {
        let operation = hex::decode(&line.operation).unwrap_or_default();
        if StepLine::of(&operation).as_ref() != Some(line) {
            return Err(refused(format!("step {index} is not what its line says")));
        }
        steps.push(operation.into());
    }
    Ok(Transcript { generators: file.generators, label: file.label, steps })
}

/// Transcript to check, and the files to check it against.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The transcript, as `quorate keys dkg` wrote it
    file: PathBuf,
    /// The committee file whose keys they are; committee.toml beside the transcript by default
    #[arg(long, value_name = "FILE")]
    committee: Option<PathBuf>,
    /// The change of committee whose next epoch has them, where they were generated with --next
    #[arg(long, value_name = "FILE", conflicts_with = "committee")]
    change: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let transcript = read(&self.file)?;
        let (path, committee) = self.committee_of(&transcript)?;
        let (ceremony, generated) = transcript.verify(&committee).map_err(Failure::run)?;
        let (members, steps) = (committee.members.len(), transcript.steps.len());
        if self.json {
            output::json(&json!({
                "valid": true,
                "members": members,
                "joined": ceremony.joined(),
                "dealers": ceremony.dealers(),
                "qualified": generated.qualified,
                "steps": steps,
                "groups": committee.groups,
            }));
            return Ok(());
        }
        output::line(&format!(
            "The transcript holds: {steps} signed steps of {joined} of {members} members come to the \
             keys in {path}.\nThey are the sum of what the dealers {qualified:?} dealt: while one of \
             these is honest,\nnobody signs for the committee with fewer than {weak} members' keys.",
            joined = ceremony.joined().len(),
            path = path.display(),
            qualified = generated.qualified,
            weak = ceremony.plan().weak(),
        ));
        for (dealer, reason) in ceremony.out() {
            output::line(&format!("Dealer {dealer} is out: {reason}."));
        }
        Ok(())
    }

    /// The committee file to compare with, and where it is.
    fn committee_of(&self, transcript: &Transcript) -> Result<(PathBuf, CommitteeFile), Failure> {
        if let Some(path) = &self.change {
            return Ok((path.clone(), change_file::read(path)?.change.file));
        }
        if transcript.generators.network.is_some() {
            return Err(Failure::usage(format!(
                "{} is of keys for epoch {} of a network that served meanwhile: name the change that \
                 has them by --change",
                self.file.display(),
                transcript.generators.epoch.0
            )));
        }
        let beside = || self.file.with_file_name("committee.toml");
        let path = self.committee.clone().unwrap_or_else(beside);
        let committee = read_committee_file(&path).map_err(Failure::usage)?;
        Ok((path, committee))
    }
}

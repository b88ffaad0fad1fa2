//! `quorate evidence`: what validators kept against members that broke a rule, checked offline.

use super::proof_place::ProofPlace;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_node::evidence::{EvidenceError, EvidenceFile};
use quorate_node::proof_file::ProofFileError;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check what proves that members broke a rule, offline.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check evidence under the committee of its epoch, and show whom it convicts of what
    ///
    /// No validator is asked. Evidence of a later epoch than the committee file's needs the
    /// hand-overs that lead to it. Exit code 0: all of it holds. 1: some of it proves nothing, and
    /// the reason is said. 2: a file cannot be read.
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Verify {
    /// Files that validators wrote, or folders of them: `evidence` in a data folder
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    files: ProofPlace,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let Command::Verify(options) = &self.command;
        options.run()
    }
}

impl Verify {
    fn run(&self) -> CommandResult {
        let history = self.files.history()?;
        let mut proven = Vec::new();
        for path in self.evidence()? {
            let explain = |error| explain(&path, error);
            let file = EvidenceFile::read(&path).map_err(explain)?;
            file.verify(&history).map_err(explain)?;
            proven.push(file);
        }
        if self.json {
            output::json(&json!({ "valid": true, "evidence": proven }));
        } else {
            output::line(&describe(&proven));
        }
        Ok(())
    }

    /// The files that were named, and those of the folders that were named, in the order of their
    /// names.
    fn evidence(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                files.append(&mut files_in(path)?);
            } else {
                files.push(path.clone());
            }
        }
        Ok(files)
    }
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::usage(format!("cannot read {}: {error}", folder.display()));
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(failed)?.collect();
    let paths = entries.map_err(failed)?.into_iter().map(|entry| entry.path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    Ok(files)
}

fn explain(path: &Path, error: EvidenceError) -> Failure {
    match error {
        EvidenceError::File(ProofFileError::Read { .. }) => Failure::usage(error),
        error => Failure::run(format!("{}: {error}", path.display())),
    }
}

fn describe(proven: &[EvidenceFile]) -> String {
    if proven.is_empty() {
        return "There is no evidence: nobody is proven to have broken a rule.".to_owned();
    }
    let lines = proven.iter().map(|file| {
        format!(
            "It is proven that member r{} of epoch {} broke the rule {}: its key {} signed both\n  \
             {}\n  {}",
            file.member, file.epoch, file.rule, file.identity, file.signed[0], file.signed[1]
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

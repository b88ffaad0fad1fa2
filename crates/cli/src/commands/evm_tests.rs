//! `quorate evm-tests`: Ethereum's public execution tests, on this ledger.

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_ledger::evm::Fork;
use quorate_ledger::evm::conformance::{self, Case, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Run Ethereum's public execution tests (state tests) on the EVM ledger.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate evm-tests fixtures/state_tests/prague             a release of execution-spec-tests\n  \
    quorate evm-tests --fork Cancun tests/GeneralStateTests   the older collection, which ends there\n\n\
    Those for the rules of one fork are run, of Prague unless told otherwise, which are the ledger's: each\n\
    transaction is signed, read, carried out and written as any other of the ledger, and the root of all\n\
    accounts and the hash of the logs compared. What the ledger has no rules for is left out, and counted by\n\
    reason.\n\n\
    Exit code 1: a test failed, or a file is no file of tests; the others are run all the same. Exit code 2:\n\
    there is nothing to run.")]
pub(crate) struct Options {
    /// Files of tests, or folders with such files at any depth
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fork whose tests are run, by its rules: London, Paris, Shanghai, Cancun, Prague or Osaka
    #[arg(long, default_value = "Prague")]
    fork: Fork,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Results of all tests.
#[derive(Debug, Default, Serialize)]
struct Summary {
    files: usize,
    /// Files that are none of tests, with the reason.
    unreadable: BTreeMap<String, String>,
    passed: usize,
    failed: BTreeMap<String, String>,
    left_out: BTreeMap<&'static str, usize>,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let mut files = Vec::new();
        for path in &self.paths {
            find(path, &mut files)?;
        }
        files.sort();
        let mut summary = Summary { files: files.len(), ..Summary::default() };
        for file in &files {
            match cases(file, self.fork) {
                Ok(cases) => cases.into_iter().for_each(|case| summary.count(file, case)),
                Err(reason) => {
                    summary.unreadable.insert(file.display().to_string(), reason);
                }
            }
        }
        if summary.ran_none() {
            let unread = summary.unreadable.iter().map(|(file, why)| format!("\n{file}: {why}"));
            let unread: String = unread.collect();
            return Err(Failure::usage(format!("no test was run: {}{unread}", summary.line())));
        }
        if self.json {
            output::json(&summary);
        } else {
            summary.print();
        }
        let is_good = summary.failed.is_empty() && summary.unreadable.is_empty();
        if is_good { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }
}

/// All files of a folder whose names say that they are JSON, or the file itself.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> CommandResult {
    let refuse = |error| Failure::usage(format!("{}: {error}", path.display()));
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(refuse)? {
        let found = entry.map_err(refuse)?.path();
        if found.is_dir() || found.extension().is_some_and(|extension| extension == "json") {
            find(&found, files)?;
        }
    }
    Ok(())
}

fn cases(file: &Path, fork: Fork) -> Result<Vec<Case>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    conformance::run(&text, fork).map_err(|error| error.to_string())
}

impl Summary {
    fn count(&mut self, file: &Path, case: Case) {
        match case.verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(reason) => {
                self.failed.insert(format!("{}: {}", file.display(), case.name), reason);
            }
            Verdict::LeftOut(reason) => *self.left_out.entry(reason).or_default() += 1,
        }
    }

    fn ran_none(&self) -> bool {
        self.passed + self.failed.len() == 0
    }

    fn print(&self) {
        for (file, reason) in &self.unreadable {
            output::line(&format!("not read: {file}: {reason}"));
        }
        for (case, reason) in &self.failed {
            output::line(&format!("failed: {case}\n  {reason}"));
        }
        output::line(&self.line());
        for (reason, count) in &self.left_out {
            output::line(&format!("  left out: {count} {reason}"));
        }
    }

    fn line(&self) -> String {
        let left_out: usize = self.left_out.values().sum();
        let (files, passed, failed) = (self.files, self.passed, self.failed.len());
        format!("{files} files: {passed} passed, {failed} failed, {left_out} left out")
    }
}

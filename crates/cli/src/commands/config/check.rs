//! Checks of a configuration: `quorate config check`.

use crate::commands::status::configs_in;
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_lab::ServiceKind;
use quorate_node::config::check::{Checked, Finding, Severity, Thresholds, check};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Configuration files, or folders that `quorate testnet` wrote
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Exit with 0 when there are warnings only
    #[arg(long)]
    allow_warnings: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let mut files = Vec::new();
        for file in &self.files {
            if file.is_dir() {
                files.extend(configs_in(file)?);
            } else {
                files.push(file.clone());
            }
        }
        let service = |name: &str| match name.parse::<ServiceKind>() {
            Ok(service) => Ok(service.versions()),
            Err(error) => Err(error.to_string()),
        };
        let checked = check(&files, &service);
        let (errors, warnings) =
            (count(&checked, Severity::Error), count(&checked, Severity::Warning));
        if self.json {
            let object = json!({ "files": checked, "errors": errors, "warnings": warnings });
            output::json(&object);
        } else {
            checked.iter().for_each(|checked| output::line(&describe(checked)));
            output::line(&summary(errors, warnings, checked.len()));
        }
        match (errors, warnings) {
            (0, 0) => Ok(()),
            (0, _) if self.allow_warnings => Ok(()),
            (0, _) => Err(Failure::Reported(Code::Warnings)),
            _ => Err(Failure::Reported(Code::Usage)),
        }
    }
}

fn count(checked: &[Checked], severity: Severity) -> usize {
    let findings = checked.iter().flat_map(|checked| &checked.findings);
    findings.filter(|finding| finding.severity == severity).count()
}

fn describe(checked: &Checked) -> String {
    let mut text = checked.file.display().to_string();
    if let Some(committee) = checked.committee {
        text.push_str(&format!("\n  {}", thresholds(checked.member, committee)));
    }
    if let Some(sealed) = checked.sealed {
        let state = if sealed { "sealed under a passphrase" } else { "in the clear" };
        text.push_str(&format!("\n  keys: {state}"));
    }
    if let Some(descriptors) = checked.descriptors {
        text.push_str(&output::indented(&format!("descriptors: {descriptors}"), 2, 6));
    }
    if let Some(disk) = checked.disk {
        text.push_str(&output::indented(&format!("disk: {disk}"), 2, 6));
    }
    let mut place = Some(&checked.file);
    for finding in &checked.findings {
        if place != Some(&finding.file) {
            place = Some(&finding.file);
            text.push_str(&format!("\n  in {}:", finding.file.display()));
        }
        let word = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let line = finding.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let entry = format!("{word}{line}: {}", finding.problem);
        text.push_str(&output::indented(&entry, 2, 6));
        if !finding.hint.is_empty() {
            text.push_str(&output::indented(&format!("→ {}", finding.hint), 6, 8));
        }
    }
    text
}

fn thresholds(member: Option<u16>, committee: Thresholds) -> String {
    let Thresholds { members, weight, faulty, quorum, weak } = committee;
    let weighs = match weight {
        weight if weight == members as u64 => String::new(),
        weight => format!(" (weight {weight})"),
    };
    let who = member.map_or_else(|| "no member".to_owned(), |member| format!("member {member}"));
    format!("{who} of n = {members}{weighs}; tolerates f = {faulty}; quorum {quorum}; f+1 = {weak}")
}

fn summary(errors: usize, warnings: usize, files: usize) -> String {
    let count = |number: usize, what: &str| {
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    let (errors, warnings) = (count(errors, "error"), count(warnings, "warning"));
    format!("{errors}, {warnings} in {}", count(files, "file"))
}

/// A finding without its file, for a list of one file's.
pub(super) fn one_line(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    match finding.hint.as_str() {
        "" => format!("{line}{}", finding.problem),
        hint => format!("{line}{} ({hint})", finding.problem),
    }
}

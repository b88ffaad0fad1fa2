//! Results in files: written as pages or as JSON, and read from either.

use super::Run;
use crate::Report;
use crate::results::{FORMAT, Measurement};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Media type of the results inside a page.
pub(super) const MEDIA_TYPE: &str = "application/json";
/// Identifier of the element that holds them.
pub(super) const ID: &str = "quorate-results";
/// Beginning of that element.
const OPENING: &str = "<script type=\"application/json\" id=\"quorate-results\">";
/// End of that element.
const CLOSING: &str = "</script>";

/// The largest file read, in bytes.
const BYTES_MAX: u64 = 256 << 20;

/// Reason for which a file gave no result. Each message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is larger than any result.
    #[error("{} is larger than any result ({} MiB)", path.display(), BYTES_MAX >> 20)]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// It is something else.
    #[error(
        "{} is neither a report page nor the output of `quorate bench --json` or `quorate load --json`: \
         {reason}",
        path.display()
    )]
    NotAResult {
        /// Path of the file.
        path: PathBuf,
        /// Part that is missing or wrong.
        reason: String,
    },
    /// It was written by another version.
    #[error(
        "{} holds a result of format {found}, and this binary reads format {FORMAT}: {}",
        path.display(),
        advice(found)
    )]
    OtherFormat {
        /// Path of the file.
        path: PathBuf,
        /// Its format; "1" where it has no number, as the first results had none.
        found: String,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

fn advice(found: &str) -> &'static str {
    match found.parse::<u32>() {
        Ok(number) if number > FORMAT => "read it with a newer quorate",
        _ => "measure again",
    }
}

/// The results in a page or in the output of `quorate bench --json`, in order; at least one.
///
/// # Errors
/// When the file cannot be read, holds something else, or holds another format.
pub fn read(path: &Path) -> Result<Vec<Report>, FileError> {
    let unreadable = |source| FileError::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > BYTES_MAX {
        return Err(FileError::TooLarge { path: path.to_owned() });
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    parse(path, &String::from_utf8_lossy(&bytes))
}

fn parse(path: &Path, text: &str) -> Result<Vec<Report>, FileError> {
    let other = |reason: String| FileError::NotAResult { path: path.to_owned(), reason };
    let json = if text.trim_start().starts_with('<') {
        let inside = text.split_once(OPENING).and_then(|(_, rest)| rest.split_once(CLOSING));
        inside.ok_or_else(|| other("there is no result inside the page".to_owned()))?.0
    } else {
        text
    };
    let value: Value = serde_json::from_str(json).map_err(|error| other(error.to_string()))?;
    let values = match value {
        Value::Array(values) if !values.is_empty() => values,
        Value::Array(_) => return Err(other("there is no result in it".to_owned())),
        single => vec![single],
    };
    values.into_iter().map(|value| report(path, value)).collect()
}

fn report(path: &Path, value: Value) -> Result<Report, FileError> {
    let other = |reason: String| FileError::NotAResult { path: path.to_owned(), reason };
    if !value.is_object() || value.get("committed_tps").is_none() {
        return Err(other("it says nothing of committed operations".to_owned()));
    }
    match value.get("format") {
        Some(format) if *format == FORMAT => {}
        format => {
            let found = format.map_or("1".to_owned(), Value::to_string);
            return Err(FileError::OtherFormat { path: path.to_owned(), found });
        }
    }
    serde_json::from_value(value).map_err(|error| other(error.to_string()))
}

/// Path of a result's page unless another is named: in `quorate-results/`, by the beginning, size
/// and scheme of the run.
#[must_use]
pub fn default_path(report: &Report) -> PathBuf {
    let digits: String = report.started.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    let what = match &report.measurement {
        Measurement::Load(load) => format!("load-{}", load.seed),
        Measurement::Bench | Measurement::Merged(_) => report.setting("scheme"),
    };
    let name = format!("{day}-{time}-n{}-{what}.html", report.setting("validators"));
    Path::new("quorate-results").join(name)
}

/// Writes a page of these runs, and the folder for it where that is missing. A name that ends in
/// `.json` gets the results alone.
///
/// # Errors
/// When the system refuses.
pub fn write(path: &Path, runs: &[Run]) -> Result<(), FileError> {
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let json = path.extension().is_some_and(|extension| extension == "json");
    let text = if json { format!("{}\n", results(runs)) } else { super::html(runs) };
    fs::write(path, text).map_err(unwritable)
}

/// The results as JSON: one object, or a list of several.
pub(super) fn results(runs: &[Run]) -> String {
    let reports: Vec<&Report> = runs.iter().map(|run| &run.report).collect();
    let text = match &reports[..] {
        [single] => serde_json::to_string(single),
        several => serde_json::to_string(several),
    };
    text.expect("plain data")
}

#[cfg(test)]
mod tests;

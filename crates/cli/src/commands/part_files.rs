//! Files of what several machines measured, as `--join` names them.

use crate::failure::Failure;
use quorate_lab::experiment::{Parts, Shard};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads all parts of `what` from what was given, and warns where they may be of two programs.
pub(crate) fn read(given: &[PathBuf], what: &str) -> Result<Parts, Failure> {
    let parts = Parts::read(&find(given, what)?).map_err(Failure::usage)?;
    parts.doubt().into_iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    Ok(parts)
}

/// The files of all parts of `what`: those named, and those in folders that are named, in the order
/// of their names.
fn find(given: &[PathBuf], what: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if path.is_dir() {
            files.extend(within(path, what)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn within(folder: &Path, what: &str) -> Result<Vec<PathBuf>, Failure> {
    let unreadable =
        |error| Failure::usage(format!("cannot read the folder {}: {error}", folder.display()));
    let prefix = Shard::file_prefix(what);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && name.ends_with(".jsonl") {
            files.push(entry.path());
        }
    }
    files.sort();
    if files.is_empty() {
        let text = format!("{} has no files {prefix}I-of-N.jsonl", folder.display());
        return Err(Failure::usage(text));
    }
    Ok(files)
}

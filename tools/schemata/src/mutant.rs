//! Mutants as cargo-mutants names them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A change of one place of the source.
#[derive(Deserialize)]
pub struct Mutant {
    /// Path, line, column and change: what cargo-mutants prints.
    pub name: String,
    /// Path from the workspace's root.
    pub file: String,
    pub genre: Genre,
    /// The function it is in; none for a constant.
    pub function: Option<Function>,
    /// What stands in the span's place.
    pub replacement: String,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Deserialize)]
pub struct Function {
    /// `-> Type`, or empty.
    pub return_type: String,
}

#[derive(Clone, Copy, Deserialize)]
pub struct Span {
    pub start: Position,
}

/// Line and column in characters, both from one.
#[derive(Clone, Copy, Deserialize)]
pub struct Position {
    line: usize,
    column: usize,
}

impl Position {
    /// The byte at which this position is in `source`.
    pub fn byte(self, source: &str) -> Option<usize> {
        let line_start: usize =
            source.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        let rest = source.get(line_start..)?;
        let within: usize = rest.chars().take(self.column - 1).map(char::len_utf8).sum();
        Some(line_start + within)
    }
}

/// Lists a package's mutants, of `files` alone if there are any.
///
/// # Errors
///
/// Those of cargo-mutants.
pub fn list(root: &Path, package: &str, files: &[String]) -> Result<Vec<Mutant>> {
    let output = Command::new("cargo")
        .args(["mutants", "--list", "--json", "--package", package])
        .args(files.iter().flat_map(|file| ["--file", file]))
        .current_dir(root)
        .output()
        .context("cargo mutants --list")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

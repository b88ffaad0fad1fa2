//! Checks of the tree's form that neither compiler nor linter makes.
//!
//! `cargo test` runs them all; `cargo run -p quorate-tidy` prints their findings, and
//! `cargo run -p quorate-tidy -- circles` those of one.

mod checks;
mod circles;
mod finding;
mod scan;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use checks::{ALL, Check};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use tree::Tree;

/// Folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> io::Result<ExitCode> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|check| check.name != *name)) {
        let known: Vec<&str> = ALL.iter().map(|check| check.name).collect();
        eprintln!("there is no check {unknown}; there are {}", known.join(", "));
        return Ok(ExitCode::from(2));
    }
    let tree = Tree::read(Path::new(ROOT))?;
    let chosen =
        ALL.iter().filter(|check| names.is_empty() || names.iter().any(|n| n == check.name));
    let mut tidy = true;
    for check in chosen {
        tidy &= print(check, &tree)?;
    }
    Ok(if tidy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a check's findings; returns `true` if there are none.
fn print(check: &Check, tree: &Tree) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let findings = (check.run)(tree);
    for finding in &findings {
        writeln!(out, "{}: {}", finding.place, finding.advice)?;
    }
    writeln!(out, "{}: {}", check.name, findings.len())?;
    Ok(findings.is_empty())
}

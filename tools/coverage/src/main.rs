//! Prints which share of the lines under a folder a test run came past, file by file.
//!
//! `quorate-coverage SOURCE PROFILES OBJECT…`: a folder of sources, a folder of `.profraw` files,
//! and the test binaries that wrote them, built with `-C instrument-coverage`. Test code is left
//! out: files and folders named `tests`.

use anyhow::{Context, Result, bail, ensure};
use llvm_profparser::{CoverageMapping, CoverageResult, merge_profiles};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines with code, and those of them that ran.
#[derive(Clone, Copy, Default)]
struct Lines {
    all: usize,
    ran: usize,
}

impl Lines {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.ran += other.ran;
    }

    fn percent(self) -> f64 {
        100.0 * self.ran as f64 / self.all.max(1) as f64
    }
}

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, profiles, objects @ ..] = &arguments[..] else {
        bail!("say quorate-coverage SOURCE PROFILES OBJECT…");
    };
    ensure!(!objects.is_empty(), "name at least one test binary");
    let source = source.canonicalize().with_context(|| format!("no {}", source.display()))?;
    let profile = merge_profiles(&profiles_in(profiles)?)?;
    let mapping = CoverageMapping::new(objects, &profile, false)?;
    let report = mapping.generate_report()?;
    let mut files = BTreeMap::new();
    for (path, result) in &report.files {
        if let Some(name) = shown(path, &source) {
            files.insert(name, lines(result));
        }
    }
    ensure!(!files.is_empty(), "nothing of {} ran", source.display());
    print(&files);
    Ok(())
}

fn profiles_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    let mut profiles = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "profraw") {
            profiles.push(path);
        }
    }
    ensure!(!profiles.is_empty(), "no .profraw file in {}", folder.display());
    Ok(profiles)
}

/// A file's name under the sources, unless it is elsewhere or only tests others.
fn shown(path: &Path, source: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let name = path.strip_prefix(source).ok()?;
    let is_test = name.iter().any(|part| part == "tests" || part == "tests.rs");
    (!is_test).then(|| name.display().to_string())
}

/// A line ran if the innermost region around it did: the one that begins last.
fn lines(result: &CoverageResult) -> Lines {
    let mut innermost: BTreeMap<usize, (usize, usize, bool)> = BTreeMap::new();
    for (region, count) in &result.hits {
        for line in region.line_start..=region.line_end {
            let begins = (region.line_start, region.column_start, *count > 0);
            let known = innermost.entry(line).or_insert(begins);
            *known = (*known).max(begins);
        }
    }
    let ran = innermost.values().filter(|(_, _, ran)| *ran).count();
    Lines { all: innermost.len(), ran }
}

fn print(files: &BTreeMap<String, Lines>) {
    let width = files.keys().map(String::len).max().unwrap_or(0);
    let mut total = Lines::default();
    for (name, lines) in files {
        println!("{name:width$}  {:5} of {:5} lines  {:5.1} %", lines.ran, lines.all, lines.percent());
        total.add(*lines);
    }
    println!("{:width$}  {:5} of {:5} lines  {:5.1} %", "all", total.ran, total.all, total.percent());
}

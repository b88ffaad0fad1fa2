//! A copy of the workspace, in which a package's sources have its mutants embedded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::embed::{Edit, Embedded, Region, embed};
use crate::mutant::Mutant;
use crate::syntax::Nodes;

const SWITCH: &str = include_str!("switch.rs");

/// Copy of a workspace, and what goes into its sources.
pub struct Tree {
    pub path: PathBuf,
    sources: BTreeMap<String, Source>,
    /// Path of the package's `lib.rs`.
    library: String,
    mutants: usize,
}

struct Source {
    original: String,
    edits: Vec<Edit>,
    regions: Vec<Region>,
}

impl Tree {
    /// Copies what git knows of in `root` to `path`, and finds where each mutant goes.
    ///
    /// # Errors
    ///
    /// Those of files and of git.
    pub fn copy(root: &Path, path: PathBuf, mutants: &[Mutant]) -> Result<Self> {
        let first = mutants.first().context("no mutants")?;
        let package = first.file.split("/src/").next().context("a source outside of src")?;
        let library = format!("{package}/src/lib.rs");
        // The crate's root is written anew even where it has no mutant: the switch goes into it.
        let mut sources = BTreeSet::from([library.as_str()]);
        sources.extend(mutants.iter().map(|mutant| mutant.file.as_str()));
        for file in tracked(root)? {
            if !sources.contains(file.as_str()) && root.join(&file).is_file() {
                let bytes = fs::read(root.join(&file)).with_context(|| file.clone())?;
                write_changed(&path.join(&file), &bytes)?;
            }
        }
        let sources = sources
            .into_iter()
            .map(|file| Ok((file.to_owned(), Source::read(root, file, mutants)?)))
            .collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Self { path, sources, library, mutants: mutants.len() })
    }

    /// The ids of those that have a place in the sources.
    pub fn embeddable(&self) -> BTreeSet<usize> {
        self.sources.values().flat_map(|source| source.edits.iter().map(|edit| edit.id)).collect()
    }

    /// Writes the sources with these mutants.
    ///
    /// # Errors
    ///
    /// Those of files.
    pub fn write(&mut self, ids: &BTreeSet<usize>) -> Result<()> {
        for (file, source) in &mut self.sources {
            let edits: Vec<&Edit> =
                source.edits.iter().filter(|edit| ids.contains(&edit.id)).collect();
            let Embedded { mut text, regions } = embed(&source.original, &edits);
            source.regions = regions;
            if *file == self.library {
                // At the end, or regions would move.
                text.push_str(&switch(self.mutants));
            }
            write_changed(&self.path.join(file), text.as_bytes())?;
        }
        Ok(())
    }

    /// The mutant that an error at this byte of a written file is laid to, and whether it is in the
    /// mutant's own text: else it is in what the narrowest one was wrapped around.
    pub fn at(&self, file: &str, byte: usize) -> Option<(usize, bool)> {
        let regions = &self.sources.get(file)?.regions;
        let narrowest = |own: bool| {
            let range = |region: &Region| {
                if own { region.own.clone() } else { region.whole.clone() }
            };
            let hits = regions.iter().filter(|region| range(region).contains(&byte));
            hits.min_by_key(|region| range(region).len()).map(|region| (region.id, own))
        };
        narrowest(true).or_else(|| narrowest(false))
    }
}

impl Source {
    fn read(root: &Path, file: &str, mutants: &[Mutant]) -> Result<Self> {
        let original = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
        let nodes = Nodes::read(&original).with_context(|| file.to_owned())?;
        let of_file = mutants.iter().enumerate().filter(|(_, mutant)| mutant.file == file);
        let edits = of_file.flat_map(|(id, mutant)| {
            let scrutinee = Edit::around_scrutinee(id, mutant, &original, &nodes);
            Edit::of(id, mutant, &original, &nodes).into_iter().chain(scrutinee)
        });
        let edits = edits.collect();
        Ok(Self { original, edits, regions: Vec::new() })
    }
}

/// The switch as a module, with room for so many mutants.
fn switch(mutants: usize) -> String {
    let body = SWITCH.replace("MUTANTS]", &format!("{mutants}]"));
    let lines = body.lines().filter(|line| !line.starts_with("//!"));
    let body = lines.collect::<Vec<_>>().join("\n");
    format!("\n#[doc(hidden)]\n#[allow(warnings)]\npub mod mutant_switch {{\n{body}\n}}\n")
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout)?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

/// Leaves alone what is there already, so that what is built of it stays.
fn write_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file in a folder")?)?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

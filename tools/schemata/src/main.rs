//! Mutation testing with mutant schemata (Untch, Offutt, Harrold 1993): every mutant of a package
//! is compiled into it at once, behind a switch, and each is judged by the tests that reach it.
//! What takes a build a mutant otherwise, and days, takes minutes.
//!
//! The mutants are cargo-mutants' own, by its names. Those that cannot stand beside the unmutated
//! code (in a `const fn`, where a function returns `impl Trait`) are listed as `alone`:
//! cargo-mutants tries them one by one.

mod build;
mod embed;
mod judge;
mod mutant;
mod syntax;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::build::Built;
use crate::judge::{Judge, Outcome};
use crate::mutant::Mutant;
use crate::tree::Tree;

const USAGE: &str = "\
Usage: quorate-schemata PACKAGE [OPTIONS]

  --out DIR         where the copy and the lists go (target/mutation)
  --file GLOB       mutants of these files alone; more than once
  --tests PACKAGE   judge by this package's tests too; more than once
  --slowest SECONDS leave out tests that take longer without a mutant (10)
  --only TEXT       mutants whose name contains it
  --again           only what no test caught the last time";

struct Options {
    package: String,
    out: PathBuf,
    files: Vec<String>,
    packages: Vec<String>,
    slowest: Duration,
    only: String,
    again: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let package = arguments.next().context(USAGE)?;
        let mut options = Self {
            packages: vec![package.clone()],
            package,
            out: PathBuf::from("target/mutation"),
            files: Vec::new(),
            slowest: Duration::from_secs(10),
            only: String::new(),
            again: false,
        };
        while let Some(name) = arguments.next() {
            if name == "--again" {
                options.again = true;
                continue;
            }
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--out" => options.out = PathBuf::from(value),
                "--file" => options.files.push(value),
                "--tests" => options.packages.push(value),
                "--slowest" => options.slowest = Duration::from_secs_f64(value.parse()?),
                "--only" => options.only = value,
                _ => bail!("{name}?\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let root = std::env::current_dir()?;
    let out = root.join(&options.out);
    let results = out.join(&options.package);
    fs::create_dir_all(&results)?;
    let mutants = mutant::list(&root, &options.package, &options.files)?;
    eprintln!("{}: {} mutants", options.package, mutants.len());
    let mut tree = Tree::copy(&root, out.join("tree"), &mutants)?;
    let earlier = Earlier::read(&results, &mutants);
    let built = build::build(&mut tree, &options.packages, &earlier.unviable)?;
    let judge = Judge::new(&built.programs, options.slowest, &results)?;
    let mut outcomes = earlier.outcomes;
    let is_chosen = |id: &usize| {
        mutants[*id].name.contains(&options.only)
            && !(options.again && outcomes.get(id).is_some_and(Outcome::is_caught))
    };
    let chosen = built.embedded.iter().copied().filter(is_chosen).collect();
    outcomes.retain(|id, _| built.embedded.contains(id));
    outcomes.extend(judge.judge(&chosen)?);
    report(&results, &mutants, &built, &outcomes)
}

/// What an earlier run found. A mutant's name has its line and column: in a file that changed it is
/// another one.
struct Earlier {
    outcomes: BTreeMap<usize, Outcome>,
    unviable: BTreeSet<usize>,
}

impl Earlier {
    fn read(results: &Path, mutants: &[Mutant]) -> Self {
        let ids = |list: &str| {
            let names = fs::read_to_string(results.join(list)).unwrap_or_default();
            let names: BTreeSet<&str> = names.lines().collect();
            let known =
                |(id, mutant): (usize, &Mutant)| names.contains(mutant.name.as_str()).then_some(id);
            mutants.iter().enumerate().filter_map(known).collect::<BTreeSet<usize>>()
        };
        let outcomes = Outcome::ALL.into_iter();
        let outcomes =
            outcomes.flat_map(|one| ids(one.list()).into_iter().map(move |id| (id, one)));
        Self { outcomes: outcomes.collect(), unviable: ids("unviable") }
    }
}

fn report(
    results: &Path,
    mutants: &[Mutant],
    built: &Built,
    outcomes: &BTreeMap<usize, Outcome>,
) -> Result<()> {
    let embedded = &built.embedded | &built.unviable;
    let alone = (0..mutants.len()).filter(|id| !embedded.contains(id)).collect();
    let of = |wanted: Outcome| {
        let those = outcomes.iter().filter(move |(_, outcome)| **outcome == wanted);
        (wanted.list(), those.map(|(id, _)| *id).collect::<BTreeSet<usize>>())
    };
    let others = [("alone", alone), ("unviable", built.unviable.clone())];
    for (name, ids) in Outcome::ALL.into_iter().map(of).chain(others) {
        println!("{name}: {}", ids.len());
        let lines: String = ids.iter().map(|id| format!("{}\n", mutants[*id].name)).collect();
        fs::write(results.join(name), lines)?;
    }
    Ok(())
}

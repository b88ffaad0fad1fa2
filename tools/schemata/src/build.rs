//! Builds of the copy, until no mutant in it keeps it from compiling.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::tree::Tree;

/// What was built, and what had to be left out.
pub struct Built {
    pub programs: Vec<Program>,
    pub embedded: BTreeSet<usize>,
    /// Mutants that are no Rust, or of the wrong type.
    pub unviable: BTreeSet<usize>,
    /// Mutants that would compile, but not beside the unmutated code: in a `const fn`.
    pub alone: BTreeSet<usize>,
}

/// A program of tests.
pub struct Program {
    pub path: PathBuf,
    /// Its package's folder, which it runs in.
    pub folder: PathBuf,
}

#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-message")]
    Diagnostic { message: Diagnostic },
    #[serde(rename = "compiler-artifact")]
    Artifact { executable: Option<PathBuf>, manifest_path: PathBuf, profile: Profile },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
    code: Option<Code>,
    spans: Vec<DiagnosticSpan>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: String,
    byte_start: usize,
    is_primary: bool,
}

/// Builds the tests of `packages` with as many of the mutants as compile.
///
/// # Errors
///
/// Fails when something does not compile that no mutant explains.
pub fn build(tree: &mut Tree, packages: &[String], known_bad: &BTreeSet<usize>) -> Result<Built> {
    let mut built = Built {
        programs: Vec::new(),
        embedded: &tree.embeddable() - known_bad,
        unviable: known_bad.clone(),
        alone: BTreeSet::new(),
    };
    for step in ["check", "test"] {
        loop {
            tree.write(&built.embedded)?;
            let messages = cargo(tree, step, packages)?;
            let errors = messages.iter().filter_map(|message| match message {
                Message::Diagnostic { message } if message.level == "error" => Some(message),
                _ => None,
            });
            let errors: Vec<&Diagnostic> = errors.collect();
            if errors.is_empty() {
                built.programs = programs(messages);
                break;
            }
            let before = built.embedded.len();
            for error in &errors {
                exclude(tree, error, &mut built);
            }
            eprintln!("{step}: {} mutants do not compile", before - built.embedded.len());
            if built.embedded.len() == before {
                let rendered: Vec<_> =
                    errors.iter().filter_map(|error| error.rendered.as_deref()).collect();
                bail!("no mutant explains this:\n{}", rendered.join("\n"));
            }
        }
    }
    ensure!(!built.programs.is_empty(), "no tests were built");
    Ok(built)
}

/// The compiler's code for a call in a `const fn` of what is none.
const CALL_IN_CONST: &str = "E0015";
/// That for a `match` that misses a case.
const ARM_MISSING: &str = "E0004";

fn exclude(tree: &Tree, error: &Diagnostic, built: &mut Built) {
    let code = error.code.as_ref().map_or("", |code| code.code.as_str());
    let at = |span: &DiagnosticSpan| tree.at(&span.file_name, span.byte_start);
    let (primary, others): (Vec<_>, Vec<_>) = error.spans.iter().partition(|span| span.is_primary);
    let mut blamed: Vec<_> = primary.into_iter().filter_map(at).collect();
    if blamed.is_empty() {
        blamed.extend(others.into_iter().filter_map(at));
    }
    for (id, own) in blamed {
        if built.embedded.remove(&id) {
            // What fails outside of a mutant's own text fails because it is embedded, if not for
            // want of an arm.
            let is_alone = code == CALL_IN_CONST || (!own && code != ARM_MISSING);
            if is_alone { &mut built.alone } else { &mut built.unviable }.insert(id);
        }
    }
}

fn cargo(tree: &Tree, step: &str, packages: &[String]) -> Result<Vec<Message>> {
    let extra: &[&str] = if step == "check" { &["--tests"] } else { &["--no-run"] };
    let output = Command::new("cargo")
        .args([step, "--quiet", "--all-features", "--message-format=json"])
        .args(extra)
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .current_dir(&tree.path)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo")?;
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

fn programs(messages: Vec<Message>) -> Vec<Program> {
    let program = |message| match message {
        Message::Artifact { executable: Some(path), manifest_path, profile } if profile.test => {
            Some(Program { path, folder: manifest_path.parent()?.to_owned() })
        }
        _ => None,
    };
    messages.into_iter().filter_map(program).collect()
}

//! Tests run on mutants: those alone that reach one, quickest first, until one fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::build::Program;

/// What became of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Caught,
    /// The tests ran many times as long as without it.
    TimedOut,
    Survived,
    /// No test reaches it.
    Unreached,
}

impl Outcome {
    pub const ALL: [Self; 4] = [Self::Caught, Self::TimedOut, Self::Survived, Self::Unreached];

    /// The name of the list of those mutants.
    pub fn list(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::TimedOut => "timed-out",
            Self::Survived => "survived",
            Self::Unreached => "unreached",
        }
    }

    pub fn is_caught(&self) -> bool {
        matches!(self, Self::Caught | Self::TimedOut)
    }
}

/// A test of a program.
struct Test<'a> {
    program: &'a Program,
    name: String,
    duration: Duration,
    reached: BTreeSet<usize>,
}

/// How a program of tests ended.
enum End {
    Passed,
    Failed,
    TimedOut,
}

/// How many times as long as without a mutant a test may take, and how long at least.
const SLOWER_MAX: u32 = 20;
const TIMEOUT_MIN: Duration = Duration::from_secs(10);
/// What one process runs at first, and how much more each next one may.
const FIRST_BATCH: Duration = Duration::from_millis(20);

/// Runs all tests on all mutants.
pub struct Judge<'a> {
    tests: Vec<Test<'a>>,
}

impl<'a> Judge<'a> {
    /// Runs each test without a mutant, to see how long it takes and what it reaches. Tests slower
    /// than `slowest` are left out.
    ///
    /// # Errors
    ///
    /// Those of processes and files.
    pub fn new(programs: &'a [Program], slowest: Duration, scratch: &Path) -> Result<Self> {
        let mut names = Vec::new();
        for program in programs {
            names.extend(list(program)?.into_iter().map(|name| (program, name)));
        }
        let tests = Mutex::new(Vec::new());
        in_parallel(names.len(), |worker, index| {
            let (program, name) = &names[index];
            let trace = scratch.join(format!("reached-{worker}"));
            if let Some(test) = observe(program, name, slowest, &trace)? {
                tests.lock().expect("no panic").push(test);
            }
            Ok(())
        })?;
        let mut tests = tests.into_inner().expect("no panic");
        tests.sort_by_key(|test| test.duration);
        Ok(Self { tests })
    }

    /// Judges these mutants.
    ///
    /// # Errors
    ///
    /// Those of processes.
    pub fn judge(&self, ids: &BTreeSet<usize>) -> Result<BTreeMap<usize, Outcome>> {
        let ids: Vec<usize> = ids.iter().copied().collect();
        let outcomes = Mutex::new(BTreeMap::new());
        in_parallel(ids.len(), |_, index| {
            let outcome = self.judge_one(ids[index])?;
            let mut outcomes = outcomes.lock().expect("no panic");
            outcomes.insert(ids[index], outcome);
            if outcomes.len() % 100 == 0 {
                let caught = outcomes.values().filter(|outcome| **outcome == Outcome::Caught);
                eprintln!("{} of {}: {} caught", outcomes.len(), ids.len(), caught.count());
            }
            Ok(())
        })?;
        Ok(outcomes.into_inner().expect("no panic"))
    }

    fn judge_one(&self, id: usize) -> Result<Outcome> {
        let reaching: Vec<&Test> =
            self.tests.iter().filter(|test| test.reached.contains(&id)).collect();
        if reaching.is_empty() {
            return Ok(Outcome::Unreached);
        }
        let mut budget = FIRST_BATCH;
        let mut rest = reaching.as_slice();
        while let [first, ..] = rest {
            let batch = batch(rest, budget);
            let names = rest[..batch].iter().map(|test| test.name.as_str());
            let expected: Duration = rest[..batch].iter().map(|test| test.duration).sum();
            let timeout = (expected * SLOWER_MAX).max(TIMEOUT_MIN);
            match run(first.program, names, ("QUORATE_MUTANT", id.to_string()), timeout)? {
                End::Passed => rest = &rest[batch..],
                End::Failed => return Ok(Outcome::Caught),
                End::TimedOut => return Ok(Outcome::TimedOut),
            }
            budget *= 2;
        }
        Ok(Outcome::Survived)
    }
}

/// How many of the first tests, all of one program, fit into `budget`: one at least.
fn batch(tests: &[&Test], budget: Duration) -> usize {
    let mut total = Duration::ZERO;
    let fitting = tests.iter().take_while(|test| {
        total += test.duration;
        std::ptr::eq(test.program, tests[0].program) && total <= budget
    });
    fitting.count().max(1)
}

fn list(program: &Program) -> Result<Vec<String>> {
    let output = Command::new(&program.path)
        .args(["--list", "--format", "terse"])
        .current_dir(&program.folder)
        .output()
        .with_context(|| program.path.display().to_string())?;
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn observe<'a>(
    program: &'a Program,
    name: &str,
    slowest: Duration,
    trace: &Path,
) -> Result<Option<Test<'a>>> {
    fs::write(trace, "")?;
    let started = Instant::now();
    let variable = ("QUORATE_MUTANTS_REACHED", trace.display().to_string());
    let end = run(program, [name], variable, slowest)?;
    let duration = started.elapsed();
    match end {
        End::Passed => {
            let lines = fs::read_to_string(trace)?;
            let reached = lines.lines().map(str::parse).collect::<Result<_, _>>()?;
            Ok(Some(Test { program, name: name.to_owned(), duration, reached }))
        }
        End::Failed => {
            eprintln!("left out, as it fails without a mutant: {name}");
            Ok(None)
        }
        End::TimedOut => {
            eprintln!("left out, as it takes too long: {name}");
            Ok(None)
        }
    }
}

fn run<'a>(
    program: &Program,
    names: impl IntoIterator<Item = &'a str>,
    variable: (&str, String),
    timeout: Duration,
) -> Result<End> {
    let child = Command::new(&program.path)
        .args(["--exact", "--test-threads", "1", "--quiet"])
        .args(names)
        .env(variable.0, variable.1)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .current_dir(&program.folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    wait(child, timeout)
}

fn wait(mut child: Child, timeout: Duration) -> Result<End> {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { End::Passed } else { End::Failed });
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(End::TimedOut);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Calls `work` with each index, one worker a processor.
fn in_parallel(count: usize, work: impl Fn(usize, usize) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (next, failures, work) = (&next, &failures, &work);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    if let Err(error) = work(worker, index) {
                        failures.lock().expect("no panic").push(error);
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    match failures.into_inner().expect("no panic").into_iter().next() {
        Some(error) => bail!(error),
        None => Ok(()),
    }
}

//! The switch that a package's copy under test is compiled with: which mutant is on, and which were
//! reached.

use std::fs::File;
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static ACTIVE: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("QUORATE_MUTANT").map_or(usize::MAX, |id| id.parse().expect("a number"))
});

static TRACE: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var("QUORATE_MUTANTS_REACHED").ok()?;
    Some(File::options().append(true).create(true).open(path).expect("a file to append to"))
});

static REACHED: [AtomicBool; MUTANTS] = [const { AtomicBool::new(false) }; MUTANTS];

pub fn on(id: usize) -> bool {
    if let Some(mut file) = TRACE.as_ref()
        && !REACHED[id].swap(true, Ordering::Relaxed)
    {
        file.write_all(format!("{id}\n").as_bytes()).expect("one line written");
    }
    *ACTIVE == id
}

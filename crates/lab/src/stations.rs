//! Processor time of validators' threads, by station, where the system tells.

use quorate_model::Station;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// One thread of a process.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    name: String,
    /// Processor time so far, in nanoseconds.
    nanos: u64,
}

/// Threads by their numbers, which no two threads of a system share.
pub(crate) type Threads = BTreeMap<u32, Thread>;

/// Processor time in microseconds, by station.
pub(crate) type Used = BTreeMap<Station, f64>;

/// All threads of a process.
///
/// # Errors
/// When there is no such process, or the system does not tell.
pub(crate) fn threads(process: u32) -> io::Result<Threads> {
    let mut threads = Threads::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let folder = entry?.path();
        let id = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        // One that has ended meanwhile is none.
        let (Some(id), Ok(name), Ok(used)) = (
            id,
            fs::read_to_string(folder.join("comm")),
            fs::read_to_string(folder.join("schedstat")),
        ) else {
            continue;
        };
        let nanos = used.split(' ').next().and_then(|nanos| nanos.parse().ok());
        let nanos = nanos.ok_or_else(|| io::Error::other("threads' times are not told here"))?;
        threads.insert(id, Thread { name: name.trim().to_owned(), nanos });
    }
    Ok(threads)
}

/// Processor time of threads since `before`; `station` maps the name of each to its station. Those
/// that are no station's are left out.
pub(crate) fn used<'a>(
    now: impl IntoIterator<Item = (&'a u32, &'a Thread)>,
    before: &Threads,
    station: fn(&str) -> Option<Station>,
) -> Used {
    let mut used = Used::new();
    for (id, thread) in now {
        let began = before.get(id).map_or(0, |thread| thread.nanos);
        let Some(station) = station(&thread.name) else { continue };
        *used.entry(station).or_insert(0.0) += thread.nanos.saturating_sub(began) as f64 / 1e3;
    }
    used
}

/// Station of a validator's thread, by its name.
pub(crate) fn of_validator(name: &str) -> Option<Station> {
    match name {
        "net" => Some(Station::Net),
        "check-votes" => Some(Station::Votes),
        "machine" => Some(Station::Machine),
        "log" => Some(Station::Log),
        "execute" => Some(Station::Execution),
        _ if name.starts_with("check-bulk") => Some(Station::Checks),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Thread, Threads, of_validator, used};
    use quorate_model::Station;

    #[test]
    fn what_is_used_is_added_up_by_station() {
        let thread = |name: &str, nanos| Thread { name: name.to_owned(), nanos };
        let before = Threads::from([(1, thread("net", 1_000)), (2, thread("log", 500))]);
        let now = Threads::from([
            (1, thread("net", 4_000)),
            (2, thread("log", 500)),
            (3, thread("net", 2_000)),
            (4, thread("snapshots", 9_000)),
        ]);
        let found = used(&now, &before, of_validator);
        assert_eq!(found.get(&Station::Net), Some(&5.0), "a thread that is new began at none");
        assert_eq!(found.get(&Station::Log), Some(&0.0));
        assert_eq!(found.len(), 2, "snapshots are no station");
    }
}

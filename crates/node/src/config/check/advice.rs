//! Values that are allowed and unwise.

use super::Notes;
use super::source::Source;
use crate::config::{LogLevel, NodeConfig};
use crate::descriptors::{Demand, Descriptors};
use quorate_storage::Durability;
use quorate_types::Committee;

/// A timeout below this gives honest leaders up, even on one machine.
const TIMEOUT_MS_LEAST: u64 = 100;

/// Bodies below this cost more to agree on than they carry.
const BATCH_BYTES_LEAST: usize = 16 * 1024;

/// Most bytes that one client may have under way.
const CLIENT_BYTES: u64 = 512 * 1024;

pub(super) fn give(
    source: &Source,
    config: &NodeConfig,
    committee: Option<&Committee>,
    notes: &mut Notes,
) {
    let mut warn = |section: &str, key: &str, problem: String, hint: &str| {
        notes.warning(source.at(section, key), problem, hint);
    };
    if config.durability == Durability::Os {
        let problem = "durability is \"os\": votes do not survive a power cut".to_owned();
        let hint = "\"fsync\" unless you measure; members that forget votes can split the chain";
        warn("", "durability", problem, hint);
    }
    if config.follow_only {
        let problem = "follow_only is true: this validator never votes".to_owned();
        warn("", "follow_only", problem, "it counts as one of the f faulty members meanwhile");
    }
    if config.emulation.is_some() {
        let problem = "a network is emulated: what this validator sends is held back".to_owned();
        let hint = "remove the section [emulation] outside a laboratory";
        warn("", "emulation", problem, hint);
    }
    if config.comparison {
        let problem =
            "comparison is true: settings for comparisons with papers are taken".to_owned();
        warn("", "comparison", problem, "remove it outside a laboratory");
    }
    if matches!(config.log.level, LogLevel::Debug | LogLevel::Trace) {
        let problem = "the log writes a line for every connection or message".to_owned();
        warn("log", "level", problem, "\"info\" in ordinary operation");
    }
    let cores = std::thread::available_parallelism().map_or(usize::MAX, std::num::NonZero::get);
    for (key, threads) in
        [("verify_threads", config.verify_threads), ("network_threads", config.network_threads)]
    {
        if threads > cores.max(2) {
            let problem = format!("{key} is {threads} on a machine with {cores} cores");
            warn("", key, problem, "more threads than cores gain nothing");
        }
    }
    replica(config, &mut warn);
    if let Some(committee) = committee {
        memory(config, committee, &mut warn);
        size(committee, &mut warn);
    }
}

/// Divides the descriptors of a process with this limit, and warns where they are fewer than the
/// configuration asks for.
pub(super) fn descriptors(
    source: &Source,
    demand: &Demand,
    limit: usize,
    notes: &mut Notes,
) -> Option<Descriptors> {
    let place = source.at("", "clients_max");
    match Descriptors::divide(limit, demand) {
        Ok(shares) => {
            if limit < demand.total() {
                let problem = format!(
                    "this process may have {limit} files and connections open, fewer than the {} \
                     that are asked for: {} clients are let in",
                    demand.total(),
                    shares.clients
                );
                let hint = "raise the limit (`ulimit -Hn`, LimitNOFILE= of systemd), or lower \
                            clients_max or retention_bytes";
                notes.warning(place, problem, hint);
            }
            Some(shares)
        }
        Err(error) => {
            notes.error(place, error.to_string(), "");
            None
        }
    }
}

fn replica(config: &NodeConfig, warn: &mut dyn FnMut(&str, &str, String, &str)) {
    let settings = &config.replica;
    if settings.timeout_ms < TIMEOUT_MS_LEAST {
        let problem =
            format!("timeout_ms is {}: honest leaders will time out", settings.timeout_ms);
        let hint = "at least eight round trips between the farthest members, and 100 in any case";
        warn("replica", "timeout_ms", problem, hint);
    }
    if settings.batch_bytes < BATCH_BYTES_LEAST {
        let problem =
            format!("batch_bytes is {}: bodies will be many and small", settings.batch_bytes);
        warn("replica", "batch_bytes", problem, "16384 or more; the default is 500000");
    }
    if settings.batch_delay_ms > settings.timeout_ms / 2 {
        let problem = format!(
            "batch_delay_ms is {}, more than half of timeout_ms: requests wait longer than views",
            settings.batch_delay_ms
        );
        warn("replica", "batch_delay_ms", problem, "some milliseconds are enough");
    }
    if settings.vote_wait_ms > settings.timeout_ms / 4 {
        let problem = format!(
            "vote_wait_ms is {}, more than a quarter of timeout_ms: a missing member slows every view",
            settings.vote_wait_ms
        );
        warn("replica", "vote_wait_ms", problem, "0, or a few milliseconds");
    }
}

/// The most that others can make this validator hold, against what the machine has.
fn memory(
    config: &NodeConfig,
    committee: &Committee,
    warn: &mut dyn FnMut(&str, &str, String, &str),
) {
    let bodies = config.replica.author_bytes_max as u64;
    let most = (config.clients_max as u64)
        .saturating_mul(CLIENT_BYTES)
        .saturating_add(config.replica.mempool_bytes_max as u64)
        .saturating_add(bodies.saturating_mul(committee.size() as u64));
    let Some(available) = memory_of_machine() else { return };
    if most > available {
        let mib = |bytes: u64| bytes >> 20;
        let problem = format!(
            "clients, requests and bodies may take {} MiB, this machine has {} MiB",
            mib(most),
            mib(available)
        );
        let hint = "lower clients_max, mempool_bytes_max or author_bytes_max";
        warn("replica", "author_bytes_max", problem, hint);
    }
}

/// Linux: `MemTotal` in `/proc/meminfo`, in kB.
fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Warns of committees whose size or weights tolerate little.
fn size(committee: &Committee, warn: &mut dyn FnMut(&str, &str, String, &str)) {
    if committee.size() < 4 {
        let problem = format!("a committee of {} tolerates no faulty member", committee.size());
        warn("", "committee", problem, "four members tolerate one, seven tolerate two");
    } else if let Some(warning) = committee.weights().warning() {
        warn("", "committee", warning.to_string(), "weights nearer to one another tolerate more");
    }
}

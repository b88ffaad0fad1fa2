//! One authority over many inputs that were spent before, and over none, in turn.

use super::place::{Place, read_keys};
use super::prepare::Prepared;
use super::{Alone, Cores, PayBenchConfig, PayBenchError, load_alone};
use quorate_node::NodeError;
use quorate_node::payments::{AuthorityConfig, SpentFill};
use quorate_types::ReplicaId;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Loads over each, in turn.
pub(super) const ROUNDS: usize = 4;

/// The authority that is measured.
const AUTHORITY: ReplicaId = ReplicaId(0);

/// Results of an authority over spent inputs, beside those of the same one over none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverSpent {
    /// Number of inputs spent before, in all shards together.
    pub inputs: u64,
    /// Seconds until the authority answered after its first start over them.
    pub start_s: f64,
    /// Resident memory after the last load, of all shards together, in MiB.
    pub resident_mb: u64,
    /// Results of the loads over them, in their order.
    pub spent: Vec<Alone>,
    /// Those of the loads over nothing, each beside the one over them.
    pub none: Vec<Alone>,
}

impl OverSpent {
    /// Median over the rounds of how an authority's processor time a payment over nothing is to
    /// that over spent inputs: the share of its throughput that it keeps.
    #[must_use]
    pub fn share(&self) -> f64 {
        let shares = self.none.iter().zip(&self.spent);
        median(shares.map(|(none, spent)| none.cpu_us / spent.cpu_us))
    }
}

/// Median of what loads came to.
#[must_use]
pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        0 if middle > 0 => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures.get(middle).copied().unwrap_or(0.0),
    }
}

/// Measures both, with another of `lots` in each round; on folders that no load was over before.
pub(super) fn measure_over_spent(
    config: &PayBenchConfig,
    place: &Place,
    lots: &[Prepared],
    cores: Option<&Cores>,
    say: &dyn Fn(&str),
) -> Result<OverSpent, PayBenchError> {
    let inputs = config.spent;
    say(&format!("filling {inputs} spent inputs"));
    let (none, spent) = (filled(place, 0)?, filled(place, inputs)?);
    let mut over =
        OverSpent { inputs, start_s: 0.0, resident_mb: 0, spent: Vec::new(), none: Vec::new() };
    for (round, lot) in (1..).zip(lots) {
        say(&format!("one authority over nothing, {round} of {}", lots.len()));
        let running = place.start_with(&none, &[AUTHORITY], cores)?;
        over.none.push(load_alone(config, place, (lot, cores), &running)?);
        drop(running);
        say(&format!("one authority over {inputs} spent inputs, {round} of {}", lots.len()));
        let began = Instant::now();
        let running = place.start_with(&spent, &[AUTHORITY], cores)?;
        if round == 1 {
            over.start_s = began.elapsed().as_secs_f64();
        }
        over.spent.push(load_alone(config, place, (lot, cores), &running)?);
        over.resident_mb = running.sum("rss_mb")? as u64;
    }
    Ok(over)
}

/// The authority's folder once more, with so many inputs spent in its shards together; returns its
/// configurations.
fn filled(place: &Place, inputs: u64) -> Result<Vec<Vec<PathBuf>>, PayBenchError> {
    let configs = place.configs(AUTHORITY);
    let folder = configs[0].parent().expect("a file in a folder");
    let name = format!("{}-over-{inputs}", folder.file_name().expect("named").display());
    let copy = folder.with_file_name(name);
    copy_files(folder, &copy)
        .map_err(|source| PayBenchError::System { what: "copy an authority's folder", source })?;
    let fill = SpentFill::new(inputs / configs.len() as u64);
    let mut copied = Vec::new();
    for config in configs {
        let path = copy.join(config.file_name().expect("a file"));
        let config = AuthorityConfig::load(&path).map_err(NodeError::from)?;
        fill.write_for(&config, &read_keys(config.key.clone())?)?;
        copied.push(path);
    }
    Ok(vec![copied])
}

/// Keys, configurations and marks, and no folder of what was locked.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 9.0].into_iter()), 3.0);
        assert_eq!(median([4.0, 1.0, 9.0, 2.0].into_iter()), 3.0);
    }
}

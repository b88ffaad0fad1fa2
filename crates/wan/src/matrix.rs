//! Measured round trips between regions.

use std::sync::OnceLock;

/// Round trips between 33 AWS regions; `data/README.md` says where they come from.
const AWS: &str = include_str!("../data/aws-rtt.csv");

/// Names suggested for one that is not known.
const SUGGESTIONS: usize = 3;

/// A round trip as it was measured, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// Half of all were quicker.
    pub p50_ms: f64,
    /// Nine in ten were quicker.
    pub p90_ms: f64,
}

/// A region of a [`Matrix`]: its place in the matrix's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region(usize);

/// Round trips between all regions, each pair in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    names: Vec<String>,
    /// Round trips by row of the origin.
    round_trips: Vec<RoundTrip>,
}

/// A name that no region has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no region '{name}'; near it are {}", near.join(", "))]
pub struct UnknownRegion {
    /// Name that was asked for.
    pub name: String,
    /// The names most like it, the nearest first.
    pub near: Vec<String>,
}

impl Matrix {
    /// The AWS regions.
    ///
    /// # Panics
    /// Never: a test parses the same constant.
    #[must_use]
    pub fn aws() -> &'static Self {
        static MATRIX: OnceLock<Matrix> = OnceLock::new();
        MATRIX.get_or_init(|| Self::parse(AWS).expect("a constant that parses"))
    }

    /// Reads lines of `from,to,p50_ms,p90_ms` under a heading, every pair of regions once. `None`
    /// when a line is not one or a pair is missing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rows = Vec::new();
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            let mut fields = line.split(',');
            let (from, to) = (fields.next()?, fields.next()?);
            let (p50_ms, p90_ms) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            rows.push((from, to, RoundTrip { p50_ms, p90_ms }));
        }
        let mut names: Vec<String> = rows.iter().map(|(from, ..)| (*from).to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &str| names.binary_search_by(|other| other.as_str().cmp(name)).ok();
        let mut cells = vec![None; names.len() * names.len()];
        for (from, to, round_trip) in rows {
            cells[place(from)? * names.len() + place(to)?] = Some(round_trip);
        }
        let round_trips = cells.into_iter().collect::<Option<_>>()?;
        Some(Self { names, round_trips })
    }

    /// The region with this name.
    ///
    /// # Errors
    /// When there is none; the error lists names like it.
    pub fn region(&self, name: &str) -> Result<Region, UnknownRegion> {
        let found = self.names.binary_search_by(|other| other.as_str().cmp(name));
        found.map(Region).map_err(|_| self.unknown(name))
    }

    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Name of a region, as AWS gives it.
    #[must_use]
    pub fn name(&self, region: Region) -> &str {
        &self.names[region.0]
    }

    /// The round trip from one region to another; within one region, between two of its hosts.
    #[must_use]
    pub fn round_trip(&self, from: Region, to: Region) -> RoundTrip {
        self.round_trips[from.0 * self.names.len() + to.0]
    }

    fn unknown(&self, name: &str) -> UnknownRegion {
        let mut near: Vec<&String> = self.names.iter().collect();
        near.sort_by_key(|other| edits(name, other));
        near.truncate(SUGGESTIONS);
        UnknownRegion { name: name.to_owned(), near: near.into_iter().cloned().collect() }
    }
}

/// Edit distance: letters to add, drop or replace to turn one name into the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;

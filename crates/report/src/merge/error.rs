//! Reasons for which results are not joined.

/// Reason for which results are not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to join.
    #[error("there is no result to merge")]
    Nothing,
    /// It was measured by something else.
    #[error(
        "the result of {started} is {what}: --merge joins results of `quorate load`, each of one load"
    )]
    NotALoad {
        /// Beginning of the measurement.
        started: String,
        /// Kind of measurement, in words.
        what: &'static str,
    },
    /// Its histogram is missing.
    #[error("the result of {0} has no histogram of its latencies: measure it again")]
    NoHistogram(String),
    /// Two loads had not the same in front of them.
    #[error("the {one} and the {other} are of different {what}: {here} and {there}")]
    Different {
        /// Part in which they differ.
        what: &'static str,
        /// Name of a load.
        one: String,
        /// Name of the other.
        other: String,
        /// What the first one has.
        here: String,
        /// What the other one has.
        there: String,
    },
    /// Two loads had one seed, or are one.
    #[error(
        "the {one} and the {other} have the same seed {seed}: they are one result, or offered the \
         same operations at the same moments. Give each load a --share or a --seed of its own"
    )]
    SameSeed {
        /// Name of a load.
        one: String,
        /// Name of the other.
        other: String,
        /// Seed that both of them have.
        seed: u64,
    },
    /// Two loads had one place among those at once.
    #[error(
        "the {one} and the {other} are of one share: what they offered together is not what was \
         divided. Leave one of them out, or measure again with a --share for each"
    )]
    SameShare {
        /// Name of a load.
        one: String,
        /// Name of the other.
        other: String,
    },
    /// Their windows have nothing in common.
    #[error(
        "the windows of the loads have no time in common: the {early} ended {apart_s} s before the \
         {late} began. Begin them together, with --start-at"
    )]
    Apart {
        /// Name of the load whose window ended first.
        early: String,
        /// Name of the load whose window began last.
        late: String,
        /// Seconds from that end to that beginning.
        apart_s: u64,
    },
}

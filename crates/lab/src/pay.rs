//! Payments under load: real authorities, prepared payments, and beside the rates what their
//! signatures cost.
//!
//! Two measurements for each scheme. **One authority on processors of its own**, one for each shard
//! or more, fed by the others as fast as it answers, is the figure per core: votes a second,
//! durable, over TLS, everything checked.
//! **All authorities**, sharing this machine with the load, at a rate of half of what they came to,
//! is the figure for latency: from when a payment was due until a quorum had voted for it.
//!
//! By itself stands [`measure_overload`]: all authorities at twice what they come to.

mod bound;
mod cores;
mod drive;
mod overload;
mod place;
mod prepare;
mod spent;

pub use bound::{Bound, bound_of};
pub use cores::{Cores, CoresError, pin};
pub use overload::{PayOverload, measure_overload};
pub use spent::{OverSpent, median};

use crate::load::Latencies;
use drive::{Load, drive};
use place::{Place, Running};
use prepare::{Prepared, prepare};
use quorate_payments::PayScheme;
use quorate_report::results::LatencyMs;
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use serde::{Deserialize, Serialize};
use spent::{ROUNDS, measure_over_spent};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct PayBenchConfig {
    /// Path of this program, which runs the authorities.
    pub executable: PathBuf,
    /// The schemes, in the table's order.
    pub schemes: Vec<PayScheme>,
    /// Number of authorities, one process or more each.
    pub authorities: u16,
    /// Number of shards of each authority.
    pub shards: u16,
    /// Processors of the authority that is measured alone; the load runs on the others. `None`: one
    /// for each shard, or all shared where there are too few.
    pub cores: Option<usize>,
    /// Length of each load.
    pub duration: Duration,
    /// Failure that a lock survives.
    pub durability: Durability,
    /// Inputs spent before, over which one authority is measured too; 0 for no such measurement.
    pub spent: u64,
}

/// Reason for which nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum PayBenchError {
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// Attempt that was refused.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The network's files were not written.
    #[error(transparent)]
    Testnet(#[from] quorate_node::TestnetError),
    /// Processors cannot be divided as asked.
    #[error(transparent)]
    Cores(#[from] CoresError),
    /// Keys or files of the network were refused.
    #[error(transparent)]
    Node(#[from] quorate_node::NodeError),
    /// An authority does not answer.
    #[error("authorities did not come up in {} s; the last one's log:\n{log}", .timeout.as_secs())]
    NotUp {
        /// Time that they had.
        timeout: Duration,
        /// Log of one of them.
        log: String,
    },
    /// No quorum voted for anything while the load ran.
    #[error("no payment had a quorum's votes while the load ran")]
    NothingPaid,
    /// An authority refused what was prepared.
    #[error("an authority refused a prepared payment: {0}")]
    Refused(String),
}

/// Results of one scheme.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PayReport {
    /// Scheme of the votes.
    pub scheme: PayScheme,
    /// Number of authorities measured.
    pub authorities: u16,
    /// Votes that a certificate takes.
    pub quorum: u64,
    /// Shards of each authority.
    pub shards: u16,
    /// Processors of the authority that was measured alone, and of its load; `None` where they
    /// shared all.
    #[serde(default)]
    pub cores: Option<Cores>,
    /// Bytes of an order with one input and two outputs.
    pub order_bytes: usize,
    /// Transactions a second that one authority (its shards together) voted for, on its processors.
    pub one_authority_tx_s: f64,
    /// Processor time that it took of the authority for each, in microseconds.
    pub cpu_us: f64,
    /// Bound by signatures and hashes alone, on one core.
    pub bound: Bound,
    /// Payments a second by all authorities on this machine, as many as were due.
    pub all_tx_s: f64,
    /// Payments a second that were due.
    pub all_due_tx_s: f64,
    /// Until a quorum had voted, at that rate.
    pub latency_ms: LatencyMs,
    /// One authority over many spent inputs, where that was asked for.
    pub over_spent: Option<OverSpent>,
}

impl PayReport {
    /// Transactions a second that the authority's processor time allows on one core.
    #[must_use]
    pub fn per_core_tx_s(&self) -> f64 {
        1e6 / self.cpu_us
    }

    /// Share of that bound that was reached.
    #[must_use]
    pub fn share_of_bound(&self) -> f64 {
        self.per_core_tx_s() / self.bound.tx_s()
    }
}

/// Measures one scheme; `say` hears what is being done.
///
/// # Errors
/// When the system refuses, or an authority is not what it should be.
pub fn measure(
    config: &PayBenchConfig,
    scheme: PayScheme,
    say: &dyn Fn(&str),
) -> Result<PayReport, PayBenchError> {
    let cores = Cores::plan(config.cores, config.shards)?;
    let place = Place::make(config, scheme)?;
    say("pricing signatures");
    let bound = bound_of(&place.network, &place.voting_secrets()?);
    let seconds = config.duration.as_secs_f64();
    // A little more than the bound allows, so that the load does not run dry.
    let busy = cores.as_ref().map_or(usize::from(config.shards), Cores::of_authority) as f64;
    let count = (bound.tx_s() * busy * (seconds + 1.0) * 1.1) as usize;
    say(&format!("preparing {count} payments"));
    let rounds = if config.spent > 0 { ROUNDS } else { 0 };
    let lots = prepare(&place, 2 + rounds, count)?;
    let ([saturating, paced], rest) = lots.split_first_chunk().expect("at least two lots");
    // Before anything is locked, so that what it is compared with is as new.
    let over_spent = match rounds {
        0 => None,
        _ => Some(measure_over_spent(config, &place, rest, cores.as_ref(), say)?),
    };
    say("one authority, on processors of its own");
    let alone = one_authority(config, &place, saturating, cores.as_ref())?;
    say("all authorities");
    let rate = all_rate(config, alone.rate / busy.min(processors()));
    let all = all_authorities(config, &place, paced, rate)?;
    Ok(PayReport {
        scheme,
        authorities: config.authorities,
        quorum: place.network.committee().quorum(),
        shards: config.shards,
        cores,
        order_bytes: saturating.order_bytes(),
        one_authority_tx_s: alone.rate,
        cpu_us: alone.cpu_us,
        bound,
        all_tx_s: all.0,
        all_due_tx_s: rate,
        latency_ms: all.1,
        over_spent,
    })
}

/// Results of one authority under a load, each shard on one processor.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Alone {
    /// Transactions a second that it voted for.
    pub rate: f64,
    /// Processor time that it took for each, in microseconds.
    pub cpu_us: f64,
}

fn one_authority(
    config: &PayBenchConfig,
    place: &Place,
    payments: &Prepared,
    cores: Option<&Cores>,
) -> Result<Alone, PayBenchError> {
    load_alone(config, place, (payments, cores), &place.start(&[ReplicaId(0)], cores)?)
}

/// Feeds the one authority that runs as fast as it answers.
fn load_alone(
    config: &PayBenchConfig,
    place: &Place,
    (payments, cores): (&Prepared, Option<&Cores>),
    running: &Running<'_>,
) -> Result<Alone, PayBenchError> {
    let before = running.cpu_seconds()?;
    let duration = config.duration;
    let load = Load { payments, rate: None, duration, needed: 1, cores, may_be_busy: false };
    let outcome = drive(place, &[ReplicaId(0)], &load)?;
    let after = running.cpu_seconds()?;
    let votes = outcome.finished as f64;
    Ok(Alone { rate: outcome.rate, cpu_us: (after - before) * 1e6 / votes.max(1.0) })
}

/// Half of what the machine's processors can do when every authority votes for everything.
fn all_rate(config: &PayBenchConfig, per_core: f64) -> f64 {
    // One processor's worth goes to the load.
    let all = per_core * (processors() - 1.0).max(0.5) / f64::from(config.authorities);
    (all / 2.0).max(10.0)
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

fn all_authorities(
    config: &PayBenchConfig,
    place: &Place,
    payments: &Prepared,
    rate: f64,
) -> Result<(f64, LatencyMs), PayBenchError> {
    let authorities: Vec<ReplicaId> = place.network.committee().members().collect();
    let _running = place.start(&authorities, None)?;
    let needed = usize::try_from(place.network.committee().quorum()).expect("a few");
    let load = Load {
        payments,
        rate: Some(rate),
        duration: config.duration,
        needed,
        cores: None,
        may_be_busy: false,
    };
    let outcome = drive(place, &authorities, &load)?;
    Ok((outcome.rate, outcome.latencies.summary()))
}

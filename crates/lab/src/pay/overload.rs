//! All authorities under twice the rate that they come to.

use super::drive::{Driven, Load, drive};
use super::place::{Place, Running};
use super::prepare::{Prepared, prepare};
use super::{PayBenchConfig, PayBenchError, bound_of, processors};
use quorate_payments::PayScheme;
use quorate_report::results::LatencyMs;
use quorate_types::ReplicaId;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Times the highest rate that are offered.
const TIMES: f64 = 2.0;

/// Interval at which memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Results of all authorities of a scheme, sharing this machine with the load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PayOverload {
    /// Scheme of the votes.
    pub scheme: PayScheme,
    /// Number of authorities, one process or more each.
    pub authorities: u16,
    /// Payments a second that a quorum votes for, with as many under way as a window takes.
    pub highest_tx_s: f64,
    /// Payments a second that were due then: twice as many.
    pub offered_tx_s: f64,
    /// Of those, payments a second that a quorum voted for.
    pub goodput_tx_s: f64,
    /// Answers of authorities that had too much to do.
    pub busy: u64,
    /// Until a quorum had voted, for the payments that it voted for.
    pub latency_ms: LatencyMs,
    /// Memory of all authorities together over that load, in MiB, one look in half a second.
    pub rss_mb: Vec<f64>,
}

impl PayOverload {
    /// Goodput over the highest rate.
    #[must_use]
    pub fn goodput_ratio(&self) -> f64 {
        self.goodput_tx_s / self.highest_tx_s
    }

    /// The most memory in the last quarter of the load over the most in its first; `None` where
    /// nothing was seen.
    #[must_use]
    pub fn rss_growth(&self) -> Option<f64> {
        let quarter = self.rss_mb.len().div_ceil(4);
        let peak = |looks: &[f64]| looks.iter().copied().reduce(f64::max);
        Some(peak(&self.rss_mb[self.rss_mb.len() - quarter..])? / peak(&self.rss_mb[..quarter])?)
    }
}

/// Measures the highest rate of all authorities, for half of the duration, and then twice of it.
/// `say` hears what is being done.
///
/// # Errors
/// When the system refuses, or an authority is not what it should be.
pub fn measure_overload(
    config: &PayBenchConfig,
    scheme: PayScheme,
    say: &dyn Fn(&str),
) -> Result<PayOverload, PayBenchError> {
    let place = Place::make(config, scheme)?;
    say("pricing signatures");
    let bound = bound_of(&place.network, &place.voting_secrets()?);
    // More than the processors allow, if the load took none of them.
    let all_tx_s = bound.tx_s() * processors() / f64::from(config.authorities);
    let count = (all_tx_s * config.duration.as_secs_f64()) as usize;
    say(&format!("preparing {} payments", 3 * count));
    let mut lots = prepare(&place, 3, count)?.into_iter();
    let first = lots.next().expect("three lots");
    let rest = Prepared(lots.flat_map(|lot| lot.0).collect());
    let authorities: Vec<ReplicaId> = place.network.committee().members().collect();
    let running = place.start(&authorities, None)?;
    let load = |payments, rate, duration, may_be_busy| Load {
        payments,
        rate,
        duration,
        needed: usize::try_from(place.network.committee().quorum()).expect("a few"),
        cores: None,
        may_be_busy,
    };
    say("all authorities, as fast as they vote");
    let highest = drive(&place, &authorities, &load(&first, None, config.duration / 2, false))?;
    if highest.rate <= 0.0 {
        return Err(PayBenchError::NothingPaid);
    }
    let offered_tx_s = TIMES * highest.rate;
    say(&format!("all authorities, under {offered_tx_s:.0} payments a second"));
    let load = load(&rest, Some(offered_tx_s), config.duration, true);
    let (driven, mut rss_mb) = watched(&running, || drive(&place, &authorities, &load))?;
    // What is still waited for after the load is no part of it.
    rss_mb.truncate((config.duration.as_secs_f64() / LOOK_EVERY.as_secs_f64()) as usize);
    Ok(PayOverload {
        scheme,
        authorities: config.authorities,
        highest_tx_s: highest.rate,
        offered_tx_s,
        goodput_tx_s: driven.rate,
        busy: driven.busy,
        latency_ms: driven.latencies.summary(),
        rss_mb,
    })
}

/// Does something, and looks at the memory of all that run meanwhile.
fn watched(
    running: &Running<'_>,
    work: impl FnOnce() -> Result<Driven, PayBenchError>,
) -> Result<(Driven, Vec<f64>), PayBenchError> {
    let ended = AtomicBool::new(false);
    let look = || {
        let mut looks = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            looks.extend(running.sum("rss_mb").ok());
            thread::sleep(LOOK_EVERY);
        }
        looks
    };
    thread::scope(|scope| {
        let looks = scope.spawn(look);
        let driven = work();
        ended.store(true, Ordering::Relaxed);
        Ok((driven?, looks.join().expect("looking does not panic")))
    })
}

#[cfg(test)]
mod tests {
    use super::PayOverload;
    use quorate_payments::PayScheme;
    use quorate_report::results::LatencyMs;

    #[test]
    fn memory_that_grows_shows() {
        let of = |rss_mb: &[f64]| {
            let overload = PayOverload {
                scheme: PayScheme::Merkle,
                authorities: 4,
                highest_tx_s: 1_000.0,
                offered_tx_s: 2_000.0,
                goodput_tx_s: 900.0,
                busy: 0,
                latency_ms: LatencyMs::default(),
                rss_mb: rss_mb.to_vec(),
            };
            assert!((overload.goodput_ratio() - 0.9).abs() < 1e-9);
            overload.rss_growth()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[100.0]), Some(1.0));
        assert_eq!(of(&[50.0, 100.0, 900.0, 900.0, 900.0, 900.0, 150.0, 120.0]), Some(1.5));
    }
}

//! Committees in virtual time: [`quorate_model`], one scene a point.

use super::{Measured, RunError, Runner, Signatures};
use crate::ServiceKind;
use crate::experiment::{Kept, Setup, metrics};
use crate::load::{Latencies, SendTo, Shape};
use quorate_engine::ProtocolKind;
use quorate_model::{
    Arrivals, Estimate, HostProfile, LatencySample, Load, Percentiles, Prices, Profile, Receivers,
    Scene, SceneError, Work,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wall seconds for each virtual second, and for each validator and operation in it, of an
/// optimised build on one core. Not measured: the speed that the simulator is meant to have (half a
/// virtual second a second at n = 80 and 80,000 operations a second). Only estimates before a run
/// stand on it; the time left during one goes by what points really took.
const WALL_S: (f64, f64) = (0.02, 3.0e-7);
/// Likewise for each message between validators, of closed loops, which have no rate; and about how
/// many heights they decide a second.
const MESSAGE_S: f64 = 3.0e-6;
const HEIGHTS_PER_S: f64 = 18.0;
/// Factor by which a build without optimisation is taken to be slower; not measured either.
const UNOPTIMISED: f64 = 5.0;

/// Windows that may follow a search's points, which may be given up: a search asks whether a rate
/// is kept up with, and a point that is still in doubt then is not.
const SEARCH_WINDOWS_MORE: u32 = 1;

/// Runs scenes in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Simulated;

impl Runner for Simulated {
    /// Virtual time does not pass quicker for those that are alone.
    fn is_parallel(&self) -> bool {
        true
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        let (once, each) = WALL_S;
        let members = f64::from(setup.validators);
        let work = match setup.load {
            Shape::Closed => MESSAGE_S * HEIGHTS_PER_S * messages(setup.settings.protocol, members),
            Shape::Fixed | Shape::Poisson => each * members * setup.rate as f64,
        };
        let slower = if cfg!(debug_assertions) { UNOPTIMISED } else { 1.0 };
        setup.load_span().as_secs_f64() * (once + work) * slower
    }

    /// A scene under way cannot be interrupted: the points under way are finished first.
    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let scene = scene(setup).map_err(RunError::Refused)?;
        match quorate_model::run(&scene, &mut |_| {}) {
            Ok(outcome) => Ok(measured(&outcome, setup)),
            Err(broken @ SceneError::Broken(_)) => Err(RunError::Failed(broken.to_string())),
            Err(error) => Err(RunError::Refused(error.to_string())),
        }
    }
}

/// About how many messages so many members send for each height.
fn messages(protocol: ProtocolKind, members: f64) -> f64 {
    match protocol {
        ProtocolKind::Pbft => 2.0 * members * members,
        _ => 50.0 * members,
    }
}

/// The scene that a point describes.
///
/// # Errors
/// When its prices or its network are refused.
pub fn scene(setup: &Setup) -> Result<Scene, String> {
    let topology = setup.topology().map_err(|error| error.to_string())?;
    let crash = Duration::from_secs_f64(setup.warmup_s as f64 + setup.crash_at_s);
    let limit = (setup.give_up_ms > 0).then_some(Duration::from_millis(setup.give_up_ms));
    let limited = |mbit: u64| (mbit > 0).then_some(mbit as f64);
    let scene = Scene {
        seed: setup.seed,
        redundancy: u64::from(setup.redundancy),
        scheme: setup.scheme,
        settings: setup.settings.clone(),
        durability: setup.durability,
        host: HostProfile {
            cores: u32::from(setup.cores),
            uplink_mbps: limited(setup.uplink_mbit),
            downlink_mbps: limited(setup.downlink_mbit),
            validators_per_host: usize::from(setup.validators_per_host),
        },
        real_signatures: setup.real_signatures,
        load: Load {
            rate: setup.rate as f64,
            tx_bytes: setup.tx_bytes,
            arrivals: match setup.load {
                Shape::Poisson => Arrivals::Poisson,
                Shape::Fixed => Arrivals::Fixed,
                Shape::Closed => Arrivals::Closed(
                    NonZeroUsize::new(usize::from(setup.request_operations))
                        .ok_or("'request_operations' is 0")?,
                ),
            },
            bundle_delay: Duration::from_millis(setup.bundle_delay_ms),
            sessions: NonZeroUsize::new(setup.sessions as usize),
            receivers: receivers(setup.send_to),
            work: match setup.service {
                ServiceKind::Kv => Work::Kv,
                ServiceKind::Evm => Work::Evm,
                ServiceKind::Log | ServiceKind::Noop => Work::Noop,
                ServiceKind::Payments => return Err("releases of coins are not measured".into()),
            },
        },
        take_up: Duration::from_micros(setup.take_up_us),
        warmup: Duration::from_secs(setup.warmup_s),
        duration: Duration::from_secs(setup.duration_s),
        windows_more: match limit {
            _ if setup.fixed_window => 0,
            Some(_) => SEARCH_WINDOWS_MORE,
            None => Scene::WINDOWS_MORE,
        },
        ramp: Duration::from_millis(setup.ramp_ms),
        give_up: limit,
        warm_connections: setup.warm_connections,
        loss: setup.packet_loss_ppm as f64 / 1e6,
        leader_crashes: setup.leader_crashes.then_some(crash),
        crashed: setup.victims().map(|victim| (victim, crash)).collect(),
        ..Scene::new(topology, setup.rate as f64, prices(setup)?)
    };
    Ok(if setup.profile == Profile::Quorate { scene } else { scene.as_reference() })
}

fn receivers(send_to: SendTo) -> Receivers {
    match send_to {
        SendTo::One => Receivers::One,
        SendTo::All => Receivers::All,
        SendTo::Leader => Receivers::Leader,
    }
}

/// The price list, for cores as quick as the setup's.
fn prices(setup: &Setup) -> Result<Prices, String> {
    let list = Prices::find(&setup.prices).map_err(|error| error.to_string())?;
    Ok(if setup.core_speed == 1.0 { list } else { list.slowed(1.0 / setup.core_speed) })
}

/// Latencies as validators see them, and their clients.
fn validators_latencies(outcome: &Estimate) -> BTreeMap<String, f64> {
    let mut numbers = BTreeMap::new();
    let latencies = [
        ("one", &outcome.one_validator),
        ("first", &outcome.first_validator),
        ("slowest", &outcome.slowest_validator),
        ("client", &outcome.acknowledged),
    ];
    for (whose, latency) in latencies {
        // Nothing counted is no latency of zero.
        let Percentiles { p50_ms, p90_ms, p99_ms, mean_ms, operations: 1.. } = *latency else {
            continue;
        };
        for (name, number) in [("mean", mean_ms), ("p50", p50_ms), ("p90", p90_ms), ("p99", p99_ms)]
        {
            numbers.insert(format!("latency_{whose}_{name}_ms"), number);
        }
    }
    numbers
}

fn measured(outcome: &Estimate, setup: &Setup) -> Measured {
    let mut numbers = validators_latencies(outcome);
    let mut add = |name: &str, number: f64| numbers.insert(name.to_owned(), number);
    let all = f64::from(setup.validators);
    let cores: f64 = outcome.utilisation.iter().map(|station| station.mean).sum();
    if setup.load != Shape::Closed {
        add("offered_tps", setup.rate as f64);
    }
    add("committed_tps", outcome.committed_tps);
    add("views", outcome.views as f64);
    add("view_changes", outcome.timeouts as f64);
    add("certificate_bytes", outcome.certificate_bytes as f64);
    add("cpu_cores", cores * all);
    add("busiest_share", 100.0 * outcome.cores_busiest);
    add("bottleneck_share", 100.0 * outcome.bottleneck.share);
    add("uplink_share", 100.0 * outcome.uplink_busiest);
    add("bytes_per_validator_s", outcome.bytes_sent_per_second / 1e6);
    let latencies = answered(outcome);
    let window_s = outcome.window_s.1 - outcome.window_s.0;
    add("window_s", window_s);
    // The reference implementation answers nobody.
    if !outcome.answered.is_empty() {
        add("goodput_tps", latencies.goodput_tps());
    }
    if let Some(change) = outcome.view_change {
        add("given_up_ms", change.given_up_ms);
        add("last_report_ms", change.last_report_ms);
        for (name, ms) in [("new_view_ms", change.new_view_ms), ("resumed_ms", change.resumed_ms)] {
            ms.map(|ms| add(name, ms));
        }
        add("report_bytes", change.report_bytes as f64);
    }
    let slots = outcome.fast_decisions + outcome.slow_decisions;
    if slots > 0 {
        add("fast_share", 100.0 * outcome.fast_decisions as f64 / slots as f64);
    }
    if outcome.heights > 0 {
        let heights_per_s = outcome.heights as f64 / window_s;
        add("messages_per_height", outcome.messages_per_second / heights_per_s);
        add("bytes_per_height", outcome.bytes_sent_per_second * all / heights_per_s);
        add("heights_per_s", heights_per_s);
    }
    if outcome.committed_tps > 0.0 {
        for station in &outcome.utilisation {
            let us = 1e6 * station.mean / outcome.committed_tps;
            add(&metrics::of_station(&station.station), us);
        }
        add("bytes_per_tx", outcome.bytes_sent_per_second * all / outcome.committed_tps);
    }
    let signatures = match outcome.signatures {
        quorate_model::Signatures::Real => Signatures::Real,
        quorate_model::Signatures::Priced => Signatures::Priced,
    };
    let mut details = details(outcome);
    if setup.keep_latencies {
        let kept = Kept::new(latencies.over_time(), &latencies.distribution_us());
        details[Kept::NAME] = json!(kept);
    }
    Measured { numbers, signatures, details }
}

/// Latencies of answered operations, counted as of real committees. There is no wait for late
/// answers.
fn answered(outcome: &Estimate) -> Latencies {
    let (begins, ends) = outcome.window_s;
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    let mut latencies = Latencies::new(us(begins)..us(ends));
    for LatencySample { due_us, latency_us, count } in &outcome.answered {
        latencies.add(*due_us, *latency_us, *count);
    }
    latencies
}

fn details(outcome: &Estimate) -> Value {
    json!({
        "trace_hash": outcome.trace_hash,
        "virtual_s": outcome.virtual_s,
        "events": outcome.events,
        "offered": outcome.offered,
        "refused": outcome.refused,
        "dropped": outcome.dropped,
        "heights": outcome.heights,
        metrics::BOTTLENECK: outcome.bottleneck.resource.to_string(),
        metrics::DOUBTS: outcome.doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "utilisation": outcome.utilisation,
    })
}

#[cfg(test)]
mod tests {
    use super::scene;
    use crate::experiment::{RunnerKind, Setup};
    use std::time::Duration;

    #[test]
    fn windows_follow_a_fixed_one_by_nobodys_doubt() {
        let more = |setup: &Setup| scene(setup).unwrap().windows_more;
        let searched = Setup { give_up_ms: 1_000, ..Setup::default() };
        assert_eq!((more(&Setup::default()), more(&searched)), (2, 1));
        assert_eq!(more(&Setup { fixed_window: true, ..searched }), 0);
    }

    #[test]
    fn a_slower_core_computes_dearer_and_its_disk_is_the_same() {
        let quick = scene(&Setup::default()).unwrap().prices;
        let slow = scene(&Setup { core_speed: 0.5, ..Setup::default() }).unwrap().prices;
        assert_eq!(slow.bls.pairing_us, 2.0 * quick.bls.pairing_us);
        assert_eq!(slow.net.send_byte_ns, 2.0 * quick.net.send_byte_ns);
        assert_eq!(slow.log.group_us, 2.0 * quick.log.group_us);
        assert_eq!(slow.log.sync_us, quick.log.sync_us);
        assert_eq!(slow.log.disk_mb_s, quick.log.disk_mb_s);
    }

    #[test]
    fn crashes_are_those_of_the_last_members() {
        let setup = Setup { validators: 7, crashed: 2, crash_at_s: 1.5, ..Setup::default() };
        let scene = scene(&setup).unwrap();
        let crashed: Vec<_> = scene.crashed.iter().map(|(id, at)| (id.0, at.as_millis())).collect();
        assert_eq!(crashed, [(6, 3_500), (5, 3_500)]);
        let apart = Setup { crashed_apart: true, ..setup };
        let victims: Vec<u16> = apart.victims().map(|victim| victim.0).collect();
        assert_eq!(victims, [6, 3]);
        let before = Setup { validators: 7, crashed: 1, crash_at_s: -2.0, ..Setup::default() };
        assert_eq!(before.validate(), Ok(()), "before what counts begins");
        assert_eq!(self::scene(&before).unwrap().crashed[0].1, Duration::ZERO);
        let too_early = Setup { crash_at_s: -2.1, ..before.clone() };
        assert!(too_early.validate().unwrap_err().contains("'crash_at_s' must be -2 to"));
        let real = Setup { runner: RunnerKind::Processes, ..before };
        assert!(real.validate().unwrap_err().contains("'crash_at_s' must be 0 to"));
    }

    #[test]
    fn unknown_prices_are_refused_by_name() {
        let setup = Setup { prices: "abacus".to_owned(), ..Setup::default() };
        let said = scene(&setup).unwrap_err();
        assert!(said.starts_with("there is no price list 'abacus'"), "{said}");
    }
}

//! The machine's and the session's threads, timed while they carry small committees in virtual time.

use super::figures;
use quorate_sim::priced::{
    ClientPrices, Given, MachinePrices, Observed, Prices, Scene, SceneError, observe,
};
use quorate_wan::Topology;
use std::time::Duration;

/// Members of the committees.
const MEMBERS: usize = 16;

pub(super) fn measure(hash_byte_ns: f64) -> Result<(MachinePrices, ClientPrices), SceneError> {
    let mut observed = Observed::default();
    // Bodies of a few large requests, then of many small ones.
    for (rate, bundle_ms) in [(8_000.0, 40), (8_000.0, 5)] {
        observed.join(observe(&scene(rate, bundle_ms)?)?);
    }
    let price = |given| observed.price(given, hash_byte_ns).unwrap_or_default();
    let base = |given| figures(price(given).0);
    let (stored, body_request) = price(Given::Stored);
    let (executed, reply) = price(Given::Executed);
    let (submitted, operation) = price(Given::Submitted);
    let (replied, completed) = price(Given::Replied);
    let other_us = base(Given::Other);
    let machine = MachinePrices {
        request_us: base(Given::Request),
        body_us: base(Given::Body),
        stored_us: figures(stored),
        body_request_us: figures(body_request),
        proposal_us: base(Given::Proposal),
        vote_us: base(Given::Vote),
        timeout_us: price(Given::Timeout).0.max(base(Given::Proposal)),
        combined_us: base(Given::Combined),
        executed_us: figures(executed),
        reply_us: figures(reply),
        other_us,
        send_us: OUTBOX_US,
    };
    let client = ClientPrices {
        operation_us: figures(operation + completed),
        request_us: figures(submitted),
        reply_us: figures(replied),
    };
    Ok((machine, client))
}

/// Putting a frame into one peer's queue: a lock, and waking whoever writes it. Not measured alone:
/// in a validator it is hidden among the threads that it wakes.
const OUTBOX_US: f64 = 0.15;

fn scene(rate: f64, bundle_ms: u64) -> Result<Scene, SceneError> {
    let prices = Prices::shipped("this-machine").expect("a list that comes along");
    let topology = Topology::uniform(MEMBERS, Duration::from_millis(5));
    let mut scene = Scene::new(topology, rate, prices);
    scene.load.bundle_delay = Duration::from_millis(bundle_ms);
    scene.settings.batch_delay_ms = 20;
    scene.warmup = Duration::from_millis(500);
    scene.duration = Duration::from_secs(2);
    Ok(scene)
}

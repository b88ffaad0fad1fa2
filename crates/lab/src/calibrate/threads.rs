//! The machine's and the session's threads, timed while they carry small committees in virtual
//! time.

use super::figures;
use quorate_model::{
    ClientPrices, MachineInput, MachinePrices, Prices, Scene, SceneError, ServiceTimes,
    measure_service_times,
};
use quorate_wan::Topology;
use std::time::Duration;

/// Members of the committees.
const MEMBERS: usize = 16;

pub(super) fn measure(hash_byte_ns: f64) -> Result<(MachinePrices, ClientPrices), SceneError> {
    let mut observed = ServiceTimes::default();
    // Bodies of a few large requests, then of many small ones.
    for (rate, bundle_ms) in [(8_000.0, 40), (8_000.0, 5)] {
        observed.join(measure_service_times(&scene(rate, bundle_ms)?)?);
    }
    let price = |given| observed.price(given, hash_byte_ns).unwrap_or_default();
    let base = |given| figures(price(given).0);
    let (stored, body_request) = price(MachineInput::Stored);
    let (executed, reply) = price(MachineInput::Executed);
    let (submitted, operation) = price(MachineInput::Submitted);
    let (replied, completed) = price(MachineInput::Replied);
    let other_us = base(MachineInput::Other);
    let machine = MachinePrices {
        request_us: base(MachineInput::Request),
        body_us: base(MachineInput::Body),
        stored_us: figures(stored),
        body_request_us: figures(body_request),
        proposal_us: base(MachineInput::Proposal),
        vote_us: base(MachineInput::Vote),
        timeout_us: price(MachineInput::Timeout).0.max(base(MachineInput::Proposal)),
        combined_us: base(MachineInput::Combined),
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

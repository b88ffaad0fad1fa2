//! A performance model: throughput, latency and bottlenecks of a committee on machines and regions
//! that are not here, before anybody rents them.
//!
//! The replicas and sessions are the real ones, in virtual time, where every signature, hash and
//! byte costs what a price list says, on stations that share the cores of hosts. A [`Scene`] is
//! everything that a run depends on; [`run`] gives its [`Estimate`]. `quorate estimate` is its
//! command, `quorate calibrate` makes price lists. The swarm (`quorate-sim`) looks for what breaks;
//! this one for how fast it is.
//!
//! ```text
//!  client ─▶ net ─▶ links ─▶ net ─▶ votes | checks ─▶ machine ─▶ net …
//!                                        ▲   combine ──┤  ▲ ├─▶ log ─▶ disk ─┐
//!                                        └─────────────┘  │ └─▶ execution ─┐ │
//!                                                         └────────────────┴─┘
//! ```
//!
//! Each validator has the stations of a real one (`quorate-node`'s threads), each a queue with one
//! or two servers: `net` (encryption, sockets), `votes` (checks of what is urgent, combining),
//! `checks` (bodies and requests), `machine`, `execution`, `log`; and beside it a `client`. Jobs in
//! service share the host's cores (`processor`); what leaves and comes in shares its link
//! (`links`); groups of the log share its disk. A job is carried out when its service begins, and
//! what comes of it leaves when its service ends.
//!
//! What a job costs is counted, not assumed: `quorate-crypto` counts the operations that the job
//! really called, and the list prices them ([`Prices::of`]). Where signatures are not real they are
//! stand-ins with the same sizes and the same counts. What many receivers would compute alike
//! (parsing and checking one body, executing one height) is charged to each and computed once.
//!
//! # Accuracy
//!
//! `docs/results/validation.md` holds it against real committees and published runs; it is fitted
//! to none. Without a network between validators, throughput and latency of small committees come
//! within some 15 %; at the edge of what processors take, they may be off by a factor. It is to be
//! read for ratios and for what is the bound, not for the last twenty per cent.
//!
//! # Not modelled
//!
//! What `links` and `profile` say is left out, connections being made, the operating system's
//! scheduler, memory, snapshots' contents, retention. A crashed validator does not come back.

mod acknowledgements;
mod bottleneck;
mod clients;
mod doubt;
mod execution;
mod frames;
mod gauges;
mod hosts;
mod in_flight;
mod inbound;
mod jobs;
mod latency;
mod links;
mod nodes;
mod outbox;
mod outcome;
mod prices;
mod processor;
mod profile;
mod queue;
mod scene;
mod service_times;
mod simulation;
mod station;
mod time;
mod validity;
mod view_change;
mod workload;

pub use bottleneck::{Bottleneck, Resource};
pub use doubt::Doubt;
pub use outcome::{
    Estimate, LatencySample, PerSecond, Percentiles, Progress, Signatures, Utilisation, ViewChange,
};
pub use prices::{
    BlsPrices, ClientPrices, Ed25519Prices, ExecutionPrices, HashPrices, LogPrices, MachinePrices,
    NetPrices, PerStation, Prices, PricesError, Secp256k1Prices,
};
pub use profile::Profile;
pub use scene::{HostProfile, Partition, Scene, SceneError};
pub use service_times::{MachineInput, ServiceTimes};
pub use station::Station;
pub use workload::{Arrivals, Load, Receivers, Work};

use simulation::Simulation;

/// Runs a scene to its end.
///
/// # Errors
/// The scene cannot be run, or the run broke a property.
pub fn run(scene: &Scene, progress: &mut dyn FnMut(Progress)) -> Result<Estimate, SceneError> {
    scene.check()?;
    let (estimate, _) = Simulation::new(scene).run(scene, progress)?;
    Ok(estimate)
}

/// Runs a scene and measures how long its machines really take on this machine.
///
/// # Errors
/// As [`run`].
pub fn measure_service_times(scene: &Scene) -> Result<ServiceTimes, SceneError> {
    scene.check()?;
    let (_, service_times) = Simulation::new(scene).with_service_times().run(scene, &mut |_| {})?;
    Ok(service_times)
}

#[cfg(test)]
mod tests;

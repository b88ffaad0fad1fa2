//! `quorate estimate`: what a committee would do on given machines and regions, by a price list.

mod table;

use super::bench::TIMEOUT_MS;
use super::load_options::BUNDLE_DELAY_MS;
use super::wan::Wan;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_consensus::ProposalKey;
use quorate_crypto::{KeyCache, Policy, SchemeKind};
use quorate_engine::{Availability, ProtocolKind, Settings};
use quorate_lab::bench;
use quorate_lab::load::sessions_for;
use quorate_model::{Arrivals, HostProfile, Prices, Receivers, Scene, SceneError, Work};
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use quorate_wan::{Emulation, Topology};
use serde_json::json;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Estimate a committee's throughput and latency on machines and regions that are not here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate estimate -n 20 --rate 40000 --wan us-east-1,eu-central-1\n  \
    quorate estimate -n 80 --scheme bls --prices t3.medium --wan us-east-1,eu-central-1\n  \
    quorate estimate -n 4 --cores 2 --local       everything on one machine, as `quorate bench`\n  \
    quorate calibrate -o here.toml && quorate estimate --prices here.toml\n\n\
    The real replicas run in virtual time; signatures, hashes, bytes and writes cost what the price\n\
    list says. The same command gives the same figures.")]
pub(crate) struct Options {
    /// Number of members in the committee
    #[arg(short = 'n', long, default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    validators: u16,
    /// Number of redundant members, beyond those that faults ask for: c of n = 3f + 2c + 1
    #[arg(short = 'c', long, default_value_t = 0)]
    redundancy: u64,
    /// Protocol that orders: jolteon, hotstuff (chained), hotstuff-basic, pbft, linear-pbft,
    /// linear-pbft-fast or sbft
    #[arg(long, default_value_t)]
    protocol: ProtocolKind,
    /// Voting scheme: ed25519, bls, or bls-threshold where the protocol takes it
    #[arg(long, default_value = "ed25519", value_parser = super::scheme)]
    scheme: SchemeKind,
    /// Operations offered per second, by one client beside each validator
    #[arg(long, default_value_t = 20_000.0)]
    rate: f64,
    /// Bytes of one operation
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    tx_bytes: usize,
    /// Offer operations at random moments instead of evenly
    #[arg(long)]
    poisson: bool,
    /// Sessions of all clients together [default: as many as the rate needs]
    #[arg(long, value_name = "COUNT")]
    sessions: Option<NonZeroUsize>,
    /// Number of clients in a closed loop, instead of a rate: each sends a request when its last
    /// one is answered
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["rate", "poisson", "sessions", "bundle_delay"])]
    clients: Option<NonZeroUsize>,
    /// Operations of a request in a closed loop
    #[arg(long, default_value = "1", value_name = "COUNT", requires = "clients")]
    request_operations: NonZeroUsize,
    /// Send requests to the leader of the first view instead of the validator beside the client
    #[arg(long)]
    to_leader: bool,
    /// Service that executes operations at its price: evm (transactions), kv (puts) or noop
    #[arg(long, default_value = "noop", value_parser = work)]
    service: Work,
    /// Time that a client waits for operations to share a request, in milliseconds [default: 50; 20
    /// with --local]
    #[arg(long, value_name = "MS")]
    bundle_delay: Option<u64>,
    /// Prices of operations: a list that comes with this program ('list' names them), or a file
    #[arg(long, default_value = "this-machine", value_name = "NAME|FILE")]
    prices: String,
    /// Cores of each host [default: as many as the price list's machine has]
    #[arg(long)]
    cores: Option<u32>,
    /// Bandwidth of each host in each direction, in megabits a second
    #[arg(long, default_value_t = 5_000.0)]
    mbps: f64,
    /// Validators that share a host, each with its client
    #[arg(long, default_value_t = 1, conflicts_with = "local", value_name = "COUNT")]
    per_host: u16,
    /// Span within which what reaches a validator is handled together, in microseconds: less exact,
    /// and quicker with hundreds of validators
    #[arg(long, default_value_t = 0, value_name = "US")]
    take_up: u64,
    /// Put all validators and clients on one host, without a network card in between, and take the
    /// defaults of `quorate bench`
    #[arg(long, conflicts_with = "mbps")]
    local: bool,
    #[command(flatten)]
    wan: Wan,
    /// Durability of votes: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Bytes at which a batch of operations is full [default: 500000]
    #[arg(long, value_name = "BYTES")]
    batch_bytes: Option<usize>,
    /// Longest time that a batch waits to be full, in milliseconds [default: 100; 5 with --local]
    #[arg(long, value_name = "MS")]
    batch_delay: Option<u64>,
    /// View timeout, in milliseconds [default: 5000; 500 or what the network needs with --local]
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    /// Time that a leader with a quorum waits for the remaining votes, in milliseconds [default: 0]
    #[arg(long, value_name = "MS")]
    vote_wait: Option<u64>,
    /// Verification of votes: each (one by one), batch, or aggregate (once, at the quorum)
    /// [default: aggregate]
    #[arg(long)]
    verify: Option<Policy>,
    /// Use of the committee's cached aggregate key: on, off or subtract [default: on]
    #[arg(long, value_name = "HOW")]
    key_cache: Option<KeyCache>,
    /// Key that signs proposals: identity, or voting as in paper 000 [default: identity]
    #[arg(long)]
    proposal_key: Option<ProposalKey>,
    /// Condition of a vote on the bodies that a block names: stored (at the voter) or certified (by
    /// members that store them) [default: stored]
    #[arg(long, value_name = "PROOF")]
    availability: Option<Availability>,
    /// Estimate the reference implementation of paper 000 instead of this program: votes checked
    /// one by one, no TLS, no sync, no execution, 500 KB or 100 ms batches, 5 s timeout, sockets
    /// with Nagle's algorithm; with --protocol hotstuff its version of three chains
    #[arg(long, conflicts_with_all = ["verify", "batch_bytes", "batch_delay", "timeout", "vote_wait",
        "proposal_key", "durability"])]
    reference: bool,
    /// Make and check real signatures, at the price list's cost all the same
    #[arg(long)]
    real_signatures: bool,
    /// Crash validator I T seconds into the measured window, as in 3@10; may be repeated
    #[arg(long, value_name = "I@T", value_parser = crash)]
    kill: Vec<(ReplicaId, Duration)>,
    /// Share of packets that are lost between hosts, 0 to 1, in what TCP makes of it
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    loss: f64,
    /// Length of the measured window, in seconds; while its figures are in doubt (not stationary,
    /// too few samples), up to two more follow, each twice as long
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    duration: u64,
    /// Keep the measured window as long as it is even while its figures are in doubt
    #[arg(long)]
    fixed_window: bool,
    /// Seconds of load before the measured window, which do not count
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    warmup: u64,
    /// Seed that decides keys, delays and arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        if self.prices == "list" {
            output::line(&Prices::names().join("\n"));
            return Ok(());
        }
        let scene = self.scene()?;
        let outcome = simulate(&scene)?;
        if self.json {
            output::json(&json!({
                "prices": scene.prices,
                "host": scene.host,
                "settings": scene.settings,
                "load": scene.load,
                "profile": scene.profile,
                "outcome": outcome,
            }));
        } else {
            output::line(&table::render(&scene, &outcome));
        }
        Ok(())
    }

    fn scene(&self) -> Result<Scene, Failure> {
        let mut scene = Scene::new(
            self.topology()?,
            self.rate,
            Prices::find(&self.prices).map_err(Failure::usage)?,
        );
        scene.seed = self.seed;
        (scene.scheme, scene.redundancy) = (self.scheme, self.redundancy);
        let cores = self.cores.unwrap_or(u32::from(scene.prices.cores));
        let validators_per_host = usize::from(self.per_host);
        scene.host = HostProfile { validators_per_host, ..HostProfile::cloud(cores, self.mbps) };
        if self.local {
            scene.host = HostProfile::local(cores, self.validators);
            scene.load.bundle_delay = Duration::from_millis(BUNDLE_DELAY_MS);
            scene.load.sessions = NonZeroUsize::new(sessions_for(self.rate as u64));
            scene.settings.batch_delay_ms = Settings::default().batch_delay_ms;
            scene.settings.timeout_ms = bench::fitting_timeout_ms(&scene.topology).max(TIMEOUT_MS);
        }
        scene.load.sessions = self.clients.or(self.sessions).or(scene.load.sessions);
        scene.load.work = self.service;
        if self.to_leader {
            scene.load.receivers = Receivers::Leader;
        }
        scene.take_up = Duration::from_micros(self.take_up);
        scene.durability = self.durability;
        scene.load.tx_bytes = self.tx_bytes;
        if let Some(ms) = self.bundle_delay {
            scene.load.bundle_delay = Duration::from_millis(ms);
        }
        if self.poisson {
            scene.load.arrivals = Arrivals::Poisson;
        }
        if self.clients.is_some() {
            scene.load.arrivals = Arrivals::Closed(self.request_operations);
        }
        scene.loss = self.loss;
        scene.windows_more = if self.fixed_window { 0 } else { Scene::WINDOWS_MORE };
        scene.real_signatures = self.real_signatures;
        scene.warmup = Duration::from_secs(self.warmup);
        scene.duration = Duration::from_secs(self.duration);
        let crash = |(member, at): &(ReplicaId, Duration)| (*member, scene.warmup + *at);
        scene.crashed = self.kill.iter().map(crash).collect();
        self.set(&mut scene);
        Ok(if self.reference { scene.as_reference() } else { scene })
    }

    fn set(&self, scene: &mut Scene) {
        let settings = &mut scene.settings;
        settings.protocol = self.protocol;
        settings.batch_delay_ms = self.batch_delay.unwrap_or(settings.batch_delay_ms);
        settings.timeout_ms = self.timeout.unwrap_or(settings.timeout_ms);
        settings.batch_bytes = self.batch_bytes.unwrap_or(settings.batch_bytes);
        settings.vote_wait_ms = self.vote_wait.unwrap_or(settings.vote_wait_ms);
        settings.verify = self.verify.unwrap_or(settings.verify);
        let comparison = &mut settings.comparison;
        comparison.key_cache = self.key_cache.unwrap_or(comparison.key_cache);
        comparison.proposal_key = self.proposal_key.unwrap_or(comparison.proposal_key);
        settings.availability = self.availability.unwrap_or(settings.availability);
    }

    fn topology(&self) -> Result<Topology, Failure> {
        let emulation = self.wan.emulation().unwrap_or_default();
        // Between hosts in one place there is at least this much.
        let near = Emulation { delay_ms: 0, ..Emulation::default() };
        let wanted = if emulation == near && !self.local {
            return Ok(Topology::uniform(usize::from(self.validators), NEAR));
        } else {
            emulation
        };
        wanted.topology(usize::from(self.validators)).map_err(Failure::usage)
    }
}

/// One way between two hosts in one place, without a wide-area network.
const NEAR: Duration = Duration::from_micros(100);

fn simulate(scene: &Scene) -> Result<quorate_model::Estimate, Failure> {
    let bar = ProgressBar::new((scene.warmup + scene.duration).as_millis() as u64);
    let style = ProgressStyle::with_template("{bar:30} {percent} % · {eta} left · {msg}");
    bar.set_style(style.expect("a constant that parses"));
    let outcome = quorate_model::run(scene, &mut |progress| {
        bar.set_position(progress.virtual_time.as_millis() as u64);
        bar.set_message(format!("{} operations committed", progress.committed));
    });
    bar.finish_and_clear();
    outcome.map_err(|error| match error {
        SceneError::Broken(_) => Failure::run(error),
        _ => Failure::usage(error),
    })
}

fn work(text: &str) -> Result<Work, String> {
    match text {
        "kv" => Ok(Work::Kv),
        "evm" => Ok(Work::Evm),
        "noop" => Ok(Work::Noop),
        _ => Err("use 'evm', 'kv' or 'noop'".to_owned()),
    }
}

fn crash(text: &str) -> Result<(ReplicaId, Duration), String> {
    let wrong = || format!("'{text}' is no member and time: write 3@10");
    let (member, seconds) = text.split_once('@').ok_or_else(wrong)?;
    let member = member.parse().map_err(|_| wrong())?;
    let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
    let at = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    Ok((ReplicaId(member), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_end_at_a_time() {
        assert_eq!(crash("3@1.5"), Ok((ReplicaId(3), Duration::from_millis(1_500))));
        for wrong in ["3", "x@1", "3@x", "3@-1"] {
            assert_eq!(crash(wrong), Err(format!("'{wrong}' is no member and time: write 3@10")));
        }
    }
}

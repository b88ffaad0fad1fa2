//! `quorate bench`: a real local committee under load.

mod suite;

use super::load_options::LoadOptions;
use super::report_options::ReportOptions;
use super::wan::Wan;
use crate::failure::{CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use quorate_consensus::ProposalKey;
use quorate_crypto::{KeyCache, Policy, SchemeKind};
use quorate_engine::{Availability, Comparison, ProtocolKind, Settings};
use quorate_lab::ServiceKind;
use quorate_lab::bench::{
    self, At, BenchConfig, BenchError, Cut, Lie, Pause, PlannedChange, Progress, Trace, search,
};
use quorate_lab::load::{LoadConfig, MixPlan, Shape};
use quorate_ledger::evm::mix;
use quorate_node::{Archive, ExistingKeys};
use quorate_report::Report;
use quorate_storage::Durability;
use quorate_types::Weights;
use quorate_wan::Emulation;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A view's span when all validators share this machine and no network is emulated.
pub(super) const TIMEOUT_MS: u64 = 500;

/// Measure a real local committee under open-loop load.
///
/// Writes a committee to a temporary folder, starts one process a validator, opens client sessions
/// in this process, and offers operations at a fixed rate. The committed rate is that of the
/// slowest healthy validator; latency runs from an operation's scheduled time to f+1 equal signed
/// replies.
///
/// With --suite the rows of a suite are measured instead, one after the other: how quick the
/// program is here, and with --against what changed since an earlier sitting.
#[derive(Debug, Args)]
#[command(
    mut_args(suite::exclude),
    after_help = "Examples:\n  \
    quorate bench                                     four validators, 20,000 tx/s, 20 s\n  \
    quorate bench -n 10 --scheme bls --rate 5000\n  \
    quorate bench --rate max                          the highest rate that it keeps up with\n  \
    quorate bench --rate 1000 --wan us-east-1,us-west-1,ap-southeast-2,eu-central-1\n                                                    \
    spread over regions, beside the least latency\n  \
    quorate bench --weights 3,1,1,1                   votes weigh differently\n  \
    quorate bench --kill 0@5 --restart 0@10           the first leader dies and comes back\n  \
    quorate bench --cut 0-2@5 --cut 1-3@5              two pairs that do not reach each other\n  \
    quorate bench --kill 3@5 --change 'replace 1 at 8'   a dead member is replaced under load\n  \
    quorate bench --change 'protocol sbft at 5' --change 'add 3 at 10'\n  \
    quorate bench --scheme bls --verify each --key-cache off --proposal-key voting\n                                                    \
    what the paper compares\n  \
    quorate bench --protocol sbft --keys-from keys    keys of `quorate keys dkg`\n  \
    quorate bench --json > result.json\n  \
    quorate bench --service kv --keys 1000000 --fill  over a million keys that have values\n  \
    quorate bench --suite                             a table of rows beside goals\n  \
    quorate bench --suite --against quorate-results/suite-20260131-120000.json\n                                                    \
    the same again, and ratios\n  \
    quorate bench --suite --only n4-light,n10-max     two of its rows\n\n\
    Exit code 1: a healthy validator exited, stood still, stayed behind or disagreed; or a row of a\n\
    suite has no result. A goal that is missed is no failure."
)]
pub(crate) struct Options {
    /// Number of validators, one process each
    #[arg(short = 'n', long, default_value_t = 4)]
    validators: u16,
    /// Weights of the validators' votes, as in 3,1,1,1; by default all weigh the same
    #[arg(long, value_name = "W,W,...")]
    weights: Option<Weights>,
    /// The protocol that orders: jolteon, hotstuff (chained), hotstuff-basic, pbft, linear-pbft,
    /// linear-pbft-fast (with the fast path) or sbft (and one certified reply a client)
    #[arg(long, default_value_t)]
    protocol: ProtocolKind,
    /// Number of redundant validators: the fast path goes on while so many are slow or dead. It
    /// takes 3f + 2C + 1 validators for an f of at least 1
    #[arg(short = 'c', long, default_value_t = 0, value_name = "C")]
    redundancy: u64,
    /// Pass over leaders whose last turns decided nothing: true or false
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    leader_reputation: bool,
    /// The voting scheme: ed25519, bls, or bls-threshold (keys from one dealer; not for the chained
    /// protocols)
    #[arg(long, default_value = "ed25519", value_parser = super::committee_scheme)]
    scheme: SchemeKind,
    /// Run with the keys in this folder instead of new ones: validator-I/key.toml and a
    /// committee.toml, as `quorate keys dkg` and `quorate testnet` write them; a validator whose
    /// keys are not there is left out. They sign for a network of the bench's own
    #[arg(long, value_name = "FOLDER",
          conflicts_with_all = ["validators", "weights", "redundancy", "scheme"])]
    keys_from: Option<PathBuf>,
    /// Operations offered per second in an open loop; or 'max', to search for the highest rate that
    /// every validator keeps up with: short probes, each on a new committee, then runs of the whole
    /// length until one holds. Usually some 14 probes and two runs, never more than 20 and 6 once
    /// one has held. The warm-up of each lasts until the committee commits what is offered
    #[arg(long, default_value = "20000", value_name = "RATE|max")]
    rate: Rate,
    /// Highest p99 latency that counts as keeping up, with --rate max, in milliseconds; by default
    /// 1000, and on an emulated network at least eight times its farthest round trip
    #[arg(long, value_name = "MS")]
    p99_limit: Option<f64>,
    #[command(flatten)]
    load: LoadOptions,
    /// Bytes at which a batch of operations is full; by default 500000
    #[arg(long, value_name = "BYTES")]
    batch_bytes: Option<usize>,
    /// Longest time that a batch waits to be full, in milliseconds; by default 5
    #[arg(long, value_name = "MS")]
    batch_delay: Option<u64>,
    /// Kill validator I with SIGKILL T seconds into the measured window; may be repeated. I may be
    /// 'leader' or 'follower': whoever is that then
    #[arg(long, value_name = "I@T")]
    kill: Vec<At>,
    /// Start a killed validator I again T seconds into the measured window; may be repeated
    #[arg(long, value_name = "I@T")]
    restart: Vec<At>,
    /// Stop validator I with SIGSTOP T seconds into the measured window, for D seconds; may be
    /// repeated
    #[arg(long, value_name = "I@T+D")]
    pause: Vec<Pause>,
    /// Have strangers fill the doors of validator I from T seconds into the measured window on:
    /// 4,000 idle connections at each, half of those over HTTP with a request that never ends, and
    /// 1,500 TLS handshakes that stop; may be repeated
    #[arg(long, value_name = "I@T")]
    crowd: Vec<At>,
    /// Descriptors that a validator may have open; by default as many as this command may
    #[arg(long, value_name = "COUNT")]
    descriptors: Option<u64>,
    /// Cut the link between validators A and B, in both directions and for good, T seconds into the
    /// measured window; may be repeated
    #[arg(long, value_name = "A-B@T")]
    cut: Vec<Cut>,
    /// Change the committee T seconds into the measured window: 'replace COUNT' (those that are
    /// dead first), 'replace all', 'add COUNT', 'remove COUNT', 'protocol NAME' or 'scheme NAME'
    /// (new voting keys for all), as in 'replace 2 at 10'; may be repeated. Newcomers run from the
    /// beginning, as learners
    #[arg(long, value_name = "'WHAT at T'")]
    change: Vec<PlannedChange>,
    /// Have validator I lie from T seconds into the measured window on, as in
    /// 3=certificate-flood@3; may be repeated. A wrong name lists all behaviours
    #[cfg(feature = "liar")]
    #[arg(long, value_name = "I=BEHAVIOUR@T", value_parser = parse_lie)]
    liar: Vec<Lie>,
    /// After the load, kill a validator with SIGKILL, start it again, and time how long it takes
    /// until it has executed what it had and may sign
    #[arg(long)]
    time_restart: bool,
    /// Durability of votes: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Log that a validator keeps for members that fell behind, in MiB; small, so that a short run
    /// reaches the state of a long one, in which files are used again
    #[arg(long, value_name = "MIB", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    retention: u64,
    /// Past states that a validator keeps, with the index of accounts and tokens, with --service
    /// evm: recent, all or off
    #[arg(long, default_value_t, value_name = "WHICH")]
    archive: Archive,
    /// Heights from one snapshot to the next; blocks are kept from the last but one on
    #[arg(long, value_name = "HEIGHTS", default_value_t = 128)]
    snapshot_every: u64,
    /// Time that a leader with a quorum waits for the remaining votes, in milliseconds; by default
    /// 0
    #[arg(long, value_name = "MS")]
    vote_wait: Option<u64>,
    /// Verification of votes: each (one by one), batch, or aggregate (once, at the quorum); by
    /// default aggregate
    #[arg(long)]
    verify: Option<Policy>,
    /// Use of the committee's cached aggregate key: on, off, or subtract (always subtract absentees
    /// from it, as paper 000 does); by default on
    #[arg(long, value_name = "HOW")]
    key_cache: Option<KeyCache>,
    /// Key that signs proposals: identity, or voting as in paper 000; by default identity
    #[arg(long)]
    proposal_key: Option<ProposalKey>,
    /// Carry bodies inside leaders' proposals, instead of sending them ahead
    #[arg(long)]
    inline_bodies: bool,
    /// Condition of a vote on the bodies that a block names: stored (at the voter) or certified (by
    /// members that store them); by default stored
    #[arg(long, value_name = "PROOF", conflicts_with = "inline_bodies")]
    availability: Option<Availability>,
    /// View timeout, in milliseconds; by default 500, and on an emulated network at least eight
    /// times the farthest round trip
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    #[command(flatten)]
    wan: Wan,
    /// Service to replicate: log (an ordered log), noop, kv (a key-value store; the operations are
    /// puts) or evm (Ethereum's machine; the operations are signed transactions); of the last two,
    /// validators certify what they execute
    #[arg(long, default_value = "log")]
    service: ServiceKind,
    /// Put each of the --keys once before the load, 64 in a request, with --service kv: the load is
    /// over a full state, and the result says how long filling it took. With --rate max all runs
    /// are on one committee
    #[arg(long)]
    fill: bool,
    /// Kinds of transactions, with --service evm: mixed (of a hundred, one creates a contract and
    /// twenty swap tokens; the others transfer them) or transfers
    #[arg(long, default_value = "mixed")]
    mix: mix::Shape,
    /// Queries a second to the validators' gateways beside the load, with --service evm: balances,
    /// nonces, calls and blocks over JSON-RPC; by default none
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "RATE",
          value_parser = clap::value_parser!(u64).range(..=100_000))]
    reads: u64,
    /// Replay the signed transactions in this file, one in hexadecimal a line, in their order, with
    /// --service evm --load closed --sessions 1; they share requests as chunks of 12 KB do
    #[arg(long, value_name = "FILE", requires = "genesis")]
    trace: Option<PathBuf>,
    /// Genesis of the trace's chain: a genesis file of Ethereum's tools
    #[arg(long, value_name = "FILE", requires = "trace")]
    genesis: Option<PathBuf>,
    /// Run no committee: measure what one core does with the load alone, with --service evm
    #[arg(long)]
    unreplicated: bool,
    /// Certify results: clients take one certified reply instead of f+1 equal ones; always so with
    /// --service kv and evm
    #[arg(long)]
    execution_certificates: bool,
    /// Time until an unanswered request goes to the next validator, in milliseconds; by default
    /// twice the view timeout
    #[arg(long, value_name = "MS")]
    retry_after: Option<u64>,
    /// Skip the measurement of what this machine's disk and cores could do at most
    #[arg(long)]
    no_bounds: bool,
    /// Put the committee into this new folder and keep it
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Seed that decides the clients' keys and the operations' bytes; of a suite the order of its
    /// rows
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    suite: suite::SuiteOptions,
    #[command(flatten)]
    output: ReportOptions,
}

/// Members of the committee and their weights.
struct Members {
    validators: u16,
    weights: Option<Weights>,
    redundancy: u64,
    scheme: SchemeKind,
    existing: Option<Arc<ExistingKeys>>,
}

/// Rate of operations to offer.
#[derive(Clone, Copy, Debug)]
enum Rate {
    Fixed(u64),
    Max,
}

impl Rate {
    /// Rate that the configuration names until a search has found another.
    fn first(self) -> u64 {
        match self {
            Self::Fixed(rate) => rate,
            Self::Max => search::FIRST_RATE,
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            _ => text.parse().map(Self::Fixed).map_err(|_| "a whole number, or 'max'".to_owned()),
        }
    }
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        if self.suite.is_asked_for() {
            return self.suite.run(self.seed, &self.output);
        }
        let config = self.config()?;
        if self.unreplicated {
            return self.alone(&config);
        }
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let progress = Progress::new(self.output.quiet);
        let result = match self.rate {
            Rate::Fixed(_) => bench::run(&config, &progress, &interrupted),
            Rate::Max => self.find_max(&config, &progress, &interrupted),
        };
        drop(progress);
        self.output.show(result.map_err(fail)?)
    }

    fn find_max(
        &self,
        config: &BenchConfig,
        progress: &Progress,
        interrupted: &AtomicBool,
    ) -> Result<Report, BenchError> {
        let calm = self.kill.is_empty() && self.pause.is_empty() && self.cut.is_empty();
        let calm = calm && self.crowd.is_empty() && self.change.is_empty() && !self.time_restart;
        let disturbed = !(calm && self.lies().is_empty());
        if disturbed || self.load.load == Shape::Closed {
            let rule = "--rate max is for a healthy committee in an open loop: leave --kill, --pause, \
                        --cut, --crowd, --change, --time-restart and --load closed out";
            return Err(BenchError::Config(rule.to_owned()));
        }
        let limit_ms = self.p99_limit.unwrap_or_else(|| search::fitting_p99_limit_ms(config));
        bench::find_max(config, limit_ms, progress, interrupted)
    }

    fn config(&self) -> Result<BenchConfig, Failure> {
        let executable = std::env::current_exe();
        let emulation = self.wan.emulation();
        let members = self.members()?;
        let timeout_ms = self.timeout_ms(members.validators, emulation.as_ref())?;
        Ok(BenchConfig {
            validators: members.validators,
            weights: members.weights,
            redundancy: members.redundancy,
            scheme: members.scheme,
            members: members.existing,
            load: LoadConfig {
                rate: self.rate.first(),
                retry_after_ms: self.retry_after.unwrap_or(2 * timeout_ms),
                seed: self.seed,
                ..self.load.config()
            },
            settle_s: 0,
            trace: self.trace()?,
            reads: self.reads,
            mix: MixPlan { shape: self.mix, accounts: self.load.accounts as usize },
            kills: self.kill.clone(),
            restarts: self.restart.clone(),
            pauses: self.pause.clone(),
            lies: self.lies(),
            crowds: self.crowd.clone(),
            descriptors: self.descriptors,
            cuts: self.cut.clone(),
            changes: self.change.clone(),
            durability: self.durability,
            retention_bytes: self.retention << 20,
            archive: self.archive,
            service: self.service,
            fill: self.fill,
            time_restart: self.time_restart,
            settings: self.settings(timeout_ms),
            emulation,
            bounds: !self.no_bounds,
            directory: self.dir.clone(),
            executable: executable.map_err(|error| Failure::run(format!("who am I? {error}")))?,
        })
    }

    fn trace(&self) -> Result<Option<Arc<Trace>>, Failure> {
        let (Some(trace), Some(genesis)) = (&self.trace, &self.genesis) else { return Ok(None) };
        Trace::load(trace, genesis).map(Arc::new).map(Some).map_err(Failure::usage)
    }

    /// Validators that are to lie.
    #[cfg(feature = "liar")]
    fn lies(&self) -> Vec<Lie> {
        self.liar.clone()
    }

    /// No validator of this build can lie.
    #[cfg(not(feature = "liar"))]
    fn lies(&self) -> Vec<Lie> {
        Vec::new()
    }

    /// Measures one core with the load alone.
    fn alone(&self, config: &BenchConfig) -> CommandResult {
        let Some(alone) = bench::unreplicated(config).map_err(fail)? else {
            return Err(Failure::usage("--unreplicated is for --service evm"));
        };
        if self.output.json {
            output::json(&alone);
        } else {
            output::line(&format!("unreplicated: {}", alone.describe()));
        }
        Ok(())
    }

    /// New members as the options say, or those that have keys already.
    fn members(&self) -> Result<Members, Failure> {
        let Some(folder) = &self.keys_from else {
            return Ok(Members {
                validators: self.validators,
                weights: self.weights.clone(),
                redundancy: self.redundancy,
                scheme: self.scheme,
                existing: None,
            });
        };
        let existing = ExistingKeys::read(folder).map_err(Failure::usage)?;
        let each = existing.committee.members.iter().map(|member| member.weight).collect();
        Ok(Members {
            validators: u16::try_from(existing.keys.len()).map_err(Failure::usage)?,
            weights: Some(Weights::new(each).map_err(Failure::usage)?),
            redundancy: existing.committee.redundancy,
            scheme: existing.scheme().map_err(Failure::usage)?,
            existing: Some(Arc::new(existing)),
        })
    }

    fn timeout_ms(&self, validators: u16, emulation: Option<&Emulation>) -> Result<u64, Failure> {
        let (Some(emulation), None) = (emulation, self.timeout) else {
            return Ok(self.timeout.unwrap_or(TIMEOUT_MS));
        };
        let network = emulation.topology(usize::from(validators)).map_err(Failure::usage)?;
        Ok(bench::fitting_timeout_ms(&network).max(TIMEOUT_MS))
    }

    fn settings(&self, timeout_ms: u64) -> Settings {
        let default = Settings::default();
        Settings {
            protocol: self.protocol,
            leader_reputation: self.leader_reputation,
            batch_bytes: self.batch_bytes.unwrap_or(default.batch_bytes),
            batch_delay_ms: self.batch_delay.unwrap_or(default.batch_delay_ms),
            timeout_ms,
            vote_wait_ms: self.vote_wait.unwrap_or(default.vote_wait_ms),
            verify: self.verify.unwrap_or(default.verify),
            inline_bodies: self.inline_bodies,
            availability: self.availability.unwrap_or(default.availability),
            snapshot_every: self.snapshot_every,
            execution_certificates: self.execution_certificates || self.service.is_proven(),
            comparison: self.comparison(),
            ..default
        }
    }

    fn comparison(&self) -> Comparison {
        let default = Comparison::default();
        Comparison {
            key_cache: self.key_cache.unwrap_or(default.key_cache),
            proposal_key: self.proposal_key.unwrap_or(default.proposal_key),
            ..default
        }
    }
}

/// A lie whose behaviour there is.
#[cfg(feature = "liar")]
fn parse_lie(text: &str) -> Result<Lie, String> {
    let lie: Lie = text.parse().map_err(|error: bench::NotAnEvent| error.to_string())?;
    lie.behaviour
        .parse::<quorate_sim::byzantine::Behaviour>()
        .map_err(|error| error.to_string())?;
    Ok(lie)
}

fn fail(error: BenchError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::run(error) }
}

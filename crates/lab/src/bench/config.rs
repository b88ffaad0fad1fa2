//! Configuration of a bench.

use super::changes::{self, PlannedChange};
use super::events::{At, Cut, Lie, Pause, Target};
use super::evm::{CHUNK_TRANSACTIONS, MixPlan, Trace};
use super::load::{Content, Payload, Plan, Shape};
use crate::ServiceKind;
use quorate_crypto::SchemeKind;
use quorate_engine::{Bundling, Session, Settings};
use quorate_ledger::evm::Genesis;
use quorate_node::ExistingKeys;
use quorate_report::text::thousands;
use quorate_storage::Durability;
use quorate_types::Weights;
use quorate_wan::{Emulation, Topology};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Everything that decides how a bench runs. All of it is repeated in the result.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// Members of the committee, one process each.
    pub validators: u16,
    /// The members' voting weights, as many as there are validators; `None` for 1 each.
    pub weights: Option<Weights>,
    /// Number of members beyond what faults alone ask for (`c` of `n = 3f+2c+1`).
    pub redundancy: u64,
    /// The voting scheme of the committee.
    pub scheme: SchemeKind,
    /// The members' keys, if they are not to be new: then these members, weights and redundancy and
    /// this scheme are theirs. Those whose keys are not at hand do not run.
    pub members: Option<Arc<ExistingKeys>>,
    /// Moments at which operations are offered.
    pub load: Shape,
    /// Operations offered per second in an open loop, whether or not the committee keeps up.
    pub rate: u64,
    /// Operations that each session has under way in a closed loop.
    pub outstanding: u64,
    /// Validators that get a client's requests.
    pub send_to: SendTo,
    /// Bytes of one operation.
    pub tx_bytes: usize,
    /// Seconds of load that count.
    pub duration_s: u64,
    /// Seconds of the same load before them, left out of every figure but their own.
    pub warmup_s: u64,
    /// Most seconds to wait, once the load ends, for the last answers and for stragglers.
    pub drain_s: u64,
    /// Validators to end with SIGKILL, and when.
    pub kills: Vec<At>,
    /// Killed validators to start again, and when. One killed as the leader is started again as
    /// "leader", whoever leads by then.
    pub restarts: Vec<At>,
    /// Validators to stop for a while, and when.
    pub pauses: Vec<Pause>,
    /// Validators that lie, and from when on: for an executable with the feature `liar`.
    pub lies: Vec<Lie>,
    /// Validators whose doors strangers fill, and from when on.
    pub crowds: Vec<At>,
    /// Descriptors that a validator may have open; `None` for as many as this process may.
    pub descriptors: Option<u64>,
    /// Links to cut, and when.
    pub cuts: Vec<Cut>,
    /// Changes of the committee, and when.
    pub changes: Vec<PlannedChange>,
    /// Condition under which a validator calls a record durable.
    pub durability: Durability,
    /// Bytes of log that a validator keeps for members that fell behind.
    pub retention_bytes: u64,
    /// Service that is replicated.
    pub service: ServiceKind,
    /// Client sessions; `None` lets the rate decide.
    pub sessions: Option<usize>,
    /// Time that a client waits for operations to share a request.
    pub bundle_delay_ms: u64,
    /// Time until an unanswered request goes to the next validator.
    pub retry_after_ms: u64,
    /// Decides the clients' keys and the operations' bytes.
    pub seed: u64,
    /// Keys that are written, with the key-value store.
    pub keys: u64,
    /// Senders and content of transactions, with the EVM ledger.
    pub mix: MixPlan,
    /// Transactions to send instead, in order, with the EVM ledger: in a closed loop of one
    /// session.
    pub trace: Option<Arc<Trace>>,
    /// Questions a second to the validators' gateways beside the load, with the EVM ledger.
    pub reads: u64,
    /// Settings of all replicas.
    pub settings: Settings,
    /// A network to emulate between members, and between them and the clients beside each.
    pub emulation: Option<Emulation>,
    /// `true` to measure first what this machine could do at most.
    pub bounds: bool,
    /// Folder for the committee, which is then kept; `None` for a temporary one, which is not.
    pub directory: Option<PathBuf>,
    /// The `quorate` binary that runs the validators.
    pub executable: PathBuf,
}

/// Validators that get a client's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendTo {
    /// One validator, and the next when it is silent.
    #[default]
    One,
    /// All validators at once.
    All,
    /// The leader of the first view, and the next when it is silent. Simulated points of
    /// experiments only.
    Leader,
}

impl FromStr for SendTo {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "one" => Ok(Self::One),
            "all" => Ok(Self::All),
            _ => Err(format!("requests go to 'one' or 'all', not to '{name}'")),
        }
    }
}

/// The shortest view that an emulated network allows for: eight of the farthest round trips, in
/// milliseconds. A view's certificates and bodies travel several of them, and a failed leader's
/// view is an eighth of it.
#[must_use]
pub fn fitting_timeout_ms(network: &Topology) -> u64 {
    let farthest_ms = network.farthest_round_trip().as_secs_f64() * 1_000.0;
    (8.0 * farthest_ms).ceil() as u64
}

/// Shortest time between two changes of the committee, in seconds: one ends the epoch that the one
/// before it began.
const CHANGES_APART_S: f64 = 1.0;

/// Operations per second that one session carries before the next one is opened.
const SESSION_RATE: u64 = 20_000;
const SESSIONS_MAX: u64 = 256;

/// Number of sessions for a rate, at least one for each validator of the smallest committee.
#[must_use]
pub fn sessions_for(rate: u64) -> usize {
    rate.div_ceil(SESSION_RATE).clamp(4, SESSIONS_MAX) as usize
}

impl BenchConfig {
    /// Checks ranges and that the events leave a committee to measure.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn validate(&self) -> Result<(), String> {
        let check = |ok: bool, rule: String| if ok { Ok(()) } else { Err(rule) };
        let n = self.validators;
        check(n >= 1, "--validators must be at least 1".into())?;
        let weighed = self.weights.as_ref().map_or(usize::from(n), Weights::members);
        let rule = format!("--weights names {weighed} weights for {n} validators: give one each");
        check(weighed == usize::from(n), rule)?;
        check(self.duration_s >= 1, "--duration must be at least 1 second".into())?;
        check((1..=10_000_000).contains(&self.rate), "--rate must be 1 to 10000000".into())?;
        check((1..=65_536).contains(&self.tx_bytes), "--tx-bytes must be 1 to 65536".into())?;
        check(self.sessions != Some(0), "--sessions must be at least 1".into())?;
        self.settings.validate().map_err(|error| error.to_string())?;
        let weights = self.base_weights().with_redundancy(self.redundancy);
        let weights = weights.map_err(|error| error.to_string())?;
        let fits = self.settings.protocol.check_committee(&weights, self.scheme);
        fits.map_err(|error| error.to_string())?;
        let emulated = self.emulation.as_ref().map_or(Ok(()), |wan| wan.topology(1).map(drop));
        emulated.map_err(|error| error.to_string())?;
        let in_order = self.load == Shape::Closed && self.sessions == Some(1);
        let fits = self.trace.is_none() || self.service == ServiceKind::Evm && in_order;
        let rule = "--trace is for --service evm, --load closed and --sessions 1: in their order";
        check(fits, rule.into())?;
        let fits = self.reads == 0 || self.service == ServiceKind::Evm;
        check(fits, "--reads is for --service evm".into())?;
        let is_measured = self.service != ServiceKind::Payments;
        check(is_measured, "releases of coins are not measured".into())?;
        let most = Session::QUEUE_MAX as u64;
        let rule = format!("--outstanding must be 1 to {most}");
        check((1..=most).contains(&self.outstanding), rule)?;
        self.validate_events()
    }

    fn validate_events(&self) -> Result<(), String> {
        let check = |ok: bool, rule: String| if ok { Ok(()) } else { Err(rule) };
        let newcomers = self.newcomers()?;
        let (n, end) = (self.validators + newcomers, self.duration_s);
        let pauses = || self.pauses.iter().map(|pause| &pause.at);
        let lies = || self.lies.iter().map(|lie| &lie.at);
        let others = pauses().chain(lies()).chain(&self.crowds);
        for at in self.kills.iter().chain(&self.restarts).chain(others) {
            let there = !matches!(at.who, Target::Member(id) if id >= n);
            check(there, format!("{at}: there are only validators 0 to {}", n - 1))?;
            check(at.second <= end as f64, format!("{at}: the load ends after {end} seconds"))?;
        }
        for cut in &self.cuts {
            let ok = cut.ends.0.max(cut.ends.1) < n;
            check(ok, format!("--cut {cut}: there are only validators 0 to {}", n - 1))?;
            check(
                cut.second <= end as f64,
                format!("--cut {cut}: the load ends after {end} seconds"),
            )?;
        }
        for pause in &self.pauses {
            let ok = pause.at.second + pause.for_s <= end as f64;
            check(ok, format!("--pause {pause}: the load ends after {end} seconds"))?;
        }
        for restart in &self.restarts {
            let killed = |kill: &At| kill.who == restart.who && kill.second < restart.second;
            let ok = self.kills.iter().any(killed);
            check(ok, format!("--restart {restart}: no --kill of that validator comes before"))?;
        }
        let weights = self.weights();
        let mut dead = self.dead_at_the_end();
        let absent = self.absent();
        dead.retain(|who| !absent.iter().any(|id| *who == Target::Member(*id)));
        dead.extend(absent.iter().map(|id| Target::Member(*id)));
        let liars: Vec<Target> = lies().map(|at| at.who).collect();
        dead.retain(|who| !liars.contains(who));
        dead.extend(liars);
        let weight: u64 = dead.into_iter().map(|who| self.weight_of(who)).sum();
        let what = if weights.are_equal() { "validators" } else { "units of weight" };
        let (total, bearable) = (weights.total(), weights.faulty_max());
        let cause =
            if absent.is_empty() { "--kill leaves" } else { "missing keys and --kill leave" };
        let dead = if self.lies.is_empty() { "dead" } else { "dead or lying" };
        let rule = format!(
            "{cause} {weight} of {total} {what} {dead}, and a committee of {total} bears {bearable}: \
             kill fewer, or --restart some"
        );
        check(weight <= bearable, rule)
    }

    /// Newcomers that changes of the committee bring. They run from the beginning, as learners.
    ///
    /// # Errors
    /// A sentence that says which change is impossible.
    pub fn newcomers(&self) -> Result<u16, String> {
        let mut shape = changes::Shape {
            weights: self.weights(),
            redundancy: self.redundancy,
            scheme: self.scheme,
            protocol: self.settings.protocol,
            newcomers: 0,
        };
        let mut last: Option<f64> = None;
        for change in &self.changes {
            let refused = |rule: String| format!("--change '{change}': {rule}");
            if change.second > self.duration_s as f64 {
                return Err(refused(format!("the load ends after {} seconds", self.duration_s)));
            }
            if self.emulation.is_some() {
                return Err(refused("newcomers have no place on an emulated network".to_owned()));
            }
            if last.is_some_and(|last| change.second < last + CHANGES_APART_S) {
                return Err(refused(format!(
                    "it comes {CHANGES_APART_S} s after the one before it, or later"
                )));
            }
            last = Some(change.second);
            shape = shape.after(change.what).map_err(refused)?;
        }
        Ok(shape.newcomers)
    }

    /// Processes that run: the first members, and newcomers behind them.
    #[must_use]
    pub fn processes(&self) -> u16 {
        self.validators + self.newcomers().unwrap_or(0)
    }

    /// The members' weights: 1 each unless others were asked for.
    #[must_use]
    pub fn weights(&self) -> Weights {
        let weights = self.base_weights();
        weights.clone().with_redundancy(self.redundancy).unwrap_or(weights)
    }

    fn base_weights(&self) -> Weights {
        let equal = || Weights::equal(usize::from(self.validators));
        self.weights.clone().unwrap_or_else(equal)
    }

    /// Number of sessions that carry the load: enough for the rate, each with another first
    /// validator.
    #[must_use]
    pub fn session_count(&self) -> usize {
        let wanted = match self.load {
            Shape::Closed => 4,
            Shape::Fixed | Shape::Poisson => sessions_for(self.rate),
        };
        self.sessions.unwrap_or(wanted)
    }

    /// Limits of operations that share a request: never more than a block takes.
    #[must_use]
    pub fn bundling(&self) -> Bundling {
        let chunk = if self.trace.is_some() { CHUNK_TRANSACTIONS } else { usize::MAX };
        Bundling::after(Duration::from_millis(self.bundle_delay_ms))
            .at_most(self.settings.block_operations_max().min(chunk))
    }

    /// The network to emulate, if there is one; `None` also for one that validation refuses.
    #[must_use]
    pub fn topology(&self) -> Option<Topology> {
        self.emulation.as_ref()?.topology(usize::from(self.validators)).ok()
    }

    /// Warm-up and measured window together.
    #[must_use]
    pub fn load_span(&self) -> Duration {
        Duration::from_secs(self.warmup_s + self.duration_s)
    }

    /// The whole of it, for the result.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let text = |list: &[At]| list.iter().map(At::to_string).collect::<Vec<_>>();
        json!({
            "validators": self.validators,
            "weights": self.weights().each(),
            "scheme": self.scheme.to_string(),
            "existing_keys": self.members.is_some(),
            "load": self.load,
            "rate": self.rate,
            "outstanding": self.outstanding,
            "send_to": self.send_to,
            "tx_bytes": self.tx_bytes,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "drain_s": self.drain_s,
            "kill": text(&self.kills),
            "restart": text(&self.restarts),
            "pause": self.pauses.iter().map(Pause::to_string).collect::<Vec<_>>(),
            "crowd": text(&self.crowds),
            "descriptors": self.descriptors,
            "cut": self.cuts.iter().map(Cut::to_string).collect::<Vec<_>>(),
            "change": self.changes.iter().map(PlannedChange::to_string).collect::<Vec<_>>(),
            "liar": self.lies.iter().map(Lie::to_string).collect::<Vec<_>>(),
            "durability": self.durability.to_string(),
            "retention_bytes": self.retention_bytes,
            "service": self.service.to_string(),
            "mix": self.transactions(),
            "reads": self.reads,
            "sessions": self.session_count(),
            "bundle_delay_ms": self.bundle_delay_ms,
            "retry_after_ms": self.retry_after_ms,
            "seed": self.seed,
            "settings": self.settings,
            "emulation": self.emulation,
        })
    }

    /// Description of the EVM ledger's transactions.
    fn transactions(&self) -> Option<String> {
        let kind = self.trace.as_ref().map_or(self.mix.shape.to_string(), |_| "recorded".into());
        (self.service == ServiceKind::Evm).then_some(kind)
    }

    /// Offered load in words.
    #[must_use]
    pub fn offered(&self) -> String {
        match self.load {
            Shape::Closed => format!("{} × {}", self.session_count(), self.outstanding),
            Shape::Fixed | Shape::Poisson => format!("{}/s", thousands(self.rate)),
        }
    }

    /// Operations that may be under way without anybody lagging: about a second's worth.
    pub(super) fn under_way_max(&self) -> u64 {
        match self.load {
            Shape::Closed => self.session_count() as u64 * self.outstanding,
            Shape::Fixed | Shape::Poisson => self.rate,
        }
    }

    /// The load to offer.
    pub(super) fn plan(&self) -> Plan {
        Plan {
            shape: self.load,
            rate: self.rate,
            outstanding: self.outstanding,
            content: match self.service {
                ServiceKind::Kv => Content::Puts { keys: self.keys },
                ServiceKind::Evm => Content::Transactions(self.mix),
                ServiceKind::Log | ServiceKind::Noop | ServiceKind::Payments => Content::Random,
            },
            ready: match self.load {
                Shape::Fixed | Shape::Poisson => self.rate * (self.warmup_s + self.duration_s),
                Shape::Closed => 0,
            },
            operation_bytes: self.tx_bytes,
            seed: self.seed,
        }
    }

    /// Genesis of the EVM ledger, if that is what is replicated.
    pub(super) fn genesis(&self) -> Option<Genesis> {
        let recorded = self.trace.as_ref().map(|trace| trace.genesis.clone());
        let mix = || self.mix.start(self.seed).genesis();
        (self.service == ServiceKind::Evm).then(|| recorded.unwrap_or_else(mix))
    }

    /// The operations of the load.
    pub(super) fn payload(&self) -> Payload {
        match &self.trace {
            Some(trace) => Payload::recorded(&self.plan(), &trace.transactions),
            None => Payload::new(&self.plan()),
        }
    }

    /// Members that do not run, for want of keys.
    #[must_use]
    pub fn absent(&self) -> Vec<u16> {
        let absent = self.members.as_ref().map(|members| members.absent()).unwrap_or_default();
        absent.into_iter().filter_map(|member| u16::try_from(member).ok()).collect()
    }

    /// Behaviour of each validator that lies.
    pub(super) fn liars(&self) -> BTreeMap<u16, String> {
        let each = self.lies.iter().filter_map(|lie| Some((lie.liar()?, lie.behaviour.clone())));
        each.collect()
    }

    /// Members that are killed and not started again; a role is filled by somebody who is not known
    /// yet.
    fn dead_at_the_end(&self) -> Vec<Target> {
        let last = |list: &[At], who| {
            let of_it = list.iter().filter(|at| at.who == who);
            of_it.map(|at| at.second).fold(-1.0, f64::max)
        };
        let mut killed: Vec<Target> = self.kills.iter().map(|at| at.who).collect();
        killed.retain(|&who| last(&self.kills, who) > last(&self.restarts, who));
        killed.sort_by_key(ToString::to_string);
        killed.dedup();
        killed
    }

    /// The weight of a member, or the most that whoever fills a role may have.
    fn weight_of(&self, who: Target) -> u64 {
        let weights = self.weights();
        let each = weights.each();
        match who {
            // A newcomer weighs 1, or as much as whom it replaces.
            Target::Member(id) if id < self.validators => each[usize::from(id)],
            _ => each.iter().copied().max().unwrap_or(1),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

/// For tests of what takes a configuration.
#[cfg(test)]
pub(super) use tests::config as sample;

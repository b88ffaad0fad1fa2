//! Configuration of a bench.

use super::changes::{self, PlannedChange};
use super::events::{At, Cut, Lie, Pause, Target};
use super::evm::{CHUNK_TRANSACTIONS, Trace};
use crate::ServiceKind;
use crate::load::{Content, LoadConfig, MixPlan, Payload, Plan, Shape};
use quorate_crypto::SchemeKind;
use quorate_engine::Settings;
use quorate_ledger::evm::Genesis;
use quorate_node::{Archive, ExistingKeys};
use quorate_storage::Durability;
use quorate_types::Weights;
use quorate_wan::{Emulation, Topology};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// Load that is offered to it.
    pub load: LoadConfig,
    /// Most seconds by which the warm-up is longer, until every validator has committed for two
    /// seconds what is offered; 0 for one of fixed length.
    pub settle_s: u64,
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
    /// Past states that a validator keeps.
    pub archive: Archive,
    /// Service that is replicated.
    pub service: ServiceKind,
    /// `true` to put every key before the load, with the key-value store.
    pub fill: bool,
    /// `true` to kill a validator after the load and measure how long its start takes.
    pub time_restart: bool,
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
        self.load.validate()?;
        self.settings.validate().map_err(|error| error.to_string())?;
        let weights = self.base_weights().with_redundancy(self.redundancy);
        let weights = weights.map_err(|error| error.to_string())?;
        let fits = self.settings.protocol.check_committee(&weights, self.scheme);
        fits.map_err(|error| error.to_string())?;
        let emulated = self.emulation.as_ref().map_or(Ok(()), |wan| wan.topology(1).map(drop));
        emulated.map_err(|error| error.to_string())?;
        let in_order = self.load.shape == Shape::Closed && self.load.sessions == Some(1);
        let fits = self.trace.is_none() || self.service == ServiceKind::Evm && in_order;
        let rule = "--trace is for --service evm, --load closed and --sessions 1: in their order";
        check(fits, rule.into())?;
        let fits = self.reads == 0 || self.service == ServiceKind::Evm;
        check(fits, "--reads is for --service evm".into())?;
        let fits = !self.fill || self.service == ServiceKind::Kv;
        check(fits, "--fill is for --service kv: other services have no keys to put".into())?;
        let fits = !self.time_restart || self.validators >= 4 && self.absent().is_empty();
        let rule = "--time-restart is for four validators or more, all of whom run";
        check(fits, rule.into())?;
        let rule = "--time-restart is for a committee to which nothing else is done: leave --kill, \
                    --pause, --cut, --crowd, --change and lies out";
        check(!self.time_restart || !self.is_disturbed(), rule.into())?;
        let is_measured = self.service != ServiceKind::Payments;
        check(is_measured, "releases of coins are not measured".into())?;
        self.validate_events()
    }

    fn validate_events(&self) -> Result<(), String> {
        let check = |ok: bool, rule: String| if ok { Ok(()) } else { Err(rule) };
        let newcomers = self.newcomers()?;
        let (n, end) = (self.validators + newcomers, self.load.duration_s);
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

    /// Returns `true` if something is done to the committee while it is under load.
    fn is_disturbed(&self) -> bool {
        let members = !(self.kills.is_empty() && self.pauses.is_empty() && self.lies.is_empty());
        members || !(self.cuts.is_empty() && self.crowds.is_empty() && self.changes.is_empty())
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
            let end = self.load.duration_s;
            if change.second > end as f64 {
                return Err(refused(format!("the load ends after {end} seconds")));
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

    /// Most operations that share a request: never more than a block takes.
    #[must_use]
    pub fn request_max(&self) -> usize {
        let chunk = if self.trace.is_some() { CHUNK_TRANSACTIONS } else { usize::MAX };
        self.settings.block_operations_max().min(chunk)
    }

    /// The network to emulate, if there is one; `None` also for one that validation refuses.
    #[must_use]
    pub fn topology(&self) -> Option<Topology> {
        self.emulation.as_ref()?.topology(usize::from(self.validators)).ok()
    }

    /// The load with its longest warm-up.
    pub(super) fn longest_load(&self) -> LoadConfig {
        LoadConfig { warmup_s: self.load.warmup_s + self.settle_s, ..self.load.clone() }
    }

    /// Name of its panel.
    pub(super) fn title(&self) -> String {
        let Self { validators, scheme, durability, .. } = self;
        format!("quorate bench · {validators} validators · {scheme} · {durability}")
    }

    /// The whole of it, for the result.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let text = |list: &[At]| list.iter().map(At::to_string).collect::<Vec<_>>();
        let mut described = self.load.to_json();
        let own = json!({
            "validators": self.validators,
            "weights": self.weights().each(),
            "scheme": self.scheme.to_string(),
            "settle_s": self.settle_s,
            "existing_keys": self.members.is_some(),
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
            "archive": self.archive,
            "service": self.service.to_string(),
            "keys": (self.service == ServiceKind::Kv).then_some(self.load.keys),
            "fill": self.fill,
            "time_restart": self.time_restart,
            "mix": self.transactions(),
            "reads": self.reads,
            "settings": self.settings,
            "emulation": self.emulation,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut described, own) {
            all.extend(own);
        }
        described
    }

    /// Description of the EVM ledger's transactions.
    fn transactions(&self) -> Option<String> {
        let kind = self.trace.as_ref().map_or(self.mix.shape.to_string(), |_| "recorded".into());
        (self.service == ServiceKind::Evm).then_some(kind)
    }

    /// The load to offer.
    pub(super) fn plan(&self) -> Plan {
        self.load.plan(match self.service {
            ServiceKind::Kv => Content::Puts { keys: self.load.keys },
            ServiceKind::Evm => Content::Transactions(self.mix),
            ServiceKind::Log | ServiceKind::Noop | ServiceKind::Payments => Content::Random,
        })
    }

    /// Genesis of the EVM ledger, if that is what is replicated.
    pub(super) fn genesis(&self) -> Option<Genesis> {
        let recorded = self.trace.as_ref().map(|trace| trace.genesis.clone());
        let mix = || self.mix.start(self.load.seed).genesis();
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

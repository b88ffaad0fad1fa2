//! What a bench is asked to do.

use crate::ServiceKind;
use quorate_crypto::SchemeKind;
use quorate_engine::Settings;
use quorate_storage::Durability;
use quorate_wan::{Emulation, Topology};
use quorate_types::Weights;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Everything that decides how a bench runs. All of it is repeated in the result.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// Members of the committee, one process each.
    pub validators: u16,
    /// The members' voting weights, as many as there are validators; `None` for 1 each.
    pub weights: Option<Weights>,
    /// The voting scheme.
    pub scheme: SchemeKind,
    /// Operations offered per second, whether or not the committee keeps up.
    pub rate: u64,
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
    /// Killed validators to start again, and when.
    pub restarts: Vec<At>,
    /// What a validator waits for before it calls a record durable.
    pub durability: Durability,
    /// What is replicated.
    pub service: ServiceKind,
    /// Client sessions; `None` lets the rate decide.
    pub sessions: Option<usize>,
    /// How long a client waits for operations to share a request.
    pub bundle_delay_ms: u64,
    /// How long a request may stay unanswered before it goes to the next validator.
    pub retry_after_ms: u64,
    /// Decides the clients' keys and the operations' bytes.
    pub seed: u64,
    /// The replicas' settings.
    pub settings: Settings,
    /// A network to emulate between members, and between them and the clients beside each.
    pub emulation: Option<Emulation>,
    /// Where to put the committee, which is then kept; `None` for a temporary place, which is not.
    pub directory: Option<PathBuf>,
    /// The `quorate` binary that runs the validators.
    pub executable: PathBuf,
}

/// A validator and a moment, written `I@T`: T seconds into the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Which validator.
    pub validator: u16,
    /// Seconds after the measured window opens.
    pub second: f64,
}

/// A text that is not `I@T`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not I@T: a validator's number, '@', and seconds, as in 0@5")]
pub struct NotAt(String);

impl FromStr for At {
    type Err = NotAt;

    fn from_str(text: &str) -> Result<Self, NotAt> {
        let parse = || {
            let (validator, second) = text.split_once('@')?;
            let second: f64 = second.parse().ok()?;
            let at = Self { validator: validator.parse().ok()?, second };
            (second.is_finite() && second >= 0.0).then_some(at)
        };
        parse().ok_or_else(|| NotAt(text.to_owned()))
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.validator, self.second)
    }
}

/// The shortest view that an emulated network allows for: eight of the farthest round trips, in
/// milliseconds. A view's certificates and bodies travel several of them, and less patience is still
/// an eighth of it.
#[must_use]
pub fn fitting_timeout_ms(network: &Topology) -> u64 {
    let farthest_ms = network.farthest_round_trip().as_secs_f64() * 1_000.0;
    (8.0 * farthest_ms).ceil() as u64
}

/// Operations per second that one session carries before the next one is opened.
const SESSION_RATE: u64 = 5_000;
const SESSIONS_MAX: u64 = 256;

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
        let emulated = self.emulation.as_ref().map_or(Ok(()), |wan| wan.topology(1).map(drop));
        emulated.map_err(|error| error.to_string())?;
        for at in self.kills.iter().chain(&self.restarts) {
            check(at.validator < n, format!("{at}: there are only validators 0 to {}", n - 1))?;
            let end = self.duration_s;
            check(at.second <= end as f64, format!("{at}: the load ends after {end} seconds"))?;
        }
        for restart in &self.restarts {
            let killed =
                |kill: &At| kill.validator == restart.validator && kill.second < restart.second;
            let ok = self.kills.iter().any(killed);
            check(ok, format!("--restart {restart}: no --kill of that validator comes before"))?;
        }
        let weights = self.weights();
        let dead = self.dead_at_the_end();
        let weight: u64 = dead.iter().map(|id| weights.of(*id)).sum();
        let what = if weights.are_equal() { "validators" } else { "units of weight" };
        let (total, bearable) = (weights.total(), weights.faulty_max());
        let rule = format!(
            "--kill leaves {weight} of {total} {what} dead, and a committee of {total} bears \
             {bearable}: kill fewer, or --restart some"
        );
        check(weight <= bearable, rule)
    }

    /// The members' weights: 1 each unless others were asked for.
    #[must_use]
    pub fn weights(&self) -> Weights {
        let equal = || Weights::equal(usize::from(self.validators));
        self.weights.clone().unwrap_or_else(equal)
    }

    /// How many sessions carry the load: enough for the rate, each with another first validator.
    #[must_use]
    pub fn session_count(&self) -> usize {
        let wanted = self.rate.div_ceil(SESSION_RATE).clamp(4, SESSIONS_MAX);
        self.sessions.unwrap_or(wanted as usize)
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
            "rate": self.rate,
            "tx_bytes": self.tx_bytes,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "drain_s": self.drain_s,
            "kill": text(&self.kills),
            "restart": text(&self.restarts),
            "durability": self.durability.to_string(),
            "service": self.service.to_string(),
            "sessions": self.session_count(),
            "bundle_delay_ms": self.bundle_delay_ms,
            "retry_after_ms": self.retry_after_ms,
            "seed": self.seed,
            "settings": self.settings,
            "emulation": self.emulation,
        })
    }

    fn dead_at_the_end(&self) -> Vec<usize> {
        let last = |list: &[At], validator| {
            let of_it = list.iter().filter(|at| at.validator == validator);
            of_it.map(|at| at.second).fold(-1.0, f64::max)
        };
        let dead = |&i: &u16| last(&self.kills, i) > last(&self.restarts, i);
        (0..self.validators).filter(dead).map(usize::from).collect()
    }
}

#[cfg(test)]
mod tests;

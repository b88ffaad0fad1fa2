//! Configuration of a load: what is offered, and how clients bring it.

use super::{Content, Plan, Shape};
use quorate_crypto::IdentitySecret;
use quorate_engine::{Bundling, ClientConfig, Session, SessionSpec};
use quorate_report::text::thousands;
use quorate_types::{History, ReplicaId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;

/// Everything that decides what is offered to a committee, whoever runs it.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Moments at which operations are offered.
    pub shape: Shape,
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
    /// Client sessions; `None` lets the rate decide.
    pub sessions: Option<usize>,
    /// Time that a client waits for operations to share a request.
    pub bundle_delay_ms: u64,
    /// Time until an unanswered request goes to the next validator.
    pub retry_after_ms: u64,
    /// Decides the operations' bytes and random moments.
    pub seed: u64,
    /// Keys that are written, with the key-value store.
    pub keys: u64,
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

/// Operations per second that one session carries before the next one is opened.
const SESSION_RATE: u64 = 20_000;
const SESSIONS_MAX: u64 = 256;

/// Number of sessions for a rate, at least one for each validator of the smallest committee.
#[must_use]
pub fn sessions_for(rate: u64) -> usize {
    rate.div_ceil(SESSION_RATE).clamp(4, SESSIONS_MAX) as usize
}

impl LoadConfig {
    /// Checks ranges.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn validate(&self) -> Result<(), String> {
        let check = |ok: bool, rule: &str| if ok { Ok(()) } else { Err(rule.to_owned()) };
        check(self.duration_s >= 1, "--duration must be at least 1 second")?;
        check((1..=10_000_000).contains(&self.rate), "--rate must be 1 to 10000000")?;
        check((1..=65_536).contains(&self.tx_bytes), "--tx-bytes must be 1 to 65536")?;
        check(self.sessions != Some(0), "--sessions must be at least 1")?;
        let most = Session::QUEUE_MAX as u64;
        let rule = format!("--outstanding must be 1 to {most}");
        check((1..=most).contains(&self.outstanding), &rule)
    }

    /// Number of sessions that carry the load: enough for the rate, each with another first
    /// validator.
    #[must_use]
    pub fn session_count(&self) -> usize {
        let wanted = match self.shape {
            Shape::Closed => 4,
            Shape::Fixed | Shape::Poisson => sessions_for(self.rate),
        };
        self.sessions.unwrap_or(wanted)
    }

    /// Warm-up and measured window together.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_secs(self.warmup_s + self.duration_s)
    }

    /// Offered load in words.
    #[must_use]
    pub fn offered(&self) -> String {
        match self.shape {
            Shape::Closed => format!("{} × {}", self.session_count(), self.outstanding),
            Shape::Fixed | Shape::Poisson => format!("{}/s", thousands(self.rate)),
        }
    }

    /// Operations that may be under way without anybody lagging: about a second's worth.
    #[must_use]
    pub fn under_way_max(&self) -> u64 {
        match self.shape {
            Shape::Closed => self.session_count() as u64 * self.outstanding,
            Shape::Fixed | Shape::Poisson => self.rate,
        }
    }

    /// The load to offer, of this content.
    #[must_use]
    pub fn plan(&self, content: Content) -> Plan {
        Plan {
            shape: self.shape,
            rate: self.rate,
            outstanding: self.outstanding,
            content,
            ready: match self.shape {
                Shape::Fixed | Shape::Poisson => self.rate * (self.warmup_s + self.duration_s),
                Shape::Closed => 0,
            },
            operation_bytes: self.tx_bytes,
            seed: self.seed,
        }
    }

    /// The sessions that carry it, from the last of these epochs on: their keys by their number,
    /// first validators in turn. A request has at most so many operations.
    ///
    /// # Panics
    /// Never: members are counted in 16 bits.
    #[must_use]
    pub fn client(
        &self,
        history: History,
        operations_max: usize,
        key: impl Fn(usize) -> IdentitySecret,
    ) -> ClientConfig {
        let members = history.committee().size();
        let spec = |index: usize| {
            let first = u16::try_from(index % members).expect("members are counted in 16 bits");
            SessionSpec::fresh(key(index), ReplicaId(first))
        };
        let specs = (0..self.session_count()).map(spec).collect();
        let delay = Duration::from_millis(self.bundle_delay_ms);
        ClientConfig {
            bundling: Bundling::after(delay).at_most(operations_max),
            retry_after: Duration::from_millis(self.retry_after_ms),
            send_to_all: self.send_to == SendTo::All,
            ..ClientConfig::after(history, specs)
        }
    }

    /// The whole of it, for the result.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "load": self.shape,
            "rate": self.rate,
            "outstanding": self.outstanding,
            "send_to": self.send_to,
            "tx_bytes": self.tx_bytes,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "drain_s": self.drain_s,
            "sessions": self.session_count(),
            "bundle_delay_ms": self.bundle_delay_ms,
            "retry_after_ms": self.retry_after_ms,
            "seed": self.seed,
        })
    }
}

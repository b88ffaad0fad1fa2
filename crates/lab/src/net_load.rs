//! Load on a committee that runs already, wherever: the same as a bench's, and nothing else of one.
//!
//! # How it measures
//!
//! As [`mod@crate::bench`]: operations are scheduled ahead, latency runs from an operation's
//! scheduled time to its (f+1)-th equal signed reply, by this machine's clock alone. The committee
//! is not this command's: it may lose members, have other clients and change its epoch meanwhile.
//! The sessions go on as any client's do.
//!
//! What validators say of themselves is in the result where somebody named their addresses, and
//! absent where nobody did: then the committed rate is that of this load's answers.

mod accounts;
mod clients;
mod drive;
mod error;

pub use accounts::Funds;
pub use error::NetLoadError;

use crate::ServiceKind;
use crate::bench::Progress;
use crate::http::Door;
use crate::load::measure::{Recorder, Schedule};
use crate::load::sessions;
use crate::load::{Content, Load, LoadConfig, Payload};
use clients::Clients;
use drive::{Drive, Given};
use parking_lot::Mutex;
use quorate_crypto::IdentitySecret;
use quorate_report::Report;
use quorate_report::results::Share;
use quorate_types::History;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

/// Time between the announcement of a load and its first operation.
const HEAD_START: Duration = Duration::from_millis(50);

/// Everything that decides a load on a running committee.
#[derive(Debug)]
pub struct NetLoad {
    /// Load that is offered.
    pub load: LoadConfig,
    /// Epochs of the network, as far as they are known.
    pub history: History,
    /// Service of the committee, by its file.
    pub service: ServiceKind,
    /// Key that vouches for the sessions, where members let in listed clients alone.
    pub vouching: Option<IdentitySecret>,
    /// Place of this load among several.
    pub share: Option<Share>,
    /// Accounts that send the transactions in turn, with the EVM ledger.
    pub accounts: usize,
    /// Account that pays for the senders, with the EVM ledger.
    pub funds: Option<Funds>,
    /// Doors of validators' status; none to look at no validator.
    pub status: Vec<Door>,
    /// Moment of the first operation; `None` for as soon as the sessions are open.
    pub start_at: Option<SystemTime>,
}

/// Result of a load.
#[derive(Debug)]
pub struct Finished {
    /// Everything that was measured.
    pub report: Report,
    /// Epochs of the network as far as the sessions followed them.
    pub history: Arc<History>,
}

impl NetLoad {
    /// Checks ranges and what the service takes.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn validate(&self) -> Result<(), NetLoadError> {
        self.load.validate().map_err(NetLoadError::Config)?;
        let refused = |rule: &str| Err(NetLoadError::Config(rule.to_owned()));
        match (self.service, &self.funds) {
            (ServiceKind::Payments, _) => refused(
                "this committee orders the releases of a payment network, which are not measured: \
                 `quorate pay load` puts a payment network under load",
            ),
            (ServiceKind::Evm, None) => refused(
                "this committee's service is the EVM ledger, whose operations cost ether: name its \
                 genesis by --genesis, for one of its development accounts, or an account's key by \
                 --funds",
            ),
            _ => Ok(()),
        }
    }

    /// Runs the load. Setting `interrupted` ends it early, without a result.
    ///
    /// # Errors
    /// [`NetLoadError`].
    pub fn run(
        &self,
        progress: &Progress,
        interrupted: &AtomicBool,
    ) -> Result<Finished, NetLoadError> {
        self.validate()?;
        progress.say("opening client sessions");
        let clients = Clients::open(self, interrupted)?;
        let payload = self.payload(&clients, progress, interrupted)?;
        let schedule = self.schedule(progress)?;
        let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
        let plan = self.load.plan(self.content());
        let (target, answers) = sessions::ends(&clients.client, self.load.session_count());
        let load = Load::start(schedule, plan, payload, target, answers, Arc::clone(&recorder));
        let given =
            Given { of: self, clients: &clients, progress, interrupted, schedule, recorder };
        let mut drive = Drive::new(given);
        drive.under_load()?;
        drive.drain()?;
        drop(load);
        Ok(Finished { report: drive.conclude(), history: clients.client.history() })
    }

    fn content(&self) -> Content {
        match self.service {
            ServiceKind::Kv => Content::Puts { keys: self.load.keys },
            ServiceKind::Evm => Content::Ether,
            ServiceKind::Log | ServiceKind::Noop | ServiceKind::Payments => Content::Random,
        }
    }

    /// The operations; of the EVM ledger, with accounts that can pay for them.
    fn payload(
        &self,
        clients: &Clients,
        progress: &Progress,
        interrupted: &AtomicBool,
    ) -> Result<Payload, NetLoadError> {
        let plan = self.load.plan(self.content());
        let Some(funds) = self.funds.as_ref().filter(|_| self.service == ServiceKind::Evm) else {
            return Ok(Payload::new(&plan));
        };
        progress.say(format!("funding {} accounts", self.accounts));
        let mix = accounts::fund(funds, self.accounts, clients, interrupted)?;
        progress.say("signing transactions");
        Ok(Payload::made(&plan, mix))
    }

    /// Begins at the moment that was asked for, or at once.
    fn schedule(&self, progress: &Progress) -> Result<Schedule, NetLoadError> {
        let head_start = match self.start_at {
            Some(at) => at
                .duration_since(SystemTime::now())
                .map_err(|late| NetLoadError::Late { late_s: late.duration().as_secs_f64() })?,
            None => HEAD_START,
        };
        if self.start_at.is_some() {
            progress
                .say(format!("waiting {:.0} s for the moment to begin", head_start.as_secs_f64()));
        }
        Ok(Schedule {
            start: Instant::now() + head_start,
            warmup: Duration::from_secs(self.load.warmup_s),
            window: Duration::from_secs(self.load.duration_s),
        })
    }
}

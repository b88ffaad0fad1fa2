//! The sessions of a load, on a network that is somebody else's.

use super::{NetLoad, NetLoadError};
use crate::ServiceKind;
use quorate_crypto::IdentitySecret;
use quorate_engine::{CheckAnswer, ClientConfig, reject_answers};
use quorate_ledger::evm::{ProofOf, verify_account};
use quorate_node::Client;
use quorate_node::testnet::system_random;
use quorate_types::Header;
use quorate_types::service::Proven;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for the sessions to reach all validators, after which a quorum is enough.
const ALL: Duration = Duration::from_secs(3);

/// Time for the sessions to reach a quorum.
const QUORUM: Duration = Duration::from_secs(15);

/// Interval at which the connections are looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// Sessions that reach a quorum.
pub(super) struct Clients {
    pub(super) client: Arc<Client>,
}

impl Clients {
    /// Opens as many sessions as the load needs, and waits until each reaches every validator, or a
    /// quorum after a while. Their keys are new: no load goes on where another one ended.
    pub(super) fn open(of: &NetLoad, interrupted: &AtomicBool) -> Result<Self, NetLoadError> {
        let config = of.load.client(of.history.clone(), usize::MAX, |_| new_key());
        let is_evm = of.service == ServiceKind::Evm;
        let check_answer = if is_evm { check_account } else { reject_answers };
        let check_answer = CheckAnswer::new(check_answer);
        let config = ClientConfig { check_answer, ..config };
        let config = match &of.vouching {
            Some(key) => config.vouched_by(key),
            None => config,
        };
        let client = Client::connect(&config);
        let client = client.map_err(|error| NetLoadError::Client(error.to_string()))?;
        let clients = Self { client: Arc::new(client) };
        clients.wait_connected(interrupted)?;
        Ok(clients)
    }

    fn wait_connected(&self, interrupted: &AtomicBool) -> Result<(), NetLoadError> {
        let begun = Instant::now();
        loop {
            self.check()?;
            let (reached, members) = (self.client.members_connected(), self.members());
            let waited = begun.elapsed();
            if reached >= members || self.client.reaches_quorum() && waited >= ALL {
                return Ok(());
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(NetLoadError::Interrupted);
            }
            if waited >= QUORUM {
                let seconds = QUORUM.as_secs();
                return Err(NetLoadError::NotConnected { seconds, reached, members });
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn members(&self) -> usize {
        self.client.history().committee().size()
    }

    /// Tells whether the sessions may go on.
    pub(super) fn check(&self) -> Result<(), NetLoadError> {
        if let Some(reason) = *self.client.turned_away().borrow() {
            return Err(NetLoadError::TurnedAway(reason.to_owned()));
        }
        match self.client.outdated() {
            Some(reason) => Err(NetLoadError::Outdated(reason.to_string())),
            None => Ok(()),
        }
    }
}

/// The check of an answer to the query of an account.
fn check_account(question: &[u8], header: &Header, proven: &Proven) -> Result<(), String> {
    let of = ProofOf::decode(question)?;
    verify_account(header.state, &of, proven).map(drop).map_err(|error| error.to_string())
}

fn new_key() -> IdentitySecret {
    let mut seed = [0; 32];
    system_random(&mut seed);
    IdentitySecret::from_seed(seed)
}

//! An authority's shard from epoch to epoch, in one process.
//!
//! ```text
//! newcomer ──▶ votes in e ──▶ closed, serves its report, fetches the others' ──▶ votes in e+1
//!                  ▲                                                                  │
//!                  └──────────────────────────────────────────────────────────────────┘
//! ```

use super::authority::{Authority, status_door};
use super::config::AuthorityConfig;
use super::epochs::{Ended, network_in_force};
use super::mark::Start;
use super::newcomer;
use crate::NodeError;
use crate::shutdown::Shutdown;
use quorate_crypto::KeyFile;

/// Runs a shard until `shutdown`, in each epoch that its authority votes in, and tells `started` of
/// each. `start` is its operator's word on the first of these starts.
///
/// # Errors
/// What it failed with.
pub fn run_authority(
    config: &AuthorityConfig,
    keys: &KeyFile,
    mut start: Start,
    shutdown: &Shutdown,
    mut started: impl FnMut(&Authority),
) -> Result<(), NodeError> {
    // Files of users and certificates that are broken meanwhile end nothing at an epoch's border.
    let door = status_door(config)?;
    loop {
        let network = network_in_force(config)?;
        let votes = network.committee().find(&keys.identity.public()).is_some();
        let ended = match &config.committee {
            Some(committee) if !votes => {
                newcomer::wait((config, committee), keys, &network, shutdown)?
            }
            _ => {
                let authority = Authority::open(config, keys, (start, door.clone()))?;
                started(&authority);
                authority.wait(shutdown)?
            }
        };
        start = Start::Again;
        match ended {
            Ended::Stopped => return Ok(()),
            Ended::Superseded(beginning) => beginning.begin(config, keys)?,
        }
    }
}

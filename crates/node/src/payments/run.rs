//! An authority's shard from epoch to epoch, in one process.
//!
//! ```text
//! newcomer ──▶ votes in e ──▶ closed, serves its report, fetches the others' ──▶ votes in e+1
//!                  ▲                                                                  │
//!                  └──────────────────────────────────────────────────────────────────┘
//! ```

use super::authority::Authority;
use super::config::AuthorityConfig;
use super::epochs::{Ended, network_in_force};
use super::newcomer;
use crate::NodeError;
use crate::shutdown::Shutdown;
use quorate_crypto::KeyFile;

/// Start of an [`Authority`].
type Start = fn(&AuthorityConfig, &KeyFile) -> Result<Authority, NodeError>;

/// Runs a shard until `shutdown`, in each epoch that its authority votes in, and tells `started` of
/// each. `first` starts it first: [`Authority::start`], or [`Authority::start_first`].
///
/// # Errors
/// What it failed with.
pub fn run_authority(
    config: &AuthorityConfig,
    keys: &KeyFile,
    first: Start,
    shutdown: &Shutdown,
    mut started: impl FnMut(&Authority),
) -> Result<(), NodeError> {
    let mut start = first;
    loop {
        let network = network_in_force(config)?;
        let votes = network.committee().find(&keys.identity.public()).is_some();
        let ended = match &config.committee {
            Some(committee) if !votes => {
                newcomer::wait((config, committee), keys, &network, shutdown)?
            }
            _ => {
                let authority = start(config, keys)?;
                started(&authority);
                authority.wait(shutdown)?
            }
        };
        start = Authority::start;
        match ended {
            Ended::Stopped => return Ok(()),
            Ended::Superseded(beginning) => beginning.begin(config, keys)?,
        }
    }
}

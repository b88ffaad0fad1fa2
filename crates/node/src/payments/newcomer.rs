//! A shard of an authority that votes in no epoch so far: it waits for the change that takes it in,
//! and begins that epoch.

use super::committee::ReleaseCommittee;
use super::config::AuthorityConfig;
use super::epochs::{Beginning, Ended, Succession};
use super::order::{Interruption, Listener, OrderReader};
use crate::NodeError;
use crate::shutdown::Shutdown;
use crate::validator::start_runtime;
use quorate_crypto::KeyFile;
use quorate_payments::Network;
use quorate_payments::committee::Ordered;
use std::path::Path;

/// Waits until the next epoch can begin here, on the way to one that the keys in `keys` vote in.
///
/// # Errors
/// When the committee's order is not this network's, or the disk fails.
pub(super) fn wait(
    (config, committee): (&AuthorityConfig, &Path),
    keys: &KeyFile,
    network: &Network,
    shutdown: &Shutdown,
) -> Result<Ended, NodeError> {
    ReleaseCommittee::check(committee, network)?;
    let runtime = start_runtime(config.network_threads)?;
    let succession = Succession::new(config, &keys.identity, network, runtime.handle())?;
    let key = keys.identity.public();
    tracing::info!(%key, "no authority of this network yet: waiting for a change that names it");
    let reader = OrderReader::new(committee, shutdown.triggered.clone());
    let beginning = reader.run(&mut Waiting { succession, next: 0 })?;
    Ok(beginning.map_or(Ended::Stopped, Ended::Superseded))
}

/// Follows the order for the changes in it.
struct Waiting {
    succession: Succession,
    next: u64,
}

impl Listener for Waiting {
    fn rewind(&mut self) {
        self.next = 0;
        self.succession.rewind();
    }

    fn next(&self) -> u64 {
        self.next
    }

    fn take(&mut self, ordered: Ordered) -> Result<(), NodeError> {
        self.next += 1;
        self.succession.take(&ordered)
    }

    fn settle(&mut self, _: &ReleaseCommittee) -> Result<Option<Beginning>, Interruption> {
        self.succession.advance().map_err(Interruption::Failed)
    }

    fn is_pressing(&self) -> bool {
        self.succession.is_at_border()
    }

    fn show(&mut self, _: Option<String>) {}
}

//! The clients of a bench: sessions beside the validators, on its network.

use super::BenchError;
use super::config::BenchConfig;
use quorate_crypto::{IdentitySecret, hash_parts};
use quorate_node::Client;
use quorate_types::{Committee, History};
use std::sync::Arc;
use std::time::Duration;

/// Time for the sessions to reach every validator.
const CONNECTING: Duration = Duration::from_secs(15);

/// Opens as many sessions as the load needs, and waits until each reaches every validator. Keys
/// follow from the seed, first validators go round.
pub(super) fn open(
    config: &BenchConfig,
    committee: Arc<Committee>,
) -> Result<Arc<Client>, BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Client(error.to_string());
    let members = committee.size();
    let key = |index| client_key(config.load.seed, index);
    let client_config = config.load.client(History::new(committee), config.request_max(), key);
    let client = match config.topology() {
        Some(topology) => Client::connect_emulated(&client_config, &topology),
        None => Client::connect(&client_config),
    };
    let client = client.map_err(|error| failed(&error))?;
    let running = members - config.absent().len();
    if !client.wait_connected(running, CONNECTING) {
        let reached = client.members_connected();
        let text = format!("after {} s one reaches {reached} of {running}", CONNECTING.as_secs());
        return Err(BenchError::Client(text));
    }
    Ok(Arc::new(client))
}

fn client_key(seed: u64, index: usize) -> IdentitySecret {
    let index = index as u64;
    let parts: [&[u8]; 2] = [&seed.to_be_bytes(), &index.to_be_bytes()];
    IdentitySecret::from_seed(hash_parts("quorate v1 bench client", &parts).0)
}

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
/// follow from the seed and the turn, for a key serves one client; first validators go round.
pub(super) fn open(
    config: &BenchConfig,
    committee: Arc<Committee>,
    turn: u64,
) -> Result<Arc<Client>, BenchError> {
    open_with(config, committee, config.request_max(), turn)
}

/// The same before any turn, for operations that share no request.
pub(super) fn open_for_single(
    config: &BenchConfig,
    committee: Arc<Committee>,
) -> Result<Arc<Client>, BenchError> {
    open_with(config, committee, 1, 0)
}

fn open_with(
    config: &BenchConfig,
    committee: Arc<Committee>,
    operations_max: usize,
    turn: u64,
) -> Result<Arc<Client>, BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Client(error.to_string());
    let members = committee.size();
    let key = |index| client_key(config.load.seed, turn, index);
    let client_config = config.load.client(History::new(committee), operations_max, key);
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

fn client_key(seed: u64, turn: u64, index: usize) -> IdentitySecret {
    let parts = [seed, turn, index as u64].map(u64::to_be_bytes);
    let parts: Vec<&[u8]> = parts.iter().map(<[u8; 8]>::as_slice).collect();
    IdentitySecret::from_seed(hash_parts("quorate v1 bench client", &parts).0)
}

//! A validator that lies as the simulator's members do: `quorate bench --liar` in builds with the
//! feature `liar`.

use quorate_consensus::Verifier;
use quorate_crypto::KeyFile;
use quorate_engine::{Incoming, Message};
use quorate_node::liar::{Liar, Voice};
use quorate_node::{NodeConfig, NodeError};
use quorate_sim::byzantine::{Behaviour, Impostor};
use quorate_types::Recipients;
use std::sync::Arc;
use std::time::Duration;

/// Voice of the validator with this configuration, for when it lies.
pub(super) fn voice(
    config: &NodeConfig,
    keys: &KeyFile,
    behaviour: Behaviour,
) -> Result<Voice, NodeError> {
    let committee = Arc::new(config.load_committee()?);
    let id = committee.find(&keys.identity.public()).unwrap_or_default();
    let settings = &config.replica;
    let verifier = Verifier::new(committee, settings.protocol, settings.comparison.proposal_key);
    let timeout = Duration::from_millis(settings.timeout_ms);
    let impostor = Impostor::new(id, behaviour, keys, Arc::new(verifier), timeout);
    Voice::on_signal(Box::new(Adapted(impostor)))
}

/// The simulator's liar as a validator asks one.
struct Adapted(Impostor);

impl Liar for Adapted {
    fn hear(&mut self, message: &Incoming) {
        if let Incoming::Consensus(said) = message {
            self.0.hear(said);
        }
    }

    fn speak(&mut self, to: Recipients, message: Message) -> Vec<(Duration, Recipients, Message)> {
        self.0.speak(to, message)
    }

    fn flood(&mut self, count: usize) -> Vec<Message> {
        self.0.flood(count)
    }
}

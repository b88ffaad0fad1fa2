//! A faulty member's voice for a host in real time: the laboratory's validators lie with it.

use super::Behaviour;
use super::liar::Liar;
use quorate_consensus::{self as consensus, Verifier};
use quorate_crypto::KeyFile;
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_types::{Recipients, ReplicaId};
use std::sync::Arc;
use std::time::Duration;

/// Voice of one faulty member.
#[derive(Debug)]
pub struct Impostor {
    behaviour: Behaviour,
    liar: Option<Liar>,
    verifier: Arc<Verifier>,
    view_timeout: Duration,
    rng: Rng,
}

impl Impostor {
    /// The voice of member `id`, which behaves so; views time out after `view_timeout`.
    #[must_use]
    pub fn new(
        id: ReplicaId,
        behaviour: Behaviour,
        keys: &KeyFile,
        verifier: Arc<Verifier>,
        view_timeout: Duration,
    ) -> Self {
        let liar = Liar::new(id, behaviour, keys);
        let rng = Rng::new(0, "impostor", u64::from(id.0));
        Self { behaviour, liar, verifier, view_timeout, rng }
    }

    /// A message of another member came.
    pub fn hear(&mut self, message: &consensus::Message) {
        if let Some(liar) = &mut self.liar {
            liar.hear(message);
        }
    }

    /// Returns what leaves in the place of a message, and how much later.
    pub fn speak(
        &mut self,
        to: Recipients,
        message: Message,
    ) -> Vec<(Duration, Recipients, Message)> {
        let late = self.behaviour.lateness(&message, self.view_timeout);
        let said = match &mut self.liar {
            Some(liar) => liar.speak(&self.verifier, to, message, &mut self.rng),
            None => vec![(to, message)],
        };
        said.into_iter().map(|(to, message)| (late, to, message)).collect()
    }

    /// Returns `count` messages for everybody that it sends without having anything to say; none
    /// if it floods nobody.
    pub fn flood(&mut self, count: usize) -> Vec<Message> {
        let Some(liar) = &mut self.liar else { return Vec::new() };
        let flood = liar.flood(&self.verifier, count, &mut self.rng);
        flood.into_iter().map(|(_, message)| message).collect()
    }
}

//! Offers to a recovered replica: other values in the views in which it has signed.
//!
//! Everybody's keys are known here, so any member can be made to contradict itself; the replica
//! under test must not. The only part of this lane that knows one protocol from another.

mod blocks;
mod slots;

use super::shared::Shared;
use crate::epoch::EpochConfig;
use blocks::Blocks;
use bytes::Bytes;
use quorate_consensus::ProposalKey;
use quorate_crypto::IdentitySecret;
use quorate_engine::Message;
use quorate_types::{BodyRef, ClientId, Payload, Peer, ReplicaId, Request};
use slots::Slots;
use std::collections::BTreeMap;
use std::time::Duration;

/// Long enough for a body to be sealed and synced, too short for a view to time out.
const A_MOMENT: Duration = Duration::from_millis(3);

/// Longer than any view takes.
const AGES: Duration = Duration::from_secs(2);

/// Statements heard so far, as far as they make an offer.
#[derive(Clone, Default)]
pub(super) struct Heard {
    blocks: Blocks,
    slots: Slots,
    bodies: Bodies,
}

/// Bodies, each with its author and the frame that it came in.
#[derive(Clone, Default)]
struct Bodies(BTreeMap<BodyRef, (ReplicaId, Bytes)>);

/// Something done to a recovered replica.
pub(super) enum Step {
    /// A frame arrives from a peer.
    Frame(Peer, Bytes),
    /// Nothing else happens for so long.
    Wait(Duration),
}

impl Heard {
    /// A message left its host.
    pub(super) fn hear(&mut self, from: ReplicaId, by_subject: bool, message: &Message) {
        match message {
            Message::Body(body) => {
                self.bodies.0.insert(body.reference, (from, content_of(message)));
            }
            Message::Consensus(inner) => {
                if let Some(inner) = inner.chained() {
                    self.blocks.hear(by_subject, inner);
                } else if let Some(inner) = inner.windowed() {
                    self.slots.hear(by_subject, inner);
                }
            }
            _ => {}
        }
    }

    /// First a wait, so that it says again what it has to say; then other values in the places of
    /// those that were proposed, before them and after them, and time to time out.
    pub(super) fn conflicting(
        &self,
        shared: &Shared,
        epoch: &EpochConfig,
        subject: ReplicaId,
    ) -> Vec<Step> {
        let begin = [Step::Wait(A_MOMENT), request(shared, 1), Step::Wait(A_MOMENT)];
        let (others, again) = if epoch.settings.protocol.chained_rules().is_some() {
            (self.blocks.others(epoch, subject, &self.bodies), self.blocks.again(epoch))
        } else {
            (self.slots.others(epoch, subject, &self.bodies), self.slots.again(epoch, subject))
        };
        let between = [Step::Wait(AGES), request(shared, 2), Step::Wait(A_MOMENT)];
        let end = [Step::Wait(AGES)];
        begin.into_iter().chain(others).chain(between).chain(again).chain(end).collect()
    }
}

impl Bodies {
    /// The frames of those that a value orders, as far as they were sealed.
    fn of(&self, payload: &Payload) -> impl Iterator<Item = Step> {
        let known = payload.bodies.iter().filter_map(|body| self.0.get(body));
        known.map(|(from, content)| Step::Frame(Peer::Replica(*from), content.clone()))
    }
}

/// Another value for the same height.
fn another(payload: &Payload) -> Payload {
    let header = payload.header;
    Payload::new(header.height, header.proposed_at_ms + 1, Vec::new())
}

/// Signature of a member as a proposer.
fn sign_as(epoch: &EpochConfig, member: ReplicaId, message: &[u8]) -> Vec<u8> {
    let keys = epoch.keys(member);
    match epoch.settings.comparison.proposal_key {
        ProposalKey::Identity => keys.identity.sign(message).0.to_vec(),
        ProposalKey::Voting => keys.voting.sign(message).0,
    }
}

fn frame(from: ReplicaId, message: quorate_consensus::Message) -> Step {
    Step::Frame(Peer::Replica(from), content_of(&Message::Consensus(message)))
}

/// An operation that nobody has submitted before.
fn request(shared: &Shared, number: u8) -> Step {
    let secret = IdentitySecret::from_seed([200 + number; 32]);
    let (peer, content) = request_of(shared, &secret, 0, &Bytes::from(vec![number; 8]));
    Step::Frame(peer, content)
}

/// A client's request as a frame.
pub(super) fn request_of(
    shared: &Shared,
    secret: &IdentitySecret,
    sequence: u64,
    operation: &Bytes,
) -> (Peer, Bytes) {
    let network = shared.first.committee.network();
    let operations = std::slice::from_ref(operation);
    let request = Request::sign(secret, network, sequence, operations).expect("a small request");
    let peer = Peer::Client(ClientId(secret.public()));
    (peer, content_of(&Message::Request(request)))
}

/// A frame's content, without the length before it.
pub(super) fn content_of(message: &Message) -> Bytes {
    Bytes::from(message.frame().0.concat()).slice(4..)
}

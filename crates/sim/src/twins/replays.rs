//! Statements of one epoch that twins show in the other.

use super::world::{Envelope, Frame, World};
use crate::oracles::{Violation, broken};
use quorate_consensus::{Message, MessageKind};
use quorate_types::{Peer, Verify};

/// Statements of an epoch that are kept to be shown in the other.
const HEARD_MAX: usize = 64;

impl World<'_> {
    /// Returns `true` if twins show in one epoch what is of another, or of none.
    pub(super) fn twins_lie(&self) -> bool {
        self.border.as_ref().is_some_and(|border| border.next.replays)
    }

    /// A twin shows machines of its epoch a statement of the other one.
    pub(super) fn replay(&mut self, epoch: usize, from: usize, said: &Message) {
        let Some(border) = self.border.as_mut().filter(|border| border.next.replays) else {
            return;
        };
        let heard = &mut border.heard[epoch];
        if heard.len() == HEARD_MAX {
            heard.swap_remove(self.order.index(HEARD_MAX));
        }
        heard.push(said.clone());
        let (of, foreign) = (&self.epochs[epoch], &border.heard[1 - epoch]);
        if of.plan.is_honest(from) || foreign.is_empty() {
            return;
        }
        let to = self.order.index(of.plan.machines());
        let frame = Frame::Replayed(self.order.choose(foreign).clone());
        if of.plan.member(to) != of.plan.member(from) {
            self.wire.push_back(Envelope { epoch, from, to, frame });
        }
    }

    /// ★ No statement of one epoch is taken in another.
    pub(super) fn hear_replayed(
        &mut self,
        epoch: usize,
        from: usize,
        to: usize,
        message: Message,
    ) -> Result<(), Violation> {
        let of = &self.epochs[epoch];
        let Some(seat) = of.seat(to) else { return Ok(()) };
        let sender = Peer::Replica(of.plan.member(from));
        let checked = Message::verify(message.clone(), sender, seat.verifier.as_ref());
        if checked.is_ok() && !may_pass(message.kind()) {
            return broken("epochs", format!("machine {to} takes {message:?} of another epoch"));
        }
        self.hear(epoch, from, to, message)
    }
}

/// Messages whose signatures are looked at when they are combined, and count for nothing then; that
/// have none; and timeouts of views that are over, which say who is late.
fn may_pass(kind: MessageKind) -> bool {
    use MessageKind as Kind;
    matches!(
        kind,
        Kind::Vote
            | Kind::PhaseVote
            | Kind::SignShare
            | Kind::CommitShare
            | Kind::Timeout
            | Kind::Payload
            | Kind::Status
            | Kind::FetchViewChanges
            | Kind::Suspicion
    )
}

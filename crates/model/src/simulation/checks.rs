//! Checks of frames before the machine sees them, and what they cost.

use super::state::State;
use crate::frames::Frame;
use crate::jobs::Completion;
use crate::queue::Priority;
use crate::station::Station;
use crate::time::Nanos;
use quorate_consensus::chained;
use quorate_crypto::counts::OpCounts;
use quorate_engine::Incoming;
use quorate_types::{Event, Lane, Verified};
use std::rc::Rc;

impl State {
    /// Decodes and checks a frame, or each that was taken up with it.
    pub(crate) fn check_all(
        &mut self,
        member: usize,
        station: Station,
        frame: &Rc<Frame>,
    ) -> (Nanos, Completion) {
        let is_urgent = station == Station::Votes;
        let priority = if is_urgent { Priority::Urgent } else { Priority::Bulk };
        let (mut cost, mut events) = (0, Vec::new());
        for part in frame.each() {
            match self.check(member, station, part) {
                Ok((took, message)) => {
                    let from = part.peer;
                    cost += took;
                    events.extend(message.map(|message| Event::Message { from, message }));
                }
                Err(text) => return (0, Completion::Broken(text)),
            }
        }
        let completion = if events.is_empty() {
            Completion::Nothing
        } else {
            Completion::Checked(events, priority)
        };
        (cost, completion)
    }

    /// Checks one frame. A check that is the same for every receiver is charged to each and
    /// computed once. The error is why a message was refused.
    fn check(
        &mut self,
        member: usize,
        station: Station,
        frame: &Rc<Frame>,
    ) -> Result<(Nanos, Option<Verified<Incoming>>), String> {
        if let Some((message, cost)) = frame.known() {
            return Ok((cost, Some(message)));
        }
        let verifier = &self.nodes.validators[member].verifier;
        let checked = Verified::<Incoming>::check(frame.content(), frame.peer, verifier);
        let counted = self.counted(station);
        let net = self.prices.net;
        // A body's bytes are looked at by its hash alone.
        let decoded = if frame.lane == Lane::Bulk { 0 } else { frame.bytes };
        let codec = net.codec_us * 1e3 + decoded as f64 * net.codec_byte_ns;
        let mut cost = (codec + counted) as Nanos;
        match checked {
            Ok(message) => {
                if self.behaviour.checks_shares_at_once && is_share(&message) {
                    cost += self.prices.of(&OpCounts::one_share(self.scheme)) as Nanos;
                }
                frame.remember(&message, cost);
                Ok((cost, Some(message)))
            }
            Err(reason) if reason.is_innocent() => Ok((cost, None)),
            Err(reason) => Err(format!(
                "validator {member} refused a message of {:?} with the tag {:?}: {reason}",
                frame.peer,
                frame.tag()
            )),
        }
    }
}

/// Tells whether a message carries a share, which some check as it comes.
fn is_share(message: &Incoming) -> bool {
    use chained::Message::{PhaseVote, Timeout, Vote};
    match message {
        Incoming::Consensus(message) => {
            matches!(message.chained(), Some(Vote(_) | PhaseVote(_) | Timeout(_)))
        }
        _ => false,
    }
}

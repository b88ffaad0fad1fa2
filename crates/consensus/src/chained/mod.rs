//! The chained protocols as one machine: a block's certificate is its child's justification, and
//! each view adds one of both. [Basic HotStuff](crate::hotstuff::basic) is one of them by its
//! blocks, and goes through further phases within each view.
//!
//! [`Rules`] holds all that tells [Jolteon](crate::jolteon) and [HotStuff](crate::hotstuff) apart;
//! whatever is not in it is the same for all. What a rule is for stands with the protocol that
//! needs it.
//!
//! | what is said | where | who checks it before |
//! |---|---|---|
//! | proposals | `proposing`, `proposals` | `check` |
//! | votes | `votes`, `collecting` | `check`; shares when they are combined |
//! | timeouts, and what they make | `timeouts` | `check`; shares when they are combined |
//! | certificates | `certificates`, `deciding` | `check` |
//! | later phases of a view, and that it is over | `phases` | `check` |
//! | runs of blocks for those who missed them | `synchronise` | `runs` |
//!
//! # The end of an epoch
//!
//! A block whose header names a change of epoch is the *stop block*: the epoch's last, once it is
//! decided (Lamport, Malkhi and Zhou, "Reconfiguring a state machine", 2010). What extends it
//! orders nothing (★) and exists to decide it. One certificate may decide it together with some of
//! those: delivery ends at the stop block (★), and its record holds them, for they link it to what
//! the certificate is of. Who decided it signs nothing in the epoch any more (★), broadcasts the
//! certificate, and answers with it. The next epoch's machine begins with an
//! [`Anchor`](quorate_types::Anchor) in the place of a genesis at height zero.
//!
//! `statements` are what is signed, `records` what is written down, `state` holds the machine and
//! hands its inputs out, `recovery` starts it again.

mod accounts;
mod certificates;
mod check;
mod collecting;
mod deciding;
mod leading;
mod messages;
mod occupancy;
mod phases;
mod proposals;
mod proposing;
mod protocol_view;
mod records;
mod recovery;
mod rules;
mod runs;
mod state;
mod statements;
mod synchronise;
mod timeouts;
mod votes;

pub use check::verify;
pub(crate) use messages::genesis_id;
pub use messages::{Block, Message, PhaseVote, Proposal, Qc, Tc, Timeout, Vote};
pub use records::{DecidedBlock, LaterVotes, Lock, SafetyRecord};
pub use rules::{LaterPhases, Phase, Rules};
pub use runs::{
    Run, check_anchor, check_certified, record_id, record_payload, servable, verify_run,
};
pub use state::Chained;
pub(crate) use statements::{proposal_message, timeout_message, vote_message};

#[cfg(test)]
pub(crate) mod tests;

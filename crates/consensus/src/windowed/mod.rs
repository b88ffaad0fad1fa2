//! Slots in a window under a primary: PBFT, linear PBFT, and SBFT with its fast path.
//!
//! ```text
//!                     votes                     votes
//!  primary ─PrePrepare─▶ all ─SignShare─▶ C ─Prepare─▶ all ─CommitShare─▶ C ─Proof(slow)─▶ all
//!                                          └────────────Proof(fast)─────────────────────▶ all
//! ```
//!
//! `C` are the slot's [collectors], or, in PBFT, everybody for itself. What the protocols differ in is in [`rules`];
//! what each is, its deviations and why they are safe, in [`crate::pbft`] and [`crate::sbft`].
//!
//! Many slots are under way at once, each on its own: decided in any order, delivered in theirs.
//! A slot is known by its height. The value there is a payload, known by its digest in whatever
//! view it is proposed, so that a decision of one view is the same decision in the next.

mod check;
mod collecting;
pub mod collectors;
mod fast_timer;
mod messages;
mod normal;
pub mod outcome;
mod records;
mod recovery;
pub mod rules;
mod runs;
mod slots;
mod state;
mod status;
mod view_changes;

pub use check::verify;
pub use collectors::execution_collectors;
pub(crate) use messages::genesis_id;
pub use messages::{
    CommitShare, FastReport, Message, NewView, Path, Place, PrePrepare, Proof, Shares, SignShare,
    SlotCertificate, SlotReport, SlowReport, Status, ViewChange, digest_of, null_operation,
};
pub use records::{DecidedSlot, SlotRecord, ViewRecord};
pub use rules::{CHECKPOINT_EVERY, CONCURRENT, Rules, WINDOW};
pub use runs::{Run, check_anchor, verify_run};
pub use state::Windowed;

#[cfg(test)]
mod tests;

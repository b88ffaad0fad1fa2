//! Slots in a window under a primary: PBFT, linear PBFT, and SBFT with its fast path.
//!
//! Sources: Castro and Liskov, "Practical Byzantine Fault Tolerance" (OSDI 1999; its sections are
//! quoted as `PBFT §…`), and Golan Gueta et al., "SBFT: a Scalable and Decentralized Trust
//! Infrastructure" (paper 002; sections with Roman numerals). The switches between the protocols
//! are in [`rules`]; [`crate::pbft`] and [`crate::sbft`] have what is of one of them alone.
//!
//! # Assumptions
//!
//! At most `f` of `n` members are Byzantine; all weigh the same. Without redundancy
//! `f = ⌊(n−1)/3⌋`; with `c` redundant members `n = 3f+2c+1`. Channels authenticate their ends; the
//! network may lose, delay, repeat and reorder. Time is used for liveness alone. Thresholds come
//! from the committee ([`quorate_types::Weights`]):
//!
//! | name | votes | of `n = 3f+2c+1` | for |
//! |---|---|---|---|
//! | quorum | `⌊(n+f)/2⌋+1` | `2f+c+1` | prepare, commit, checkpoint |
//! | fast | `n−c` | `3f+c+1` | a decision in one round |
//! | honest | `n−f` | `2f+2c+1` | view changes that a new view names |
//! | fast remnant | `f+c+1` | `f+c+1` | accepted reports that may hide a fast decision |
//! | weak | `f+1` | `f+1` | joining a view change |
//!
//! # The protocol
//!
//! ```text
//!                     votes                     votes
//!  primary ─PrePrepare─▶ all ─SignShare─▶ C ─Prepare─▶ all ─CommitShare─▶ C ─Proof(slow)─▶ all
//!                                          └────────────Proof(fast)─────────────────────▶ all
//!
//!  timeout:  all ─ViewChange(v+1)─▶ all        primary(v+1) ─NewView(names n−f of them)─▶ all:
//!            the safe values are proposed again, with votes as above
//! ```
//!
//! `C` are the slot's [collectors], the primary last; in PBFT every member collects for itself and
//! no certificate travels. Many slots are under way at once, each on its own: decided in any order,
//! delivered in theirs. A slot is known by its height, its value by the digest of a payload, which
//! is the same in every view: a decision of one view is the same decision in the next.
//!
//! - **Propose** (PBFT §4.2, §V-C). The primary `v mod n` of a view that has begun fills the next
//!   slot within the window `(ls, ls+256]`, with its own vote inside the pre-prepare. The promise
//!   is durable before (★).
//! - **Accept** (PBFT §4.2, §V-C). A member votes for the pre-prepare of its view's primary, for
//!   one value a slot and view (★), once the bodies that it orders are stored (★) and the promise
//!   is durable (★). It must be within the window, beyond what the view began with (★), and not
//!   stamped ahead of the clock by more than is allowed.
//! - **Prepare** (PBFT §4.2, §V-E). A quorum's votes for one proposal are its certificate. Whoever
//!   has it and the value (★) makes both durable (★) and votes to commit, in the view of the
//!   certificate alone.
//! - **Decide** (PBFT §4.2, §V-C, §V-E). A quorum's votes to commit are a slow proof; votes to
//!   prepare by all but `c` members are a fast one, where there is a fast path. A proof decides in
//!   whatever view it comes. Two proofs of different values halt the replica.
//! - **Checkpoint** (PBFT §4.3, §V-F). A quorum that keeps the state of a height makes it stable.
//!   The window moves once that is durable (★), for promises about later slots overwrite earlier
//!   ones.
//! - **View change** (PBFT §4.4, §V-G). A member leaves a view when its timer ends, when its
//!   primary is convicted of two values, when `f+1` members suspect it, or when `f+1` members are
//!   in later ones. It makes that durable (★), reports its evidence of every slot in the window,
//!   prepared values with their payloads (★), and signs nothing below the new view from then on
//!   (★).
//! - **New view** (PBFT §4.4, §V-G). The primary names view changes of exactly `n−f` members (★)
//!   into that very view (★), by digest. Every member computes the [safe values](safe_values) from
//!   them: a proof decides; else the later of prepared and fast value is proposed again, and the
//!   prepared one at a tie (★); else the null operation. Until then nothing is signed in the view
//!   (★). Slots up to the last one that is decided or proposed again (★) are not the primary's to
//!   fill, also after a restart (★).
//! - **Stop.** A value whose header names a change of epoch makes its slot the epoch's last. A
//!   primary fills none behind it (★). What is decided behind it is void (★): proposed before it,
//!   or in another view. Who delivered it signs nothing in the epoch any more (★), and answers with
//!   the decision. The next epoch's window begins behind an [`Anchor`](quorate_types::Anchor),
//!   which is stable from the first: view changes before its first checkpoint begin there (★).
//! - **Recovery.** A member that restarts sends its votes of the current view again, once the
//!   bodies are here (★), and is bound by its promises of every view (★).
//! - **Retransmission** (§II). A member that waits for something broadcasts its status; members
//!   that have what it lacks send it.
//!
//! # Deviations from the papers
//!
//! Those of both; what is of one protocol alone is in [`crate::pbft`] and [`crate::sbft`].
//!
//! - *Proposals carry digests of bodies, which travel on their own.* A member votes only after it
//!   stored them, so that a certificate proves availability: `f+1` honest members can serve them.
//! - *Certificates sign `(v, s, d)` under a kind of their own for prepares and for commits.* Votes
//!   of one round, slot or view never count in another.
//! - *A prepared certificate takes effect with its value, and is reported with it*, as PBFT's does
//!   and paper 002's does not: members that voted for the value may have voted for others since,
//!   and keep but the last over a restart. A certificate that one member alone shows, as late as it
//!   likes, brings what has to be proposed again. Only the bodies are fetched, which a quorum
//!   stored.
//! - *Vote shares are checked when they are combined*, all at once: the channel has proven their
//!   sender, and a bad share is found by bisection and its sender reported.
//! - *A new view names view changes by digest* and carries no proposals (PBFT's `V` and `O`).
//!   Missing ones are fetched from everybody; every member computes the proposals itself, so that
//!   there is nothing to compare. It names exactly `n−f`: a primary that could name more would
//!   choose among results.
//! - *Few view changes of a member are checked* while the own view lasts, and those that a pending
//!   new view names: each holds hundreds of certificates, and a faulty member makes as many
//!   different ones as it likes.
//! - *A new view ends with the last slot that may be decided*, not with the last that a report
//!   names (paper 002: with evidence): of what lies beyond it nothing can be decided, and the
//!   primary fills it. A claim to have accepted something is refused where there is no fast path.
//! - *A member joins the `(f+1)`-th highest view* of the others, not the smallest of
//!   those above its own (PBFT §4.5.2): at least one honest member is there or further, and views
//!   that everybody has left are skipped.
//! - *The timer of a view starts once `n−f` members reached it or a later one*: view changes of
//!   members that moved on may be lost. It doubles for each failed view, but for the first failure
//!   of each of `f` members, for which a longer wait would not help.
//! - *Two signed values of a primary are shown to everybody* and end its view at once. Members that
//!   find it slow, or that it passes bodies over, say so and go on; where `f+1` do all do, and
//!   `n−f` end its view (`suspicions`). Nothing that is safe depends on when a view ends.
//! - *A proof is durable when its slot is delivered*, not when it comes: decisions stand on the
//!   promises of a quorum.
//! - *Checkpoints are made by the engine*, by shares to everybody every 128 heights, over the
//!   height and the root of its state.
//!
//! # Why it is safe
//!
//! Let a proof of `d` at slot `s` exist in view `v`, and let no earlier view have one. Two proofs
//! of one view share an honest voter, who votes for one value in it (★). In every later view honest
//! members accept nothing but `d` at `s`; then nothing else is prepared there or decided, for every
//! certificate needs honest votes. Take the first view `w > v` of which this is not so. It began
//! with view changes of `n−f` members into `w`, who signed nothing below `w` after them (★); in the
//! views between, honest members accepted `d` alone.
//!
//! - *A slow proof.* Of the quorum that voted to commit in `v`, at least `q−2f ≥ 1` honest members
//!   are named. Each had the certificate of `d` in `v` durable before it voted (★), and reports one
//!   of `v` or later. In `v` two quorums share an honest member, who votes for one value (★), and
//!   after `v` no other value was prepared: so the highest prepared value is `d`, of a view
//!   `v* ≥ v`. Another value is fast for a view `v̂` only by `f+c+1` reports, at least one of an
//!   honest member that accepted it in `v̂` or later: then `v̂ ≤ v ≤ v*`, and a tie goes to what
//!   was prepared (★).
//! - *A fast proof.* Of the `n−c` voters of `v`, at least `n−c−2f ≥ f+c+1` honest members are
//!   named, and each reports that it accepted `d` in `v` or later: `d` is fast for a view `≥ v`. At
//!   most `c` honest members voted otherwise in `v`, so that with `f` faulty ones no other value
//!   has the `f+c+1` reports that make it fast for `v` or later, nor a quorum's votes in `v`; and
//!   after `v` none was prepared.
//!
//! In both cases `w` begins with `d` at `s`, which its primary cannot replace, restarted or not
//! (★). The null operation fills a slot only if none of the `n−f` has evidence, which the same
//! counts rule out for `s`. A slot at or below a stable checkpoint is decided at a quorum, and its
//! value is fetched, not voted on. What was promised is durable before it leaves, so that a restart
//! is no more than a delay.
//!
//! # Why it is live
//!
//! After the network has become synchronous, some view has an honest primary and a timer that is
//! long enough: timers double, `f+1` members take the others along, `n−f` view changes come from
//! the honest alone, and the primary is the last collector of every slot, so that no collector has
//! to be honest. What is lost meanwhile is sent again, or fetched as history. The timer runs only
//! while something is to be decided and restarts with each delivery, so that a slow committee keeps
//! its primary.
//!
//! # Files, in layers
//!
//! No file imports one of a later layer, nor of its own but `runs`, which stands on `check`:
//!
//! 1. [`rules`], [`collectors`], `values`: switches, roles, proposals, certificates and proofs.
//! 2. `messages`, `records`, `fast_timer`, `slot_votes`: what travels, what is durable, waits,
//!    votes.
//! 3. `slots`, `reports`, `retransmission`, [`safe_values`], `check`, `runs`: evidence by slot and
//!    by member, and checks that need no state.
//! 4. `state`: the machine's fields.
//! 5. Handlers: `proposing`, `normal`, `collecting`, `deciding`, `view_changes`, `status`,
//!    `recovery`, `accounts`, `protocol_view`, and `machine`, which hands inputs to them.

mod accounts;
mod check;
mod collecting;
pub mod collectors;
mod deciding;
mod fast_timer;
mod machine;
mod messages;
mod normal;
mod occupancy;
mod proposing;
mod protocol_view;
mod records;
mod recovery;
mod reports;
mod retransmission;
pub mod rules;
mod runs;
pub mod safe_values;
mod slot_votes;
mod slots;
mod state;
mod status;
mod suspicions;
mod values;
mod view_changes;

pub use check::verify;
pub use collectors::execution_collectors;
pub use messages::{
    CommitShare, FastReport, Message, NewView, SignShare, SlotReport, SlowReport, Status,
    ViewChange,
};
pub use records::{SlotRecord, ViewRecord};
pub use rules::{CHECKPOINT_EVERY, CONCURRENT, Rules, WINDOW};
pub use runs::{Run, check_anchor, verify_run};
pub use state::Windowed;
pub(crate) use values::genesis_id;
pub use values::{
    DecidedSlot, Path, PrePrepare, Proof, Proposal, Shares, SlotCertificate, digest_of,
    null_operation,
};

#[cfg(test)]
mod tests;

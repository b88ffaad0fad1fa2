//! Threshold keys made by the members themselves: distributed key generation over the replicated
//! log.
//!
//! # Assumptions
//!
//! A committee of n members with keys of any scheme, all of one weight, of whom at most f crash or
//! lie: a founding one, or that of the next epoch of a network, which serves meanwhile. The engine
//! that orders its operations. Phases time out, as in every protocol that waits for complaints: an
//! honest member whose steps are not ordered before a quorum timed out counts as one of the f for
//! this generation. That costs availability and never secrecy.
//!
//! # Specification
//!
//! Joint-Feldman (Gennaro, Jarecki, Krawczyk, Rabin, *Secure Distributed Key Generation for
//! Discrete-Log Based Cryptosystems*, EUROCRYPT 1999, Figure 1; Pedersen, EUROCRYPT 1991) for the
//! three independent sharings of paper 002, each with a polynomial of its own. Every step is signed
//! by its member's identity key and ordered by the committee; everything below follows from the
//! order alone.
//!
//! ```text
//! joining ──▶ dealing ──▶ checking ──▶ answering ──▶ over: keys, or a failure
//!   Join        Deal        Check   │    Answer   ▲
//!   a key to    commitments, who    └─────────────┘
//!   seal for    proofs, a    dealt    nobody accused
//!               sealed share badly
//!               for each
//! ```
//!
//! * **Join** publishes a fresh key that shares are sealed for (HPKE).
//! * **Deal** publishes commitments to every coefficient, proofs that the constant ones are held,
//!   bound to generation, dealer and sharing (★), and shares sealed for each member that joined. A
//!   deal with anything wrong that everybody can see is refused, with the reason, and may be dealt
//!   again.
//! * **Check** names the dealers whose share for this member is missing, does not open or is not
//!   what they committed to (★). Naming nobody says that all is well.
//! * **Answer** opens the shares of all who complained. If one is not what was committed to (★), or
//!   the answer does not come (★), the dealer is out. A false complaint so reveals the share of its
//!   own author, who knew it, and does nothing else. A dealer that f+1 complain about is out at
//!   once: one of them is honest.
//! * **A phase ends** when all who can have done their part, or when a quorum of members *that did
//!   theirs* have said [`Step::Close`] (★). f+1 would not do: f liars and one impatient member
//!   would cut everybody else off. A quorum is always there, with f dead; and f+1 of it are honest.
//! * **Over**: the dealers that are left are qualified. Among a quorum of dealers f+1 are honest,
//!   and these are never put out; with fewer than f+1 the generation fails (★), for all of them
//!   might lie. Keys are sums over the qualified. [`Step::Done`] says that a member has its own.
//!
//! # Deviations from the paper
//!
//! * No private channels: shares travel sealed, in the order itself, so that no dealer can tell two
//!   members two things, and a member that was away catches up with what was dealt to it.
//! * Proofs of possession, which Joint-Feldman does without: whoever deals a combination of others'
//!   commitments cannot deal shares of it. With them it is refused before anybody looks at a share.
//! * The phases wait for members, not for rounds of a synchronous network.
//!
//! # Why it is safe
//!
//! Secrecy: at least one qualified dealer is honest, and of its polynomials the liars see no more
//! than f values, those sealed for them, while thresholds are f+1 and more. The complaints of
//! honest members are about dishonest dealers; all others reveal values that their authors have.
//! Agreement: qualified dealers, group keys and public shares are a function of the order.
//! Robustness: an honest member that kept up holds a good share of every qualified dealer, sealed
//! or opened. What is not given: keys that are uniform. Whoever deals last sees the others'
//! commitments, and may choose among its own, or choose to be put out. For BLS signatures that is
//! known to be harmless (ADR 24).

mod ceremony;
mod participant;
mod plan;
mod service;
mod step;
mod transcript;

pub use ceremony::{Ceremony, Failure, Generated, Reason, Refusal};
pub use participant::{MissingShares, Participant};
pub use plan::{Plan, PlanError, ceremony_committee};
pub use service::KeyGeneration;
pub use step::{Deal, Opening, Phase, SignedStep, Step};
pub use transcript::{Transcript, TranscriptError};

#[cfg(test)]
mod tests;

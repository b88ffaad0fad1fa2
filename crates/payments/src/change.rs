//! Change of a network's authorities, at the border between two epochs (ADR 42).
//!
//! # Assumptions
//!
//! Faulty authorities of each epoch weigh F of it at most while it lasts, and an order that all
//! follow: that of a committee. What former authorities' voting keys sign later is anybody's guess:
//! they may leak, all of them, once every honest authority has closed or its report counts no more,
//! since the next epoch has begun. (Whoever had those of a quorum before that could show an honest
//! one that has not closed yet what nobody voted for, and have it reported.)
//!
//! # Specification
//!
//! ```text
//! epoch e ──▶ Change ──▶ each authority closes, then reports ──▶ reports of a quorum ──▶ epoch e+1
//!             ordered     votes for nothing new (★)  Closing      any quorum (★)
//! ```
//!
//! * **Closing**: an authority that executes the change votes for nothing new in e any more,
//!   durably, and then reports what it locked in e: a root over chunks (★). What it voted for
//!   before it votes for again. One report of each counts, the first in the order (★).
//! * **Candidates** of an input are the transactions that reports name for it and that may have
//!   been certified: those who name one with the same inputs, and those who did not report, weigh
//!   q − F (★). One candidate locks the input; where there are several, none is voted for until
//!   more reports are there.
//! * **Certificates of e count in e+1** once those who name the transaction with the same inputs
//!   weigh q − F, and nothing else may have taken one of them (★).
//!
//! # Why any quorum of reports will do
//!
//! Let T be certified in e. Honest authorities of q − F voted for it, at all of its inputs, before
//! they closed; so it is named, and possible, in every quorum of reports, and a candidate at each
//! of its inputs whichever reports an authority of e+1 read. No other transaction over one of them
//! is voted for. Let T count because q − F name it: whom another quorum of reports does not name it
//! by is unheard there, so that it is possible there too. So nothing else over its inputs counts,
//! or is voted for, anywhere. Leaked keys add no reports; so they, an owner and F liars certify
//! nothing that no honest authority found valid.
//!
//! Authorities may therefore begin with different reports, and take in more later, in any order: a
//! liar that withholds the chunks of its report holds nobody up.
//!
//! # Deviations from the design's first form
//!
//! * Not the first quorum of reports in the order, but any: see above.
//! * Reports hold no transactions. That an honest authority vouches for one replaces them; what
//!   fewer name is locked, and checked like any order when it is shown again.
//! * A report is of what was locked in its epoch: what earlier ones left is not told again.

mod border;
mod claims;
mod locks;
mod step;
mod union;

pub use border::{Border, BorderRefusal};
pub use claims::{Claimed, Claims};
pub use locks::{CHUNK_ENTRIES, LockEntry, chunk_leaf, decode_chunk, encode_chunk};
pub use step::{Change, ChangeError, ChangeStep, Closing, Entered};
pub use union::{Before, Counting, Inheritance, Inherited, Prospect};

#[cfg(test)]
mod tests;

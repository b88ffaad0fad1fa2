//! Payments without consensus: coins that are final in one round trip (paper 003, corrected).
//!
//! A payment spends *outputs* of earlier transactions and makes new ones. Authorities agree on no
//! order: each locks the inputs of a valid transaction, once and for ever, and votes for it; a
//! quorum's votes are a certificate. Two quorums share an honest authority, which votes for one
//! transaction an input. So no input is ever in two certified transactions, and whoever holds a
//! certificate needs to ask nobody. Whoever signs two transactions over one coin may lock it for
//! good, and hurts nobody else.
//!
//! ```text
//! payer ── Transaction ──▶ every authority: check, lock, sync, vote
//!       ◀───── Vote ─────
//!   quorum of votes = TxCertificate ──▶ payee: Coin, with its certificate and path. Final.
//! ```
//!
//! # Deviations from the paper, and why
//!
//! * A vote is for the whole transaction, and outputs are named by it (★). In the paper a vote
//!   covers an output alone, whose name its payer picks: money can be made from nothing, and
//!   anybody can freeze another's coin by spending one of the same name. Both attacks are tests
//!   here.
//! * Conservation, overflow, counts, order of inputs and the owner's signature are checked; the
//!   paper has no rule for them.
//! * A repeated transaction is voted for again; locks are durable; a lost answer or a restart loses
//!   nothing.
//! * Trees tell leaves from nodes, and a root that was checked counts for its signer alone (★).
//!
//! # Where to begin
//!
//! [`Transaction`] and its rules; [`Authority`] and [`Payer`], the two machines; [`Votes`], the
//! three schemes; [`OrderVerifier`], what is checked before the authority sees an order.
//!
//! Pure: no clock, socket, file, thread or randomness.

mod authority;
pub mod change;
pub mod committee;
mod former;
mod frozen;
mod lookup;
mod network;
mod orders;
mod output;
mod payer;
mod receipt;
mod recent;
mod records;
pub mod release;
mod scheme;
mod spent;
#[cfg(test)]
mod testing;
mod transaction;
pub mod votes;
mod wire;

pub use authority::{Authority, AuthorityEffect, AuthorityEvent, SignJob, Signed};
pub use former::is_counted;
pub use frozen::{Frozen, ReleaseEntry};
pub use lookup::LookupFailed;
pub use network::{AuthorityEntry, Endowment, Network, NetworkError, NetworkFile};
pub use orders::{CheckedOrder, OrderVerifier, Orders, check_orders};
pub use output::{Output, OutputId, TxId};
pub use payer::{CountJob, Payer, PayerEffect, PayerEvent, PaymentOutcome};
pub use quorate_crypto::mutants;
pub use receipt::{Memo, Paid, PayReceipt, ReceiptError};
pub use records::{
    CoinStatus, NOTE_BYTES_MAX, Note, Numbered, REQUEST_ITEMS_MAX, RecordContent, RecordKind,
    RecordName, RecordRefusal, ReportPart, WalletRecord, WalletReply, WalletRequest,
};
pub use scheme::{PayScheme, UnknownPayScheme};
pub use spent::{ClosingLocks, ColdSet, Lock, LockStatus, Locked, SpentSet};
pub use transaction::{
    Coin, Core, CoreKind, Equivocation, Input, Invalid, Opening, Origin, Proof, Source, Transaction,
};
pub use votes::{Counted, MerkleVote, QuorumVotes, TxCertificate, Vote, Votes};
pub use wire::{
    ANSWER_BYTES_MAX, Answer, ORDER_BYTES_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, Verdict,
};

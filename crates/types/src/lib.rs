//! The shared vocabulary of Quorate, and its two contracts.
//!
//! Start with [`machine`]: every protocol, replica and client is a [`machine::Machine`], fed inputs
//! and drained of effects by a host that owns the clock, the sockets and the disk. [`service`] is
//! the contract of what is replicated. The rest names what both of them speak about.
//!
//! This crate is pure: no clock, no sockets, no threads, no ambient randomness.

pub mod agreed_settings;
pub mod anchor;
pub mod as_text;
pub mod availability;
pub mod body;
mod bounded;
pub mod change;
pub mod committee;
pub mod executed;
pub mod exported_state;
pub mod from_state;
mod halt;
pub mod hand_over;
pub mod handed_over;
pub mod history;
pub mod ids;
pub mod machine;
pub mod payload;
pub mod receipt;
pub mod request;
pub mod results;
pub mod service;
pub mod sign;
pub mod signed_hand_over;
pub mod snapshot;
pub mod trusting_period;
pub mod verified;
pub mod versions;
pub mod voucher;
pub mod weights;

pub use agreed_settings::{AgreedSettings, SettingError};
pub use anchor::Anchor;
pub use availability::Available;
pub use body::{Body, BodyRef};
pub use change::{Acceptance, Approval, Change, ChangeError, SignedChange};
pub use committee::{Committee, CommitteeError, CommitteeFile, Groups, Member, Purpose, deal_keys};
pub use executed::Header;
pub use exported_state::{CertifiedBy, ExportedState, ExportedStateError};
pub use from_state::FromState;
pub use hand_over::HandOver;
pub use handed_over::{HandedOver, HandedOverError};
pub use history::History;
pub use ids::{BlockId, ClientId, Epoch, EpochId, Height, NetworkId, ReplicaId, Time, View};
pub use machine::{Effect, Event, Lane, Machine, Recipients};
pub use payload::{Payload, PayloadHeader};
pub use receipt::Receipt;
pub use request::{Reply, Request, RequestError};
pub use results::Results;
pub use service::{Operation, Outcome, Service, put_in_force};
pub use sign::{Kind, Scope};
pub use signed_hand_over::SignedHandOver;
pub use snapshot::Manifest;
pub use trusting_period::{DAY_MS, TrustingPeriod};
pub use verified::{Peer, Rejected, Verified, Verify};
pub use versions::{LacksVersion, Versions};
pub use voucher::Voucher;
pub use weights::{Weights, WeightsError, WeightsWarning};

//! Payment authorities and their payers as processes: the machines of [`quorate_payments`] over TLS
//! and a real disk.
//!
//! [`Authority`] runs one shard of one authority; [`PayClient`] shows transactions to all of
//! them; [`PayTestnet`] writes a network's files. Authorities talk to each other at the end of an
//! epoch alone ([`run_authority`]). What they have to agree on, releases of locked coins and
//! changes of the authorities, a committee orders ([`ReleaseCommittee`]), which each follows.
//!
//! ```text
//! readers (tokio) ──▶ check (N threads) ──▶ machine ──▶ log ──▶ answers (tokio)
//!                       ▲────── Sign ──────────┘         │
//!                                                        └── one sync for all that is queued,
//!                                                            then the votes behind it (★)
//! ```

mod authority;
mod border_watch;
mod client;
mod committee;
mod config;
mod epochs;
mod evidence;
mod filled;
mod follower;
mod following;
mod locks;
mod mark;
mod network_files;
mod newcomer;
mod order;
mod queue;
mod records;
mod releases;
mod requests;
mod run;
mod server;
mod status;
mod testnet;
mod wallet_requests;

pub use authority::Authority;
pub use border_watch::BorderWatch;
pub use client::{PayClient, PayFeed, PreparedOrder};
pub use committee::{CommitteeError, ReleaseCommittee};
pub use config::{AuthorityConfig, AuthorityConfigError};
pub use epochs::{
    Beginning, Begun, ClosedReport, Ended, NextEpoch, PayEpochError, begin, change_beside, close,
    read_change, report_folder, write_change,
};
pub use filled::SpentFill;
pub use follower::ReleaseStatus;
pub use following::{FollowError, Followed, NetworkFollower, follow_network, look_for_changes};
pub use locks::{Locks, recover};
pub use mark::Start;
pub use network_files::{NetworkChain, read_network, read_network_before, read_network_file};
pub use releases::ReleaseFeed;
pub use run::run_authority;
pub use status::AuthorityStatus;
pub use testnet::{PayTestnet, PayTestnetPlan};

use bytes::{BufMut, Bytes, BytesMut};
use quorate_engine::Frame;
use quorate_payments::{
    ANSWER_BYTES_MAX, Answer, Numbered, ORDER_BYTES_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX,
    WalletReply,
};

/// Tag of a payer's transaction.
const ORDER: u8 = 1;
/// Tag of an authority's answer.
const ANSWER: u8 = 2;
/// Tag of a payer's transaction with the record that its wallet keeps of it.
const RECORDED_ORDER: u8 = 3;
/// Tag of a wallet's request.
const REQUEST: u8 = 4;
/// Tag of an authority's reply to a request.
const REPLY: u8 = 5;

/// Message of an authority to a payer.
enum FromAuthority {
    Answer(Answer),
    Reply(Numbered<WalletReply>),
}

impl FromAuthority {
    /// Decodes a frame; `None` where no authority made it.
    fn decode(frame: &Bytes) -> Option<Self> {
        match *frame.first()? {
            ANSWER => borsh::from_slice(content(frame)).ok().map(Self::Answer),
            REPLY => borsh::from_slice(content(frame)).ok().map(Self::Reply),
            _ => None,
        }
    }
}

/// A frame: length, tag, content.
fn frame(tag: u8, content: &impl borsh::BorshSerialize) -> Frame {
    let mut bytes = BytesMut::with_capacity(512);
    bytes.put_u32_le(0);
    bytes.put_u8(tag);
    let mut writer = bytes.writer();
    borsh::to_writer(&mut writer, content).expect("encoding into memory cannot fail");
    let mut bytes = writer.into_inner();
    let length = u32::try_from(bytes.len() - 4).expect("frames are megabytes at most");
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Frame(vec![bytes.freeze()])
}

/// Content of a frame, behind its tag.
fn content(frame: &Bytes) -> &[u8] {
    &frame[1..]
}

/// Largest content of a payer's frame with this tag.
fn payer_bytes_max(tag: u8) -> Option<usize> {
    match tag {
        ORDER => Some(ORDER_BYTES_MAX),
        RECORDED_ORDER | REQUEST => Some(REQUEST_BYTES_MAX),
        _ => None,
    }
}

/// Largest content of an authority's frame with this tag.
fn authority_bytes_max(tag: u8) -> Option<usize> {
    match tag {
        ANSWER => Some(ANSWER_BYTES_MAX),
        REPLY => Some(REPLY_BYTES_MAX),
        _ => None,
    }
}

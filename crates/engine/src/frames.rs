//! Kinds of frames: the one table of their numbers, caps, lanes and conditions.
//!
//! A frame's content begins with its tag. Transports cap a frame by its tag before they allocate,
//! hosts choose by it the thread that checks the frame, and [`crate::Verifier`] refuses by it,
//! before anything is decoded, what no member sends under its own settings.

use crate::chain_piggyback::{CHAIN_BYTES_MAX, Truncation};
use crate::settings::{Availability, Settings};
use quorate_consensus::Family;
use quorate_types::{Body, Committee, Lane, Manifest, Payload, Rejected, Request, SignedChange};

/// Tag of a frame: the first byte of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FrameTag {
    /// Message of the protocol alone.
    Consensus = 1,
    /// Message of the protocol with the bodies that it orders.
    Inline = 2,
    /// Body from its author or a member that was asked for it.
    Body = 3,
    /// Names of bodies that the sender stores.
    Announce = 4,
    /// Names of bodies that the sender lacks.
    FetchBodies = 5,
    /// Query for decided blocks, towards a certified one.
    FetchBlocks = 6,
    /// Run of blocks in answer.
    Blocks = 7,
    /// Request of a client.
    Request = 8,
    /// Signed reply of one member to a client.
    Reply = 9,
    /// Refusal of a request for lack of room.
    Busy = 10,
    /// Query for the snapshots beyond a height.
    FetchSnapshots = 11,
    /// Manifest of a snapshot, with the proof that its height is decided.
    Offer = 12,
    /// Query for one chunk of a snapshot.
    FetchChunk = 13,
    /// Chunk of a snapshot in answer.
    Chunk = 14,
    /// Acknowledgement of stored bodies to their author.
    Acknowledgement = 15,
    /// Certificate that an author's bodies are available.
    Available = 16,
    /// Query for an author's last certificate of availability.
    FetchAvailable = 17,
    /// Blocks and bodies ahead of the message that rests on them.
    Chain = 18,
    /// Share over the root that a height came to.
    ExecutionShare = 19,
    /// Certificate of the root that a height came to.
    ExecutionProof = 20,
    /// Results of a request with their proof.
    CertifiedReply = 21,
    /// Query of a client about the state.
    Query = 22,
    /// Answer to a query about the state, with its proof.
    QueryResponse = 23,
    /// Share over a state that replaces the history before it.
    CheckpointShare = 24,
    /// Question of a member after its own newest signatures.
    OwnQuestion = 25,
    /// Newest signatures of a member that asked for them.
    OwnSignatures = 26,
    /// Refusal of a request of which the service admits nothing.
    NotAdmitted = 27,
    /// Change of committee that a client brings.
    Change = 28,
    /// Answer to whoever brought a change.
    ChangeAnswer = 29,
    /// Share over what an epoch ended with.
    HandOverShare = 30,
    /// Certificate of what an epoch ended with.
    HandOver = 31,
}

/// Setting without which no member sends a frame. Each is one that every member must say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSetting {
    /// [`Settings::inline_bodies`], switched on for proposals that carry bodies.
    InlineBodies,
    /// [`Comparison::truncation`](crate::Comparison::truncation), other than ids.
    Truncation,
    /// [`Settings::availability`] that is proven by certificates.
    Availability,
    /// [`Settings::execution_certificates`], or a protocol that brings them along.
    ExecutionCertificates,
    /// [`Settings::protocol`] of the windowed family, whose window moves by checkpoints.
    Protocol,
}

impl FrameSetting {
    /// Field of [`Settings`] that decides.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InlineBodies => "inline_bodies",
            Self::Truncation => "truncation",
            Self::Availability => "availability",
            Self::ExecutionCertificates => "execution_certificates",
            Self::Protocol => "protocol",
        }
    }

    /// Returns `true` if members with these settings send such frames.
    #[must_use]
    pub fn is_on(self, settings: &Settings) -> bool {
        match self {
            Self::InlineBodies => settings.inline_bodies,
            Self::Truncation => settings.comparison.truncation != Truncation::Ids,
            Self::Availability => settings.availability == Availability::Certified,
            Self::ExecutionCertificates => settings.certifies_execution(),
            Self::Protocol => matches!(settings.protocol.family(), Family::Windowed(_)),
        }
    }
}

/// Rules for all frames with one tag.
#[derive(Clone, Copy, Debug)]
pub struct FrameRules {
    /// Tag that the rules are for.
    pub tag: FrameTag,
    /// Cap on the content in bytes, tag included, before anything is allocated.
    pub bytes_max: usize,
    /// Lane of the frame; `None` where the message inside chooses it.
    pub lane: Option<Lane>,
    /// `true` for what carries bodies, blocks, requests or state, each long to check: whatever lane
    /// a member puts it in, it stays out of the votes' way.
    pub bulky: bool,
    /// Setting that such frames need; `None` where they may always come.
    pub setting: Option<FrameSetting>,
}

impl FrameRules {
    const fn small(tag: FrameTag, bytes_max: usize, lane: Lane) -> Self {
        Self { tag, bytes_max, lane: Some(lane), bulky: false, setting: None }
    }

    const fn bulky(tag: FrameTag, bytes_max: usize, lane: Lane) -> Self {
        Self { bulky: true, ..Self::small(tag, bytes_max, lane) }
    }

    /// In the lane of the protocol's message that the frame carries.
    const fn as_its_message(self) -> Self {
        Self { lane: None, ..self }
    }

    const fn with(self, setting: FrameSetting) -> Self {
        Self { setting: Some(setting), ..self }
    }

    /// Returns `true` if such frames may be checked ahead of bodies and requests: their place is a
    /// lane of the protocol's, and they are short to check.
    #[must_use]
    pub const fn may_be_urgent(&self) -> bool {
        !self.bulky && !matches!(self.lane, Some(Lane::Bulk | Lane::Client))
    }

    /// Returns `true` if the row keeps to the caps on what is checked ahead.
    const fn is_sound(&self) -> bool {
        let bytes_max = match self.tag {
            FrameTag::Consensus => CONSENSUS_BYTES_MAX,
            _ => URGENT_BYTES_MAX,
        };
        !self.may_be_urgent() || self.bytes_max <= bytes_max
    }
}

/// Most bytes of a frame that is checked ahead, but for the protocol's own messages, among which a
/// view change may be larger.
const URGENT_BYTES_MAX: usize = 256 * 1024;

/// A row that lets more onto the thread that checks votes does not compile.
const _: () = {
    let mut row = 0;
    while row < TABLE.len() {
        assert!(TABLE[row].is_sound(), "a frame that is checked ahead has too high a cap");
        row += 1;
    }
};

/// Most names in one [`FrameTag::Announce`] or [`FrameTag::FetchBodies`].
pub(crate) const NAMES_MAX: usize = Payload::BODIES_MAX;
/// Most bodies that a certificate of availability names, and so the most of its own that an author
/// has in view.
pub(crate) const AVAILABLE_BODIES_MAX: usize = 1_024;

const MIB: usize = 1024 * 1024;
/// Bytes of a view change of 256 slots, each with Ed25519's certificate of 209 members.
const CONSENSUS_BYTES_MAX: usize = 4 * MIB;
const NAMES_BYTES_MAX: usize = 16 + NAMES_MAX * 42;
/// Bytes of a query, its number included.
const QUERY_BYTES_MAX: usize = 8 * 1024;
const AVAILABLE_BYTES_MAX: usize = 64 + AVAILABLE_BODIES_MAX * 32 + Committee::MEMBERS_MAX * 72;

/// Statements in the newest signatures of a member: those that it made alone, and what the last
/// certificates prove.
pub(crate) const OWN_STATEMENTS_MAX: usize = 12;
/// Bytes of one, with a certificate of all members.
const OWN_STATEMENT_BYTES_MAX: usize = 512 + Committee::MEMBERS_MAX * 72;
const OWN_SIGNATURES_BYTES_MAX: usize = 512 + OWN_STATEMENTS_MAX * OWN_STATEMENT_BYTES_MAX;

/// The table, in the order of the tags' numbers.
const TABLE: [FrameRules; 31] = {
    use FrameSetting as Setting;
    use FrameTag as Tag;
    use Lane::{Bulk, Client, Consensus};
    [
        FrameRules::small(Tag::Consensus, CONSENSUS_BYTES_MAX, Consensus).as_its_message(),
        FrameRules::bulky(Tag::Inline, CONSENSUS_BYTES_MAX + Body::BYTES_MAX, Consensus)
            .as_its_message()
            .with(Setting::InlineBodies),
        FrameRules::bulky(Tag::Body, 64 + Body::BYTES_MAX, Bulk),
        FrameRules::small(Tag::Announce, NAMES_BYTES_MAX, Consensus),
        FrameRules::small(Tag::FetchBodies, NAMES_BYTES_MAX, Consensus),
        FrameRules::small(Tag::FetchBlocks, 128, Consensus),
        FrameRules::bulky(Tag::Blocks, 5 * MIB, Bulk),
        FrameRules::bulky(Tag::Request, 1 + Request::WIRE_BYTES_MAX, Client),
        FrameRules::small(Tag::Reply, MIB, Client),
        FrameRules::small(Tag::Busy, 512, Client),
        FrameRules::small(Tag::FetchSnapshots, 128, Consensus),
        // 64 decided records at most, and a manifest of 24,576 hashes.
        FrameRules::bulky(Tag::Offer, 6 * MIB, Bulk),
        FrameRules::small(Tag::FetchChunk, 128, Consensus),
        FrameRules::bulky(Tag::Chunk, 64 + Manifest::CHUNK_BYTES, Bulk),
        FrameRules::small(Tag::Acknowledgement, 128, Consensus).with(Setting::Availability),
        FrameRules::small(Tag::Available, AVAILABLE_BYTES_MAX, Consensus)
            .with(Setting::Availability),
        FrameRules::small(Tag::FetchAvailable, 128, Consensus).with(Setting::Availability),
        // Decided blocks with their bodies, undecided ones, and the bodies of these.
        FrameRules::bulky(Tag::Chain, 3 * CHAIN_BYTES_MAX, Consensus).with(Setting::Truncation),
        // Always: of the heights of snapshots.
        FrameRules::small(Tag::ExecutionShare, 256, Consensus),
        FrameRules::small(Tag::ExecutionProof, 256 + AVAILABLE_BYTES_MAX, Consensus),
        FrameRules::small(Tag::CertifiedReply, MIB, Client).with(Setting::ExecutionCertificates),
        // Always: a client is told that the committee certifies nothing.
        FrameRules::small(Tag::Query, 1 + QUERY_BYTES_MAX, Client),
        FrameRules::small(Tag::QueryResponse, MIB, Client).with(Setting::ExecutionCertificates),
        FrameRules::small(Tag::CheckpointShare, 256, Consensus).with(Setting::Protocol),
        FrameRules::small(Tag::OwnQuestion, 128, Consensus),
        FrameRules::bulky(Tag::OwnSignatures, OWN_SIGNATURES_BYTES_MAX, Consensus),
        FrameRules::small(Tag::NotAdmitted, 512, Client),
        FrameRules::bulky(Tag::Change, 1 + SignedChange::BYTES_MAX, Client),
        FrameRules::small(Tag::ChangeAnswer, 512, Client),
        FrameRules::small(Tag::HandOverShare, 512, Consensus),
        FrameRules::small(Tag::HandOver, 256 + AVAILABLE_BYTES_MAX, Consensus),
    ]
};

impl FrameTag {
    /// All tags in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|rules| rules.tag)
    }

    /// Tag with this number, if there is one.
    #[must_use]
    pub fn parse(byte: u8) -> Option<Self> {
        let at = usize::from(byte).checked_sub(1)?;
        TABLE.get(at).map(|rules| rules.tag)
    }

    /// Tag of a frame by its content; `None` for an empty one and for an unknown number.
    #[must_use]
    pub fn of(content: &[u8]) -> Option<Self> {
        Self::parse(*content.first()?)
    }

    /// Number of the tag on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Row of the table for this tag.
    #[must_use]
    pub const fn rules(self) -> &'static FrameRules {
        &TABLE[self as usize - 1]
    }
}

/// Returns `true` if a frame is checked ahead of bodies and requests: it came by a lane of the
/// protocol's, and its tag's row allows it. By a lane alone a member would bring anything there.
#[must_use]
pub fn is_urgent(lane: Lane, content: &[u8]) -> bool {
    let allowed = FrameTag::of(content).is_some_and(|tag| tag.rules().may_be_urgent());
    matches!(lane, Lane::Votes | Lane::Consensus) && allowed
}

/// Tags that a receiver takes, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllowedFrames(u32);

impl AllowedFrames {
    /// Frames that members with these settings send.
    pub(crate) fn by(settings: &Settings) -> Self {
        let sent = |rules: &&FrameRules| rules.setting.is_none_or(|it| it.is_on(settings));
        Self::of(TABLE.iter().filter(sent))
    }

    /// All frames there are.
    pub(crate) fn all() -> Self {
        Self::of(TABLE.iter())
    }

    fn of<'a>(rules: impl Iterator<Item = &'a FrameRules>) -> Self {
        Self(rules.fold(0, |bits, rules| bits | Self::bit(rules.tag)))
    }

    const fn bit(tag: FrameTag) -> u32 {
        1 << tag.number()
    }

    /// Refuses a frame that the settings rule out.
    pub(crate) fn check(self, tag: FrameTag) -> Result<(), Rejected> {
        match tag.rules().setting {
            Some(setting) if self.0 & Self::bit(tag) == 0 => {
                Err(Rejected::RuledOut { frame: format!("{tag:?}"), setting: setting.name() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

//! Members that do not follow the protocol, built by wrapping the machine that does.

mod liar;
mod lies;
mod reach;
mod slot_lies;

pub(crate) use liar::Liar;
pub use reach::Twins;

use serde::{Deserialize, Serialize};

/// How a member behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// As it should.
    #[default]
    Honest,
    /// It hears everything and never says a word.
    Silent,
    /// It takes part in everything but proposes nothing.
    SilentLeader,
    /// With every statement it makes up more of them for views that nobody will reach.
    FutureFlood,
    /// With every vote it sends a certificate over something else that it alone signed.
    Forger,
    /// After a view was given up it proposes a block that extends less than it must.
    StaleLeader,
    /// It proposes and disseminates, and never votes nor gives up.
    Mute,
    /// It answers clients with results that it made up, the same as all who do.
    FalseReplies,
    /// It names snapshots that nobody took and serves chunks that are not what they should be, and says
    /// that it keeps nothing.
    BadServer,
    /// Two machines run under its key, each believing that it is the only one, and each reaching
    /// only some of the others: it equivocates in every way that two correct replicas with one name
    /// can.
    Twin,
    /// After some certificate that it alone collected it never says a word again.
    CrashAtCertificate,
    /// It proposes one block to some and another to others, or to each member one of its own.
    Equivocator,
    /// What is meant for all it sends to some, others each time.
    SelectiveSend,
    /// It keeps certificates to itself and shows them much later.
    WithheldCertificate,
    /// Its blocks have a height, a parent or a certificate that do not belong together.
    WrongParent,
    /// With each vote it votes for something else in the same view, and shows both to all.
    DoubleVote,
    /// It gives up a view and then votes in it.
    TimeoutThenVote,
    /// It reports a lower certificate than it has.
    LyingHighQc,
    /// It shows timeout certificates that were tampered with.
    PoisonedTc,
    /// Its shares are garbage, too short, of another epoch, or come twice.
    BadShares,
    /// It names other signers in certificates than signed them.
    BitmapMalleator,
    /// Its blocks name more bodies than a block may.
    Oversized,
    /// Its bodies come with requests that were tampered with, or that another body had.
    BadBodies,
    /// It orders its own bodies and nobody else's.
    Censor,
    /// With everything it says it asks everybody for all sorts of things.
    SyncAmplifier,
    /// It forgets its promises whenever it starts again, and goes on signing.
    Amnesiac,
}

impl Behaviour {
    /// Whether its machine speaks for itself.
    #[must_use]
    pub fn says_what_its_machine_says(self) -> bool {
        matches!(self, Self::Honest | Self::Twin | Self::Amnesiac)
    }

    /// Whether it says what its machine says too.
    pub(crate) fn adds_to_the_truth(self) -> bool {
        matches!(
            self,
            Self::DoubleVote
                | Self::TimeoutThenVote
                | Self::PoisonedTc
                | Self::BadBodies
                | Self::SyncAmplifier
        )
    }

    /// What several members that behave so are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest members",
            Self::Silent => "silent members",
            Self::SilentLeader => "silent leaders",
            Self::FutureFlood => "future floods",
            Self::Forger => "forgers",
            Self::StaleLeader => "stale leaders",
            Self::Mute => "mute members",
            Self::FalseReplies => "liars to clients",
            Self::BadServer => "bad servers",
            Self::Twin => "twins",
            Self::CrashAtCertificate => "crashes at a certificate",
            Self::Equivocator => "equivocators",
            Self::SelectiveSend => "selective senders",
            Self::WithheldCertificate => "withheld certificates",
            Self::WrongParent => "wrong parents",
            Self::DoubleVote => "double voters",
            Self::TimeoutThenVote => "votes after timeouts",
            Self::LyingHighQc => "lying high certificates",
            Self::PoisonedTc => "poisoned timeout certificates",
            Self::BadShares => "bad shares",
            Self::BitmapMalleator => "malleated bitmaps",
            Self::Oversized => "oversized blocks",
            Self::BadBodies => "bad bodies",
            Self::Censor => "censors",
            Self::SyncAmplifier => "sync amplifiers",
            Self::Amnesiac => "amnesiacs",
        }
    }

    /// What faulty members are drawn from, where all weigh the same; [`Behaviour::BadServer`] comes
    /// with little retention.
    pub const FAULTY: [Self; 23] = [
        Self::Silent,
        Self::SilentLeader,
        Self::FutureFlood,
        Self::Forger,
        Self::StaleLeader,
        Self::Mute,
        Self::Twin,
        Self::CrashAtCertificate,
        Self::Equivocator,
        Self::SelectiveSend,
        Self::WithheldCertificate,
        Self::WrongParent,
        Self::DoubleVote,
        Self::TimeoutThenVote,
        Self::LyingHighQc,
        Self::PoisonedTc,
        Self::BadShares,
        Self::BitmapMalleator,
        Self::Oversized,
        Self::BadBodies,
        Self::Censor,
        Self::SyncAmplifier,
        Self::Amnesiac,
    ];

    /// What they are drawn from where a coalition of light members may be faulty at once.
    pub const FAULTY_IF_WEIGHTED: [Self; 5] =
        [Self::FalseReplies, Self::Twin, Self::Forger, Self::Mute, Self::StaleLeader];
}

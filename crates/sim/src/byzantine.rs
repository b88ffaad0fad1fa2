//! Members that do not follow the protocol, built by wrapping the machine that does.

mod floods;
mod impostor;
mod liar;
mod lies;
mod pace;
mod reach;
mod slot_lies;
mod variants;

pub use impostor::Impostor;
pub(crate) use liar::Liar;
pub use reach::Twins;

use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Behaviour of a member, honest or in one way faulty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// Follows the protocol in all it does.
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
    /// After a view timed out it proposes a block that extends less than it must.
    StaleLeader,
    /// It proposes and disseminates, and never votes nor times out.
    Mute,
    /// It answers clients with results that it made up, the same as all who do.
    FalseReplies,
    /// It names snapshots that nobody took and serves chunks that are not what they should be, and
    /// says that it keeps nothing.
    BadServer,
    /// Two machines run under its key, each believing that it is the only one, and each reaching
    /// only some of the others: it equivocates in every way that two correct replicas with one name
    /// can.
    Twin,
    /// After some certificate that it alone collected it never says a word again.
    CrashAtCertificate,
    /// It proposes one block to some and another to others, or to each member one of its own.
    Equivocator,
    /// Sends what is meant for all to some, others each time.
    SelectiveSend,
    /// It keeps certificates to itself and shows them much later.
    WithheldCertificate,
    /// Its blocks have a height, a parent or a certificate that do not belong together.
    WrongParent,
    /// With each vote it votes for something else in the same view, and shows both to all.
    DoubleVote,
    /// It signs a timeout of a view and then votes in it.
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
    /// With every statement it sends certificates that have everything but valid signatures, in
    /// every kind of message that shows one.
    CertificateFlood,
    /// With every statement it sends again what was said before, by itself or by others.
    ReplayFlood,
    /// With every statement it votes for many things that nobody proposed, in the view and the
    /// slots that are under way.
    VoteFlood,
    /// With every statement it leaves views: those that are over, or one after another to come.
    TimeoutFlood,
    /// With every statement it disseminates the requests of its last body under new numbers.
    BodyFlood,
    /// The same, and of all its bodies the present leader sees none: what the others hold it has to
    /// fetch.
    BodyHider,
    /// It sends its own statements with a byte changed, and does not sign them again.
    Mutator,
    /// It signs its own statements with a byte changed.
    SigningMutator,
    /// It says one thing to one half of the members and to the other half the same with a byte
    /// changed, both well signed.
    TwoFaced,
    /// It says everything to members late, and nothing out of order.
    LateSender,
    /// Its proposals are late, and nothing else.
    SlowLeader,
    /// It proposes the oldest body that waits, alone and just before its view would time out, and
    /// nothing else until that is decided.
    MiserlyLeader,
    /// It sends everything twice.
    DoubleSender,
    /// It never says a word to some of the members.
    Partisan,
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Behaviour {
    type Err = Error;

    /// Parses its name as scenario files have it.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::deserialize(name.into_deserializer())
    }
}

impl Behaviour {
    /// Returns `true` if its machine speaks for itself.
    #[must_use]
    pub fn says_what_its_machine_says(self) -> bool {
        matches!(self, Self::Honest | Self::Twin | Self::Amnesiac)
    }

    /// Returns `true` if it says what its machine says too.
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

    /// All faulty behaviours: those that members are drawn from, the slow leader that is a miser
    /// besides, the flood of bodies that hides them, and those that come with little retention or
    /// with weights.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::MiserlyLeader, Self::BodyHider, Self::FalseReplies, Self::BadServer];
        Self::FAULTY.into_iter().chain(others)
    }

    /// Returns `true` if it sends many messages with each statement.
    pub(crate) fn is_flood(self) -> bool {
        matches!(
            self,
            Self::CertificateFlood
                | Self::ReplayFlood
                | Self::VoteFlood
                | Self::TimeoutFlood
                | Self::BodyFlood
                | Self::BodyHider
        )
    }

    /// Name for several members that behave so, in statistics.
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
            Self::CertificateFlood => "floods of certificates",
            Self::ReplayFlood => "floods of replays",
            Self::VoteFlood => "floods of votes",
            Self::TimeoutFlood => "floods of timeouts",
            Self::BodyFlood => "floods of bodies",
            Self::BodyHider => "hiders of bodies",
            Self::Mutator => "mutators",
            Self::SigningMutator => "mutators that sign",
            Self::TwoFaced => "two-faced members",
            Self::LateSender => "late senders",
            Self::SlowLeader => "slow leaders",
            Self::MiserlyLeader => "miserly leaders",
            Self::DoubleSender => "double senders",
            Self::Partisan => "partisans",
        }
    }

    /// Behaviours that faulty members are drawn from, where all weigh the same;
    /// [`Behaviour::BadServer`] comes with little retention.
    pub const FAULTY: [Self; 35] = [
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
        Self::CertificateFlood,
        Self::ReplayFlood,
        Self::VoteFlood,
        Self::TimeoutFlood,
        Self::BodyFlood,
        Self::Mutator,
        Self::SigningMutator,
        Self::TwoFaced,
        Self::LateSender,
        Self::SlowLeader,
        Self::DoubleSender,
        Self::Partisan,
    ];

    /// Behaviours that they are drawn from where a coalition of light members may be faulty at
    /// once.
    pub const FAULTY_IF_WEIGHTED: [Self; 5] =
        [Self::FalseReplies, Self::Twin, Self::Forger, Self::Mute, Self::StaleLeader];
}

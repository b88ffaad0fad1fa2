//! Fault events: what is done to validators on purpose, and when.

use std::fmt;
use std::str::FromStr;

/// Validator by its number, or by its role when the moment comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The validator with this number.
    Member(u16),
    /// Whoever leads the current view. Leaders rotate quickly: by the time that anything is done to
    /// it, it has usually led.
    Leader,
    /// The one whose turn has just passed, and so is the longest away.
    Follower,
    /// All members together: whose committee changes.
    Committee,
}

/// A validator and a moment, written `I@T`: T seconds into the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Validator to which it is done.
    pub who: Target,
    /// Seconds after the measured window opens.
    pub second: f64,
}

/// A validator that is stopped for a while, written `I@T+D`: for D seconds from T seconds into the
/// measured window on. Its process keeps its connections and its memory, and says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// Validator, and the moment at which it is stopped.
    pub at: At,
    /// For how many seconds.
    pub for_s: f64,
}

/// A validator that begins to lie, written `I=BEHAVIOUR@T`: from T seconds into the measured window
/// on.
#[derive(Clone, Debug, PartialEq)]
pub struct Lie {
    /// Validator, by its number, and the moment at which it begins.
    pub at: At,
    /// Behaviour of the validator, by the name that `quorate run` knows.
    pub behaviour: String,
}

impl Lie {
    /// Number of the validator that lies.
    #[must_use]
    pub fn liar(&self) -> Option<u16> {
        match self.at.who {
            Target::Member(id) => Some(id),
            Target::Leader | Target::Follower | Target::Committee => None,
        }
    }
}

/// A link that is cut, written `A-B@T`: in both directions and for good, from T seconds into the
/// measured window on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// The two ends, by their numbers.
    pub ends: (u16, u16),
    /// Seconds after the measured window opens.
    pub second: f64,
}

/// A text that is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEvent {
    /// The text is not `I@T`.
    #[error(
        "'{0}' is not I@T: a validator's number, 'leader' or 'follower', '@', and seconds, as in 0@5"
    )]
    At(String),
    /// The text is not `I@T+D`.
    #[error("'{0}' is not I@T+D: a validator, '@', seconds, '+', and seconds, as in 0@5+3")]
    Pause(String),
    /// The text is not `I=BEHAVIOUR@T`.
    #[error("'{0}' is not I=BEHAVIOUR@T: a validator's number, '=', a behaviour, '@', and seconds")]
    Lie(String),
    /// The text is not `A-B@T`.
    #[error(
        "'{0}' is not A-B@T: two validators' numbers, '-' between, '@', and seconds, as in 0-2@5"
    )]
    Cut(String),
}

impl FromStr for Lie {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        let parse = || {
            let (who, rest) = text.split_once('=')?;
            let (behaviour, second) = rest.split_once('@')?;
            let at: At = format!("{who}@{second}").parse().ok()?;
            let lie = Self { at, behaviour: behaviour.to_owned() };
            (lie.liar().is_some() && !behaviour.is_empty()).then_some(lie)
        };
        parse().ok_or_else(|| NotAnEvent::Lie(text.to_owned()))
    }
}

impl FromStr for Cut {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        let parse = || {
            let (ends, second) = text.split_once('@')?;
            let (one, other) = ends.split_once('-')?;
            let ends: (u16, u16) = (one.parse().ok()?, other.parse().ok()?);
            let second = parse_seconds(second)?;
            (ends.0 != ends.1).then_some(Self { ends, second })
        };
        parse().ok_or_else(|| NotAnEvent::Cut(text.to_owned()))
    }
}

impl FromStr for At {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        let parse = || {
            let (who, second) = text.split_once('@')?;
            Some(Self { who: parse_target(who)?, second: parse_seconds(second)? })
        };
        parse().ok_or_else(|| NotAnEvent::At(text.to_owned()))
    }
}

impl FromStr for Pause {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        let parse = || {
            let (at, for_s) = text.rsplit_once('+')?;
            Some(Self { at: at.parse().ok()?, for_s: parse_seconds(for_s)? })
        };
        parse().ok_or_else(|| NotAnEvent::Pause(text.to_owned()))
    }
}

fn parse_target(text: &str) -> Option<Target> {
    match text {
        "leader" => Some(Target::Leader),
        "follower" => Some(Target::Follower),
        number => number.parse().ok().map(Target::Member),
    }
}

fn parse_seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|second: &f64| second.is_finite() && *second >= 0.0)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(id) => write!(f, "{id}"),
            Self::Leader => f.write_str("leader"),
            Self::Follower => f.write_str("follower"),
            Self::Committee => f.write_str("committee"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.who, self.second)
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.at, self.for_s)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ends: (one, other), second } = self;
        write!(f, "{one}-{other}@{second}")
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At { who, second } = self.at;
        write!(f, "{who}={}@{second}", self.behaviour)
    }
}

/// Action on a validator's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// SIGKILL, for good or until a restart.
    Kill,
    /// A new process for one that was killed.
    Restart,
    /// SIGSTOP, until it is resumed.
    Pause,
    /// SIGCONT, after a pause.
    Resume,
    /// SIGUSR1 to one that was started to lie from then on.
    Lie,
    /// Strangers fill its doors, until the end.
    Crowd,
    /// Nothing passes between it and this one from then on.
    CutFrom(u16),
    /// The change with this index is brought.
    Change(usize),
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Lie => "lie",
            Self::Crowd => "crowd",
            Self::CutFrom(_) => "cut",
            Self::Change(_) => "change",
        }
    }

    /// The other end of a link that is cut.
    pub(super) fn other_end(self) -> Option<u16> {
        match self {
            Self::CutFrom(other) => Some(other),
            Self::Kill
            | Self::Restart
            | Self::Pause
            | Self::Resume
            | Self::Lie
            | Self::Crowd
            | Self::Change(_) => None,
        }
    }

    /// Returns `true` if it harms a validator that must be there for it, rather than helping one
    /// that is not.
    pub(super) fn harms(self) -> bool {
        matches!(self, Self::Kill | Self::Pause)
    }
}

/// One thing to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) at: At,
    pub(super) action: Action,
}

#[cfg(test)]
mod tests;

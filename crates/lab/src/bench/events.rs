//! What is done to validators on purpose, and when.

use std::fmt;
use std::str::FromStr;

/// Which validator: by its number, or by what it does when its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The validator with this number.
    Member(u16),
    /// Whoever leads the current view. Leaders rotate quickly: by the time that anything is done to
    /// it, it has usually led.
    Leader,
    /// The one whose turn has just passed, and so is the longest away.
    Follower,
}

/// A validator and a moment, written `I@T`: T seconds into the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Which validator.
    pub who: Who,
    /// Seconds after the measured window opens.
    pub second: f64,
}

/// A validator that is stopped for a while, written `I@T+D`: for D seconds from T seconds into the
/// measured window on. Its process keeps its connections and its memory, and says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// Which, and from when on.
    pub at: At,
    /// For how many seconds.
    pub for_s: f64,
}

/// A text that is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEvent {
    /// Not `I@T`.
    #[error(
        "'{0}' is not I@T: a validator's number, 'leader' or 'follower', '@', and seconds, as in 0@5"
    )]
    At(String),
    /// Not `I@T+D`.
    #[error("'{0}' is not I@T+D: a validator, '@', seconds, '+', and seconds, as in 0@5+3")]
    Pause(String),
}

impl FromStr for At {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Self, NotAnEvent> {
        let parse = || {
            let (who, second) = text.split_once('@')?;
            Some(Self { who: parse_who(who)?, second: parse_seconds(second)? })
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

fn parse_who(text: &str) -> Option<Who> {
    match text {
        "leader" => Some(Who::Leader),
        "follower" => Some(Who::Follower),
        number => number.parse().ok().map(Who::Member),
    }
}

fn parse_seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|second: &f64| second.is_finite() && *second >= 0.0)
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(id) => write!(f, "{id}"),
            Self::Leader => f.write_str("leader"),
            Self::Follower => f.write_str("follower"),
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

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// SIGKILL.
    Kill,
    /// A new process for one that was killed.
    Restart,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
}

impl Deed {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// Whether it harms a validator that must be there for it, rather than helping one that is not.
    pub(super) fn harms(self) -> bool {
        matches!(self, Self::Kill | Self::Pause)
    }
}

/// One thing to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) at: At,
    pub(super) deed: Deed,
}

/// Everything to be done, the latest first.
pub(super) fn plan(kills: &[At], restarts: &[At], pauses: &[Pause]) -> Vec<Event> {
    let one = |deed| move |&at: &At| Event { at, deed };
    let mut events: Vec<Event> = kills.iter().map(one(Deed::Kill)).collect();
    events.extend(restarts.iter().map(one(Deed::Restart)));
    for pause in pauses {
        let end = At { second: pause.at.second + pause.for_s, ..pause.at };
        events.push(Event { at: pause.at, deed: Deed::Pause });
        events.push(Event { at: end, deed: Deed::Resume });
    }
    events.sort_by(|a, b| b.at.second.total_cmp(&a.at.second));
    events
}

#[cfg(test)]
mod tests;

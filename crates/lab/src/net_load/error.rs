//! Errors of a load on a running committee.

/// Reason for which a load gave no result. Each message says what to do or where to look.
#[derive(Debug, thiserror::Error)]
pub enum NetLoadError {
    /// The options contradict each other, leave their ranges or do not fit the committee.
    #[error("{0}")]
    Config(String),
    /// The sessions cannot be opened.
    #[error("cannot open the client sessions: {0}")]
    Client(String),
    /// Too few validators are reached for anything to be ordered.
    #[error(
        "after {seconds} s one session reaches {reached} of {members} validators, which are no \
         quorum: are they running, and is this their committee file? See `quorate status`"
    )]
    NotConnected {
        /// Time waited, in seconds.
        seconds: u64,
        /// Validators that the worst session reaches.
        reached: usize,
        /// Validators of the committee.
        members: usize,
    },
    /// Members do not let these sessions in.
    #[error(
        "validators turn this client away: {0}. Where they let in listed clients alone, name a \
         listed client's key by --key"
    )]
    TurnedAway(String),
    /// The network's epochs cannot be followed.
    #[error("{0}")]
    Outdated(String),
    /// The accounts of the EVM ledger were not funded.
    #[error("cannot fund the accounts of the load: {0}")]
    Funds(String),
    /// The moment to begin is past.
    #[error(
        "the moment to begin was {late_s:.1} s ago, once the sessions were open and all was made \
         ready: name a later one"
    )]
    Late {
        /// Seconds from then until all was ready.
        late_s: f64,
    },
    /// Somebody asked for an early end with Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl NetLoadError {
    /// Returns `true` if the options are at fault rather than the run.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Config(_))
    }
}

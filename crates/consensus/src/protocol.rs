//! The protocol machines as one type.

use crate::{Family, Input, Output, ProtocolConfig, ProtocolView, chained, leader, windowed};
use quorate_types::{Machine, Time};

/// The protocols, one line each.
#[derive(Debug)]
pub enum Protocol {
    /// Jolteon or HotStuff, chained or basic.
    Chained(Box<chained::Chained>),
    /// PBFT, linear PBFT or SBFT.
    Windowed(Box<windowed::Windowed>),
}

impl Protocol {
    /// A replica of the protocol that the verifier's committee runs, before its first input.
    #[must_use]
    pub fn new(config: ProtocolConfig) -> Self {
        match config.verifier.protocol().family() {
            Family::Chained(_) => Self::Chained(Box::new(chained::Chained::new(config))),
            Family::Windowed(rules) => {
                Self::Windowed(Box::new(windowed::Windowed::new(config, rules)))
            }
        }
    }

    /// With leaders chosen by somebody else than the protocol's own election, before its first
    /// input: the same for all members.
    #[must_use]
    pub fn with_leaders(self, leaders: Box<dyn leader::LeaderElection>) -> Self {
        match self {
            Self::Chained(machine) => Self::Chained(Box::new(machine.with_leaders(leaders))),
            // Who leads a view is part of what its messages are checked for.
            Self::Windowed(_) => self,
        }
    }

    /// Read-only state for whoever drives the machine.
    #[must_use]
    pub fn state(&self) -> &dyn ProtocolView {
        match self {
            Self::Chained(machine) => machine.as_ref(),
            Self::Windowed(machine) => machine.as_ref(),
        }
    }
}

impl Machine for Protocol {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Chained(machine) => machine.handle(now, input),
            Self::Windowed(machine) => machine.handle(now, input),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Chained(machine) => machine.handle_timeout(now),
            Self::Windowed(machine) => machine.handle_timeout(now),
        }
    }

    fn poll(&mut self) -> Option<Output> {
        match self {
            Self::Chained(machine) => machine.poll(),
            Self::Windowed(machine) => machine.poll(),
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        match self {
            Self::Chained(machine) => machine.next_timeout(),
            Self::Windowed(machine) => machine.next_timeout(),
        }
    }
}

//! Messages between protocol machines, one variant for each protocol.

use crate::{ProtocolKind, chained, windowed};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::{BodyRef, Lane, View};

/// Message from one protocol machine to others of its protocol.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// Message of Jolteon, in two phases.
    Jolteon(chained::Message),
    /// Message of chained HotStuff, in three phases.
    HotStuff(chained::Message),
    /// Message of basic HotStuff, whose phases share a view.
    HotStuffBasic(chained::Message),
    /// Message of PBFT, with votes to everybody.
    Pbft(windowed::Message),
    /// Message of linear PBFT, with votes to collectors.
    LinearPbft(windowed::Message),
    /// Message of linear PBFT with the fast path.
    LinearPbftFast(windowed::Message),
    /// Message of SBFT, with redundant members.
    Sbft(windowed::Message),
}

impl Message {
    /// Lane in which the transport carries it.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self.by_family() {
            FamilyMessage::Chained(message) => message.lane(),
            FamilyMessage::Windowed(message) => message.lane(),
        }
    }

    /// The protocol whose message it is.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        match self {
            Self::Jolteon(_) => ProtocolKind::Jolteon,
            Self::HotStuff(_) => ProtocolKind::HotStuff,
            Self::HotStuffBasic(_) => ProtocolKind::HotStuffBasic,
            Self::Pbft(_) => ProtocolKind::Pbft,
            Self::LinearPbft(_) => ProtocolKind::LinearPbft,
            Self::LinearPbftFast(_) => ProtocolKind::LinearPbftFast,
            Self::Sbft(_) => ProtocolKind::Sbft,
        }
    }

    /// Message in the words of its family.
    #[must_use]
    pub fn by_family(&self) -> FamilyMessage<'_> {
        match self {
            Self::Jolteon(message) | Self::HotStuff(message) | Self::HotStuffBasic(message) => {
                FamilyMessage::Chained(message)
            }
            Self::Pbft(message)
            | Self::LinearPbft(message)
            | Self::LinearPbftFast(message)
            | Self::Sbft(message) => FamilyMessage::Windowed(message),
        }
    }

    /// The message in the words of the chained family; `None` for the other's.
    #[must_use]
    pub fn chained(&self) -> Option<&chained::Message> {
        match self.by_family() {
            FamilyMessage::Chained(message) => Some(message),
            FamilyMessage::Windowed(_) => None,
        }
    }

    /// The message in the words of the windowed family; `None` for the other's.
    #[must_use]
    pub fn windowed(&self) -> Option<&windowed::Message> {
        match self.by_family() {
            FamilyMessage::Windowed(message) => Some(message),
            FamilyMessage::Chained(_) => None,
        }
    }

    pub(crate) fn into_windowed(self) -> Option<windowed::Message> {
        match self {
            Self::Pbft(message)
            | Self::LinearPbft(message)
            | Self::LinearPbftFast(message)
            | Self::Sbft(message) => Some(message),
            Self::Jolteon(_) | Self::HotStuff(_) | Self::HotStuffBasic(_) => None,
        }
    }

    pub(crate) fn into_chained(self) -> Option<chained::Message> {
        match self {
            Self::Jolteon(message) | Self::HotStuff(message) | Self::HotStuffBasic(message) => {
                Some(message)
            }
            Self::Pbft(_) | Self::LinearPbft(_) | Self::LinearPbftFast(_) | Self::Sbft(_) => None,
        }
    }

    /// The view that it is about: a proposal's, a vote's or a timeout's own, otherwise that of the
    /// highest certificate in it.
    #[must_use]
    pub fn view(&self) -> View {
        match self.by_family() {
            FamilyMessage::Chained(message) => message.view(),
            FamilyMessage::Windowed(message) => message.view(),
        }
    }

    /// Returns `true` if it tells how far its sender is: a chained protocol's proposals, new-views
    /// and timeouts do.
    #[must_use]
    pub fn reports(&self) -> bool {
        self.chained().is_some_and(chained::Message::reports)
    }

    /// The bodies that a proposal orders; `None` for any other message.
    #[must_use]
    pub fn proposed_bodies(&self) -> Option<&[BodyRef]> {
        match self.by_family() {
            FamilyMessage::Chained(chained::Message::Proposal(p)) => Some(&p.block.payload.bodies),
            FamilyMessage::Windowed(windowed::Message::PrePrepare(p)) => Some(&p.payload.bodies),
            _ => None,
        }
    }
}

/// A message in the words of its family.
#[derive(Clone, Copy, Debug)]
pub enum FamilyMessage<'a> {
    /// Message of Jolteon or a HotStuff.
    Chained(&'a chained::Message),
    /// Message of a PBFT or of SBFT.
    Windowed(&'a windowed::Message),
}

impl ProtocolKind {
    /// A statement of a chained protocol's machine as it travels.
    ///
    /// # Panics
    /// When the protocol is of another family.
    #[must_use]
    pub fn message(self, message: chained::Message) -> Message {
        match self {
            Self::Jolteon => Message::Jolteon(message),
            Self::HotStuff => Message::HotStuff(message),
            Self::HotStuffBasic => Message::HotStuffBasic(message),
            _ => unreachable!("{self} is no chained protocol"),
        }
    }

    /// A statement of a windowed protocol's machine as it travels.
    ///
    /// # Panics
    /// When the protocol is of another family.
    #[must_use]
    pub fn windowed(self, message: windowed::Message) -> Message {
        match self {
            Self::Pbft => Message::Pbft(message),
            Self::LinearPbft => Message::LinearPbft(message),
            Self::LinearPbftFast => Message::LinearPbftFast(message),
            Self::Sbft => Message::Sbft(message),
            _ => unreachable!("{self} is no windowed protocol"),
        }
    }
}

#[cfg(test)]
mod tests;
